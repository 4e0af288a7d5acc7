//! Reading what a Machine names, and what there is of it.

use std::collections::{BTreeMap, BTreeSet};

use advisor_cluster::ClusterError;
use kube::ResourceExt;
use machines_api::Machine;
use machines_api::references::{MachineClassSpec, NetworkConfigurationSpec};
use machines_core::facts::{Facts, KubeVirt, Network, StorageClass, StorageProfile};
use machines_core::names;
use machines_core::ownership::is_controlled;
use machines_core::plan::{Live, attached, attachments, has_cloud_init};
use machines_core::resolve::{DEFAULT_BRIDGE, Resolved};
use machines_core::understand::{DataSource, NetworkRef, Wanted, cloud_init_digest};
use serde_json::Value;

use super::error::{Error, doing};
use crate::cluster::kinds::{self, Kind};
use crate::cluster::mirror::text_at;
use crate::cluster::reader::Reader;

/// The class that a Machine names.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn machine_class(reader: &Reader, machine: &Machine) -> Result<Option<MachineClassSpec>, Error> {
    let Some(name) = machine.spec.machine_class.as_deref().filter(|_| machine.spec.template.is_none()) else {
        return Ok(None);
    };
    let found = doing("reading MachineClasses", reader.get(kinds::MACHINE_CLASS, "", name).await)?;
    Ok(found.and_then(|class| serde_json::from_value(class["spec"].clone()).ok()))
}

/// Everything that is read of the cluster to understand a Machine.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn facts(reader: &Reader, machine: &Machine, wanted: &Wanted) -> Result<Facts, Error> {
    let classes = doing("listing storage classes", reader.list(kinds::STORAGE_CLASS).await)?;
    let profiles = doing("listing StorageProfiles", reader.list(kinds::STORAGE_PROFILE).await)?;
    let mut facts = Facts {
        storage_classes: classes.iter().map(storage_class).collect(),
        storage_profiles: profiles.iter().filter_map(storage_profile).collect(),
        kubevirt: kubevirt(reader).await?,
        has_data_volumes: doing("looking for CDI", reader.serves(kinds::DATA_VOLUME).await)?,
        cloud_init_is_settled: is_settled(reader, machine).await?,
        ..Facts::default()
    };
    for nic in &wanted.nics {
        match &nic.network {
            NetworkRef::Pod => {}
            NetworkRef::Named(name) => {
                let found = network(reader, &wanted.namespace, name).await?;
                facts.networks.insert(name.clone(), found);
            }
            NetworkRef::Namespace(name) => {
                let found = reader.get(kinds::NETWORK_NAMESPACE, &wanted.namespace, name).await;
                let found = doing("reading NetworkNamespaces", found)?;
                let vlan = found.and_then(|found| found.pointer("/status/vlanId").and_then(Value::as_u64));
                facts.namespace_vlan = vlan.and_then(|vlan| u16::try_from(vlan).ok());
            }
        }
    }
    if !facts.cloud_init_is_settled {
        first_boot(reader, wanted, &mut facts).await?;
    }
    Ok(facts)
}

/// Whether the virtual machine has the data of its first boot as the spec says it: then that is not
/// read again.
async fn is_settled(reader: &Reader, machine: &Machine) -> Result<bool, Error> {
    if reader.mirror().is_none() {
        return Ok(false);
    }
    let digest = cloud_init_digest(&machine.spec);
    let vm = reader.get(kinds::VM, &machine.namespace().unwrap_or_default(), &machine.name_any()).await;
    Ok(doing("reading the VirtualMachine", vm)?
        .is_some_and(|vm| is_controlled(machine, &vm) && has_cloud_init(&vm, &digest)))
}

fn storage_class(class: &Value) -> StorageClass {
    let annotations = class.pointer("/metadata/annotations");
    let is_set = |name: &str| annotations.and_then(|all| all.get(name)).is_some_and(|value| value == "true");
    StorageClass {
        name: text_at(class, "/metadata/name").to_owned(),
        is_default: is_set("storageclass.kubernetes.io/is-default-class")
            || is_set("storageclass.beta.kubernetes.io/is-default-class"),
        created: text_at(class, "/metadata/creationTimestamp").to_owned(),
        allows_expansion: class.get("allowVolumeExpansion").and_then(Value::as_bool).unwrap_or_default(),
        waits_for_consumer: text_at(class, "/volumeBindingMode") == "WaitForFirstConsumer",
    }
}

