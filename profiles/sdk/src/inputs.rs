//! The values that a profile reads, recorded as it reads them.
//!
//! The recorded values are stored with the plan. A later change of exactly these values, and of no
//! others, is a change of an input, which requires another review.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Declared, DraftError, Kind, ObjectRef};

/// An object that a profile wants to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The kind. The object is read in the first of its versions that is served.
    pub kind: Kind,
    /// The namespace, for namespaced kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// Whether an object that is not in `namespace` is searched for in all other namespaces. If
    /// there is exactly one with this name, it is read; several are an error that names them.
    pub elsewhere: bool,
}

impl Read {
    /// Whether the object of this name in `namespace` is, or may be, the one that is read.
    #[must_use]
    pub fn may_be_in(&self, namespace: Option<&str>) -> bool {
        self.elsewhere || self.namespace.as_deref() == namespace
    }
}

/// A value that the profile used, and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The object it was read from.
    pub target: ObjectRef,
    /// A JSON Pointer (RFC 6901) into that object.
    pub path: String,
    /// The value, or what the profile derived from it; `None` if there was none.
    pub value: Option<Value>,
}

/// A question about the nodes. Its answer is yes if it is true for at least one node. Only the
/// answer is recorded, so that nodes can be added and removed without a new plan.
#[derive(Debug, Clone, Copy)]
pub struct NodeQuestion {
    /// Its name in the inputs of the plan, one word or a few.
    pub name: &'static str,
    /// A label selector for the nodes for which it can be true. If all questions of a profile have
    /// a selector, no other nodes are listed.
    pub selector: Option<&'static str>,
    /// The name of the question that must be answered with yes before this one matters. If the
    /// answer to that one is no, this one need not be asked, and its answer has no meaning.
    pub only_after: Option<&'static str>,
    /// Whether it is true for a node with these labels.
    pub is_so: fn(&BTreeMap<String, String>) -> bool,
}

/// Facts about the cluster other than the objects that a profile reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Kinds of [`crate::Profile::kinds`] that are not served. A kind is not among them if it is
    /// unknown whether it is served.
    pub not_served: BTreeSet<Kind>,
    /// The names of those [`crate::Planner::node_questions`] whose answer is yes.
    pub of_nodes: BTreeSet<&'static str>,
}

/// The objects of [`crate::Planner::reads`], as the cluster returned them.
#[derive(Debug, Default)]
pub struct Inputs {
    objects: BTreeMap<Read, Option<Value>>,
    surroundings: Surroundings,
    /// The kinds of [`crate::Profile::kinds`], where somebody has said which they are.
    declared: Option<BTreeSet<Kind>>,
    /// Kinds that were asked for and are none of these.
    undeclared: RefCell<BTreeSet<Kind>>,
    recorded: RefCell<BTreeMap<(ObjectRef, String), Option<Value>>>,
    used: RefCell<BTreeMap<(Read, String), Used>>,
    remembered: Remembered,
}

/// The values that a profile used: enough to draft again without reading the objects while they
/// have not changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remembered {
    references: BTreeMap<Read, ObjectRef>,
    present: BTreeSet<Read>,
    used: BTreeMap<(Read, String), Used>,
    of_nodes: Option<BTreeSet<&'static str>>,
}

impl Remembered {
    /// The questions about the nodes that were answered with yes, if they were asked.
    #[must_use]
    pub fn of_nodes(&self) -> Option<&BTreeSet<&'static str>> {
        self.of_nodes.as_ref()
    }

    /// Only the values of objects for which `unchanged` is true.
    #[must_use]
    pub fn of(mut self, unchanged: impl Fn(&Read) -> bool) -> Self {
        self.references.retain(|read, _| unchanged(read));
        self.present.retain(&unchanged);
        self.used.retain(|(read, _), _| unchanged(read));
        self
    }

    /// Whether the object is known to exist.
    #[must_use]
    pub fn has(&self, read: &Read) -> bool {
        self.present.contains(read)
    }

    /// Whether anything is known about the object.
    #[must_use]
    pub fn knows(&self, read: &Read) -> bool {
        self.references.contains_key(read)
    }
}

/// What was made of a value; several things if the profile looked more than once.
#[derive(Debug, Clone, PartialEq)]
enum Used {
    Once(Option<Value>),
    Often,
}

