//! The values a profile reads, recorded as it reads them.
//!
//! What is recorded here is stored with the plan: a later change of exactly these values, and of no others, is an input
//! change that asks for another review.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::{DraftError, Kind, ObjectRef};

/// An object that a profile wants to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The kind; of its versions the first one served is read.
    pub kind: Kind,
    /// The namespace, for namespaced kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// A value that the profile used, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The object it was read from.
    pub target: ObjectRef,
    /// An RFC 6901 pointer into that object.
    pub path: String,
    /// The value, or what the profile made of it; `None` if there was none.
    pub value: Option<Value>,
}

/// The objects of [`crate::Planner::reads`], as the cluster returned them.
#[derive(Debug, Default)]
pub struct Inputs {
    objects: BTreeMap<Read, Option<Value>>,
    recorded: RefCell<BTreeMap<(ObjectRef, String), Option<Value>>>,
}

impl Inputs {
    /// Inputs that hold `object` for each read; `None` says that the object, or its kind, does not exist.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = (Read, Option<Value>)>) -> Self {
        Self { objects: objects.into_iter().collect(), recorded: RefCell::default() }
    }

    /// The value at the RFC 6901 pointer `path`, recorded as used. `None` if the object or the value is absent.
    ///
    /// # Errors
    ///
    /// [`DraftError::Undeclared`] if `read` is not among [`crate::Planner::reads`].
    pub fn value(&self, read: &Read, path: &str) -> Result<Option<Value>, DraftError> {
        self.derive(read, path, |value| value.cloned())
    }

    /// What `extract` makes of the value at `path`, recorded in place of the value itself. For the part that matters of
    /// a larger value, above all of a target that this profile writes itself.
    ///
    /// # Errors
    ///
    /// As [`Inputs::value`].
    pub fn derive(
        &self,
        read: &Read,
        path: &str,
        extract: impl FnOnce(Option<&Value>) -> Option<Value>,
    ) -> Result<Option<Value>, DraftError> {
        let object = self.object(read)?;
        let value = extract(object.and_then(|object| object.pointer(path)));
        let target = reference(read, object);
        self.recorded.borrow_mut().insert((target, path.to_owned()), value.clone());
        Ok(value)
    }

    /// The version that the object was read in, or the preferred one if it does not exist. Shapes of a kind may differ
    /// between versions; which one was read shows in the recorded target.
    ///
    /// # Errors
    ///
    /// As [`Inputs::value`].
    pub fn version(&self, read: &Read) -> Result<String, DraftError> {
        let target = reference(read, self.object(read)?);
        Ok(target.api_version.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// Everything used so far, in a stable order.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.recorded
            .borrow()
            .iter()
            .map(|((target, path), value)| Recorded {
                target: target.clone(),
                path: path.clone(),
                value: value.clone(),
            })
            .collect()
    }

    fn object(&self, read: &Read) -> Result<Option<&Value>, DraftError> {
        match self.objects.get(read) {
            Some(object) => Ok(object.as_ref()),
            None => Err(DraftError::Undeclared { kind: read.kind.kind, name: read.name.clone() }),
        }
    }
}

fn reference(read: &Read, object: Option<&Value>) -> ObjectRef {
    let read_version = object.and_then(|object| object.get("apiVersion")).and_then(Value::as_str);
    let preferred = || match (read.kind.group, read.kind.versions.first().copied().unwrap_or_default()) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    ObjectRef {
        api_version: read_version.map_or_else(preferred, str::to_owned),
        kind: read.kind.kind.to_owned(),
        namespace: read.namespace.clone(),
        name: read.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WIDGET: Kind = Kind { group: "example.dev", versions: &["v2", "v1"], kind: "Widget", plural: "widgets" };

    fn read(name: &str) -> Read {
        Read { kind: WIDGET, namespace: Some("ns".into()), name: name.into() }
    }

    #[test]
    fn only_what_was_used_is_recorded() {
        let widget = json!({"apiVersion": "example.dev/v1", "spec": {"size": 3, "colour": "red"}});
        let inputs = Inputs::new([(read("a"), Some(widget)), (read("b"), None)]);
        assert_eq!(inputs.value(&read("a"), "/spec/size").unwrap(), Some(json!(3)));
        assert_eq!(inputs.value(&read("b"), "/spec/size").unwrap(), None);
        let recorded = inputs.recorded();
        assert_eq!(recorded.len(), 2);
        assert_eq!(recorded[0].target.api_version, "example.dev/v1", "the version that was read");
        assert_eq!(recorded[1].target.api_version, "example.dev/v2", "the preferred one of an absent object");
        assert_eq!(inputs.version(&read("a")).unwrap(), "v1");
    }

    #[test]
    fn a_read_that_was_not_declared_is_an_error_and_not_an_absent_value() {
        let error = Inputs::default().value(&read("c"), "/spec").unwrap_err();
        assert!(error.to_string().contains("Widget c"), "{error}");
    }
}
