//! Huge pages for programs that ask for them.

use crate::feature::{AskedBy, Brings, Feature, MachineConfigs, Masters, Maturity};
use crate::machine_config::{File, Payload, Unit};

pub(crate) static FEATURE: Feature = Feature {
    name: "transparentHugePages",
    choice: |features| features.transparent_huge_pages,
    does: "gives transparent huge pages to processes that request them, such as virtual machines, and collects huge pages faster",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-thp-tuning"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Machines(MachineConfigs {
        name: |role| format!("99-{role}-thp-tuning"),
        payload: |_| payload(),
        masters: Masters::AsWorkers,
    }),
};

fn payload() -> Payload {
    Payload {
        files: vec![File::program("/usr/local/bin/kubevirt-thp-tune.py", include_str!("files/kubevirt-thp-tune.py"))],
        units: vec![Unit::service("kubevirt-thp-tune.service", include_str!("files/kubevirt-thp-tune.service"))],
        ..Payload::default()
    }
}