impl Inputs {
    /// Inputs with the object of each read; `None` means that the object, or its kind, does not
    /// exist.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = (Read, Option<Value>)>) -> Self {
        Self { objects: objects.into_iter().collect(), ..Self::default() }
    }

    /// Like [`Inputs::new`], for a profile that has drafted before: objects that are `remembered`
    /// were not read again.
    #[must_use]
    pub fn remembering(objects: impl IntoIterator<Item = (Read, Option<Value>)>, remembered: Remembered) -> Self {
        Self { remembered, ..Self::new(objects) }
    }

    /// The same inputs, in these surroundings.
    #[must_use]
    pub fn in_surroundings(self, surroundings: Surroundings) -> Self {
        Self { surroundings, ..self }
    }

    /// The same inputs, for a profile with these [`crate::Profile::kinds`]: using another kind is
    /// an error.
    #[must_use]
    pub fn declaring(self, kinds: &[Declared]) -> Self {
        Self { declared: Some(kinds.iter().map(|declared| declared.kind).collect()), ..self }
    }

    /// Whether the kind, one of [`crate::Profile::kinds`], is served. The answer for a kind that
    /// the profile does not declare is no, and [`Inputs::check`] then returns an error.
    #[must_use]
    pub fn serves(&self, kind: &Kind) -> bool {
        self.is_declared(kind) && !self.surroundings.not_served.contains(kind)
    }

    fn is_declared(&self, kind: &Kind) -> bool {
        let is_declared = self.declared.as_ref().is_none_or(|declared| declared.contains(kind));
        if !is_declared {
            self.undeclared.borrow_mut().insert(*kind);
        }
        is_declared
    }

    /// Checks that the profile has used only kinds that it declares, if [`Inputs::declaring`] has
    /// said which these are. To be called after the profile has drafted.
    ///
    /// # Errors
    ///
    /// [`DraftError::UndeclaredKind`] for the first kind that it does not declare.
    pub fn check(&self) -> Result<(), DraftError> {
        match self.undeclared.borrow().first() {
            Some(kind) => Err(undeclared_kind(kind)),
            None => Ok(()),
        }
    }

    /// The answer to a question about the nodes, recorded as used.
    #[must_use]
    pub fn of_nodes(&self, question: &NodeQuestion) -> bool {
        let answer = self.surroundings.of_nodes.contains(question.name);
        let all = ObjectRef { api_version: "v1".into(), kind: "Node".into(), namespace: None, name: "*".into() };
        let place = (all, format!("/{}", question.name));
        self.recorded.borrow_mut().insert(place, Some(Value::Bool(answer)));
        answer
    }

    /// The values that the profile has used, for the next time that it drafts.
    #[must_use]
    pub fn remember(self) -> Remembered {
        let read = self.objects.iter().map(|(read, object)| (read.clone(), reference(read, object.as_ref())));
        let references = self.remembered.references.into_iter().chain(read).collect();
        let found = self.objects.iter().filter(|(_, object)| object.is_some()).map(|(read, _)| read.clone());
        let present = self.remembered.present.into_iter().chain(found).collect();
        Remembered { references, present, used: self.used.into_inner(), of_nodes: Some(self.surroundings.of_nodes) }
    }

    /// The value at the RFC 6901 pointer `path`, recorded as used. `None` if the object or the
    /// value is absent.
    ///
    /// # Errors
    ///
    /// [`DraftError::Undeclared`] if `read` is not among [`crate::Planner::reads`],
    /// [`DraftError::UndeclaredKind`] if its kind is not among [`crate::Profile::kinds`]: such an
    /// object would be absent on every cluster.
    pub fn value(&self, read: &Read, path: &str) -> Result<Option<Value>, DraftError> {
        self.derive(read, path, |value| value.cloned())
    }

    /// The result of `extract` for the value at `path`, recorded in place of the value itself. Use
    /// it to depend only on a part of a larger value, above all of an object that this profile
    /// writes itself.
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
        self.declares(read)?;
        let place = (read.clone(), path.to_owned());
        let value = match self.objects.get(read) {
            Some(object) => extract(object.as_ref().and_then(|object| object.pointer(path))),
            None if !self.remembered.knows(read) => return Err(undeclared(read)),
            None => match self.remembered.used.get(&place) {
                Some(Used::Once(value)) => value.clone(),
                Some(Used::Often) | None => return Err(DraftError::Forgotten),
            },
        };
        let used = match self.used.borrow().contains_key(&place) {
            true => Used::Often,
            false => Used::Once(value.clone()),
        };
        self.used.borrow_mut().insert(place, used);
        self.recorded.borrow_mut().insert((self.reference(read)?, path.to_owned()), value.clone());
        Ok(value)
    }

    /// The version in which the object was read, or the preferred version if the object does not
    /// exist. The fields of a kind may differ between versions; the recorded target shows which
    /// version was read.
    ///
    /// # Errors
    ///
    /// As [`Inputs::value`].
    pub fn version(&self, read: &Read) -> Result<String, DraftError> {
        let target = self.object_ref(read)?;
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

    fn declares(&self, read: &Read) -> Result<(), DraftError> {
        if self.is_declared(&read.kind) { Ok(()) } else { Err(undeclared_kind(&read.kind)) }
    }

    /// The object that was read, or would be if it existed.
    ///
    /// # Errors
    ///
    /// As [`Inputs::value`].
    pub fn object_ref(&self, read: &Read) -> Result<ObjectRef, DraftError> {
        self.declares(read)?;
        self.reference(read)
    }

    fn reference(&self, read: &Read) -> Result<ObjectRef, DraftError> {
        match self.objects.get(read) {
            Some(object) => Ok(reference(read, object.as_ref())),
            None => self.remembered.references.get(read).cloned().ok_or_else(|| undeclared(read)),
        }
    }
}

