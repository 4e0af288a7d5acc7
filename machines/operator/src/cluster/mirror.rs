//! A small copy of what is watched: objects without what nobody here reads, as bytes. Decoded JSON
//! is about ten times as large, and at rest nobody looks at it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use serde_json::{Value, json};

use super::kinds::{self, Kind};

/// Namespace and name; the namespace of cluster-scoped objects is empty.
pub type Key = (String, String);

struct Entry {
    version: String,
    bytes: Box<[u8]>,
    /// Claims that a virtual machine uses.
    claims: Box<[String]>,
}

#[derive(Default)]
struct Kept {
    entries: BTreeMap<Key, Entry>,
    /// Seen since the current list began.
    listing: Option<BTreeSet<Key>>,
    is_complete: bool,
}

/// The copy. It is complete for a kind once its first list has ended.
#[derive(Default)]
pub struct Mirror {
    kinds: RwLock<BTreeMap<Kind, Kept>>,
    definitions: RwLock<BTreeMap<String, String>>,
    definitions_listed: AtomicBool,
}

impl Mirror {
    /// An object of the kind, if there is one.
    #[must_use]
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let kinds = self.kinds.read();
        let entry = kinds.get(&kind)?.entries.get(&(namespace.to_owned(), name.to_owned()))?;
        serde_json::from_slice(&entry.bytes).ok()
    }

    /// Whether there is an object of the kind.
    #[must_use]
    pub fn has(&self, kind: Kind, key: &Key) -> bool {
        self.kinds.read().get(&kind).is_some_and(|kept| kept.entries.contains_key(key))
    }

    /// All objects of the kind.
    #[must_use]
    pub fn list(&self, kind: Kind) -> Vec<Value> {
        let kinds = self.kinds.read();
        let entries = kinds.get(&kind).into_iter().flat_map(|kept| kept.entries.values());
        entries.filter_map(|entry| serde_json::from_slice(&entry.bytes).ok()).collect()
    }

    /// The keys of all objects of the kind.
    #[must_use]
    pub fn keys(&self, kind: Kind) -> Vec<Key> {
        self.kinds.read().get(&kind).map(|kept| kept.entries.keys().cloned().collect()).unwrap_or_default()
    }

    /// The virtual machines in a namespace that use a claim.
    #[must_use]
    pub fn users(&self, namespace: &str, claim: &str) -> Vec<String> {
        let kinds = self.kinds.read();
        let entries = kinds.get(&kinds::VM).into_iter().flat_map(|kept| &kept.entries);
        let using = entries.filter(|((of, _), entry)| of == namespace && entry.claims.iter().any(|used| used == claim));
        using.map(|((_, name), _)| name.clone()).collect()
    }

    /// Whether a definition exists; the kinds of Kubernetes itself always do.
    #[must_use]
    pub fn serves(&self, kind: Kind) -> bool {
        kind.definition().is_none_or(|name| self.definitions.read().contains_key(&name))
    }

    /// Whether the first list of every kind that is served has ended.
    #[must_use]
    pub fn is_complete(&self, kinds: &[Kind]) -> bool {
        if !self.definitions_listed.load(Ordering::SeqCst) {
            return false;
        }
        let kept = self.kinds.read();
        kinds.iter().all(|kind| !self.serves(*kind) || kept.get(kind).is_some_and(|kept| kept.is_complete))
    }

    /// Notes that the definitions are known: a kind without one is not served.
    pub(super) fn definitions_are_listed(&self) {
        self.definitions_listed.store(true, Ordering::SeqCst);
    }

    /// The version of a definition.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<String> {
        self.definitions.read().get(name).cloned()
    }

    /// Keeps the version of a definition, or removes it, and returns whether that is news.
    pub(super) fn set_definition(&self, name: &str, version: Option<String>) -> bool {
        let mut definitions = self.definitions.write();
        match version {
            Some(version) => definitions.insert(name.to_owned(), version.clone()).is_none_or(|old| old != version),
            None => definitions.remove(name).is_some(),
        }
    }

    pub(super) fn began(&self, kind: Kind) {
        self.kinds.write().entry(kind).or_default().listing = Some(BTreeSet::new());
    }

    /// Ends a list, and returns the objects that are gone since.
    pub(super) fn listed(&self, kind: Kind) -> Vec<Key> {
        let mut kinds = self.kinds.write();
        let kept = kinds.entry(kind).or_default();
        kept.is_complete = true;
        let Some(seen) = kept.listing.take() else { return Vec::new() };
        let gone: Vec<_> = kept.entries.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        for key in &gone {
            kept.entries.remove(key);
        }
        gone
    }

    /// Forgets a kind that is not served any more, and returns its objects.
    pub(super) fn forget(&self, kind: Kind) -> Vec<Key> {
        self.kinds.write().remove(&kind).map(|kept| kept.entries.into_keys().collect()).unwrap_or_default()
    }

    /// Keeps an object, and returns whether anything that is read has changed.
    pub fn keep(&self, kind: Kind, object: &Value) -> bool {
        let key = key(object);
        let version = text_at(object, "/metadata/resourceVersion").to_owned();
        let trimmed = trimmed(kind, object);
        let mut kinds = self.kinds.write();
        let kept = kinds.entry(kind).or_default();
        if let Some(listing) = &mut kept.listing {
            listing.insert(key.clone());
        }
        let before = kept.entries.get(&key);
        // What a write has answered may be newer than what a watch tells afterwards.
        let number = |version: &str| version.parse::<u64>().ok();
        if let (Some(old), Some(new)) = (before.and_then(|entry| number(&entry.version)), number(&version))
            && old >= new
        {
            return false;
        }
        let has_changed = before.is_none_or(|entry| differs(&entry.bytes, &trimmed));
        let claims = if kind == kinds::VM { claims_of(object) } else { Box::default() };
        let bytes = serde_json::to_vec(&trimmed).unwrap_or_default().into_boxed_slice();
        kept.entries.insert(key, Entry { version, bytes, claims });
        has_changed
    }

    /// Removes an object.
    pub fn remove(&self, kind: Kind, key: &Key) {
        if let Some(kept) = self.kinds.write().get_mut(&kind) {
            kept.entries.remove(key);
        }
    }
}

