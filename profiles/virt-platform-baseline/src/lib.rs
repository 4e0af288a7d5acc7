//! virt-platform-baseline: what a cluster for virtual machines needs beneath them, as one plan.
//!
//! A table of features (`features`), each with what decides about it and what it brings (`feature`). All that HyperConverged is told is one
//! item, in the first wave; all that machines get is in the second one, with one KubeletConfig for each pool, so that machines
//! reboot once.

mod feature;
mod features;
mod kinds;
mod machines;
mod options;
mod situation;
mod table;

use profile_sdk::kinds::{HYPER_CONVERGED_NAME, hyper_converged};
use profile_sdk::platform::{kubelet_of_workers, namespace, needs_hyper_converged};
use profile_sdk::{
    AUTOPILOT, About, Body, Declared, Draft, DraftError, Grant, Impact, Inputs, LeftOutFeature, NodeQuestion,
    OptionsError, Planner, Prerequisite, Profile, Read, Rival, parse_options,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use feature::{Brings, Feature, FeatureState, MachineConfigs, Masters, Part};
use features::FEATURES;
use kinds::{GRANTS, KINDS};
use options::PlatformBaseline;
use situation::{QUESTIONS, Situation};
pub use table::page;

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &VirtPlatformBaseline;

static ABOUT: About = About {
    name: "virt-platform-baseline",
    options_key: "platformBaseline",
    description: "Sets up what a cluster for virtual machines needs beneath them: swap, kubelets, devices, remediation, and more by choice",
    category: "platform",
    impact_summary: "Machines that carry virtual machines reboot one by one, once for all features; by default they get swap where a partition or file for it is there",
    impact: Impact::High,
    advertised: true,
};

struct VirtPlatformBaseline;

impl Profile for VirtPlatformBaseline {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<PlatformBaseline>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn rivals(&self) -> &'static [Rival] {
        &[AUTOPILOT]
    }

    fn grants(&self) -> &'static [Grant] {
        GRANTS
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        let options = parse_options::<PlatformBaseline>(ABOUT.options_key, options)?;
        match options.problem() {
            Some(problem) => Err(OptionsError { key: ABOUT.options_key, problem }),
            None => Ok(Box::new(options)),
        }
    }
}

impl Planner for PlatformBaseline {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        vec![needs_hyper_converged()]
    }

    fn reads(&self) -> Vec<Read> {
        vec![hyper_converged(), kubelet_of_workers()]
    }

    fn node_questions(&self) -> &'static [NodeQuestion] {
        &QUESTIONS
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let situation = Situation::new(self, inputs)?;
        let (mut planned, mut wanted) = (Vec::new(), Vec::new());
        for feature in FEATURES {
            if let FeatureState::On { notes, insists } = feature.standing(&situation)? {
                if let Brings::Objects { objects, .. } = &feature.brings {
                    wanted.extend(of_others(feature, &notes, insists, objects(&situation)?, &situation));
                }
                planned.push(PlannedFeatures { feature, notes, insists });
            }
        }
        let mut drafts = Vec::new();
        drafts.extend(told_to_hyper_converged(&situation, &planned)?);
        if planned.iter().any(|planned| is_of_machines(planned.feature)) {
            for role in situation.roles() {
                drafts.extend(kubelets(role, &planned));
                for feature in &planned {
                    drafts.extend(machines(self, role, feature, &planned)?);
                }
            }
        }
        drafts.extend(wanted);
        Ok(drafts)
    }

    fn left_out(&self, inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        let situation = Situation::new(self, inputs)?;
        let mut left_out = vec![elsewhere()];
        for feature in FEATURES {
            let reason = match feature.standing(&situation)? {
                FeatureState::Off(reason) => Some(reason),
                FeatureState::On { insists: true, .. } => None,
                FeatureState::On { insists: false, .. } => match spared(feature, &situation)? {
                    Some(reason) => Some(reason),
                    None => feature.misses(&situation),
                },
            };
            left_out.extend(reason.map(|reason| LeftOutFeature { feature: feature.name.to_owned(), reason }));
        }
        Ok(left_out)
    }
}

/// Load-aware rebalancing has one owner.
fn elsewhere() -> LeftOutFeature {
    let reason = "it is a configuration of its own, load-aware-rebalancing, so that one owner writes the descheduler: set its action to \
                  DryRun for a plan";
    LeftOutFeature { feature: "loadAwareRebalancing".to_owned(), reason: reason.to_owned() }
}

/// Why machines of the control plane that carry virtual machines do not get what workers get, if they do not.
fn spared(feature: &Feature, situation: &Situation<'_>) -> Result<Option<String>, DraftError> {
    let Brings::Machines(MachineConfigs { masters: Masters::IfInsistedOn { because, .. }, .. }) = &feature.brings
    else {
        return Ok(None);
    };
    let concerned = situation.roles().contains(&"master");
    Ok(concerned.then(|| {
        format!(
            "not for the machines of the control plane, which carry virtual machines here: {because}. Set \
             options.platformBaseline.features.{} to Enabled for them too",
            feature.name
        )
    }))
}

/// A feature that is planned, what the reviewer should know of that, and whether the options ask for it.
struct PlannedFeatures {
    feature: &'static Feature,
    notes: Vec<String>,
    insists: bool,
}

/// What machines get is written together, after HyperConverged has been told its part.
const WAVE_OF_MACHINES: u32 = 1;
/// What reacts to machines that are away goes live when they are back.
pub(crate) const WAVE_AFTER_MACHINES: u32 = 2;

