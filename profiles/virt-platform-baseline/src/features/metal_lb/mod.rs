//! MetalLB, for services of type LoadBalancer.

use profile_sdk::Impact;
use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::METAL_LB;

pub(crate) static FEATURE: Feature = Feature {
    name: "metalLb",
    choice: |features| features.metal_lb,
    does: "deploys MetalLB for Services of type LoadBalancer; you configure its addresses yourself",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-metallb"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[METAL_LB],
        optional_kinds: &[],
        objects: |_| {
            let object = json!({
                "apiVersion": "metallb.io/v1beta1",
                "kind": "MetalLB",
                "metadata": {"name": "metallb", "namespace": "metallb-system"},
                // An empty field that the plan owns: without one, its removal could not be planned.
                "spec": {},
            });
            Ok(vec![Part::new("metal-lb", Impact::Medium, object)])
        },
    },
};
