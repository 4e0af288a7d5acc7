//! Eviction limits: from the options, else from HyperConverged's limits of parallel migrations.
//!
//! Each limit is taken on its own, and only the HyperConverged values that were really used are
//! recorded as inputs.

use profile_sdk::kinds::hyper_converged;
use profile_sdk::{DraftError, Inputs};
use serde_json::Value;

use crate::options::LoadAware;

/// KubeVirt's own defaults, in force where HyperConverged sets nothing.
const DEFAULT_TOTAL: i64 = 5;
const DEFAULT_NODE: i64 = 2;

pub(crate) fn total(options: &LoadAware, inputs: &Inputs) -> Result<i64, DraftError> {
    match options.eviction_limit_total {
        Some(total) => Ok(total.into()),
        None => followed(inputs, "parallelMigrationsPerCluster", DEFAULT_TOTAL),
    }
}

pub(crate) fn node(options: &LoadAware, inputs: &Inputs) -> Result<i64, DraftError> {
    match options.eviction_limit_node {
        Some(node) => Ok(node.into()),
        None => followed(inputs, "parallelOutboundMigrationsPerNode", DEFAULT_NODE),
    }
}

fn followed(inputs: &Inputs, field: &str, default: i64) -> Result<i64, DraftError> {
    let read = hyper_converged();
    // v1 moved the virtualization settings into a group of their own.
    let parent = match inputs.version(&read)?.as_str() {
        "v1beta1" => "/spec/liveMigrationConfig",
        _ => "/spec/virtualization/liveMigrationConfig",
    };
    let path = format!("{parent}/{field}");
    match inputs.value(&read, &path)? {
        None | Some(Value::Null) => Ok(default),
        Some(value) => match value.as_i64() {
            Some(limit) if limit > 0 => Ok(scaled(limit)),
            Some(_) => Ok(default),
            None => Err(DraftError::Input {
                object: format!("HyperConverged {}", read.name),
                path,
                problem: "is not a whole number: correct it, or set the eviction limit in spec.options.loadAware"
                    .to_owned(),
            }),
        },
    }
}

/// From 10 on the descheduler gets four fifths of what exceeds 10, so that migrations which an
/// administrator or an upgrade starts find a free slot (observed of the Go program: 25 becomes 22,
/// 100 becomes 82).
fn scaled(limit: i64) -> i64 {
    if limit < 10 { limit } else { 10 + (limit - 10).saturating_mul(4) / 5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_from_ten_on_leave_room_for_other_migrations() {
        for (limit, want) in
            [(1, 1), (9, 9), (10, 10), (11, 10), (12, 11), (13, 12), (15, 14), (20, 18), (25, 22), (50, 42), (100, 82)]
        {
            assert_eq!(scaled(limit), want, "{limit}");
        }
    }
}
