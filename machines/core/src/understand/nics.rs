//! Network interfaces.

use std::collections::BTreeSet;

use machines_api::MachineSpec;

use crate::names;
use crate::problem::{Problem, Reason};

/// An interface that a Machine asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedNic {
    /// Its name, and that of its network in the virtual machine.
    pub name: String,
    /// Its place in `spec.networks`; `None` if the Machine lists none.
    pub index: Option<usize>,
    /// The network that it is on.
    pub network: NetworkRef,
    /// Model of the card.
    pub model: String,
    /// The MAC address, if the Machine names one.
    pub mac_address: Option<String>,
}

/// The network of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkRef {
    /// The pod network.
    Pod,
    /// A NetworkConfiguration or NetworkAttachmentDefinition.
    Named(String),
    /// The VLAN of a NetworkNamespace.
    Namespace(String),
}

/// The models that KubeVirt 1.9 knows (pkg/virt-api, K10).
const MODELS: [&str; 7] = ["virtio", "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"];
/// The interface of a Machine that lists none.
const DEFAULT: &str = "default";

/// The interfaces of a Machine.
pub(super) fn nics(spec: &MachineSpec, problems: &mut Vec<Problem>) -> Vec<WantedNic> {
    let listed = spec.networks.as_deref().unwrap_or_default();
    if listed.is_empty() {
        let namespace = spec.network.as_ref().and_then(|network| network.network_namespace_name.clone());
        let network = namespace.map_or(NetworkRef::Pod, NetworkRef::Namespace);
        let model = MODELS[0].to_owned();
        return vec![WantedNic { name: DEFAULT.to_owned(), index: None, network, model, mac_address: None }];
    }
    let mut found: Vec<WantedNic> = Vec::new();
    let (mut names_seen, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for (index, nic) in listed.iter().enumerate() {
        let path = |field: &str| format!("spec.networks[{index}].{field}");
        let mut refuse =
            |field: &str, message: String| problems.push(Problem::new(Reason::InvalidSpec, path(field), message));
        if !names::is_interface(&nic.name) {
            refuse(
                "name",
                format!(
                    "{:?} can't be the name of an interface: use at most 63 letters, digits, dashes and underscores",
                    nic.name
                ),
            );
        } else if !names_seen.insert(nic.name.clone()) {
            refuse("name", format!("another interface is called {}: give each its own name", nic.name));
        }
        let model = nic.model.clone().unwrap_or_else(|| MODELS[0].to_owned());
        if !MODELS.contains(&model.as_str()) {
            refuse("model", format!("{model:?} is not one of {}", MODELS.join(", ")));
        }
        let mac_address = nic.mac_address.clone().filter(|address| !address.is_empty());
        if let Some(address) = &mac_address {
            if !names::is_mac_address(address) {
                refuse(
                    "macAddress",
                    format!("{address:?} is not the MAC address of one card: write one such as 52:54:00:12:34:56"),
                );
            } else if !addresses.insert(address.to_ascii_lowercase().replace('-', ":")) {
                refuse("macAddress", format!("another interface has {address} too: give each its own"));
            }
        }
        let network = match nic.network_name.as_deref() {
            None | Some("") => NetworkRef::Pod,
            Some(name) => {
                let (namespace, name_only) = name.split_once('/').unwrap_or(("a", name));
                if !names::is_label(namespace) || !names::is_subdomain(name_only) {
                    refuse("networkName", format!("{name:?} can't be the name of a network: check its spelling"));
                }
                NetworkRef::Named(name.to_owned())
            }
        };
        if network == NetworkRef::Pod && found.iter().any(|other| other.network == NetworkRef::Pod) {
            refuse(
                "networkName",
                "another interface is on the pod network already, and only one can be: name a network".to_owned(),
            );
        }
        found.push(WantedNic { name: nic.name.clone(), index: Some(index), network, model, mac_address });
    }
    found
}
