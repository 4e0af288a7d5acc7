//! What a feature is, and whether it is planned on a cluster.

use profile_sdk::kinds::{HYPER_CONVERGED, KUBELET_CONFIG, MACHINE_CONFIG};
use profile_sdk::platform::{reads_settings, sets_up_machines};
use profile_sdk::{DraftError, Impact, Kind, NodeQuestion};
use serde_json::Value;

use crate::options::{Choice, Features, PlatformBaseline};
use crate::situation::{Asked, Situation};

/// One feature of the baseline, as data: what decides whether it is planned, and what it brings.
pub(crate) struct Feature {
    /// Its name in the options and in `spec.items`.
    pub(crate) name: &'static str,
    /// The option that switches it on or off.
    pub(crate) choice: fn(&Features) -> Option<Choice>,
    /// What it does, as a clause whose subject is the feature.
    pub(crate) does: &'static str,
    pub(crate) maturity: Maturity,
    /// How administrators asked for it before there was this profile.
    pub(crate) asked_by: AskedBy,
    /// The option that names what it is for, and so asks for it too. Who names it knows the cluster.
    pub(crate) named_by: Option<NamedBy>,
    /// All of these must hold.
    pub(crate) conditions: &'static [Condition],
    /// Features without which it has no effect.
    pub(crate) needs: &'static [&'static str],
    pub(crate) brings: Brings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maturity {
    /// PlannedFeatures where nobody says otherwise.
    GeneralAvailability,
    TechnologyPreview,
    DeveloperPreview,
}

impl Maturity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GeneralAvailability => "general availability",
            Self::TechnologyPreview => "technology preview",
            Self::DeveloperPreview => "developer preview",
        }
    }
}

