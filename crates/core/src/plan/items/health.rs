//! Whether a change has taken effect, judged by the conditions that the object's owner reports. The
//! rules are conventions.
//!
//! | rule | source |
//! | --- | --- |
//! | `observedGeneration`, Stalled, Reconciling, Ready | kstatus, sigs.k8s.io/cli-utils pkg/kstatus |
//! | ReconcileComplete False, and the others Unknown: the owner could not carry out the change; TaintedConfiguration | kubevirt/hyperconverged-cluster-operator at 03da3cff7325, controllers/hyperconverged |
//! | Available, Progressing, Degraded | openshift/api config/v1 ClusterStatusConditionType, as HyperConverged has them |
//! | a type that ends in `Degraded`; the text may be in the reason | openshift/library-go pkg/operator/v1helpers; the descheduler operator at 945dcaa9d895 |
//! | Disabled | medik8s/node-healthcheck-operator dd44432997c6, api/v1alpha1 |

use serde_json::Value;

/// How far a written item is from taking effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    /// In effect; the text says where.
    Done(String),
    /// In progress; the text says how far it is and what holds it up.
    Waiting {
        /// The progress in one sentence.
        text: String,
        /// Whether somebody paused it: then the time limit stands still.
        paused: bool,
    },
    /// It can't take effect unless a person intervenes.
    Failed(String),
}

/// Conditions that are True while an owner works; nothing is wrong then.
const UNDER_WAY: [&str; 2] = ["Reconciling", "Progressing"];
/// Conditions that are True while all is well.
const WELL: [&str; 3] = ["ReconcileComplete", "Available", "Ready"];
/// The reason with which a Deployment reports Progressing forever (k8s.io/kubernetes
/// pkg/controller/deployment/util, `NewRSAvailableReason`).
const AVAILABLE_FOR_GOOD: &str = "NewReplicaSetAvailable";

/// How far `object` is. An object without conditions is in effect as soon as it is written.
///
/// Degraded is a reason to wait and not a failure: operators report it while they converge.
#[must_use]
pub fn rollout_of(object: &Value) -> Rollout {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (number("/metadata/generation"), number("/status/observedGeneration"))
        && observed < generation
    {
        return waiting("its controller has not seen the change yet".to_owned());
    }
    if let Some(stalled) = conditions(object).find(|condition| condition.is("Stalled", "True")) {
        return Rollout::Failed(stalled.sentence());
    }
    if let Some(disabled) = disabled(object) {
        return Rollout::Done(format!("applied, but inactive: {}", disabled.sentence()));
    }
    let under_way = |condition: &OwnerCondition<'_>| {
        UNDER_WAY.iter().any(|name| condition.is(name, "True")) && condition.text("reason") != AVAILABLE_FOR_GOOD
    };
    match unwell(object).or_else(|| unknown(object)).or_else(|| conditions(object).find(under_way)) {
        Some(condition) => waiting(condition.sentence()),
        None => Rollout::Done(match tainted(object) {
            Some(tainted) => format!("in effect, except for what an annotation overrides: {}", tainted.sentence()),
            None => "in effect".to_owned(),
        }),
    }
}

/// `rollout` of `object`, whose kind has a status: as long as its owner has reported nothing,
/// nobody can say that it is in effect.
#[must_use]
pub fn as_reported(rollout: Rollout, object: &Value) -> Rollout {
    let is_silent = object.get("status").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    match rollout {
        Rollout::Done(_) if is_silent => {
            Rollout::Done("the operator that acts on it has not reported a status yet".to_owned())
        }
        rollout => rollout,
    }
}

/// The condition by which the owner of `object` reports a problem, with its message.
#[must_use]
pub fn trouble(object: &Value) -> Option<String> {
    let stalled = conditions(object).find(|condition| condition.is("Stalled", "True"));
    stalled.or_else(|| unwell(object)).or_else(|| disabled(object)).map(|condition| condition.sentence())
}

