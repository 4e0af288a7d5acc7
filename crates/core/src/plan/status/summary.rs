//! The summary of a plan, in figures and sentences, as shown by `kubectl get -o wide` and `kubectl
//! describe`.

use crate::api::{Item, ItemState, Phase};
use crate::plan::Plan;
use crate::plan::decision::Publication;
use crate::plan::figures;
use crate::plan::items::PlanItem;
use crate::plan::status::overridden;

/// How to approve a plan whose hash was in spec before it was shown.
const NAMED_BEFORE: &str = "set spec.action to DryRun and clear spec.approvedPlanHash, which named this plan before it was shown; then set both \
    again.";

/// The summary with action Ignore of a configuration whose profile has this `description`; it is
/// empty if the profile is unknown.
#[must_use]
pub(in crate::plan) fn ignored(description: &str) -> String {
    let about = match description.trim_end_matches('.') {
        "" => String::new(),
        description => format!(" {description}."),
    };
    format!(
        "Not in use.{about} What was applied earlier stays in place. Set spec.action to DryRun to preview its changes."
    )
}

/// How to keep a change that others made.
const KEEP: &str = "To keep the change instead, change the option that sets the value, override the value in spec.overrides, skip the \
                    item in spec.items, or set spec.action to Ignore.";

/// The phrase for skipped items of a plan that is satisfied.
fn except(plan: &Plan) -> String {
    match figures::figures(plan).skipped {
        0 => String::new(),
        1 => ", except for 1 skipped item".to_owned(),
        many => format!(", except for {many} skipped items"),
    }
}

/// Why `item` blocks the approval of the plan, in a sentence that names its object once.
fn why_blocked(item: &PlanItem) -> String {
    let target = item.target.to_string();
    let why = item
        .review
        .message
        .strip_prefix(&target)
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(&item.review.message);
    format!("{target}: {}.", why.trim_end_matches('.'))
}

/// The facts about a plan that are not in it.
#[derive(Debug)]
pub(in crate::plan) struct PlanContext<'a> {
    /// What had changed when the plan was first shown.
    pub(in crate::plan) detail: &'a str,
    /// Applied parts that machines do not have, in sentences.
    pub(in crate::plan) overridden: &'a [String],
    /// Items that were written earlier and are not in effect yet, in sentences.
    pub(in crate::plan) under_way: &'a [String],
    /// Whether the plan restores exactly what was applied where something has drifted.
    pub(in crate::plan) puts_back: bool,
    /// Whether the hash in spec names this plan and was there before the plan was shown.
    pub(in crate::plan) named_before: bool,
}

/// The summary of a plan that is shown.
#[must_use]
pub(in crate::plan) fn of_publication(plan: &Plan, publication: &Publication, told: &PlanContext<'_>) -> String {
    let PlanContext { detail, overridden: lost, under_way, puts_back, named_before } = *told;
    // A hash that is already there can't be set.
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
                sentences.push(format!("All objects match the plan{}.", except(plan)));
            } else {
                sentences.push(format!(
                    "All objects match the plan{}, but machines do not run with all of it.",
                    except(plan)
                ));
                sentences.extend(lost.iter().cloned());
                sentences.push(overridden::REMEDY.to_owned());
            }
            sentences.push(detail.to_owned());
            let troubled = plan.items.iter().filter_map(|item| Some((item, item.live.trouble.as_ref()?)));
            sentences
                .extend(troubled.map(|(item, trouble)| format!("{}: {}.", item.target, trouble.trim_end_matches('.'))));
            sentences.extend(
                plan.items
                    .iter()
                    .flat_map(|item| item.review.kept.iter().map(move |kept| format!("{}: {kept}.", item.target))),
            );
        }
        Phase::InProgress => {
            sentences.push(format!("All objects match the plan{}. Not everything is in effect yet.", except(plan)));
            sentences.push(detail.to_owned());
        }
        Phase::Drifted => {
            sentences.push(detail.to_owned());
            sentences.push(remedy.to_owned());
            sentences.push(if puts_back {
                format!("To revert the drift, approve this plan: {how}")
            } else {
                format!(
                    "This plan does more than revert the drift, because the desired values have changed since they were applied: read \
                     its diffs. To carry it out, {how}"
                )
            });
            let is_more = plan.items.iter().any(|item| item.changes() && item.live.moved.is_empty());
            if is_more || figures::figures(plan).machines_to_reboot > 0 {
                sentences.push(format!("The plan as a whole: {}", figures::in_figures(plan)));
            }
            sentences.push(KEEP.to_owned());
        }
        Phase::CompletedWithUpgrade => {
            sentences.push(detail.to_owned());
            sentences.push(figures::in_figures(plan));
            sentences.push(remedy.to_owned());
            sentences.push(format!("To approve it, {how}"));
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
                    "The plan can't be approved while items are blocked: {} To continue without an item, skip it in spec.items.",
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

/// The summary during an execution: the items in progress.
#[must_use]
pub(in crate::plan) fn of_execution(items: &[Item]) -> String {
    let done = items.iter().filter(|item| item.state == ItemState::Completed).count();
    let under_way = items.iter().filter(|item| item.state == ItemState::InProgress);
    let under_way: Vec<_> =
        under_way.map(|item| format!("{}: {}.", item.target_ref, item.message.trim_end_matches('.'))).collect();
    format!("{done} of {} items are done. {}", items.len(), under_way.join(" ")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_configuration_says_what_its_profile_does() {
        let end = "What was applied earlier stays in place. Set spec.action to DryRun to preview its changes.";
        assert_eq!(ignored("Adds swap."), format!("Not in use. Adds swap. {end}"));
        assert_eq!(ignored(""), format!("Not in use. {end}"));
    }
}