/// Whether anything but the version is new.
fn differs(before: &[u8], after: &Value) -> bool {
    let mut after = after.clone();
    let mut before: Value = serde_json::from_slice(before).unwrap_or_default();
    for object in [&mut before, &mut after] {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
    }
    before != after
}

pub(crate) fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Namespace and name of an object.
#[must_use]
pub fn key(object: &Value) -> Key {
    (text_at(object, "/metadata/namespace").to_owned(), text_at(object, "/metadata/name").to_owned())
}

fn claims_of(vm: &Value) -> Box<[String]> {
    let volumes = vm.pointer("/spec/template/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let used = volumes.into_iter().filter_map(|volume| {
        let claim = volume.pointer("/persistentVolumeClaim/claimName").or_else(|| volume.pointer("/dataVolume/name"));
        claim.and_then(Value::as_str).map(str::to_owned)
    });
    used.collect()
}

/// The object without what nobody here reads.
fn trimmed(kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    match kind {
        kinds::VM => keep_only(&mut object, "status", &["printableStatus", "conditions", "ready", "created"]),
        kinds::VMI => {
            let read = ["phase", "nodeName", "interfaces", "conditions", "memory", "volumeStatus", "guestOSInfo"];
            keep_only(&mut object, "status", &read);
        }
        kinds::STORAGE_CLASS => {
            let read = ["apiVersion", "kind", "metadata", "allowVolumeExpansion", "volumeBindingMode"];
            if let Some(map) = object.as_object_mut() {
                map.retain(|key, _| read.contains(&key.as_str()));
            }
        }
        kinds::STORAGE_PROFILE => keep_only(&mut object, "status", &["claimPropertySets"]),
        kinds::KUBEVIRT => object["status"] = json!({}),
        _ => {}
    }
    if ![kinds::VM, kinds::VMI].contains(&kind) {
        return object;
    }
    // When a condition was last looked at is nothing to wake anybody for.
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(condition) = condition.as_object_mut() {
            condition
                .retain(|key, _| !["lastProbeTime", "lastTransitionTime", "lastHeartbeatTime"].contains(&key.as_str()));
        }
    }
    object
}

fn keep_only(object: &mut Value, part: &str, read: &[&str]) {
    if let Some(map) = object.get_mut(part).and_then(Value::as_object_mut) {
        map.retain(|key, _| read.contains(&key.as_str()));
    }
}
