//! Plans, from drafts and a cluster. Usable without the operator. Plans from recorded objects,
//! without a cluster, are made by [`advisor_core::plan::offline`].
//!
//! ```text
//!   draft ──► item ──► effects ──► Plan          write: one item, as it was reviewed
//!   reads,    dry      what pools
//!   drafts    runs     make of it
//!               └─ order: what must come first; remedy: what a refusal means; nodes: labels
//! ```
//!
//! Planning only reads and does dry runs: nothing is stored on any server. The answers are put
//! together by [`advisor_core::plan::items::from_preview`], which is pure. [`write()`] carries out
//! one item; whether it may be is not decided here.

mod draft;
mod effects;
mod item;
mod nodes;
mod order;
mod remedy;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use profile_sdk::{Declared, Draft, Rival};
use serde_json::Value;

use advisor_cluster::{Cluster, ClusterError, Served, SilentGroup, Subject};
use advisor_core::api::{FIELD_MANAGER, Item};
use advisor_core::plan::check_drafts;
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::remedy::Remedy;
use advisor_core::plan::{Basis, Plan};
use advisor_core::rollout::Rollouts;

pub use draft::{DraftedPlan, Drafting, Kinds, exclusions, undeclared};
pub use nodes::answers;
pub use write::{WriteOutcome, write};

/// The most requests that one plan sends at a time.
pub const CONCURRENCY: usize = 8;

/// A plan could not be made now; a later attempt may succeed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No plan can be made of the drafts at all.
    #[error("{0}")]
    Drafts(Remedy),
    /// A kind could not be looked up.
    #[error("looking up kind {kind} failed: {source}")]
    Kind {
        /// The kind.
        kind: &'static str,
        /// The cause.
        source: ClusterError,
    },
    /// It is not known whether a kind is served that is needed or read.
    #[error("kind {kind} can't be looked up: {group}")]
    Silent {
        /// The kind.
        kind: &'static str,
        /// The group that does not answer.
        group: SilentGroup,
    },
    /// An object could not be read.
    #[error("reading {object} failed: {source}")]
    Object {
        /// The object, with its kind.
        object: String,
        /// The cause.
        source: ClusterError,
    },
    /// Several objects may be meant.
    #[error("{kind} {name} exists in several namespaces ({}), but only one of them can be used: delete the others", namespaces.join(", "))]
    Ambiguous {
        /// The kind.
        kind: &'static str,
        /// Their name.
        name: String,
        /// Their namespaces.
        namespaces: Vec<String>,
    },
    /// A change could not be previewed.
    #[error("previewing {object} failed: {source}")]
    Preview {
        /// The object, with its kind.
        object: String,
        /// The cause.
        source: ClusterError,
    },
}

impl EngineError {
    /// A word for logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Drafts(_) => "InvalidDrafts",
            Self::Silent { .. } => "Unavailable",
            Self::Ambiguous { .. } => "Ambiguous",
            Self::Kind { source, .. } | Self::Object { source, .. } | Self::Preview { source, .. } => source.reason(),
        }
    }

    /// The text that may be displayed.
    #[must_use]
    pub fn displayed(&self) -> String {
        match self {
            Self::Drafts(problem) => problem.to_string(),
            Self::Silent { kind, group } => format!("Kind {kind} can't be looked up: {group}"),
            Self::Ambiguous { .. } => self.to_string(),
            Self::Kind { kind, source } => format!("Kind {kind} can't be looked up: {}", source.displayed()),
            Self::Object { object, source } => format!("{object} can't be read: {}", source.displayed()),
            Self::Preview { object, source } => format!("{object} can't be previewed: {}", source.displayed()),
        }
    }

    /// Whether something changed while it was read: a retry at once is worthwhile.
    #[must_use]
    pub fn is_race(&self) -> bool {
        match self {
            Self::Kind { source, .. } | Self::Object { source, .. } | Self::Preview { source, .. } => {
                matches!(source, ClusterError::Moved)
            }
            Self::Drafts(_) | Self::Silent { .. } | Self::Ambiguous { .. } => false,
        }
    }
}

/// The field manager of a profile's objects. Each profile has its own: with a shared one, the
/// second configuration's apply would remove the first one's fields.
#[must_use]
pub fn manager(profile: &str) -> String {
    format!("{FIELD_MANAGER}/{profile}")
}

