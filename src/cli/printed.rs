//! A plan as text: diffs, with comments between them that `patch` skips. What `diff` and `render` have in common.

use std::fmt::Write as _;

use profile_sdk::LeftOutFeature;

use advisor_core::api::Operation;
use advisor_core::plan::Plan;
use advisor_core::plan::figures;
use advisor_core::plan::items::PlanItem;
use object::limits::visible;

/// As `kubectl diff`: no differences, some, and no answer.
pub(super) const SAME: u8 = 0;
pub(super) const DIFFERENT: u8 = 1;
pub(super) const FAILED: u8 = 2;

/// The summary, and every item with its diff.
pub(super) fn live(plan: &Plan) -> String {
    items(plan, &figures::in_figures(plan), |item| item.severity.to_string())
}

/// The same of a plan that was made without a cluster: which machines reboot is not known, and so is the impact of
/// items that are `followed` by machines.
pub(super) fn approximate(plan: &Plan, followed: impl Fn(&PlanItem) -> bool) -> String {
    let heading = format!("{}; which machines reboot can't be told from files.", figures::in_counts(plan));
    items(plan, &heading, |item| match !item.operation.leaves_alone() && followed(item) {
        true => "High if machines take it in".to_owned(),
        false => item.severity.to_string(),
    })
}

fn items(plan: &Plan, heading: &str, impact: impl Fn(&PlanItem) -> String) -> String {
    let mut text = format!("# {heading}\n");
    for item in &plan.items {
        // Writing to a text can't fail.
        let _ = writeln!(
            text,
            "#\n# {}: {} {}, wave {}, impact {}",
            item.name,
            item.operation,
            item.target,
            item.wave,
            impact(item)
        );
        for line in item.message.lines() {
            let _ = writeln!(text, "# {line}");
        }
        for conflict in &item.conflicts {
            let _ = writeln!(text, "# takes {} over from {}", conflict.path, conflict.manager);
        }
        for lost in &item.lost {
            let _ = writeln!(text, "# loses {lost}");
        }
        if item.operation != Operation::NoChange {
            text.push_str(&item.diff);
        }
    }
    if !plan.left_out.is_empty() {
        text.push_str("#\n# Not planned here:\n");
    }
    for LeftOutFeature { feature, reason } in &plan.left_out {
        let _ = writeln!(text, "# - {feature}: {reason}.");
    }
    // What others have written moves no cursor and hides nothing.
    visible(&text).into_owned()
}