fn is_of_machines(feature: &Feature) -> bool {
    matches!(feature.brings, Brings::Kubelet(_) | Brings::Machines(_))
}

/// The HyperConverged object with the fields of all features that have some.
fn told_to_hyper_converged(
    situation: &Situation<'_>,
    planned: &[PlannedFeatures],
) -> Result<Option<Draft>, DraftError> {
    let mut spec = json!({});
    let (mut reasons, mut all_notes) = (Vec::new(), Vec::new());
    for PlannedFeatures { feature, notes, .. } in planned {
        if let Brings::HyperConverged(fields) = &feature.brings {
            merge(&mut spec, fields(situation)?);
            reasons.push(feature.does);
            all_notes.extend(notes.iter().cloned());
        }
    }
    if reasons.is_empty() {
        return Ok(None);
    }
    let version = if situation.is_v1 { "v1" } else { "v1beta1" };
    let object = json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": HYPER_CONVERGED_NAME, "namespace": namespace(situation.inputs)?},
        "spec": spec,
    });
    let draft = Draft::new("hyper-converged", Body::Ensure(object), reasons.join("; "));
    Ok(Some(Draft { impact: Impact::Medium, notes: all_notes, ..draft }))
}

/// The only KubeletConfig for the machines of `role`: of two for one pool the machine config controllers take one.
fn kubelets(role: &str, planned: &[PlannedFeatures]) -> Option<Draft> {
    let mut spec = json!({
        "machineConfigPoolSelector": {"matchLabels": {format!("pools.operator.machineconfiguration.openshift.io/{role}"): ""}},
    });
    let (mut reasons, mut all_notes, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for PlannedFeatures { feature, notes, .. } in planned {
        if let Brings::Kubelet(fields) = &feature.brings {
            merge(&mut spec, fields());
            reasons.push(feature.does);
            names.push(feature.name);
            all_notes.extend(notes.iter().cloned());
        }
    }
    let in_it = planned.iter().filter(|planned| names.contains(&planned.feature.name));
    let missing = in_it.flat_map(|in_it| missing(in_it.feature, planned));
    all_notes.extend(missing.map(|needed| format!("part of it has no effect without the feature {needed}")));
    if reasons.is_empty() {
        return None;
    }
    let name = if role == "worker" { "virt-perf-settings".to_owned() } else { format!("virt-perf-settings-{role}") };
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": name},
        "spec": spec,
    });
    let draft = Draft::new(format!("kubelet-{role}"), Body::Ensure(object), reasons.join("; "));
    Some(Draft { wave: WAVE_OF_MACHINES, notes: all_notes, ..draft })
}

/// The features that `feature` needs and that are not planned.
fn missing<'a>(feature: &Feature, planned: &'a [PlannedFeatures]) -> impl Iterator<Item = &'static str> + use<'a> {
    feature.needs.iter().copied().filter(|needed| !planned.iter().any(|planned| planned.feature.name == *needed))
}

/// The MachineConfig of a feature for the machines of `role`.
fn machines(
    options: &PlatformBaseline,
    role: &str,
    PlannedFeatures { feature, notes, insists }: &PlannedFeatures,
    planned: &[PlannedFeatures],
) -> Result<Option<Draft>, DraftError> {
    let Brings::Machines(configs) = &feature.brings else { return Ok(None) };
    let of_role = match &configs.masters {
        Masters::IfInsistedOn { .. } if role == "master" && !insists => return Ok(None),
        Masters::IfInsistedOn { note, .. } if role == "master" => Some((*note).to_owned()),
        Masters::IfInsistedOn { .. } | Masters::AsWorkers => None,
    };
    let object = machines::machine_config(&(configs.name)(role), role, &(configs.payload)(options))?;
    let draft = Draft::new(format!("{}-{role}", kebab(feature.name)), Body::Ensure(object), feature.does);
    let missing = missing(feature, planned)
        .map(|needed| format!("it has no effect without the feature {needed}, unless the machines have that already"));
    let notes = notes.iter().cloned().chain(of_role).chain(missing).collect();
    Ok(Some(Draft { wave: WAVE_OF_MACHINES, notes, ..of(feature, draft) }))
}

/// The objects of other operators that `feature` brings. Those of kinds that are not served are left out unless somebody insists.
fn of_others(
    feature: &Feature,
    notes: &[String],
    insists: bool,
    parts: Vec<Part>,
    situation: &Situation<'_>,
) -> Vec<Draft> {
    let (needs, may_have) = feature.kinds();
    let is_served = |part: &Part| {
        let kind = part.kind(needs.iter().chain(may_have));
        insists || part.insists || kind.is_none_or(|kind| situation.inputs.serves(kind))
    };
    let draft = |part: Part| {
        let draft = of(feature, Draft::new(part.item, Body::Ensure(part.object), feature.does));
        Draft {
            impact: part.impact,
            wave: part.wave,
            notes: notes.iter().cloned().chain(part.notes).collect(),
            unwanted: part.unwanted.iter().map(|&pointer| pointer.to_owned()).collect(),
            ..draft
        }
    };
    parts.into_iter().filter(is_served).map(draft).collect()
}

fn of(feature: &Feature, draft: Draft) -> Draft {
    let needs = feature.needs.iter().map(|&needed| needed.to_owned()).collect();
    Draft { feature: Some(feature.name.to_owned()), needs, ..draft }
}

/// `camelCase` as `camel-case`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

/// Adds `more` to `fields`, maps inside of maps. No two features have a field in common.
fn merge(fields: &mut Value, more: Value) {
    match (fields, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (fields, more) => *fields = more,
    }
}

#[cfg(test)]
mod tests;
