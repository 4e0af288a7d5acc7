//! The rules by which a plan counts as approved.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use crate::api::{Action, Approval, ApprovedBy, Phase, PlannedSpec, VirtPlatformConfig, VirtPlatformConfigStatus};
use crate::plan::Plan;
use crate::plan::decision::changes::{has_same_inputs, others_have_changed};
use crate::plan::decision::observed::is_made_anew;
use crate::plan::decision::observed::{Edit, Observed, Wanted};
use crate::plan::figures;
use crate::plan::guard::{Guard, stops};
use crate::plan::hash;
use crate::plan::wire::REPLACED_LIMIT;
use object::limits::{cut_text, within_line};

/// How long a plan that replaced another one must have been readable before an edit approves it by
/// the action alone. Otherwise nobody can know which of the two was read; only a hash says so.
const SETTLED: Duration = Duration::from_secs(60);
/// The longest time from a decision until its status is stored: a reconcile takes no longer.
const STORING: Duration = Duration::from_secs(60);
/// This many corrections without a person within this time are a fight with another writer.
pub(in crate::plan) const THRASHING: (usize, Duration) = (3, Duration::from_secs(3600));

/// The longest text of an approval, as in the CRD.
const TEXT_LIMIT: usize = 512;

/// Why a plan is not approved although it could be executed. [`Waiting::remedy`] says how to
/// approve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The action is not Apply.
    NotAsked {
        /// A hash in spec names another plan.
        names_another: bool,
    },
    /// Nobody approved this plan.
    NotApproved,
    /// It was approved by an edit that came too soon after it had replaced another plan.
    TooSoon,
    /// A hash in spec names another plan.
    NamesAnother {
        /// The hash in spec.
        named: String,
        /// The hash of the plan that would be carried out.
        plan: String,
    },
    /// Apply was set in advance, but the plan holds something that must be read first.
    NeedsReview,
    /// The automatic policy approves what an edit of the options leads to, and the plan contains
    /// something else.
    NotByPolicy,
    /// It was restored without a person several times already, and somebody keeps changing it.
    Thrashing,
}

impl Waiting {
    /// The way in which the user can have the plan executed.
    #[must_use]
    pub fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NamesAnother { named, plan } => {
                let (named, plan) = (hash::short(named), hash::short(plan));
                return Cow::Owned(format!(
                    "spec.approvedPlanHash names plan {named}, but this is plan {plan}, so nothing is carried out. Read this plan, then set \
                     spec.approvedPlanHash to status.planHash."
                ));
            }
            Self::NotAsked { names_another: false } => "Read the diffs, then set spec.action to Apply.",
            Self::NotAsked { names_another: true } => {
                "Read the diffs, then set spec.approvedPlanHash (which names another plan) to status.planHash, and spec.action to Apply."
            }
            Self::NotApproved => {
                "spec.action Apply alone does not approve this plan. Read it, then set spec.approvedPlanHash to status.planHash; or set \
                 spec.action to DryRun, clear spec.approvedPlanHash, and set spec.action back to Apply after reading the plan."
            }
            Self::TooSoon => {
                "This plan replaced another one within a minute of spec.action being set to Apply, so it is unclear which of the two was \
                 read. Read this plan, then set spec.approvedPlanHash to status.planHash."
            }
            Self::NotByPolicy => {
                "spec.approvalPolicy Automatic approves only what an edit of the options changes, but this plan holds something else. Read \
                 the diffs, then set spec.approvedPlanHash to status.planHash."
            }
            Self::Thrashing => {
                "spec.bypassOptimisticLock has reverted the drift three times within the last hour, but it was changed again. Agree on a \
                 value with its other writers, then set spec.approvedPlanHash to status.planHash, or keep their value."
            }
            Self::NeedsReview => {
                "spec.action was Apply before the plan existed, but this plan takes fields or entries from others, removes something, or \
                 can't be previewed completely. Read it, then set spec.approvedPlanHash to status.planHash."
            }
        })
    }
}

