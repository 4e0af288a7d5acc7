//! What a Machine asks for, in terms of the objects that the cluster has.

use std::collections::BTreeMap;

use machines_api::cloud_init::CloudInitType;

use crate::facts::{Facts, Network, StorageClass};
use crate::names;
use crate::problem::{Problem, Reason};
use crate::understand::{DataSource, NetworkRef, Wanted, WantedDisk, WantedNic};

/// A Machine with everything that it names looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What the Machine asks for.
    pub wanted: Wanted,
    /// Its disks with their classes, in the order of `wanted.disks`.
    pub disks: Vec<ResolvedDisk>,
    /// Its interfaces with their networks, in the order of `wanted.nics`.
    pub nics: Vec<ResolvedNic>,
    /// Data of the first boot.
    pub cloud_init: Option<ResolvedCloudInit>,
}

/// A disk with its storage class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedDisk {
    /// The class; `None` leaves the choice to the cluster.
    pub class: Option<StorageClass>,
    /// The access mode of a new claim.
    pub access_mode: String,
    /// The volume mode of a new claim, if it is not the API server's default.
    pub volume_mode: Option<String>,
}

/// An interface with its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedNic {
    /// The pod network.
    Pod,
    /// A NetworkAttachmentDefinition that exists.
    Attachment(String),
    /// One that is made if it does not exist.
    Bridge {
        /// Its name.
        attachment: String,
        /// The bridge on the nodes.
        bridge: String,
        /// The VLAN, 0 for none.
        vlan: u16,
    },
}

/// The volume with data of the first boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCloudInit {
    /// How it is offered.
    pub kind: CloudInitType,
    /// The Secret with user data.
    pub user_secret: Option<String>,
    /// The Secret with network data.
    pub network_secret: Option<String>,
    /// What the operator's own Secret holds; `None` if it needs none.
    pub own: Option<BTreeMap<String, String>>,
}

/// The bridge of a network that names none, as the Go program has it
/// (internal/machine/network/network_manager.go).
pub const DEFAULT_BRIDGE: &str = "br0";

/// Looks up what `wanted` names in `facts`.
///
/// # Errors
/// All names that were not found, each with its field.
pub fn resolve(wanted: &Wanted, facts: &Facts) -> Result<Resolved, Vec<Problem>> {
    let mut problems = Vec::new();
    let disks = wanted.disks.iter().map(|disk| resolved_disk(disk, facts, &mut problems)).collect();
    let nics = wanted.nics.iter().map(|nic| resolved_nic(nic, facts, &mut problems)).collect();
    let cloud_init = cloud_init(wanted, facts, &mut problems);
    match &facts.kubevirt {
        None => problems.push(Problem::new(
            Reason::KubeVirtApiError,
            "",
            "KubeVirt is not installed: install it, and this Machine is made then",
        )),
        Some(kubevirt) => {
            let chipset = wanted.domain.chipset.map(crate::understand::Chipset::machine_type);
            if let Some(refused) = chipset.filter(|name| !kubevirt.accepts(name)) {
                let message = format!(
                    "the cluster's KubeVirt does not accept {refused}: use pc-q35, or have {refused}* added to \
                     spec.configuration.architectureConfiguration.amd64.emulatedMachines of the KubeVirt object"
                );
                problems.push(Problem::new(Reason::InvalidSpec, "spec.domain.machine.type", message));
            }
        }
    }
    if wanted.image.is_some() && !facts.has_data_volumes {
        let message = "the image needs CDI, which is not installed: install it, or leave the image out";
        problems.push(Problem::new(Reason::KubeVirtApiError, "spec.os", message));
    }
    if problems.is_empty() { Ok(Resolved { wanted: wanted.clone(), disks, nics, cloud_init }) } else { Err(problems) }
}

fn path(disk: &WantedDisk, field: &str) -> String {
    disk.index.map_or_else(|| "spec.disks".to_owned(), |index| format!("spec.disks[{index}].{field}"))
}

fn resolved_disk(disk: &WantedDisk, facts: &Facts, problems: &mut Vec<Problem>) -> ResolvedDisk {
    let class = match disk.storage_class.as_deref().filter(|name| !name.is_empty() && *name != "default") {
        Some(name) => {
            let found = facts.storage_classes.iter().find(|class| class.name == name);
            if found.is_none() {
                let message = format!("there is no storage class {name}: {}", known_classes(facts));
                problems.push(Problem::new(Reason::StorageClassNotFound, path(disk, "storageClass"), message));
            }
            found
        }
        None => {
            let found = default_class(&facts.storage_classes);
            if found.is_none() {
                let message = format!("the cluster has no default storage class: name one; {}", known_classes(facts));
                problems.push(Problem::new(Reason::StorageClassNotFound, path(disk, "storageClass"), message));
            }
            found
        }
    };
    let profile = class.and_then(|class| facts.storage_profiles.get(&class.name)).cloned().unwrap_or_default();
    // The two belong together: a profile's volume mode is not right for another access mode.
    let (access_mode, volume_mode) = match &disk.access_mode {
        Some(mode) => (mode.clone(), disk.volume_mode.clone()),
        None => (
            profile.access_mode.unwrap_or_else(|| "ReadWriteOnce".to_owned()),
            disk.volume_mode.clone().or(profile.volume_mode),
        ),
    };
    ResolvedDisk { class: class.cloned(), access_mode, volume_mode }
}

fn known_classes(facts: &Facts) -> String {
    let names: Vec<_> = facts.storage_classes.iter().take(10).map(|class| class.name.as_str()).collect();
    if names.is_empty() { "the cluster has none".to_owned() } else { format!("the cluster has {}", names.join(", ")) }
}

