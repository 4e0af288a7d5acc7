//! The objects of a Machine, as they are applied.

mod vm;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use machines_api::{MACHINE_LABEL, MACHINE_UID, MANAGED_BY, MANAGER, SOURCE_MACHINE_LABEL};
use serde_json::{Map, Value, json};

pub use vm::virtual_machine;

use crate::names;
use crate::resolve::{Resolved, ResolvedNic};
use crate::understand::{Image, Wanted};

/// Room for an ISO image whose size is not known: the Go program's fallback
/// (internal/machine/vm/disk_builder.go). Its size is not asked of a server that the Machine names.
const ISO_SIZE: &str = "8Gi";

/// The labels of everything that is made for a Machine.
#[must_use]
pub fn labels(machine: &str) -> Value {
    json!({ MANAGED_BY: MANAGER, MACHINE_LABEL: machine, SOURCE_MACHINE_LABEL: machine })
}

/// The owner reference to the Machine, with which its objects are deleted after it.
pub(crate) fn owner(wanted: &Wanted) -> Value {
    json!([{
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "name": wanted.name,
        "uid": wanted.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// The claim of each disk, in order. It has no owner reference: garbage collection must never
/// delete data.
#[must_use]
pub fn claims(resolved: &Resolved) -> Vec<Value> {
    let wanted = &resolved.wanted;
    wanted
        .disks
        .iter()
        .zip(&resolved.disks)
        .map(|(disk, found)| {
            let mut spec = Map::new();
            if let Some(class) = &found.class {
                spec.insert("storageClassName".to_owned(), json!(class.name));
            }
            spec.insert("accessModes".to_owned(), json!([found.access_mode]));
            spec.insert("resources".to_owned(), json!({"requests": {"storage": disk.size}}));
            if let Some(mode) = &found.volume_mode {
                spec.insert("volumeMode".to_owned(), json!(mode));
            }
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": names::claim(&wanted.name, &disk.name),
                    "namespace": wanted.namespace,
                    "labels": labels(&wanted.name),
                    "annotations": { MACHINE_UID: wanted.uid },
                },
                "spec": spec,
            })
        })
        .collect()
}

/// The Secret with data of the first boot, if the operator keeps one.
#[must_use]
pub fn secret(resolved: &Resolved) -> Option<Value> {
    let wanted = &resolved.wanted;
    let data: &BTreeMap<String, String> = resolved.cloud_init.as_ref()?.own.as_ref()?;
    let data: BTreeMap<_, _> = data.iter().map(|(key, text)| (key, base64(text))).collect();
    Some(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": names::cloud_init_secret(&wanted.name),
            "namespace": wanted.namespace,
            "labels": labels(&wanted.name),
            "ownerReferences": owner(wanted),
        },
        "data": data,
    }))
}

fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// A value of a Secret, as bytes; `None` if it is not in base64.
#[must_use]
pub fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// The NetworkAttachmentDefinitions that are made if they do not exist. They may be shared, and are
/// never changed or deleted.
#[must_use]
pub fn network_attachments(resolved: &Resolved) -> Vec<Value> {
    let wanted = &resolved.wanted;
    let bridges = resolved.nics.iter().filter_map(|nic| match nic {
        ResolvedNic::Bridge { attachment, bridge, vlan } => Some((attachment, bridge, *vlan)),
        ResolvedNic::Pod | ResolvedNic::Attachment(_) => None,
    });
    bridges
        .map(|(name, bridge, vlan)| {
            let mut config =
                json!({"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": bridge, "ipam": {}});
            if vlan > 0 {
                config["vlan"] = json!(vlan);
            }
            json!({
                "apiVersion": "k8s.cni.cncf.io/v1",
                "kind": "NetworkAttachmentDefinition",
                "metadata": {
                    "name": name,
                    "namespace": wanted.namespace,
                    "labels": { MANAGED_BY: MANAGER },
                },
                "spec": { "config": config.to_string() },
            })
        })
        .collect()
}

/// The DataVolume with the ISO image: an object of its own, because one in the virtual machine's
/// templates would be deleted with it.
#[must_use]
pub fn image(resolved: &Resolved) -> Option<Value> {
    let wanted = &resolved.wanted;
    let source = match wanted.image.as_ref()? {
        Image::Http(url) => json!({"http": {"url": url}}),
        Image::Registry(url) => json!({"registry": {"url": url}}),
    };
    Some(json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "name": names::claim(&wanted.name, names::ISO_VOLUME),
            "namespace": wanted.namespace,
            "labels": labels(&wanted.name),
            "ownerReferences": owner(wanted),
        },
        "spec": {
            "source": source,
            "storage": {"resources": {"requests": {"storage": ISO_SIZE}}},
        },
    }))
}