/// Whether the owner of `object` reports conditions. Right after a change they may still describe
/// the time before it.
#[must_use]
pub fn speaks(object: &Value) -> bool {
    conditions(object).next().is_some()
}

fn unwell(object: &Value) -> Option<OwnerCondition<'_>> {
    let degraded = conditions(object)
        .find(|condition| condition.text("type").ends_with("Degraded") && condition.text("status") == "True");
    // A Degraded condition says why; an unavailable one that results from it says less.
    degraded.or_else(|| {
        let bad = |condition: &OwnerCondition<'_>| WELL.iter().any(|name| condition.is(name, "False"));
        conditions(object).find(bad)
    })
}

/// A condition whose status the owner of `object` reports as Unknown.
fn unknown(object: &Value) -> Option<OwnerCondition<'_>> {
    conditions(object).find(|condition| WELL.iter().any(|name| condition.is(name, "Unknown")))
}

/// The condition that says that an annotation overrides parts of the object.
fn tainted(object: &Value) -> Option<OwnerCondition<'_>> {
    conditions(object).find(|condition| condition.is("TaintedConfiguration", "True"))
}

fn disabled(object: &Value) -> Option<OwnerCondition<'_>> {
    conditions(object).find(|condition| condition.is("Disabled", "True"))
}

struct OwnerCondition<'a>(&'a Value);

impl OwnerCondition<'_> {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn is(&self, kind: &str, status: &str) -> bool {
        self.text("type") == kind && self.text("status") == status
    }

    /// The condition in a sentence. Without a message it ends with the reason, which may be a
    /// sentence itself.
    fn sentence(&self) -> String {
        let why = [self.text("message"), self.text("reason")].into_iter().find(|text| !text.is_empty());
        format!("{}={}: {}", self.text("type"), self.text("status"), why.unwrap_or("no reason given"))
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = OwnerCondition<'_>> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten().map(OwnerCondition)
}

