//! Shutdown of virtual machines before their machine shuts down.

use crate::feature::{AskedBy, Brings, Feature, MachineConfigs, Masters, Maturity};
use crate::machine_config::{File, Payload, Unit};

pub(crate) static FEATURE: Feature = Feature {
    name: "drainShutdownInhibitor",
    choice: |features| features.drain_shutdown_inhibitor,
    does: "shuts down the virtual machines of a machine before the machine itself shuts down",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-vm-drain-shutdown-inhibitor"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Machines(MachineConfigs {
        name: |role| format!("99-{role}-vm-drain-shutdown-inhibitor"),
        payload: |_| payload(),
        masters: Masters::AsWorkers,
    }),
};

fn payload() -> Payload {
    Payload {
        files: vec![
            File::text("/etc/systemd/logind.conf.d/10-inhibit-delay.conf", include_str!("files/10-inhibit-delay.conf")),
            File::program(
                "/usr/local/bin/vm-drain-shutdown-inhibitor.py",
                include_str!("files/vm-drain-shutdown-inhibitor.py"),
            ),
            File::program("/usr/local/bin/vm-drain-shut-down-vms.py", include_str!("files/vm-drain-shut-down-vms.py")),
        ],
        units: vec![Unit::service(
            "vm-drain-shutdown-inhibitor.service",
            include_str!("files/vm-drain-shutdown-inhibitor.service"),
        )],
        ..Payload::default()
    }
}