/// Whether `plan` may be executed now, and by which rule.
///
/// # Errors
///
/// The reason why not.
pub fn granted(seen: &Observed<'_>, plan: &Plan, now: Timestamp) -> Result<Approval, Waiting> {
    let how = rule(seen, plan, now)?;
    let edit = match how {
        ApprovedBy::Hash => &seen.wanted.hash_edit,
        ApprovedBy::Bypass => &seen.wanted.bypass_edit,
        ApprovedBy::Action | ApprovedBy::InAdvance | ApprovedBy::Policy => &seen.wanted.action_edit,
    };
    let by = edit.as_ref().map_or("unknown", |edit| &edit.by);
    Ok(Approval {
        plan_hash: plan.digest.clone(),
        how,
        by: by.to_owned(),
        at: crate::plan::wire::time(now),
        generation: seen.wanted.generation,
        text: cut_text(&within_line(&figures::in_figures(plan)), TEXT_LIMIT),
        machines: figures::figures(plan).machines_to_reboot,
        replaced: plan
            .items
            .iter()
            .flat_map(|item| item.review.replaced.iter().cloned())
            .take(REPLACED_LIMIT)
            .collect(),
    })
}

fn rule(seen: &Observed<'_>, plan: &Plan, now: Timestamp) -> Result<ApprovedBy, Waiting> {
    let (wanted, status, version) = (seen.wanted, seen.status, seen.version);
    let planned = status.planned_spec.as_ref();
    let another = wanted.approved_plan_hash.as_ref().filter(|named| **named != plan.digest);
    if stops(Guard::NotApply, wanted.action != Action::Apply) {
        return Err(Waiting::NotAsked { names_another: another.is_some() });
    }
    // A hash that was carried out and stays in spec does not concern a later plan: rules that need
    // no person still apply.
    let used = planned.and_then(|planned| planned.used_plan_hash.as_ref());
    let names_another = || {
        let named = another.filter(|_| stops(Guard::OtherHash, true))?;
        Some(Waiting::NamesAnother { named: named.clone(), plan: plan.digest.clone() })
    };
    if let Some(waiting) = names_another().filter(|_| another != used) {
        return Err(waiting);
    }
    let unseen = stops(Guard::NotShown, status.plan_hash.as_ref() != Some(&plan.digest));
    if !unseen && is_named(wanted, planned, plan) {
        return Ok(ApprovedBy::Hash);
    }
    let options_changed = status.applied_options != wanted.options;
    let edited = status.planned_generation != Some(wanted.generation);
    let first = is_first(seen);
    let by_itself = stops(Guard::NoEdit, !edited || !(options_changed || first));
    if wanted.automatic && !by_itself && !stops(Guard::PolicyOfOthers, others_have_changed(status, plan)) {
        return Ok(ApprovedBy::Policy);
    }
    if first {
        let takes = plan.items.iter().any(crate::plan::items::PlanItem::needs_review);
        let takes = stops(Guard::TakesFromOthers, takes);
        return match takes {
            false => names_another().map_or(Ok(ApprovedBy::InAdvance), Err),
            true if wanted.bypass => bypass(wanted, status, plan, version, false, now),
            true => Err(Waiting::NeedsReview),
        };
    }
    let same_spec = !stops(Guard::SpecChanged, planned.is_none_or(|planned| planned.hash != wanted.spec_hash));
    let waited = status.phase != Some(Phase::Ignored) && status.planned_action == Some(Action::DryRun);
    let toggled = !stops(Guard::NotShownUnderDryRun, !waited) && same_spec;
    let revised = planned.and_then(|planned| planned.revised_at.as_ref()).map(|time| time.0);
    // The plan was on display once the server had stored it, which may be a while after the
    // decision. A later write of the status showed nothing new.
    let stored_as_such =
        |shown: &Timestamp, decided: Timestamp| shown.duration_since(decided).unsigned_abs() <= STORING;
    let shown = |decided| wanted.shown_at.filter(|shown| stored_as_such(shown, decided)).unwrap_or(decided);
    let revised = revised.map(|decided| shown(decided).max(decided));
    let fresh = !settled_before(revised, wanted.action_edit.as_ref(), now);
    let fresh = stops(Guard::TooFresh, fresh);
    match (unseen || !toggled, fresh) {
        (false, false) => names_another().map_or(Ok(ApprovedBy::Action), Err),
        _ if wanted.bypass => bypass(wanted, status, plan, version, toggled, now),
        (true, _) if wanted.automatic => Err(Waiting::NotByPolicy),
        (true, _) => Err(Waiting::NotApproved),
        (false, true) => Err(Waiting::TooSoon),
    }
}