fn waiting(text: String) -> Rollout {
    Rollout::Waiting { text, paused: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn says(conditions: Value) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": conditions}})
    }

    #[test]
    fn the_common_conventions() {
        let condition =
            |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status, "message": "m"}]});
        for (name, status, done) in [
            ("no status", json!({}), true),
            ("stale", json!({"observedGeneration": 1}), false),
            ("seen", json!({"observedGeneration": 2}), true),
            ("degraded", condition("Degraded", "True"), false),
            ("not available", condition("Available", "False"), false),
            ("ready", condition("Ready", "True"), true),
            ("reconciling", condition("Reconciling", "True"), false),
            ("progressing", condition("Progressing", "True"), false),
        ] {
            let object = json!({"metadata": {"generation": 2}, "status": status});
            assert_eq!(matches!(rollout_of(&object), Rollout::Done(_)), done, "{name}");
        }
        let stalled = json!({"status": condition("Stalled", "True")});
        assert_eq!(rollout_of(&stalled), Rollout::Failed("Stalled=True: m".into()));
        assert_eq!(trouble(&stalled).as_deref(), Some("Stalled=True: m"));
    }

    /// HyperConverged as observed when KubeVirt refused an update, and with an annotation that
    /// overrides parts of it (fault R21).
    #[test]
    fn what_an_owner_could_not_carry_out_is_not_in_effect() {
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "reason": "R", "message": message});
        let failed = says(json!([
            condition("ReconcileComplete", "False", "Error while reconciling: denied"),
            condition("Available", "Unknown", "m"),
            condition("Progressing", "Unknown", "m"),
            condition("Degraded", "Unknown", "m"),
            condition("Upgradeable", "Unknown", "m"),
        ]));
        let told = "ReconcileComplete=False: Error while reconciling: denied".to_owned();
        assert_eq!((rollout_of(&failed), trouble(&failed)), (waiting(told.clone()), Some(told)));
        let unknown = says(json!([condition("Available", "Unknown", "m")]));
        assert_eq!((rollout_of(&unknown), trouble(&unknown)), (waiting("Available=Unknown: m".to_owned()), None));
        // The condition that explains the problem is reported before the one that only names it.
        let both = says(json!([
            condition("Available", "False", "HCO is not available due to degraded components"),
            condition("Degraded", "True", "KubeVirt is degraded: why")
        ]));
        assert_eq!(trouble(&both).as_deref(), Some("Degraded=True: KubeVirt is degraded: why"));
        // A part that is not ready does not make the whole not ready.
        let part = says(json!([condition("VirtNetworkResourcesInjectorReady", "False", "0/2 replicas ready")]));
        assert_eq!((rollout_of(&part), trouble(&part)), (Rollout::Done("in effect".into()), None));
        let tainted = says(json!([condition(
            "TaintedConfiguration",
            "True",
            "Unsupported feature was activated via an HCO annotation"
        )]));
        let Rollout::Done(text) = rollout_of(&tainted) else { panic!("{:?}", rollout_of(&tainted)) };
        assert!(
            text.starts_with(
                "in effect, except for what an annotation overrides: TaintedConfiguration=True: Unsupported"
            ),
            "{text}"
        );
        assert_eq!(trouble(&tainted), None);
    }

    /// Fault R10: as the descheduler operator writes it, at 945dcaa9d895.
    #[test]
    fn r10_a_part_that_is_degraded_holds_the_whole_up() {
        let route = r#"route.route.openshift.io "prometheus-k8s" not found"#;
        let object = says(json!([
            {"type": "ConfigObserverDegraded", "status": "False", "reason": "AsExpected"},
            {"type": "TargetConfigControllerDegraded", "status": "True", "reason": route},
        ]));
        let told = format!("TargetConfigControllerDegraded=True: {route}");
        assert_eq!(rollout_of(&object), waiting(told.clone()));
        assert_eq!(trouble(&object), Some(told));
        let well = says(json!([{"type": "TargetConfigControllerDegraded", "status": "False", "reason": "AsExpected"}]));
        assert_eq!((rollout_of(&well), trouble(&well), speaks(&well)), (Rollout::Done("in effect".into()), None, true));
    }

    /// Fault R11: an upgrade of HyperConverged, and a condition that is progressing forever.
    #[test]
    fn r11_what_is_progressing_is_not_in_effect_and_not_unwell() {
        let upgrading = says(json!([
            {"type": "Available", "status": "True"}, {"type": "Degraded", "status": "False"},
            {"type": "Progressing", "status": "True", "reason": "HCOUpgrading", "message": "HCO is now upgrading to 1.21.0"},
        ]));
        assert_eq!(rollout_of(&upgrading), waiting("Progressing=True: HCO is now upgrading to 1.21.0".into()));
        assert_eq!(trouble(&upgrading), None);
        let deployed = says(json!([{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]));
        assert_eq!(rollout_of(&deployed), Rollout::Done("in effect".into()));
    }

    /// Fault R12: as node-healthcheck-operator writes it when there is a MachineHealthCheck.
    #[test]
    fn r12_what_is_disabled_is_applied_and_said_to_be_inactive() {
        let object =
            says(json!([{"type": "Disabled", "status": "True", "reason": "ConflictingMachineHealthCheckDetected",
            "message": "Custom MachineHealthCheck(s) detected, disabling NodeHealthCheck to avoid conflicts"}]));
        let Rollout::Done(text) = rollout_of(&object) else { panic!("{:?}", rollout_of(&object)) };
        assert!(
            text.starts_with("applied, but inactive: Disabled=True: Custom MachineHealthCheck(s) detected"),
            "{text}"
        );
        assert!(trouble(&object).is_some());
        let enabled = says(json!([{"type": "Disabled", "status": "False", "reason": "NodeHealthCheckEnabled"}]));
        assert_eq!((rollout_of(&enabled), trouble(&enabled)), (Rollout::Done("in effect".into()), None));
    }
}