/// The input of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The profile, which is also the name of the configuration.
    pub profile: &'a str,
    /// The kinds that the profile declares, with what it may do to each.
    pub kinds: &'a [Declared],
    /// The drafts of the profile.
    pub drafts: &'a [Draft],
    /// The items of the previous plan, as in the status.
    pub remembered: &'a [Item],
    /// Other programs that are known to write the same objects.
    pub rivals: &'a [Rival],
    /// The fields that other configurations want.
    pub claims: &'a [Claim],
    /// The overrides of administrators.
    pub choices: &'a Choices,
    /// The drafts whose objects may not be watched, by name, with the remedy: they are blocked.
    pub unwatched: &'a BTreeMap<String, String>,
    /// Whether the server is always asked for conflicts. Otherwise they are determined from the
    /// object if somebody has evidently changed what was applied: that saves a request when drift
    /// is displayed, and an approval asks again.
    pub exact: bool,
}

/// Called for each object that is read, with its version, or `None` if it does not exist.
pub type Seen<'a> = dyn Fn(Subject, Option<String>) + Send + Sync + 'a;

/// Makes one plan. Reads nothing twice.
pub struct Engine<'a> {
    cluster: &'a Cluster,
    rollouts: &'a dyn Rollouts,
    seen: &'a Seen<'a>,
    read: Mutex<BTreeMap<Subject, Option<Arc<Value>>>>,
}

impl<'a> Engine<'a> {
    /// An engine for one plan on `cluster`. `rollouts` knows its pools.
    #[must_use]
    pub fn new(cluster: &'a Cluster, rollouts: &'a dyn Rollouts, seen: &'a Seen<'a>) -> Self {
        Self { cluster, rollouts, seen, read: Mutex::default() }
    }

    /// The plan of `task`. An item that can't be written is Blocked, and does not prevent the
    /// others.
    ///
    /// # Errors
    ///
    /// If no plan can be made of the drafts, or the server does not answer.
    pub async fn plan(&self, basis: Basis, task: Task<'_>) -> Result<Plan, EngineError> {
        check_drafts::all(task.drafts, &basis.inputs).map_err(EngineError::Drafts)?;
        Ok(Plan::new(basis, self.items(task, BTreeMap::new()).await?))
    }

    /// The items of `task`, in its order; items in `known` are used as they are.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn items(
        &self,
        task: Task<'_>,
        mut known: BTreeMap<String, PlanItem>,
    ) -> Result<Vec<PlanItem>, EngineError> {
        // Items that create namespaces and kinds come first, because previews of others depend on
        // them.
        let providers: BTreeSet<&str> = order::providers(task.drafts);
        for provides in [true, false] {
            let now = task.drafts.iter().filter(|draft| providers.contains(draft.name.as_str()) == provides);
            let now: Vec<_> = now.filter(|draft| !known.contains_key(&draft.name)).collect();
            let previews: Vec<_> = {
                let previews: Vec<_> = now.iter().map(|draft| self.preview(task, draft, &known)).collect();
                stream::iter(previews).buffered(CONCURRENCY).try_collect().await?
            };
            let judged = self.effects(&now, previews, task.exact).await?;
            let planned = now.iter().zip(judged).map(|(draft, judged)| self.item(task, draft, judged));
            let planned: Vec<_> = planned.collect();
            known.extend(planned.into_iter().map(|item| (item.name.clone(), item)));
        }
        Ok(task.drafts.iter().filter_map(|draft| known.remove(&draft.name)).collect())
    }

    /// Reads an object, once in this plan.
    ///
    /// # Errors
    ///
    /// As for [`Cluster::get`].
    pub async fn get(
        &self,
        kind: &Served,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<Value>>, ClusterError> {
        let subject = kind.subject(namespace, name);
        if let Some(read) = self.read.lock().get(&subject) {
            return Ok(read.clone());
        }
        let object = self.cluster.get(kind, namespace, name).await?.map(Arc::new);
        (self.seen)(subject.clone(), object.as_deref().and_then(version));
        self.read.lock().insert(subject, object.clone());
        Ok(object)
    }

    /// The object, if this plan has read it and it exists.
    fn object_read(&self, subject: &Subject) -> Option<Arc<Value>> {
        self.read.lock().get(subject).cloned().flatten()
    }

    /// Forgets the object, because what was read is out of date.
    fn forget(&self, kind: &Served, namespace: Option<&str>, name: &str) {
        self.read.lock().remove(&kind.subject(namespace, name));
    }
}

/// The resourceVersion of `object`.
#[must_use]
pub fn version(object: &Value) -> Option<String> {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned)
}
