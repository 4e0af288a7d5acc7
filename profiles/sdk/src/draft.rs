//! What a profile wants: one draft for each object.

use serde_json::Value;

use crate::ObjectRef;

/// How much a change disturbs the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impact {
    /// Derived by the engine from the effect: machines that reboot, or the kind of change.
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
    /// What is wanted.
    pub body: Body,
    /// The impact if this item changes anything.
    pub impact: Impact,
    /// Items of a wave are written together; the next wave waits until all of them have taken effect.
    pub wave: u32,
    /// The feature that the object belongs to, by which it is set aside together with others.
    pub feature: Option<String>,
    /// Items or features without which this one has no effect: whoever sets one of them aside is told.
    pub needs: Vec<String>,
    /// Why the object is wanted, in one sentence.
    pub reason: String,
    /// What the user should know besides, for example an option that this release can't honour.
    pub notes: Vec<String>,
    /// RFC 6901 pointers to values that must never be shown.
    pub sensitive: Vec<String>,
    /// RFC 6901 pointers to resource quantities (`1Gi`, `500m`): two spellings of one amount are no change there. A last
    /// segment `*` stands for every member. Not needed for kinds of Kubernetes itself, whose server spells them alike.
    pub quantities: Vec<String>,
    /// RFC 6901 pointers to fields that should not be set by anybody. An apply can't take away what others own, so the
    /// plan says which of them stay, and who owns them.
    pub unwanted: Vec<String>,
}

impl Draft {
    /// A draft in the first wave, with a derived impact and nothing special about it.
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

/// What a draft wants of its object.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The object exists with these fields: complete with apiVersion, kind and name, without nulls, and with nothing the
    /// server sets.
    Ensure(Value),
    /// What this configuration brought of the object is taken back: the object goes where nobody else has a part in it,
    /// else only our fields do.
    Remove(ObjectRef),
    /// This cluster can't have the object. The plan shows the remedy and can't be approved.
    Blocked {
        /// The object that would have been written.
        target: ObjectRef,
        /// What is missing, and what the administrator can do.
        remedy: String,
    },
}

/// A draft that could not be made: a fault of the profile, or an object that breaks the promise of its kind.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The profile read an object that it did not declare.
    #[error(
        "{kind} {name} was read but is not among the profile's declared reads: report this to the profile's owners"
    )]
    Undeclared {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The profile asked for a kind, or read an object of one, that it did not declare.
    #[error(
        "kind {kind} ({group}) was asked for but is not among the kinds that the profile declares: report this to the profile's owners"
    )]
    UndeclaredKind {
        /// The kind.
        kind: &'static str,
        /// Its API group.
        group: &'static str,
    },
    /// The profile looked at more of an object than the last time: the engine reads it and asks again. Profiles pass it on.
    #[error("something is needed of an object that was not read")]
    Forgotten,
    /// A template did not render, or not to an object.
    #[error("template {template} did not render: {problem}. Report this to the profile's owners")]
    Template {
        /// The template's file name.
        template: &'static str,
        /// What went wrong.
        problem: String,
    },
    /// An input has a shape that its kind does not promise.
    #[error("{object}: {path} {problem}")]
    Input {
        /// The object, with its kind.
        object: String,
        /// An RFC 6901 pointer.
        path: String,
        /// What is wrong with the value there.
        problem: String,
    },
}
