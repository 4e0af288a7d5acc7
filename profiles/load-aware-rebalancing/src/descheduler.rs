//! The KubeDescheduler `cluster`, in the shape that the installed release serves.

use profile_sdk::kinds::{KUBE_DESCHEDULER, KUBE_DESCHEDULER_NAME, KUBE_DESCHEDULER_NAMESPACE};
use profile_sdk::{Body, Draft, DraftError, Impact, Inputs, ObjectRef, render};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::options::{LoadAware, Mode, Thresholds};
use crate::{descheduler_crd, descheduler_object, limits};

/// The profiles of the descheduler operator that rebalance virtual machines, best first: general
/// availability came with OpenShift 4.20, the Dev name with 4.18, and 4.17 has only the generic one
/// for long-running pods.
const REBALANCING: [&str; 3] = ["KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate", "LongLifecycle"];
/// Profiles that go together with all of them; if the administrator uses them, they stay.
const COMPATIBLE: [&str; 2] = ["AffinityAndTaints", "SoftTopologyAndDuplicates"];

/// Fixed thresholds and deviations from the average exclude each other: the descheduler operator
/// refuses both together.
const FIXED_THRESHOLDS: &str = "/spec/profileCustomizations/devLowNodeUtilizationThresholds";
/// The one of [`REBALANCING`] that knows no deviations.
const GENERIC: &str = "LongLifecycle";
/// The one of [`REBALANCING`] that moves machines unasked.
const OPT_OUT: &str = "KubeVirtRelieveAndMigrate";

/// What the installed CRD offers, of all that differs between releases.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeschedulerShape {
    /// The best of [`REBALANCING`].
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// All profiles, where none of them will do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instead: Vec<String>,
    limit_total: bool,
    limit_node: bool,
    /// Whether evictions that KubeVirt turns into migrations are told from failed ones; without
    /// that they are asked for again and again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    background: bool,
}

pub(crate) fn draft(options: &LoadAware, inputs: &Inputs) -> Result<Draft, DraftError> {
    let served = served(inputs)?;
    let mut notes = Vec::new();
    let body = match &served.profile {
        Some(profile) if profile != GENERIC && has_fixed_thresholds(inputs)? => blocked(format!(
            "{FIXED_THRESHOLDS} is set, and the descheduler does not accept a profile for virtual machines together with fixed \
             thresholds: remove the field, or ask its owner to remove it"
        )),
        Some(profile) => Body::Ensure(object(options, inputs, &served, profile, &mut notes)?),
        None => blocked(format!(
            "the installed Kube Descheduler Operator has no profile that rebalances virtual machines (available: {}): \
             update it to the release for OpenShift 4.17 or later",
            if served.instead.is_empty() { "none".to_owned() } else { served.instead.join(", ") }
        )),
    };
    let reason = "lets the descheduler move virtual machines away from heavily loaded nodes";
    Ok(Draft { impact: Impact::Medium, wave: 1, notes, ..Draft::new("enable-load-aware-descheduling", body, reason) })
}

/// Which virtual machines the profile moves. It went from asking for a mark to respecting one with
/// the release that dropped `Dev` from its name (openshift-docs#98815,
/// cluster-kube-descheduler-operator#642). How many there are changes all the time and is no part
/// of a plan; the README has the command that counts them.
fn eligible(profile: &str, verb: &str) -> String {
    if profile == OPT_OUT {
        format!(
            "the descheduler {verb} any virtual machine that can be live-migrated, in the namespaces that \
             spec.profileCustomizations.namespaces allows (all namespaces if it is not set), except those whose template has the \
             annotation descheduler.alpha.kubernetes.io/prefer-no-eviction"
        )
    } else {
        format!(
            "the descheduler {verb} only virtual machines whose template has the annotation descheduler.alpha.kubernetes.io/evict"
        )
    }
}

fn blocked(remedy: String) -> Body {
    let target = ObjectRef {
        api_version: "operator.openshift.io/v1".to_owned(),
        kind: KUBE_DESCHEDULER.kind.to_owned(),
        namespace: Some(KUBE_DESCHEDULER_NAMESPACE.to_owned()),
        name: KUBE_DESCHEDULER_NAME.to_owned(),
    };
    Body::Blocked { target, remedy }
}

