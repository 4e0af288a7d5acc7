//! A plan as text: diffs, with comments between them that `patch` skips. Shared by `diff` and
//! `render`.

use std::fmt::Write as _;

use profile_sdk::LeftOutFeature;

use advisor_core::api::Operation;
use advisor_core::plan::Plan;
use advisor_core::plan::figures;
use advisor_core::plan::items::PlanItem;
use object::limits::visible;

/// The summary, and every item with its diff.
pub(super) fn live(plan: &Plan) -> String {
    items(plan, &figures::in_figures(plan), |item| item.review.severity.to_string())
}

/// Like [`live`], for a plan that was made without a cluster: it is not known which machines
/// reboot, so the impact of items that are `followed` by machines is not known either.
pub(super) fn approximate(plan: &Plan, followed: impl Fn(&PlanItem) -> bool) -> String {
    let heading = format!(
        "{}; reboots can't be predicted without the MachineConfigPools and their rendered MachineConfigs in --objects.",
        figures::in_counts(plan)
    );
    items(plan, &heading, |item| match !item.operation.leaves_alone() && followed(item) {
        true => "High if a MachineConfigPool selects it".to_owned(),
        false => item.review.severity.to_string(),
    })
}

fn items(plan: &Plan, heading: &str, impact: impl Fn(&PlanItem) -> String) -> String {
    let mut text = format!("# {heading}\n");
    for item in &plan.items {
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "#\n# {}: {} {}, wave {}, impact {}",
            item.name,
            item.operation,
            item.target,
            item.wave,
            impact(item)
        );
        for line in item.review.message.lines() {
            let _ = writeln!(text, "# {line}");
        }
        for conflict in &item.review.conflicts {
            let _ = writeln!(text, "# takes {} over from {}", conflict.path, conflict.manager);
        }
        for lost in &item.review.lost {
            let _ = writeln!(text, "# loses {lost}");
        }
        if item.operation != Operation::NoChange {
            text.push_str(&item.review.diff);
        }
    }
    if !plan.left_out.is_empty() {
        text.push_str("#\n# Left out:\n");
    }
    for LeftOutFeature { feature, reason } in &plan.left_out {
        let _ = writeln!(text, "# - {feature}: {reason}.");
    }
    // Text of others can't move the cursor or hide anything.
    visible(&text).into_owned()
}
