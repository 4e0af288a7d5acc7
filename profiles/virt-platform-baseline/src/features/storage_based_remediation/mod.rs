//! Detection of machines that have lost their shared storage.

use profile_sdk::Impact;
use profile_sdk::kinds::hyper_converged;
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Feature, Maturity, NamedBy, Part};
use crate::kinds::STORAGE_BASED_REMEDIATION_CONFIG;

/// It detects and does not fence: `nodeHealthCheck` fences, by the condition that is reported here.
pub(crate) static FEATURE: Feature = Feature {
    name: "storageBasedRemediation",
    choice: |features| features.storage_based_remediation,
    does: "detects machines that have lost access to shared storage",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-node-remediation"),
    named_by: Some(NamedBy {
        option: "sharedStorageClass",
        is_set: |options| options.shared_storage_class.is_some(),
        needed: false,
    }),
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[STORAGE_BASED_REMEDIATION_CONFIG],
        optional_kinds: &[],
        objects: |situation| {
            let annotation = "/metadata/annotations/platform.kubevirt.io~1sbr-storage-class";
            let class = match &situation.options.shared_storage_class {
                Some(class) => Some(json!(class)),
                None => situation.inputs.value(&hyper_converged(), annotation)?,
            };
            let mut object = json!({
                "apiVersion": "storage-based-remediation.medik8s.io/v1alpha1",
                "kind": "StorageBasedRemediationConfig",
                "metadata": {
                    "name": "autopilot-recommended-values-detection-only",
                    "namespace": "openshift-workload-availability",
                },
                "spec": {"detectOnlyMode": "Enabled"},
            });
            if let Some(class @ Value::String(_)) = class {
                object["spec"]["sharedStorageClass"] = class;
            }
            Ok(vec![Part::new("storage-based-remediation", Impact::Medium, object)])
        },
    },
};
