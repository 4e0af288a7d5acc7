//! Swap for virtual machines.

use crate::feature::{AskedBy, Brings, Condition, Feature, MachineConfigs, Masters, Maturity};
use crate::machine_config::{File, Payload, Unit};

/// A machine that has neither the partition nor the file stays without swap.
pub(crate) static FEATURE: Feature = Feature {
    name: "swap",
    choice: |features| features.swap,
    does: "lets virtual machines use the partition labeled OCPSWAP, or the file /var/tmp/ocpswap.file, as swap, and gives system services priority over them",
    maturity: Maturity::GeneralAvailability,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[Condition::KubeletsReadDropIns],
    needs: &[],
    brings: Brings::Machines(MachineConfigs {
        name: |role| format!("90-{role}-swap-online"),
        payload: |_| payload(),
        // Case M14: swap next to etcd.
        masters: Masters::OnlyIfEnabledExplicitly {
            because: "etcd and the API server would share a disk with swap",
            note: "if a control-plane machine has such a partition or file, its own pods may swap too: create neither there unless the disk is fast enough for etcd and swap. On a release whose control-plane kubelets do not read settings from /etc/openshift/kubelet.conf.d, swap stays off on these machines",
        },
    }),
};

fn payload() -> Payload {
    Payload {
        kernel_arguments: Vec::new(),
        files: vec![
            File::text("/etc/openshift/kubelet.conf.d/90-swap.conf", include_str!("files/90-swap.conf")),
            File::program("/usr/local/bin/kubevirt-swap-on.py", include_str!("files/kubevirt-swap-on.py")),
            File::program(
                "/usr/local/bin/kubevirt-tune-watermarks.py",
                include_str!("files/kubevirt-tune-watermarks.py"),
            ),
            File::program(
                "/usr/local/bin/kubevirt-io-latency-setup.py",
                include_str!("files/kubevirt-io-latency-setup.py"),
            ),
        ],
        units: vec![
            Unit::service("swap-disk-enable.service", include_str!("files/swap-disk-enable.service")),
            Unit::service("swap-file-enable.service", include_str!("files/swap-file-enable.service")),
            Unit::service("kubevirt-tune-watermarks.service", include_str!("files/kubevirt-tune-watermarks.service")),
            Unit::service("kubevirt-io-latency-setup.service", include_str!("files/kubevirt-io-latency-setup.service")),
            Unit::service(
                "remove-swap-for-burstable-hook.service",
                include_str!("files/remove-swap-for-burstable-hook.service"),
            ),
            Unit::service("remove-oci-hook-swap.service", include_str!("files/remove-oci-hook-swap.service")),
            Unit::drop_in("system.slice", "10-kubevirt-protect.conf", include_str!("files/10-kubevirt-protect.conf")),
            Unit::drop_in(
                "kubepods.slice",
                "10-kubevirt-io-priority.conf",
                include_str!("files/10-kubevirt-io-priority.conf"),
            ),
        ],
    }
}