/// Whether the hash in spec is this plan's, and was set after the plan was shown.
fn is_named(wanted: &Wanted, planned: Option<&PlannedSpec>, plan: &Plan) -> bool {
    let Some(named) = &wanted.approved_plan_hash else {
        return false;
    };
    let known = planned.is_none_or(|planned| planned.approved_plan_hash.as_ref() == Some(named));
    *named == plan.digest && !stops(Guard::OldHash, known)
}

/// The rule of `spec.bypassOptimisticLock`: nobody is asked about a target that changes, neither
/// between review and approval (`toggled`) nor after it was applied. Other options, inputs and
/// versions do need a person, and so does an endless fight.
fn bypass(
    wanted: &Wanted,
    status: &VirtPlatformConfigStatus,
    plan: &Plan,
    version: &str,
    toggled: bool,
    now: Timestamp,
) -> Result<ApprovedBy, Waiting> {
    let others = status.applied_options != wanted.options
        || !has_same_inputs(status, plan)
        || status.operator_version.as_deref() != Some(version);
    if stops(Guard::BypassOfOthers, others) {
        return Err(Waiting::NotApproved);
    }
    let changing: Vec<_> = plan.items.iter().filter(|item| item.changes()).collect();
    let remembered = |name: &str| status.items.iter().find(|item| item.name == name)?.applied.as_ref();
    let corrects = changing.iter().all(|item| remembered(&item.name).is_some_and(|applied| item.restores(applied)));
    if stops(Guard::BypassOfNew, !toggled && !corrects) {
        return Err(Waiting::NotApproved);
    }
    let recent = status.history.iter().filter(|entry| {
        entry.how == Some(ApprovedBy::Bypass) && now.duration_since(entry.at.0).unsigned_abs() < THRASHING.1
    });
    if stops(Guard::Thrashing, !toggled && recent.count() >= THRASHING.0) {
        return Err(Waiting::Thrashing);
    }
    Ok(ApprovedBy::Bypass)
}

/// Whether no plan was waiting: the object is new, or it comes back from Ignore with nothing left
/// to do and no edit in the meantime. If a plan of another object with this name may have been
/// read, an object that was edited since its creation does not count: only its creator knows what
/// it contains.
fn is_first(seen: &Observed<'_>) -> bool {
    let (wanted, status) = (seen.wanted, seen.status);
    if wanted.generation > 1 && is_made_anew(seen) {
        return false;
    }
    let edited = || status.planned_spec.as_ref().is_none_or(|planned| planned.hash != wanted.spec_hash);
    let waits = match status.phase {
        None => false,
        Some(Phase::Ignored) => {
            status.items.iter().any(|item| !item.operation.leaves_alone()) || (status.plan_hash.is_some() && edited())
        }
        Some(_) => true,
    };
    !stops(Guard::NotFirst, waits)
}

/// Whether the plan had been readable for long enough when it was approved. Anyone who may edit the
/// configuration can forge the time of an edit in managedFields: a time in the future counts as
/// `now`, the first reconcile that sees the edit.
fn settled_before(revised: Option<Timestamp>, edit: Option<&Edit>, now: Timestamp) -> bool {
    let (Some(revised), Some(edit)) = (revised, edit) else { return revised.is_none() };
    let at = if stops(Guard::ForgedTime, edit.at > now) { now } else { edit.at };
    at.duration_since(revised).unsigned_abs() >= SETTLED && at > revised
}

/// The state of the configuration that a write relies on: recorded with the decision, and compared
/// with the configuration as it is just before the write.
///
/// It compares the whole resourceVersion and not only what matters: a cache that lags does not know
/// what this process itself has stored since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    uid: Option<String>,
    version: Option<String>,
    executing: bool,
}

impl Mandate {
    /// The mandate that `config` gives.
    #[must_use]
    pub fn of(config: &VirtPlatformConfig) -> Self {
        let metadata = &config.metadata;
        let approved =
            |status: &VirtPlatformConfigStatus| status.phase == Some(Phase::InProgress) && status.approval.is_some();
        Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            executing: config.spec.action == Action::Apply
                && metadata.deletion_timestamp.is_none()
                && config.status.as_ref().is_some_and(approved),
        }
    }

    /// Whether a write that was decided with this mandate may still be made when the configuration
    /// gives `now`.
    #[must_use]
    pub fn covers(&self, now: &Self) -> bool {
        !stops(Guard::Superseded, self != now || !now.executing)
    }
}