fn undeclared(read: &Read) -> DraftError {
    DraftError::Undeclared { kind: read.kind.kind, name: read.name.clone() }
}

fn undeclared_kind(kind: &Kind) -> DraftError {
    DraftError::UndeclaredKind { kind: kind.kind, group: kind.group }
}

fn reference(read: &Read, object: Option<&Value>) -> ObjectRef {
    let read_version = object.and_then(|object| object.get("apiVersion")).and_then(Value::as_str);
    let place = object.and_then(|object| object.pointer("/metadata/namespace")).and_then(Value::as_str);
    let preferred = || match (read.kind.group, read.kind.versions.first().copied().unwrap_or_default()) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    ObjectRef {
        api_version: read_version.map_or_else(preferred, str::to_owned),
        kind: read.kind.kind.to_owned(),
        namespace: place.filter(|_| read.elsewhere).map(str::to_owned).or_else(|| read.namespace.clone()),
        name: read.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use serde_json::json;

    const WIDGET: Kind = Kind { group: "example.dev", versions: &["v2", "v1"], kind: "Widget", plural: "widgets" };

    fn read(name: &str) -> Read {
        Read { kind: WIDGET, namespace: Some("ns".into()), name: name.into(), elsewhere: false }
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

    /// What is drafted from memory is what is drafted from the objects, or nothing is.
    #[test]
    fn what_has_not_changed_need_not_be_read_again() {
        let widget = json!({"apiVersion": "example.dev/v1", "spec": {"size": 3, "tags": ["a", "b"]}});
        let count = |value: Option<&Value>| value.and_then(Value::as_array).map(|tags| json!(tags.len()));
        let both = Inputs::new([(read("a"), Some(widget.clone())), (read("b"), None)]);
        let use_all = |inputs: &Inputs| {
            let tags = inputs.derive(&read("a"), "/spec/tags", count)?;
            let version = inputs.version(&read("a"))?;
            Ok::<_, DraftError>((tags, version, inputs.value(&read("b"), "/spec/size")?))
        };
        let first = use_all(&both).unwrap();
        let recorded = both.recorded();
        let memory = both.remember();

        let only_b = Inputs::remembering([(read("b"), None)], memory.clone().of(|read| read.name == "a"));
        assert_eq!(use_all(&only_b).unwrap(), first);
        assert_eq!(only_b.recorded(), recorded);
        assert!(matches!(only_b.value(&read("a"), "/spec/size"), Err(DraftError::Forgotten)), "it was never used");
        assert_eq!(only_b.remember(), memory);

        // What was looked at in two ways is not known from one.
        let twice = Inputs::new([(read("a"), Some(widget))]);
        twice.derive(&read("a"), "/spec/tags", count).unwrap();
        twice.value(&read("a"), "/spec/tags").unwrap();
        let again = Inputs::remembering([], twice.remember());
        assert!(matches!(again.value(&read("a"), "/spec/tags"), Err(DraftError::Forgotten)));
    }

    #[test]
    fn a_read_that_was_not_declared_is_an_error_and_not_an_absent_value() {
        let error = Inputs::default().value(&read("c"), "/spec").unwrap_err();
        assert!(error.to_string().contains("Widget c"), "{error}");
    }

    /// T20: it would be true on every cluster, or an absent object on every cluster, and no test of
    /// the profile would know.
    #[test]
    fn t20_a_kind_that_is_not_declared_is_an_error_whatever_is_asked_of_it() {
        const GADGET: Kind = Kind { kind: "Gadget", plural: "gadgets", ..WIDGET };
        let declared = [Declared { kind: WIDGET, access: Access::Ask, name: None, namespace: None }];
        let gadget = Read { kind: GADGET, ..read("g") };
        let inputs = || Inputs::new([(read("a"), None), (gadget.clone(), None)]).declaring(&declared);
        let fine = inputs();
        assert!(fine.serves(&WIDGET) && fine.value(&read("a"), "/spec").is_ok());
        fine.check().unwrap();
        let asks: [fn(&Inputs, &Read); 3] = [
            |inputs, read| assert!(!inputs.serves(&read.kind)),
            |inputs, read| assert!(inputs.value(read, "/spec").is_err()),
            |inputs, read| assert!(inputs.version(read).is_err()),
        ];
        for ask in asks {
            let inputs = inputs();
            ask(&inputs, &gadget);
            let error = inputs.check().unwrap_err().to_string();
            assert!(error.contains("Gadget (example.dev)") && error.contains("profile's owners"), "{error}");
        }
        assert!(Inputs::default().serves(&GADGET), "a test need not say what is declared");
    }
}
