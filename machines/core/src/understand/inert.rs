//! Fields that have no effect, with the reason: they are named, never ignored in silence.

use machines_api::MachineSpec;

use super::boot::address;

/// The fields of `spec` that are set and have no effect here.
pub(super) fn without_effect(spec: &MachineSpec) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    let mut note = |is_set: bool, path: &str, reason: &'static str| {
        if is_set {
            found.push((path.to_owned(), reason));
        }
    };
    note(spec.name.is_some(), "spec.name", "the virtual machine is called as the Machine is");
    note(spec.machine_type.is_some(), "spec.machineType", "the machine type is spec.domain.machine.type");
    note(spec.user_data.is_some(), "spec.userData", "user data is spec.cloudInit.userData");
    note(spec.ssh_keys.is_some(), "spec.sshKeys", "keys belong into spec.cloudInit.userData");
    note(spec.security_groups.is_some(), "spec.securityGroups", "KubeVirt has none: use a NetworkPolicy");
    note(spec.tags.is_some(), "spec.tags", "other programs read them");
    note(spec.monitoring.is_some(), "spec.monitoring", "KubeVirt's own metrics cover every machine");
    note(spec.backup.is_some(), "spec.backup", "backups are made by other programs");
    note(spec.provider_config.is_some(), "spec.providerConfig", "the operator works on the cluster in which it runs");
    if let Some(system) = &spec.os {
        let for_people = "it is for people";
        note(system.family.is_some(), "spec.os.family", for_people);
        note(system.distribution.is_some(), "spec.os.distribution", for_people);
        note(system.version.is_some(), "spec.os.version", for_people);
        note(system.architecture.is_some(), "spec.os.architecture", "the cluster's architecture is used");
        note(system.image_family.is_some(), "spec.os.imageFamily", for_people);
        let no_address = "it is not an address that begins with http://, https:// or docker://";
        let named = |value: &Option<String>| value.as_deref().is_some_and(|value| address(value).is_none());
        note(named(&system.image_id), "spec.os.imageID", no_address);
        note(named(&system.iso_uri), "spec.os.isoUri", no_address);
        let both = |value: &Option<String>| value.as_deref().is_some_and(|value| address(value).is_some());
        note(both(&system.image_id) && both(&system.iso_uri), "spec.os.isoUri", "spec.os.imageID wins");
    }
    if let Some(network) = &spec.network {
        let elsewhere = "interfaces and addresses belong into spec.networks and spec.cloudInit.networkData";
        note(network.vpc.is_some(), "spec.network.vpc", "KubeVirt has none");
        note(network.subnet.is_some(), "spec.network.subnet", elsewhere);
        note(network.assign_public_ip.is_some(), "spec.network.assignPublicIP", elsewhere);
        note(network.private_ip.is_some(), "spec.network.privateIP", elsewhere);
        note(network.public_ip.is_some(), "spec.network.publicIP", elsewhere);
        note(network.interfaces.is_some(), "spec.network.interfaces", elsewhere);
        let overridden = network.network_namespace_name.is_some() && spec.networks.iter().flatten().next().is_some();
        note(overridden, "spec.network.networkNamespaceName", "spec.networks wins");
    }
    let class = "it is a property of the storage class";
    for (index, disk) in spec.disks.iter().flatten().enumerate() {
        let path = |field: &str| format!("spec.disks[{index}].{field}");
        note(disk.device.is_some(), &path("device"), "the guest names its devices itself");
        note(disk.encrypted.is_some(), &path("encrypted"), class);
        note(disk.iops.is_some(), &path("iops"), class);
        note(disk.throughput.is_some(), &path("throughput"), class);
        let is_bus = |name: &str| matches!(name, "virtio" | "sata" | "scsi" | "");
        let other = disk.bus.as_deref().is_some_and(|name| !is_bus(name));
        note(other, &path("type"), "it is none of virtio, sata, scsi: the disk is on virtio");
    }
    if let Some(data) = &spec.cloud_init {
        let written = data.user_data.as_deref().is_some_and(|text| !text.is_empty())
            || data.user_data_base64.as_deref().is_some_and(|text| !text.is_empty());
        let wins = "user data that is written in the Machine wins";
        note(written && data.secret_ref.is_some(), "spec.cloudInit.secretRef", wins);
        note(written && data.user_data_secret_ref.is_some(), "spec.cloudInit.userDataSecretRef", wins);
        note(written && data.user_data_config_map_ref.is_some(), "spec.cloudInit.userDataConfigMapRef", wins);
        let referenced = data.secret_ref.is_some() || data.user_data_secret_ref.is_some();
        let secret_wins = "the Secret with user data wins";
        note(
            !written && referenced && data.user_data_config_map_ref.is_some(),
            "spec.cloudInit.userDataConfigMapRef",
            secret_wins,
        );
        let written = data.network_data.as_deref().is_some_and(|text| !text.is_empty())
            || data.network_data_base64.as_deref().is_some_and(|text| !text.is_empty());
        let wins = "network data that is written in the Machine wins";
        note(written && data.network_data_secret_ref.is_some(), "spec.cloudInit.networkDataSecretRef", wins);
        note(written && data.network_data_config_map_ref.is_some(), "spec.cloudInit.networkDataConfigMapRef", wins);
        let referenced = data.network_data_secret_ref.is_some() && data.network_data_config_map_ref.is_some();
        note(!written && referenced, "spec.cloudInit.networkDataConfigMapRef", "the Secret with network data wins");
    }
    found
}
