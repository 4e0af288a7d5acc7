//! The state of machines, and which of them are told next to take a configuration. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/common/layered_node_state.go: `IsDone`, `IsUnavailableForUpdate`,
//! `CheckNodeReady`, `IsNodeMCDFailing`; pkg/controller/node/node_controller.go: `updateNode`,
//! `getAllCandidateMachines`, `updateCandidateMachines`, `sortNodeList`, `maxUnavailable`;
//! pkg/helpers/helpers.go: `GetPoolsForNode`.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::api::{
    CURRENT_CONFIG, DESIRED_CONFIG, MachineConfigPool, REASON, STATE, STATE_DEGRADED, STATE_DONE, STATE_UNRECONCILABLE,
    UPDATE_TAINT, ZONE_LABEL,
};
use crate::rules::select;

/// An annotation of a machine, empty when missing.
pub(crate) fn annotation<'a>(node: &'a Node, key: &str) -> &'a str {
    node.metadata.annotations.as_ref().and_then(|all| all.get(key)).map_or("", String::as_str)
}

/// Whether the machine is cordoned.
pub(crate) fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

/// Why the machine cannot take work: NotReady, disk pressure, no network, cordoned.
pub(crate) fn unready(node: &Node) -> Option<String> {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    for condition in conditions {
        let wanted = match condition.type_.as_str() {
            "Ready" => "True",
            "DiskPressure" | "NetworkUnavailable" => "False",
            _ => continue,
        };
        if condition.status != wanted {
            return Some(format!("{}={}", condition.type_, condition.status));
        }
    }
    is_cordoned(node).then(|| "Unschedulable".to_owned())
}

/// Whether the daemon has finished and the machine has its desired configuration.
pub(crate) fn is_done(node: &Node) -> bool {
    let current = annotation(node, CURRENT_CONFIG);
    !current.is_empty() && current == annotation(node, DESIRED_CONFIG) && annotation(node, STATE) == STATE_DONE
}

/// Whether the machine has the pool's configuration.
pub(crate) fn is_updated(node: &Node, pool: &MachineConfigPool) -> bool {
    is_done(node) && is_told(node, pool)
}

/// Whether the machine was told to take the pool's configuration.
pub(crate) fn is_told(node: &Node, pool: &MachineConfigPool) -> bool {
    annotation(node, DESIRED_CONFIG) == pool.spec.configuration.name
}

/// Whether the machine counts against `maxUnavailable`.
pub(crate) fn is_unavailable(node: &Node) -> bool {
    unready(node).is_some() || (!is_done(node) && !is_failing(node))
}

/// Whether the daemon reports that it failed.
pub(crate) fn is_degraded(node: &Node) -> bool {
    !annotation(node, DESIRED_CONFIG).is_empty()
        && matches!(annotation(node, STATE), STATE_DEGRADED | STATE_UNRECONCILABLE)
}

fn is_failing(node: &Node) -> bool {
    annotation(node, CURRENT_CONFIG) != annotation(node, DESIRED_CONFIG) && is_degraded(node)
}

/// Whether the machine has the taint of machines that wait for an update.
pub(crate) fn has_update_taint(node: &Node) -> bool {
    node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten().any(|taint| taint.key == UPDATE_TAINT)
}

/// Pools of a machine, with the one it follows first: master, or the custom pool and then worker. A
/// machine in two custom pools follows none.
pub(crate) fn pools_of<'a>(
    node: &Node,
    pools: impl Iterator<Item = &'a MachineConfigPool>,
) -> Vec<&'a MachineConfigPool> {
    let (mut master, mut worker, mut custom) = (None, None, Vec::new());
    for pool in pools.filter(|pool| select::selects(pool.spec.node_selector.as_ref(), node.labels())) {
        match pool.name_any().as_str() {
            "master" => master = Some(pool),
            "worker" => worker = Some(pool),
            _ => custom.push(pool),
        }
    }
    match (master, custom.as_slice()) {
        (Some(master), _) => vec![master],
        (None, []) => worker.into_iter().collect(),
        (None, [_]) => custom.into_iter().chain(worker).collect(),
        (None, _) => Vec::new(),
    }
}

/// How many machines of the pool may be unavailable: percentages are rounded down, and the least is
/// one. 0 if the value is negative or not a percentage: the controller returns an error then and
/// tells no machine.
pub(crate) fn max_unavailable(pool: &MachineConfigPool, machines: usize) -> usize {
    let wanted = match &pool.spec.max_unavailable {
        None => Some(1),
        Some(IntOrString::Int(number)) => usize::try_from(*number).ok(),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<usize>().ok());
            percent.map(|percent| machines * percent / 100)
        }
    };
    wanted.map_or(0, |wanted| wanted.max(1))
}

/// The machines to tell now to take the pool's configuration.
pub(crate) fn candidates<'a>(pool: &MachineConfigPool, nodes: &[&'a Node]) -> Vec<&'a Node> {
    let limit = max_unavailable(pool, nodes.len());
    let away = nodes.iter().filter(|node| is_unavailable(node)).count();
    // A failing machine that is cordoned as well counts twice, as in the source.
    let failing_at_this = nodes.iter().filter(|node| is_told(node, pool) && is_failing(node));
    let capacity = limit.saturating_sub(away).saturating_sub(failing_at_this.count());
    let mut waiting: Vec<&Node> = nodes.iter().copied().filter(|node| !is_told(node, pool)).collect();
    if waiting.len() > capacity {
        waiting.sort_by_key(|node| {
            let zone = node.labels().get(ZONE_LABEL);
            (zone.is_none(), zone, node.creation_timestamp().map(|time| time.0), node.name_any())
        });
        waiting.truncate(capacity);
    }
    waiting
}

/// Whether this change of a machine makes its pools sync again.
pub(crate) fn is_news(old: &Node, new: &Node) -> bool {
    if annotation(new, CURRENT_CONFIG).is_empty() {
        return false;
    }
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    unready(old) != unready(new)
        || [CURRENT_CONFIG, DESIRED_CONFIG, STATE, REASON]
            .iter()
            .any(|key| annotation(old, key) != annotation(new, key))
        || old.labels() != new.labels()
        || taints(old) != taints(new)
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
