//! Who may start what: the rules by which a plan counts as approved.

use std::time::Duration;

use jiff::Timestamp;

use super::Plan;
use super::observed::{Edit, Observed, Wanted};
use crate::api::{Action, Approval, ApprovedBy, Operation, Phase, VirtPlatformConfigStatus};

/// A plan that changed by itself must have been readable for this long before the edit that approves it; else nobody can
/// know which of the two was read.
const SETTLED: Duration = Duration::from_secs(60);

/// Why a plan is not approved, although the action is Apply. The text says how to approve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The action is not Apply.
    NotAsked,
    /// Nobody approved this plan.
    NotApproved,
    /// It was approved by an edit that came too soon after the plan had changed.
    TooSoon,
    /// It was asked for in advance, but holds something that must be read first.
    NeedsReview,
}

impl Waiting {
    /// What the user can do to have the plan executed.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAsked => "Read the diffs, then set spec.action to Apply.",
            Self::NotApproved => {
                "Action Apply alone does not approve it: set spec.approvedPlanHash to status.planHash, or set the action to \
                 DryRun and, after reading the plan, to Apply."
            }
            Self::TooSoon => {
                "The plan changed within the minute before it was approved: read it again and set spec.approvedPlanHash to \
                 status.planHash."
            }
            Self::NeedsReview => {
                "Apply was asked for in advance, but this plan takes something from others and must be read first: set \
                 spec.approvedPlanHash to status.planHash."
            }
        }
    }
}

/// Whether `plan` may be executed now, and by which rule.
///
/// # Errors
///
/// Why not.
pub fn granted(seen: &Observed<'_>, plan: &Plan, now: Timestamp) -> Result<Approval, Waiting> {
    let how = rule(seen.wanted, seen.status, plan)?;
    let edit = match how {
        ApprovedBy::Hash => &seen.wanted.hash_edit,
        ApprovedBy::Action | ApprovedBy::InAdvance | ApprovedBy::Policy => &seen.wanted.action_edit,
    };
    let by = edit.as_ref().map_or("unknown", |edit| &edit.by);
    Ok(Approval {
        plan_hash: plan.digest.clone(),
        how,
        by: by.to_owned(),
        at: super::wire::time(now),
        generation: seen.wanted.generation,
    })
}

fn rule(wanted: &Wanted, status: &VirtPlatformConfigStatus, plan: &Plan) -> Result<ApprovedBy, Waiting> {
    if wanted.action != Action::Apply {
        return Err(Waiting::NotAsked);
    }
    let published = status.plan_hash.as_ref() == Some(&plan.digest);
    let planned = status.planned_spec.as_ref();
    let named = wanted.approved_plan_hash.as_ref();
    if published
        && named == Some(&plan.digest)
        && planned.is_some_and(|planned| planned.approved_plan_hash.as_ref() != named)
    {
        return Ok(ApprovedBy::Hash);
    }
    let options_changed = status.applied_options != wanted.options;
    let edited = status.planned_generation != Some(wanted.generation);
    if wanted.automatic && edited && (options_changed || is_first(status)) {
        return Ok(ApprovedBy::Policy);
    }
    if is_first(status) {
        let harmless = !plan.items.iter().any(super::item::PlanItem::needs_review);
        return if harmless { Ok(ApprovedBy::InAdvance) } else { Err(Waiting::NeedsReview) };
    }
    let toggled = published
        && status.phase != Some(Phase::Ignored)
        && status.planned_action == Some(Action::DryRun)
        && planned.is_some_and(|planned| planned.hash == wanted.spec_hash);
    if !toggled {
        return Err(Waiting::NotApproved);
    }
    let revised = planned.and_then(|planned| planned.revised_at.as_ref()).map(|time| time.0);
    if settled_before(revised, wanted.action_edit.as_ref()) { Ok(ApprovedBy::Action) } else { Err(Waiting::TooSoon) }
}

/// Whether no plan was waiting: the object is new, or comes back from Ignore with nothing left undone.
fn is_first(status: &VirtPlatformConfigStatus) -> bool {
    match status.phase {
        None => true,
        Some(Phase::Ignored) => status.items.iter().all(|item| item.operation == Operation::NoChange),
        Some(_) => false,
    }
}

fn settled_before(revised: Option<Timestamp>, edit: Option<&Edit>) -> bool {
    match (revised, edit) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(revised), Some(edit)) => edit.at.duration_since(revised).unsigned_abs() >= SETTLED && edit.at > revised,
    }
}