/// The class called default, or else the newest that is marked as default, as Kubernetes chooses.
#[must_use]
pub fn default_class(classes: &[StorageClass]) -> Option<&StorageClass> {
    let literal = classes.iter().find(|class| class.name == "default");
    literal.or_else(|| {
        let marked = classes.iter().filter(|class| class.is_default);
        marked.max_by(|one, other| one.created.cmp(&other.created).then_with(|| other.name.cmp(&one.name)))
    })
}

fn resolved_nic(nic: &WantedNic, facts: &Facts, problems: &mut Vec<Problem>) -> ResolvedNic {
    let field = |field: &str| {
        nic.index.map_or_else(|| "spec.network".to_owned(), |index| format!("spec.networks[{index}].{field}"))
    };
    match &nic.network {
        NetworkRef::Pod => ResolvedNic::Pod,
        NetworkRef::Named(name) => match facts.networks.get(name) {
            Some(Some(Network::Attachment(attachment))) => ResolvedNic::Attachment(attachment.clone()),
            Some(Some(Network::Bridge { bridge, vlan })) => bridged(bridge, *vlan),
            Some(None) | None => {
                // A network of another namespace is described there, and used by its definition.
                let message = match name.contains('/') {
                    true => format!("there is no NetworkAttachmentDefinition {name}: create it, or correct the name"),
                    false => format!(
                        "there is no NetworkConfiguration and no NetworkAttachmentDefinition {name} in this namespace: \
                         create one of them, or correct the name"
                    ),
                };
                problems.push(Problem::new(Reason::NetworkConfigurationNotFound, field("networkName"), message));
                ResolvedNic::Pod
            }
        },
        NetworkRef::Namespace(name) => match facts.namespace_vlan {
            Some(vlan) => bridged(DEFAULT_BRIDGE, vlan),
            None => {
                let message = format!(
                    "there is no NetworkNamespace {name} with a VLAN in its status: create it, or wait until it has one"
                );
                problems.push(Problem::new(
                    Reason::NetworkConfigurationNotFound,
                    "spec.network.networkNamespaceName",
                    message,
                ));
                ResolvedNic::Pod
            }
        },
    }
}

fn bridged(bridge: &str, vlan: u16) -> ResolvedNic {
    let attachment = match (bridge, vlan) {
        (DEFAULT_BRIDGE, 1..) => format!("vlan{vlan}"),
        (bridge, 0) => format!("bridge-{bridge}"),
        (bridge, vlan) => format!("{bridge}-vlan{vlan}"),
    };
    ResolvedNic::Bridge { attachment, bridge: bridge.to_owned(), vlan }
}

fn cloud_init(wanted: &Wanted, facts: &Facts, problems: &mut Vec<Problem>) -> Option<ResolvedCloudInit> {
    let data = wanted.cloud_init.as_ref()?;
    let mut own = BTreeMap::new();
    let mut secret = |source: &Option<DataSource>, keys: [&'static str; 2]| {
        let source = source.as_ref()?;
        if facts.cloud_init_is_settled && !matches!(source, DataSource::Text(_)) {
            return Some(match source {
                DataSource::Secret { name, key, .. } if key.as_deref().is_none_or(|key| keys.contains(&key)) => {
                    name.clone()
                }
                DataSource::Text(_) | DataSource::Secret { .. } | DataSource::ConfigMap { .. } => {
                    names::cloud_init_secret(&wanted.name)
                }
            });
        }
        let text = match source {
            DataSource::Text(text) => Some(text.clone()),
            DataSource::Secret { path, name, key } => {
                let used = key.as_deref().unwrap_or(keys[0]);
                let value = value(facts.secrets.get(name), "Secret", (path, name, used), problems);
                // KubeVirt reads these keys itself: nothing has to be copied.
                if keys.contains(&used) {
                    return Some(name.clone());
                }
                value
            }
            DataSource::ConfigMap { path, name, key } => {
                let used = key.as_deref().unwrap_or(keys[0]);
                value(facts.config_maps.get(name), "ConfigMap", (path, name, used), problems)
            }
        };
        own.insert(keys[0].to_owned(), text?);
        Some(names::cloud_init_secret(&wanted.name))
    };
    let user_secret = secret(&data.user, ["userdata", "userData"]);
    let network_secret = secret(&data.network, ["networkdata", "networkData"]);
    let own = (!own.is_empty()).then_some(own);
    Some(ResolvedCloudInit { kind: data.kind, user_secret, network_secret, own })
}

fn value(
    object: Option<&Option<BTreeMap<String, Vec<u8>>>>,
    kind: &str,
    (path, name, key): (&str, &str, &str),
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let mut refuse = |message: String| {
        problems.push(Problem::new(Reason::CloudInitNotFound, path, message));
        None
    };
    let Some(Some(keys)) = object else {
        return refuse(format!("there is no {kind} {name} in this namespace: create it with the key {key}"));
    };
    match keys.get(key).map(|bytes| String::from_utf8(bytes.clone())) {
        Some(Ok(text)) => Some(text),
        Some(Err(_)) => refuse(format!("the key {key} of {kind} {name} is not text: replace it")),
        None => {
            let known: Vec<_> = keys.keys().take(10).map(String::as_str).collect();
            let known = if known.is_empty() { "no key".to_owned() } else { known.join(", ") };
            refuse(format!("{kind} {name} has no key {key}, but {known}: add it, or name another key"))
        }
    }
}
