//! Kernel samepage merging, for pages of zeros alone.

use crate::feature::{AskedBy, Brings, Condition, Feature, MachineConfigs, Masters, Maturity};
use crate::machine_config::{File, Payload, Unit};

/// The samepage merging of KubeVirt merges all equal pages: whoever has configured it has another
/// purpose in mind.
pub(crate) static FEATURE: Feature = Feature {
    name: "ksmZeroPages",
    choice: |features| features.ksm_zero_pages,
    does: "lets the kernel merge zero-filled memory pages, and no other pages",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-ksm-zero-only"),
    named_by: None,
    conditions: &[Condition::HyperConvergedLacks {
        v1: "/spec/virtualization/ksmConfiguration",
        v1beta1: "/spec/ksmConfiguration",
    }],
    needs: &[],
    brings: Brings::Machines(MachineConfigs {
        name: |role| format!("99-{role}-ksm-zero-only"),
        payload: |_| payload(),
        masters: Masters::AsWorkers,
    }),
};

fn payload() -> Payload {
    Payload {
        files: vec![File::program("/usr/local/bin/kubevirt-ksm-tune.py", include_str!("files/kubevirt-ksm-tune.py"))],
        units: vec![Unit::service("kubevirt-ksm-tune.service", include_str!("files/kubevirt-ksm-tune.service"))],
        ..Payload::default()
    }
}
