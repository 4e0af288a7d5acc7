//! The plan in figures and in one sentence: what `kubectl get -o wide` and `kubectl describe` say.

use crate::api::{Item, ItemState, Phase};
use crate::plan::Plan;
use crate::plan::decision::Publication;
use crate::plan::figures;
use crate::plan::items::PlanItem;
use crate::plan::status::overridden;

/// How to approve a plan by a hash that is in spec already.
const NAMED_BEFORE: &str = "set spec.action to DryRun and clear spec.approvedPlanHash, which named this plan before it was shown; then set both \
    again.";

/// What is said under action Ignore.
pub(in crate::plan) const IGNORED: &str = "The operator stands aside: it reads and writes nothing. Resources remain in their current state. \
    Set spec.action to DryRun to see what the profile would change.";

/// How a change of others becomes what is wanted, whatever drives the value.
const KEEP: &str = "To keep it, change the option that drives the value, override the value in spec.overrides, set the item aside in \
                    spec.items, or set spec.action to Ignore.";

/// What a plan leaves out that is as wanted otherwise.
fn except(plan: &Plan) -> String {
    match figures::figures(plan).skipped {
        0 => String::new(),
        1 => ", except for 1 item that is set aside".to_owned(),
        many => format!(", except for {many} items that are set aside"),
    }
}

/// Why `item` keeps the plan from being approved, in a sentence that names its object once.
fn why_blocked(item: &PlanItem) -> String {
    let target = item.target.to_string();
    let why = item.message.strip_prefix(&target).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&item.message);
    format!("{target}: {}.", why.trim_end_matches('.'))
}

/// What is said of a plan beside what is in it.
#[derive(Debug)]
pub(in crate::plan) struct PlanContext<'a> {
    /// What had changed when it was shown first.
    pub(in crate::plan) detail: &'a str,
    /// What machines do not have of what was applied, in sentences.
    pub(in crate::plan) overridden: &'a [String],
    /// What was written earlier and is not in effect yet, in sentences.
    pub(in crate::plan) under_way: &'a [String],
    /// Whether it makes of what has drifted just what was applied.
    pub(in crate::plan) puts_back: bool,
    /// Whether the hash in spec names it and was there before it was shown.
    pub(in crate::plan) named_before: bool,
}

/// What is said of a plan that is shown.
#[must_use]
pub(in crate::plan) fn of_publication(plan: &Plan, publication: &Publication, told: &PlanContext<'_>) -> String {
    let PlanContext { detail, overridden: lost, under_way, puts_back, named_before } = *told;
    // A hash that is there already can't be set.
    let how = match named_before && plan.blocked().next().is_none() {
        true => NAMED_BEFORE,
        false => "set spec.approvedPlanHash to status.planHash.",
    };
    let remedy = if how == NAMED_BEFORE && publication.phase == Phase::ReviewRequired {
        ""
    } else {
        publication.remedy.as_str()
    };
    let mut sentences = Vec::new();
    match publication.phase {
        Phase::Completed => {
            if lost.is_empty() {
                sentences.push(format!("Everything is as planned{}.", except(plan)));
            } else {
                sentences.push(format!(
                    "Everything is written as planned{}, and machines do not have all of it.",
                    except(plan)
                ));
                sentences.extend(lost.iter().cloned());
                sentences.push(overridden::REMEDY.to_owned());
            }
            sentences.push(detail.to_owned());
            let troubled = plan.items.iter().filter_map(|item| Some((item, item.trouble.as_ref()?)));
            sentences
                .extend(troubled.map(|(item, trouble)| format!("{}: {}.", item.target, trouble.trim_end_matches('.'))));
            sentences.extend(
                plan.items
                    .iter()
                    .flat_map(|item| item.kept.iter().map(move |kept| format!("{}: {kept}.", item.target))),
            );
        }
        Phase::InProgress => {
            sentences.push(format!("Everything is as planned{}, and not yet in effect everywhere.", except(plan)));
            sentences.push(detail.to_owned());
        }
        Phase::Drifted => {
            sentences.push(detail.to_owned());
            sentences.push(remedy.to_owned());
            sentences.push(if puts_back {
                format!("To put it back, approve this plan: {how}")
            } else {
                format!(
                    "This plan does not just put it back, since other values are wanted now than those that were applied: read its \
                     diffs. To carry it out, {how}"
                )
            });
            let is_more = plan.items.iter().any(|item| item.changes() && item.moved.is_empty());
            if is_more || figures::figures(plan).machines_to_reboot > 0 {
                sentences.push(format!("The plan as a whole: {}", figures::in_figures(plan)));
            }
            sentences.push(KEEP.to_owned());
        }
        Phase::CompletedWithUpgrade => {
            sentences.push(detail.to_owned());
            sentences.push(figures::in_figures(plan));
            sentences.push(remedy.to_owned());
            sentences.push(format!("To adopt it, {how}"));
        }
        Phase::Pending
        | Phase::Drafting
        | Phase::PrerequisiteFailed
        | Phase::ReviewRequired
        | Phase::CompletedWithErrors
        | Phase::Failed
        | Phase::Ignored => {
            let blocked: Vec<_> = plan.blocked().map(why_blocked).collect();
            sentences.push(figures::in_figures(plan));
            sentences.push(detail.to_owned());
            sentences.push(remedy.to_owned());
            if how == NAMED_BEFORE && publication.phase == Phase::ReviewRequired {
                sentences.push(format!("To approve it, {how}"));
            }
            if !blocked.is_empty() {
                sentences.push(format!(
                    "The plan can't be approved: {} To continue without an item, set it aside in spec.items.",
                    blocked.join(" ")
                ));
            }
        }
    }
    if !matches!(publication.phase, Phase::Completed | Phase::InProgress) {
        sentences.extend(under_way.iter().cloned());
    }
    sentences.extend(plan.unused.iter().cloned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}

/// What is said while a plan is executed: the items that are under way.
#[must_use]
pub(in crate::plan) fn of_execution(items: &[Item]) -> String {
    let done = items.iter().filter(|item| item.state == ItemState::Completed).count();
    let under_way = items.iter().filter(|item| item.state == ItemState::InProgress);
    let under_way: Vec<_> =
        under_way.map(|item| format!("{}: {}.", item.target_ref, item.message.trim_end_matches('.'))).collect();
    format!("{done} of {} items are done. {}", items.len(), under_way.join(" ")).trim().to_owned()
}
