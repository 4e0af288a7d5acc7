//! The newest known state of all objects, and which machines use which claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::watches::{Event, Kind};
use crate::rules::guest::Claims;
use crate::rules::status::uses;

/// An object to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A VirtualMachine and the instance of its name.
    Machine(String, String),
    Claim(String, String),
    DataVolume(String, String),
}

type Names = (String, String);

/// What is known.
#[derive(Default)]
pub(crate) struct World {
    objects: BTreeMap<(Kind, String, String), Arc<Value>>,
    listed: BTreeMap<Kind, BTreeSet<Names>>,
    /// Claims that a machine or its instance names.
    uses: BTreeMap<Names, Vec<String>>,
    users: BTreeMap<Names, BTreeSet<String>>,
}

impl World {
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects.get(&(kind, namespace.to_owned(), name.to_owned())).cloned()
    }

    /// The first object of this kind.
    pub(crate) fn any(&self, kind: Kind) -> Option<Arc<Value>> {
        let first = (kind, String::new(), String::new());
        self.objects.range(first..).next().filter(|(key, _)| key.0 == kind).map(|(_, object)| object.clone())
    }

    /// The machines that name this claim, themselves or their instances.
    pub(crate) fn users(&self, namespace: &str, claim: &str) -> Vec<String> {
        let users = self.users.get(&(namespace.to_owned(), claim.to_owned()));
        users.into_iter().flatten().cloned().collect()
    }

    /// The claims that a machine or its instance names.
    pub(crate) fn claims(&self, namespace: &str, machine: &str) -> Claims {
        let names = self.uses.get(&(namespace.to_owned(), machine.to_owned())).into_iter().flatten();
        let of_name = |name: &String| {
            let claim = self.get(Kind::Claim, namespace, name).map(|claim| claim.as_ref().clone());
            (name.clone(), claim)
        };
        names.map(of_name).collect()
    }

    /// Takes over an event. Returns what has to be looked at, and the uids of what is gone.
    pub(crate) fn take(&mut self, event: Event) -> (Vec<Key>, Vec<String>) {
        match event {
            Event::Begins(kind) => {
                self.listed.insert(kind, BTreeSet::new());
                (Vec::new(), Vec::new())
            }
            Event::Is(kind, object) => {
                let names = names(&object);
                if let Some(listed) = self.listed.get_mut(&kind) {
                    listed.insert(names.clone());
                }
                self.put(kind, object);
                (self.concerns(kind, &names), Vec::new())
            }
            Event::Gone(kind, object) => {
                let names = names(&object);
                let keys = self.concerns(kind, &names);
                (keys, self.remove(kind, &names, &object).into_iter().collect())
            }
            Event::Complete(kind) => {
                let listed = self.listed.remove(&kind).unwrap_or_default();
                let known = self.objects.keys().filter(|key| key.0 == kind).map(|key| (key.1.clone(), key.2.clone()));
                let gone: Vec<Names> = known.filter(|names| !listed.contains(names)).collect();
                let mut result = (Vec::new(), Vec::new());
                for names in gone {
                    result.0.extend(self.concerns(kind, &names));
                    result.1.extend(self.remove(kind, &names, &Value::Null));
                }
                result
            }
        }
    }

    /// Takes over an object unless a newer state of it is known.
    pub(crate) fn put(&mut self, kind: Kind, object: Value) {
        let names = names(&object);
        let finalizers = object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        if !object["metadata"]["deletionTimestamp"].is_null() && finalizers == 0 {
            self.remove(kind, &names, &object);
            return;
        }
        let key = (kind, names.0.clone(), names.1.clone());
        if self.objects.get(&key).is_some_and(|known| version(known) > version(&object)) {
            return;
        }
        self.objects.insert(key, Arc::new(object));
        self.index(kind, &names);
    }

    /// Removes an object, unless its name has been taken by another one.
    pub(crate) fn remove(&mut self, kind: Kind, names: &Names, last: &Value) -> Option<String> {
        let key = (kind, names.0.clone(), names.1.clone());
        let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned);
        let known = self.objects.get(&key)?;
        if !last.is_null() && uid(known) != uid(last) {
            return None;
        }
        let gone = uid(known);
        self.objects.remove(&key);
        self.index(kind, names);
        gone
    }

    fn index(&mut self, kind: Kind, names: &Names) {
        if kind != Kind::Machine && kind != Kind::Instance {
            return;
        }
        let machine = self.get(Kind::Machine, &names.0, &names.1);
        let instance = self.get(Kind::Instance, &names.0, &names.1);
        let now = uses(machine.as_deref(), instance.as_deref());
        let before = self.uses.insert(names.clone(), now.clone()).unwrap_or_default();
        for claim in before {
            if let Some(users) = self.users.get_mut(&(names.0.clone(), claim)) {
                users.remove(&names.1);
            }
        }
        for claim in now {
            self.users.entry((names.0.clone(), claim)).or_default().insert(names.1.clone());
        }
    }

    /// What has to be looked at if this object changes.
    fn concerns(&self, kind: Kind, names: &Names) -> Vec<Key> {
        let (namespace, name) = names.clone();
        match kind {
            Kind::Machine | Kind::Instance => {
                let claims = self.uses.get(names).into_iter().flatten();
                let both = |claim: &String| {
                    let (namespace, claim) = (namespace.clone(), claim.clone());
                    [Key::Claim(namespace.clone(), claim.clone()), Key::DataVolume(namespace, claim)]
                };
                let mut keys: Vec<_> = claims.flat_map(both).collect();
                keys.push(Key::Machine(namespace, name));
                keys
            }
            Kind::Claim => {
                let users = self.users(&namespace, &name).into_iter();
                let mut keys: Vec<_> = users.map(|user| Key::Machine(namespace.clone(), user)).collect();
                keys.push(Key::DataVolume(namespace.clone(), name.clone()));
                keys.push(Key::Claim(namespace, name));
                keys
            }
            Kind::DataVolume => vec![Key::Claim(namespace.clone(), name.clone()), Key::DataVolume(namespace, name)],
            Kind::Class => self.all(Kind::Claim).map(|(namespace, name)| Key::Claim(namespace, name)).collect(),
            Kind::KubeVirt => self.all(Kind::Machine).map(|(namespace, name)| Key::Machine(namespace, name)).collect(),
        }
    }

    fn all(&self, kind: Kind) -> impl Iterator<Item = Names> {
        self.objects.keys().filter(move |key| key.0 == kind).map(|key| (key.1.clone(), key.2.clone()))
    }
}

/// Namespace and name.
pub(crate) fn names(object: &Value) -> Names {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
