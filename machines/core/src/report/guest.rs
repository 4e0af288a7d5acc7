//! What the running instance reports of its guest.

use machines_api::status::{InterfaceStatus, MachineStatus};
use serde_json::Value;

use crate::ownership::text;

fn non_empty(object: &Value, pointer: &str) -> Option<String> {
    Some(text(object, pointer).to_owned()).filter(|value| !value.is_empty())
}

/// Adds node, addresses, interfaces and names to `status`.
pub(super) fn describe(vmi: Option<&Value>, status: &mut MachineStatus) {
    let Some(vmi) = vmi else { return };
    status.node_name = non_empty(vmi, "/status/nodeName");
    status.hostname = non_empty(vmi, "/status/guestOSInfo/hostname");
    status.operating_system = non_empty(vmi, "/status/guestOSInfo/name");
    status.operating_system_version = non_empty(vmi, "/status/guestOSInfo/version");
    status.kernel_version = non_empty(vmi, "/status/guestOSInfo/kernelRelease");
    status.architecture = non_empty(vmi, "/spec/architecture");
    let on_pod_network = |name: &str| {
        let networks = vmi.pointer("/spec/networks").and_then(Value::as_array).into_iter().flatten();
        networks.into_iter().any(|network| text(network, "/name") == name && network.get("pod").is_some())
    };
    for interface in vmi.pointer("/status/interfaces").and_then(Value::as_array).into_iter().flatten() {
        let name = text(interface, "/name");
        let (six, four): (Vec<_>, Vec<_>) = addresses(interface).into_iter().partition(|address| address.contains(':'));
        // Link-local addresses reach nobody from outside.
        let six: Vec<_> = six.into_iter().filter(|address| !address.to_ascii_lowercase().starts_with("fe80")).collect();
        if !name.is_empty() {
            let list =
                if on_pod_network(name) { &mut status.private_ip_addresses } else { &mut status.public_ip_addresses };
            list.extend(four.iter().chain(&six).cloned());
        }
        status.ip_addresses.extend(four.iter().cloned());
        status.ipv6_addresses.extend(six.iter().cloned());
        status.network_interfaces.push(InterfaceStatus {
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            mac_address: non_empty(interface, "/mac"),
            ip_addresses: four,
            ipv6_addresses: six,
            state: non_empty(interface, "/linkState"),
        });
    }
    let six = status.ipv6_addresses.clone();
    status.ip_addresses.extend(six);
    for disk in &mut status.disks {
        let volumes = vmi.pointer("/status/volumeStatus").and_then(Value::as_array).into_iter().flatten();
        let volume = volumes.into_iter().find(|volume| Some(text(volume, "/name")) == disk.name.as_deref());
        disk.device = volume.and_then(|volume| non_empty(volume, "/target"));
    }
}

fn addresses(interface: &Value) -> Vec<String> {
    let all = interface.get("ipAddresses").and_then(Value::as_array).filter(|all| !all.is_empty());
    match all {
        Some(all) => all.iter().filter_map(|address| address.as_str().map(str::to_owned)).collect(),
        None => non_empty(interface, "/ipAddress").into_iter().collect(),
    }
}