fn has_fixed_thresholds(inputs: &Inputs) -> Result<bool, DraftError> {
    let set = inputs.derive(&descheduler_object(), FIXED_THRESHOLDS, |value| {
        let set = value.and_then(Value::as_str).is_some_and(|value| !value.is_empty());
        set.then_some(json!(true))
    })?;
    Ok(set.is_some())
}

fn object(
    options: &LoadAware,
    inputs: &Inputs,
    served: &DeschedulerShape,
    chosen: &str,
    notes: &mut Vec<String>,
) -> Result<Value, DraftError> {
    let mut profiles = kept_profiles(inputs)?;
    profiles.push(chosen.to_owned());
    let mut limits = Map::new();
    if served.limit_total {
        limits.insert("total".to_owned(), json!(limits::total(options, inputs)?));
    } else if options.eviction_limit_total.is_some() {
        notes.push(
            "option evictionLimitTotal has no effect: this release of the descheduler has no such limit".to_owned(),
        );
    }
    if served.limit_node {
        limits.insert("node".to_owned(), json!(limits::node(options, inputs)?));
    } else if options.eviction_limit_node.is_some() {
        notes.push(
            "option evictionLimitNode has no effect: this release of the descheduler can't limit evictions per node"
                .to_owned(),
        );
    }
    let customizations = chosen != GENERIC;
    if !customizations && options.dev_deviation_thresholds != Thresholds::default() {
        notes.push(
            "option devDeviationThresholds has no effect: this release of the descheduler has no deviation thresholds"
                .to_owned(),
        );
    }
    let verb = if options.mode == Mode::Predictive { "would move" } else { "may move" };
    notes.push(eligible(chosen, verb));
    let data = json!({
        "interval": options.descheduling_interval_seconds,
        "mode": options.mode,
        "profiles": profiles,
        "background": customizations || served.background,
        "customizations": customizations,
        "thresholds": options.dev_deviation_thresholds,
        "limits": limits,
    });
    render("kube-descheduler.yaml", include_str!("../templates/kube-descheduler.yaml.hbs"), &data)
}

/// The list of profiles is atomic: applying ours replaces all of it, so compatible ones of the
/// administrator are repeated. Recorded is only what was kept, so that writing our own list is no
/// change of an input.
fn kept_profiles(inputs: &Inputs) -> Result<Vec<String>, DraftError> {
    let kept = inputs.derive(&descheduler_object(), "/spec/profiles", |value| {
        let live = value.and_then(Value::as_array)?;
        let kept: Vec<&str> = live.iter().filter_map(Value::as_str).filter(|name| COMPATIBLE.contains(name)).collect();
        (!kept.is_empty()).then(|| json!(kept))
    })?;
    let kept = kept.as_ref().and_then(Value::as_array).into_iter().flatten();
    Ok(kept.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Reads what the served version v1 of the CRD offers. Recorded is what of it matters, so that a
/// release which adds another profile changes no plan.
fn served(inputs: &Inputs) -> Result<DeschedulerShape, DraftError> {
    let served = inputs.derive(&descheduler_crd(), "/spec/versions", |versions| {
        let version = versions.and_then(Value::as_array)?.iter().find(|version| {
            version.get("name").and_then(Value::as_str) == Some("v1")
                && version.get("served").and_then(Value::as_bool) == Some(true)
        })?;
        let spec = version.pointer("/schema/openAPIV3Schema/properties/spec/properties")?;
        let limit = |name: &str| spec.pointer(&format!("/evictionLimits/properties/{name}")).is_some();
        let offered = spec.pointer("/profiles/items/enum").and_then(Value::as_array).into_iter().flatten();
        let offered: Vec<_> = offered.filter_map(Value::as_str).map(str::to_owned).collect();
        let profile = REBALANCING.into_iter().find(|name| offered.iter().any(|other| other == name));
        let served = DeschedulerShape {
            instead: if profile.is_some() { Vec::new() } else { offered },
            profile: profile.map(str::to_owned),
            // The other profiles have it whenever they are offered.
            background: profile == Some(GENERIC)
                && spec.pointer("/profileCustomizations/properties/devEnableEvictionsInBackground").is_some(),
            limit_total: limit("total"),
            limit_node: limit("node"),
        };
        serde_json::to_value(served).ok()
    })?;
    Ok(served.and_then(|served| serde_json::from_value(served).ok()).unwrap_or_default())
}