/// An earlier choice of the administrator, which is kept where the options say nothing.
pub(crate) enum AskedBy {
    Nothing,
    /// This annotation of HyperConverged is "true".
    Annotation(&'static str),
}

/// An option that names what a feature is for.
pub(crate) struct NamedBy {
    pub(crate) option: &'static str,
    pub(crate) is_set: fn(&PlatformBaseline) -> bool,
    /// There is nothing to do without.
    pub(crate) needed: bool,
}

pub(crate) enum Condition {
    /// A label of a node says so. It may be wrong: the option overrules it.
    OfNodes(&'static NodeQuestion, &'static str),
    /// The field of HyperConverged is not set: whoever has set it wants something else.
    Unconfigured { v1: &'static str, v1beta1: &'static str },
    /// It does nothing without this one.
    With(&'static Feature),
    /// The kubelets read the settings that it writes. Where that can't be told they do.
    SettingsAreRead,
    /// It does nothing without this kind, whose objects others make.
    Served(&'static Kind),
}

/// What a feature brings.
pub(crate) enum Brings {
    /// Fields of the HyperConverged object.
    HyperConverged(fn(&Situation<'_>) -> Result<Value, DraftError>),
    /// Fields of the spec of a KubeletConfig; there is one for each pool, for all features.
    Kubelet(fn() -> Value),
    /// A MachineConfig for each pool.
    Machines(MachineConfigs),
    /// Objects, of kinds that it needs and of kinds without which the rest is of use all the same.
    Objects {
        needs: &'static [Kind],
        may_have: &'static [Kind],
        objects: fn(&Situation<'_>) -> Result<Vec<Part>, DraftError>,
    },
}

/// One object that a feature brings.
pub(crate) struct Part {
    /// The name of its item.
    pub(crate) item: String,
    pub(crate) impact: Impact,
    pub(crate) wave: u32,
    pub(crate) object: Value,
    /// What the reviewer should know.
    pub(crate) notes: Vec<String>,
    /// Fields that do not go with it: the plan says so where they stay.
    pub(crate) unwanted: &'static [&'static str],
    /// The options ask for it, whether its kind is served or not.
    pub(crate) insists: bool,
}

impl Part {
    pub(crate) fn new(item: impl Into<String>, impact: Impact, object: Value) -> Self {
        Self { item: item.into(), impact, wave: 0, object, notes: Vec::new(), unwanted: &[], insists: false }
    }

    /// From YAML that comes with the profile.
    pub(crate) fn parse(item: &str, yaml: &'static str) -> Result<Self, DraftError> {
        Ok(Self::new(item, Impact::Medium, profile_sdk::parse("an object of the profile", yaml)?))
    }

    /// In that namespace.
    pub(crate) fn within(mut self, namespace: &str) -> Self {
        self.object["metadata"]["namespace"] = Value::from(namespace);
        self
    }

    /// Its kind, one of `kinds`.
    pub(crate) fn kind<'a>(&self, mut kinds: impl Iterator<Item = &'a Kind>) -> Option<&'a Kind> {
        let group = self.object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        let group = group.map_or("", |(group, _)| group);
        kinds.find(|kind| kind.group == group && self.object["kind"] == kind.kind)
    }
}

/// The MachineConfigs of a feature.
pub(crate) struct MachineConfigs {
    /// The name, by role.
    pub(crate) name: fn(&str) -> String,
    pub(crate) payload: fn(&PlatformBaseline) -> crate::machines::Payload,
    pub(crate) masters: Masters,
}

/// Whether machines of the control plane that carry virtual machines get what workers get.
pub(crate) enum Masters {
    /// They do.
    AsWorkers,
    /// Only if the options ask for the feature.
    IfInsistedOn {
        /// Why not otherwise.
        because: &'static str,
        /// What to think of then.
        note: &'static str,
    },
}

/// Whether a feature is planned.
pub(crate) enum FeatureState {
    /// It is; what the reviewer should know of that, and whether somebody insists on all of it, whatever the cluster lacks.
    On { notes: Vec<String>, insists: bool },
    /// It is not, and why.
    Off(String),
}

impl Feature {
    /// The kinds that it writes and needs, and those that it writes where they are served.
    pub(crate) fn kinds(&self) -> (&'static [Kind], &'static [Kind]) {
        match &self.brings {
            Brings::HyperConverged(_) => (&[HYPER_CONVERGED], &[]),
            Brings::Kubelet(_) => (&[KUBELET_CONFIG], &[]),
            Brings::Machines(_) => (&[MACHINE_CONFIG], &[]),
            Brings::Objects { needs, may_have, .. } => (*needs, *may_have),
        }
    }

    /// What is not planned of it, because of kinds that are not served.
    pub(crate) fn misses(&self, situation: &Situation<'_>) -> Option<String> {
        let missing: Vec<_> = self.kinds().1.iter().filter(|kind| !situation.inputs.serves(kind)).collect();
        let names: Vec<_> = missing.iter().map(|kind| kind.kind).collect();
        (!names.is_empty())
            .then(|| format!("only a part of it is planned: this cluster does not have {}", names.join(", ")))
    }

    /// What keeps it from being of use where nobody insists on it: the kinds that are not served, and machines that are set up elsewhere.
    fn lacks(&self, situation: &Situation<'_>) -> Result<Option<String>, DraftError> {
        let (needs, may_have) = self.kinds();
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.kind).collect::<Vec<_>>().join(", ");
        let lacks = |kind: &&Kind| !situation.inputs.serves(kind);
        if let Some(kind) = needs.iter().find(lacks) {
            return Ok(Some(format!("this cluster has no kind {}", kind.kind)));
        }
        let is_for_machines = matches!(self.brings, Brings::Machines(_) | Brings::Kubelet(_));
        if is_for_machines && !sets_up_machines(situation.inputs)? {
            let reason = "no MachineConfig reaches the machines of this cluster: where the control plane is hosted, set it up in the NodePools of the \
                          hosting cluster";
            return Ok(Some(reason.to_owned()));
        }
        let has_none = needs.is_empty() && may_have.iter().all(|kind| lacks(&kind));
        Ok(has_none.then(|| format!("this cluster has no kind of these: {}", names(may_have))))
    }

    /// Whether it is planned in this situation.
    pub(crate) fn standing(&self, situation: &Situation<'_>) -> Result<FeatureState, DraftError> {
        let off = |reason: String| Ok(FeatureState::Off(reason));
        let option = format!("options.platformBaseline.features.{}", self.name);
        let choice = (self.choice)(&situation.options.features);
        let named = self.named_by.as_ref().is_some_and(|named_by| (named_by.is_set)(situation.options));
        match choice {
            Some(Choice::Disabled) => return off(format!("{option} is Disabled")),
            Some(Choice::Enabled) => {}
            None if self.maturity == Maturity::GeneralAvailability || named => {}
            None => match situation.asks_for(&self.asked_by)? {
                Asked::Yes => {}
                Asked::No => {
                    return off(format!(
                        "it is {}, and not on by default: set {option} to Enabled for it",
                        self.maturity.name()
                    ));
                }
                Asked::Unclear(what) => {
                    return off(format!(
                        "{what}, which asks for nothing: only \"true\" does. Correct it, or set {option}"
                    ));
                }
            },
        }
        if let Some(NamedBy { option, needed: true, .. }) = self.named_by
            && !named
        {
            return off(format!("options.platformBaseline.{option} is not set, and there is nothing to do without"));
        }
        let insists = choice == Some(Choice::Enabled) || named;
        let mut notes = Vec::new();
        for condition in self.conditions {
            match condition {
                Condition::Unconfigured { v1, v1beta1 } => {
                    let path = if situation.is_v1 { v1 } else { v1beta1 };
                    if situation.is_configured(path)? {
                        return off(format!(
                            "HyperConverged has {path}, which wants something else: take it out first"
                        ));
                    }
                }
                Condition::OfNodes(question, what) if !situation.inputs.of_nodes(question) => {
                    if !insists {
                        return off(format!("no node has {what}: set {option} to Enabled if that is wrong"));
                    }
                    notes.push(format!(
                        "no node is labelled to have {what}; it is planned because the options ask for it"
                    ));
                }
                Condition::OfNodes(..) => {}
                Condition::SettingsAreRead if reads_settings(situation.inputs)? == Some(false) => {
                    let reason = format!(
                        "the kubelets of this release read no settings from /etc/openshift/kubelet.conf.d, so it does nothing: update to OpenShift 4.21 or \
                         later, or set {option} to Enabled to plan it all the same"
                    );
                    if !insists {
                        return off(reason);
                    }
                    notes.push("the kubelets of this release read no settings from /etc/openshift/kubelet.conf.d, so it does nothing yet".to_owned());
                }
                Condition::SettingsAreRead => {}
                Condition::Served(kind) if !situation.inputs.serves(kind) => {
                    let reason = format!("this cluster has no kind {}, without which it does nothing", kind.kind);
                    if !insists {
                        return off(reason);
                    }
                    notes.push(reason);
                }
                Condition::Served(_) => {}
                Condition::With(feature) => {
                    if let FeatureState::Off(_) = feature.standing(situation)? {
                        return off(format!("it does nothing without {}, which is not planned", feature.name));
                    }
                }
            }
        }
        if let Some(reason) = self.lacks(situation)?.filter(|_| !insists) {
            return off(reason);
        }
        Ok(FeatureState::On { notes, insists })
    }
}
