//! CPUs and devices from one NUMA node, where it can be.

use serde_json::json;

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity};
use crate::node_questions::NUMA;

/// The memory manager is left as it is: with its policy Static a kubelet starts only if what is reserved of each NUMA node is to the byte
/// what the machine reserves, which nobody can know here.
pub(crate) static FEATURE: Feature = Feature {
    name: "numa",
    choice: |features| features.numa,
    does: "takes CPUs and devices of a virtual machine from one NUMA node, where it can be",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[Condition::NodeHas(&NUMA, "more than one NUMA node")],
    needs: &["cpuManager"],
    brings: Brings::Kubelet(|| json!({"kubeletConfig": {"topologyManagerPolicy": "best-effort"}})),
};
