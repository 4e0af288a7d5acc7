//! Drafts: the objects that a profile wants, one draft for each.

use serde_json::Value;

use crate::ObjectRef;

/// How much a change disturbs the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impact {
    /// Derived by the engine: from machines that reboot, or else from the operation.
    Derived,
    /// Nothing that runs is disturbed.
    Low,
    /// Workloads may move, or a component restarts.
    Medium,
    /// Machines reboot.
    High,
}

/// One object that the profile wants, as the future item of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The item's name in the status, stable over releases.
    pub name: String,
    /// The desired state of the object.
    pub body: Body,
    /// The impact of the item if it changes anything.
    pub impact: Impact,
    /// The item's wave. Items of a wave are written together; the next wave begins when all of them
    /// are in effect.
    pub wave: u32,
    /// The feature to which the object belongs. Users can skip all items of a feature together.
    pub feature: Option<String>,
    /// Items or features without which this item has no effect. If one of them is skipped, the plan
    /// says so.
    pub needs: Vec<String>,
    /// The effect of the object: a clause such as `lets kubelets run more pods`, whose subject is
    /// the object, in lower case and without a full stop. It begins the item's message.
    pub reason: String,
    /// Further facts for the reviewer, for example an option that has no effect on this release.
    /// Each is a clause without a full stop; its first letter is capitalized in the message.
    pub notes: Vec<String>,
    /// JSON Pointers (RFC 6901) to values that must never be shown.
    pub sensitive: Vec<String>,
    /// JSON Pointers to resource quantities such as `1Gi` or `500m`, for which a different spelling
    /// of the same amount is not a change. A last segment `*` stands for every member. Not needed
    /// for built-in kinds, since the API server normalizes those.
    pub quantities: Vec<String>,
    /// JSON Pointers to fields that should not be set by anybody. An apply can't remove fields that
    /// others own, so the plan says which of them stay and who owns them.
    pub unwanted: Vec<String>,
}

impl Draft {
    /// A draft in the first wave with a derived impact; all other fields are empty.
    #[must_use]
    pub fn new(name: impl Into<String>, body: Body, reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            body,
            impact: Impact::Derived,
            wave: 0,
            feature: None,
            needs: Vec::new(),
            reason: reason.into(),
            notes: Vec::new(),
            sensitive: Vec::new(),
            quantities: Vec::new(),
            unwanted: Vec::new(),
        }
    }
}

/// The desired state of a draft's object.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The object exists with these fields. The value must have apiVersion, kind and name, and must
    /// contain neither nulls nor fields that the server sets.
    Ensure(Value),
    /// The object is no longer wanted: it is deleted if no other field manager owns fields of it,
    /// otherwise only the fields of this configuration are removed.
    Remove(ObjectRef),
    /// This cluster can't have the object. The plan shows the remedy and can't be approved.
    Blocked {
        /// The object that would have been written.
        target: ObjectRef,
        /// The reason and the remedy: a clause without a full stop that ends with what the
        /// administrator can do.
        remedy: String,
    },
}

/// The reason why a draft could not be made: a fault of the profile, or an object that breaks the
/// promise of its kind.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The profile read an object that it did not declare.
    #[error("the profile read {kind} {name} without declaring it among its reads: report this to the profile's owners")]
    Undeclared {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The profile asked whether a kind is served, or read an object of a kind, that it did not
    /// declare.
    #[error(
        "the profile uses kind {kind} ({group}) without declaring it among its kinds: report this to the profile's owners"
    )]
    UndeclaredKind {
        /// The kind.
        kind: &'static str,
        /// Its API group.
        group: &'static str,
    },
    /// The profile read other values of an object than the last time. Profiles must return this
    /// error unchanged: the engine then reads all objects and drafts again.
    #[error("a value is needed from an object that was not read again")]
    Forgotten,
    /// A template could not be rendered or parsed.
    #[error("template {template} could not be rendered: {problem}. Report this to the profile's owners")]
    Template {
        /// The template's file name.
        template: &'static str,
        /// The error of the template engine or the YAML parser.
        problem: String,
    },
    /// An input does not have the form that its kind promises.
    #[error("{object}: {path} {problem}")]
    Input {
        /// The object, with its kind.
        object: String,
        /// A JSON Pointer (RFC 6901) to the value.
        path: String,
        /// The fault of the value as a predicate, for example `is not a whole number: correct it`.
        problem: String,
    },
}
