//! The configuration of the model, and the names of what it changes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Action, FailurePolicy, Operation, VirtPlatformConfigStatus};
use crate::plan::decision::observed::{Edit, Wanted};
use crate::plan::overrides::Choices;

/// The names of the two items.
pub(super) const NAMES: [&str; 2] = ["a", "b"];

/// A status, compared by two digests of its stored form: statuses are long, and there are many.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) status: Arc<VirtPlatformConfigStatus>,
    key: [u64; 2],
}

impl Stored {
    pub(super) fn new(status: VirtPlatformConfigStatus) -> Self {
        let text = serde_json::to_vec(&status).unwrap();
        let key = [0_u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            (salt, &text).hash(&mut hasher);
            hasher.finish()
        });
        Self { status: Arc::new(status), key }
    }
}

impl Stored {
    pub(super) fn key(&self) -> [u64; 2] {
        self.key
    }
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Stored {}

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// The object that the user edits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Config {
    pub(super) action: Does,
    pub(super) option: u8,
    pub(super) hash: Option<String>,
    pub(super) automatic: bool,
    pub(super) bypass: bool,
    pub(super) goes_on: bool,
    pub(super) timeout: bool,
    pub(super) replan: u8,
    pub(super) deleting: bool,
    /// Whether an object with this name had a plan on display and was deleted.
    pub(super) made_anew: bool,
    pub(super) generation: i64,
    pub(super) action_at: i64,
    pub(super) stored_at: i64,
    pub(super) status: Stored,
}

/// [`Action`], which can't be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Does {
    DryRun,
    Apply,
    Ignore,
}

impl Config {
    pub(super) fn new(action: Does) -> Self {
        Self {
            action,
            option: 0,
            hash: None,
            automatic: false,
            bypass: false,
            goes_on: false,
            timeout: false,
            replan: 0,
            deleting: false,
            made_anew: false,
            generation: 1,
            action_at: 1000,
            stored_at: 1000,
            status: Stored::new(VirtPlatformConfigStatus::default()),
        }
    }

    /// Whether an execution with a time limit is in progress.
    pub(super) fn limits(&self) -> bool {
        self.timeout && self.status.status.approval.is_some()
    }

    pub(super) fn options(&self) -> Option<Value> {
        Some(json!(self.option))
    }

    pub(super) fn wanted(&self) -> Wanted {
        let edit = Some(Edit { by: "somebody".into(), at: second(self.action_at) });
        Wanted {
            generation: self.generation,
            action: match self.action {
                Does::DryRun => Action::DryRun,
                Does::Apply => Action::Apply,
                Does::Ignore => Action::Ignore,
            },
            action_edit: edit,
            hash_edit: None,
            shown_at: Some(second(self.stored_at)),
            bypass_edit: None,
            spec_hash: format!("{}{}{}{}", self.option, self.automatic, self.goes_on, self.bypass),
            options: self.options(),
            approved_plan_hash: self.hash.clone(),
            automatic: self.automatic,
            failure_policy: if self.goes_on { FailurePolicy::Continue } else { FailurePolicy::Abort },
            wait_timeout: self.timeout.then(|| std::time::Duration::from_secs(50)),
            choices: Choices::default(),
            bypass: self.bypass,
            replan: (self.replan > 0).then(|| self.replan.to_string()),
            deleting: self.deleting,
        }
    }
}

pub(super) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The change of an item, which also identifies it.
pub(super) fn change(name: &str, live: Option<u8>, want: u8, operation: Operation) -> String {
    match operation {
        Operation::Deferred => format!("{name}: later {want}"),
        Operation::Blocked => format!("{name}: blocked"),
        Operation::Skipped => format!("{name}: set aside"),
        Operation::Create | Operation::Update | Operation::NoChange | Operation::Remove => {
            format!("{name}: {live:?} to {want}")
        }
    }
}