fn storage_profile(profile: &Value) -> Option<(String, StorageProfile)> {
    let first = profile.pointer("/status/claimPropertySets/0")?;
    let text = |pointer: &str| first.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let found = StorageProfile { access_mode: text("/accessModes/0"), volume_mode: text("/volumeMode") };
    Some((text_at(profile, "/metadata/name").to_owned(), found))
}

/// KubeVirt's configuration; its defaults if it has none.
async fn kubevirt(reader: &Reader) -> Result<Option<KubeVirt>, Error> {
    if !doing("looking for KubeVirt", reader.serves(kinds::VM).await)? {
        return Ok(None);
    }
    let all = doing("listing KubeVirt objects", reader.list(kinds::KUBEVIRT).await)?;
    let Some(found) = all.first() else { return Ok(Some(KubeVirt::default())) };
    let list = |pointer: &str| -> Vec<String> {
        let all = found.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
    };
    let methods = list("/spec/workloadUpdateStrategy/workloadUpdateMethods");
    let configuration = "/spec/configuration";
    let types = [
        format!("{configuration}/architectureConfiguration/amd64/emulatedMachines"),
        format!("{configuration}/emulatedMachines"),
    ];
    let types = types.iter().map(|pointer| list(pointer)).find(|types| !types.is_empty());
    let default = KubeVirt::default();
    Ok(Some(KubeVirt {
        live_update: text_at(found, "/spec/configuration/vmRolloutStrategy") != "Stage",
        migrates: methods.iter().any(|method| method == "LiveMigrate"),
        evicts: methods.iter().any(|method| method == "Evict"),
        machine_types: types.unwrap_or(default.machine_types),
    }))
}

/// A network by the name that an interface uses: `NAME` or `NAMESPACE/NAME`.
async fn network(reader: &Reader, own: &str, reference: &str) -> Result<Option<Network>, Error> {
    let (namespace, name) = reference.split_once('/').unwrap_or((own, reference));
    // What another namespace says about its network is not for this one.
    let found = match namespace == own {
        true => doing("reading NetworkConfigurations", reader.get(kinds::NETWORK_CONFIGURATION, own, name).await)?,
        false => None,
    };
    let spec = found.and_then(|found| serde_json::from_value::<NetworkConfigurationSpec>(found["spec"].clone()).ok());
    // The published definition has neither: its objects describe addresses, and no network.
    let spec = spec.filter(|spec| *spec != NetworkConfigurationSpec::default());
    if let Some(spec) = spec {
        return Ok(Some(match spec.network_attachment_definition {
            Some(attachment) => Network::Attachment(attachment),
            None => Network::Bridge {
                bridge: spec.bridge.unwrap_or_else(|| DEFAULT_BRIDGE.to_owned()),
                vlan: spec.vlan.unwrap_or_default(),
            },
        }));
    }
    let found = reader.get(kinds::NETWORK_ATTACHMENT, namespace, name).await;
    let found = doing("reading NetworkAttachmentDefinitions", found)?;
    Ok(found.map(|_| Network::Attachment(reference.to_owned())))
}

/// Secrets and ConfigMaps with data of the first boot, by name: no list of a cluster's Secrets.
async fn first_boot(reader: &Reader, wanted: &Wanted, facts: &mut Facts) -> Result<(), Error> {
    let Some(data) = &wanted.cloud_init else { return Ok(()) };
    for source in [data.user.as_ref(), data.network.as_ref()].into_iter().flatten() {
        let (kind, name) = match source {
            DataSource::Text(_) => continue,
            DataSource::Secret { name, .. } => (kinds::SECRET, name),
            DataSource::ConfigMap { name, .. } => (kinds::CONFIG_MAP, name),
        };
        let found = doing(format!("reading {} {name}", kind.kind), reader.get(kind, &wanted.namespace, name).await)?;
        let keys = found.as_ref().map(|found| keys(kind, found));
        let of_kind = if kind == kinds::SECRET { &mut facts.secrets } else { &mut facts.config_maps };
        of_kind.insert(name.clone(), keys);
    }
    Ok(())
}

