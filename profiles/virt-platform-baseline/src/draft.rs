//! The drafts of the profile: one for HyperConverged, then those for machines, then the objects of
//! other operators; and the features of which there is none.

mod hyper_converged;
mod kubelet_config;
mod left_out;
mod machine_configs;
mod operands;
mod planned;
mod shared_object;

use profile_sdk::{Draft, DraftError};

use crate::situation::Situation;
use hyper_converged::hyper_converged_draft;
use kubelet_config::kubelet_draft;
pub(crate) use left_out::left_out_features;
use machine_configs::machine_config_draft;
use operands::operand_drafts;
use planned::planned_features;

/// All drafts, in the order in which the plan shows them.
pub(crate) fn drafts(situation: &Situation<'_>) -> Result<Vec<Draft>, DraftError> {
    let planned = planned_features(situation)?;
    let mut drafts = Vec::new();
    drafts.extend(hyper_converged_draft(situation, &planned)?);
    if planned.iter().any(|planned| planned.feature.reboots_machines()) {
        for role in situation.roles() {
            drafts.extend(kubelet_draft(role, &planned));
            for feature in &planned {
                drafts.extend(machine_config_draft(situation.options, role, feature, &planned)?);
            }
        }
    }
    for feature in &planned {
        drafts.extend(operand_drafts(feature, situation)?);
    }
    Ok(drafts)
}
