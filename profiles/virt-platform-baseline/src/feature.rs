//! What a feature is, and whether it is planned on a cluster.

use profile_sdk::{DraftError, Kind, NodeQuestion};
use serde_json::Value;

use crate::options::{Choice, PlatformBaseline};
use crate::situation::Situation;

/// One feature of the baseline, as data: what decides whether it is planned, and what it brings.
pub(crate) struct Feature {
    /// Its name in the options and in `spec.items`.
    pub(crate) name: &'static str,
    /// What it does, as a clause whose subject is the feature.
    pub(crate) does: &'static str,
    pub(crate) maturity: Maturity,
    /// How administrators asked for it before there was this profile.
    pub(crate) asked_by: AskedBy,
    /// All of these must hold.
    pub(crate) conditions: &'static [Condition],
    /// Features without which it has no effect.
    pub(crate) needs: &'static [&'static str],
    pub(crate) brings: Brings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maturity {
    /// Planned where nobody says otherwise.
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
    /// This gate of HyperConverged is on.
    FeatureGate(&'static str),
    /// This option names what it is for. Who does that knows the machines. `needed` says that there is nothing to do without.
    Devices {
        option: &'static str,
        named: fn(&PlatformBaseline) -> bool,
        needed: bool,
    },
}

pub(crate) enum Condition {
    /// A label of a node says so. It may be wrong: the option overrules it.
    OfNodes(&'static NodeQuestion, &'static str),
    /// The field of HyperConverged is not set: whoever has set it wants something else.
    Unconfigured { v1: &'static str, v1beta1: &'static str },
}

/// What a feature brings.
pub(crate) enum Brings {
    /// Fields of the HyperConverged object.
    HyperConverged(fn(&Situation<'_>) -> Result<Value, DraftError>),
    /// Fields of the spec of a KubeletConfig; there is one for each pool, for all features.
    Kubelet(fn() -> Value),
    /// A MachineConfig for each pool.
    Machines(MachineConfigs),
    /// An object of another operator.
    Object { kind: Kind, object: fn() -> Value },
    /// Several, each an item of the object's name; whether HyperConverged is served in v1 may make a difference.
    Objects { kind: Kind, objects: fn(bool) -> Result<Vec<Value>, DraftError> },
}

/// The MachineConfigs of a feature.
pub(crate) struct MachineConfigs {
    /// The name, by role.
    pub(crate) name: fn(&str) -> String,
    pub(crate) payload: fn(&PlatformBaseline) -> crate::machines::Payload,
    /// What to think of before machines of the control plane get it.
    pub(crate) note_for_masters: Option<&'static str>,
}

/// Whether a feature is planned.
pub(crate) enum Standing {
    /// It is; what the reviewer should know of that.
    On(Vec<String>),
    /// It is not, and why.
    Off(String),
}

impl Feature {
    /// The kind that it writes.
    pub(crate) fn kind(&self) -> &Kind {
        match &self.brings {
            Brings::HyperConverged(_) => &crate::HYPER_CONVERGED,
            Brings::Kubelet(_) => &crate::KUBELET_CONFIG,
            Brings::Machines(_) => &crate::MACHINE_CONFIG,
            Brings::Object { kind, .. } | Brings::Objects { kind, .. } => kind,
        }
    }

    /// Whether it is planned in this situation.
    pub(crate) fn standing(&self, situation: &Situation<'_>) -> Result<Standing, DraftError> {
        let off = |reason: String| Ok(Standing::Off(reason));
        let option = format!("options.platformBaseline.features.{}", self.name);
        let choice = situation.options.features.choice(self);
        let names_devices = match self.asked_by {
            AskedBy::Devices { named, .. } => named(situation.options),
            AskedBy::Nothing | AskedBy::Annotation(_) | AskedBy::FeatureGate(_) => false,
        };
        match choice {
            Some(Choice::Disabled) => return off(format!("{option} is Disabled")),
            Some(Choice::Enabled) => {}
            None if self.maturity == Maturity::GeneralAvailability || situation.asks_for(&self.asked_by)? => {}
            None => {
                return off(format!(
                    "it is {}, and not on by default: set {option} to Enabled for it",
                    self.maturity.name()
                ));
            }
        }
        if let AskedBy::Devices { option, needed: true, .. } = self.asked_by
            && !names_devices
        {
            return off(format!("options.platformBaseline.{option} names none"));
        }
        let insists = choice == Some(Choice::Enabled) || names_devices;
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
            }
        }
        if !insists && !situation.inputs.serves(self.kind()) {
            return off(format!("this cluster has no kind {}", self.kind().kind));
        }
        Ok(Standing::On(notes))
    }
}
