//! CPUs and devices from one NUMA node, where that is possible.

use serde_json::json;

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity};
use crate::node_questions::NUMA;

/// The policy of the memory manager is not changed: with Static, a kubelet starts only if the
/// memory that is reserved on each NUMA node adds up to the byte to what the machine reserves,
/// which is not known here.
pub(crate) static FEATURE: Feature = Feature {
    name: "numa",
    choice: |features| features.numa,
    does: "allocates the CPUs and devices of a virtual machine from one NUMA node where possible",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[Condition::NodeHas(&NUMA, "more than one NUMA node")],
    needs: &["cpuManager"],
    brings: Brings::Kubelet(|| json!({"kubeletConfig": {"topologyManagerPolicy": "best-effort"}})),
};