fn keys(kind: Kind, object: &Value) -> BTreeMap<String, Vec<u8>> {
    let data = object.get("data").and_then(Value::as_object).into_iter().flatten();
    data.filter_map(|(key, value)| {
        let text = value.as_str()?;
        let bytes =
            if kind == kinds::SECRET { machines_core::objects::decoded(text)? } else { text.as_bytes().to_vec() };
        Some((key.clone(), bytes))
    })
    .collect()
}

/// What there is of a Machine.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn live(reader: &Reader, machine: &Machine, resolved: &Resolved) -> Result<Live, Error> {
    let (namespace, name) = (resolved.wanted.namespace.as_str(), resolved.wanted.name.as_str());
    let mut live = Live {
        vm: doing("reading the VirtualMachine", reader.get(kinds::VM, namespace, name).await)?,
        vmi: doing("reading the VirtualMachineInstance", reader.get(kinds::VMI, namespace, name).await)?,
        ..Live::default()
    };
    if resolved.cloud_init.as_ref().is_some_and(|data| data.own.is_some()) {
        let secret = names::cloud_init_secret(name);
        live.secret = doing("reading the Secret for cloud-init", reader.get(kinds::SECRET, namespace, &secret).await)?;
    }
    if resolved.wanted.image.is_some() {
        let image = names::claim(name, names::ISO_VOLUME);
        live.image = doing("reading the DataVolume", reader.get(kinds::DATA_VOLUME, namespace, &image).await)?;
    }
    for attachment in attachments(resolved) {
        if doing("reading networks", reader.get(kinds::NETWORK_ATTACHMENT, namespace, attachment).await)?.is_some() {
            live.attachments.insert(attachment.to_owned());
        }
    }
    claims(reader, machine, resolved, &mut live).await?;
    Ok(live)
}

async fn claims(reader: &Reader, machine: &Machine, resolved: &Resolved, live: &mut Live) -> Result<(), Error> {
    let (namespace, name) = (resolved.wanted.namespace.as_str(), resolved.wanted.name.as_str());
    let in_use: BTreeSet<_> = attached(live.vm.as_ref()).into_values().collect();
    let wanted = resolved.wanted.disks.iter().map(|disk| names::claim(name, &disk.name));
    let recorded = machine.status.iter().flat_map(|status| &status.disks).filter_map(|disk| disk.pvc_name.clone());
    let all: BTreeSet<_> = wanted.chain(recorded).chain(in_use.iter().cloned()).collect();
    for claim in all {
        let read = async |reader: &Reader| reader.get(kinds::CLAIM, namespace, &claim).await;
        let mut found = doing("reading claims", read(reader).await)?;
        // The mirror has only claims with our label: others are asked for by name.
        if found.is_none() && reader.mirror().is_some() {
            found = doing("reading claims", read(&reader.past_the_mirror()).await)?;
        }
        let Some(found) = found else { continue };
        if !in_use.contains(&claim) {
            let users = users(reader, namespace, name, &claim).await;
            live.users.insert(claim.clone(), doing("looking for who uses a claim", users)?);
        }
        live.claims.insert(claim, found);
    }
    Ok(())
}

/// Who uses a claim, but for the virtual machine called `own`.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn users(reader: &Reader, namespace: &str, own: &str, claim: &str) -> Result<Vec<String>, ClusterError> {
    let machines = reader.virtual_machines_with(namespace, claim).await?;
    let machines = machines.into_iter().filter(|name| name != own).map(|name| format!("VirtualMachine {name}"));
    let (staying, leaving) = reader.pods_with(namespace, claim, Some(own)).await?;
    let pods = staying.into_iter().map(|name| format!("Pod {name}"));
    let leaving = leaving.into_iter().map(|name| format!("Pod {name}, which is about to end,"));
    Ok(machines.chain(pods).chain(leaving).collect())
}
