//! A feature as data: the choices and conditions that decide about it, and the objects that it
//! brings. The decision itself is in `feature_state`.

use profile_sdk::kinds::{HYPER_CONVERGED, KUBELET_CONFIG, MACHINE_CONFIG};
use profile_sdk::{DraftError, Impact, Kind, NodeQuestion};
use serde_json::Value;

use crate::machine_config::Payload;
use crate::options::{Choice, Features, PlatformBaseline};
use crate::situation::Situation;

/// One feature of the baseline.
pub(crate) struct Feature {
    /// Its name in the options and in `spec.items`.
    pub(crate) name: &'static str,
    /// The option that switches it on or off.
    pub(crate) choice: fn(&Features) -> Option<Choice>,
    /// Its effect, as a clause whose subject is the feature.
    pub(crate) does: &'static str,
    pub(crate) maturity: Maturity,
    /// How administrators asked for it before there was this profile.
    pub(crate) asked_by: AskedBy,
    /// The option that names the devices or storage that it is for. Setting it asks for the feature
    /// too: whoever names them knows the cluster.
    pub(crate) named_by: Option<NamedBy>,
    /// All of these must hold.
    pub(crate) conditions: &'static [Condition],
    /// Features without which it has no effect.
    pub(crate) needs: &'static [&'static str],
    pub(crate) brings: Brings,
}

impl Feature {
    /// The kinds that it writes and can't do without.
    pub(crate) fn required_kinds(&self) -> &'static [Kind] {
        match &self.brings {
            Brings::HyperConverged(_) => &[HYPER_CONVERGED],
            Brings::Kubelet(_) => &[KUBELET_CONFIG],
            Brings::Machines(_) => &[MACHINE_CONFIG],
            Brings::Objects { required_kinds, .. } => required_kinds,
        }
    }

    /// The kinds that it writes only where they are served.
    pub(crate) fn optional_kinds(&self) -> &'static [Kind] {
        match &self.brings {
            Brings::HyperConverged(_) | Brings::Kubelet(_) | Brings::Machines(_) => &[],
            Brings::Objects { optional_kinds, .. } => optional_kinds,
        }
    }

    /// Whether machines reboot to take it in.
    pub(crate) fn reboots_machines(&self) -> bool {
        matches!(self.brings, Brings::Kubelet(_) | Brings::Machines(_))
    }
}

/// How mature a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maturity {
    /// Planned unless the options disable it.
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

/// An option that names the devices or storage that a feature is for.
pub(crate) struct NamedBy {
    pub(crate) option: &'static str,
    pub(crate) is_set: fn(&PlatformBaseline) -> bool,
    /// Without the option there is nothing to plan.
    pub(crate) needed: bool,
}

/// Something that must be so on the cluster.
pub(crate) enum Condition {
    /// A node has this, as its labels say. They may be wrong: the options overrule them.
    NodeHas(&'static NodeQuestion, &'static str),
    /// HyperConverged does not set this field: whoever has set it has another purpose in mind.
    HyperConvergedLacks { v1: &'static str, v1beta1: &'static str },
    /// This feature, without which it does nothing, is planned.
    Planned(&'static Feature),
    /// The kubelets read the drop-in directory that it writes to. Where that can't be known, they
    /// do.
    KubeletsReadDropIns,
    /// This kind, whose objects others make and without which it does nothing, is served.
    Served(&'static Kind),
}

/// The objects, or fields of objects, that a feature writes.
pub(crate) enum Brings {
    /// Fields of the HyperConverged object.
    HyperConverged(fn(&Situation<'_>) -> Result<Value, DraftError>),
    /// Fields of the spec of a KubeletConfig. There is one KubeletConfig for each pool, for all
    /// features.
    Kubelet(fn() -> Value),
    /// A MachineConfig for each pool.
    Machines(MachineConfigs),
    /// Objects of other operators, or of Kubernetes itself.
    Objects {
        /// Kinds without which the feature is not planned.
        required_kinds: &'static [Kind],
        /// Kinds without which the other objects are still useful.
        optional_kinds: &'static [Kind],
        objects: fn(&Situation<'_>) -> Result<Vec<Part>, DraftError>,
    },
}

/// The wave of everything that machines get: one wave, after HyperConverged, so that they reboot
/// once.
pub(crate) const WAVE_OF_MACHINES: u32 = 1;
/// The wave of objects that react to absent machines: they are written when all machines are back.
pub(crate) const WAVE_AFTER_MACHINES: u32 = 2;

/// One object that a feature brings.
pub(crate) struct Part {
    /// The name of its item.
    pub(crate) item: String,
    pub(crate) impact: Impact,
    pub(crate) wave: u32,
    pub(crate) object: Value,
    /// Notes for the reviewer.
    pub(crate) notes: Vec<String>,
    /// Fields that contradict the object: the plan says so where somebody else sets them.
    pub(crate) unwanted: &'static [&'static str],
    /// Whether the options ask for it, so that it is drafted even where its kind is not served.
    pub(crate) explicitly_enabled: bool,
}

impl Part {
    pub(crate) fn new(item: impl Into<String>, impact: Impact, object: Value) -> Self {
        let item = item.into();
        Self { item, impact, wave: 0, object, notes: Vec::new(), unwanted: &[], explicitly_enabled: false }
    }

    /// A part from YAML that comes with the profile.
    pub(crate) fn parse(item: &str, yaml: &'static str) -> Result<Self, DraftError> {
        Ok(Self::new(item, Impact::Medium, profile_sdk::parse("an object of the profile", yaml)?))
    }

    /// The same part, in `namespace`.
    pub(crate) fn in_namespace(mut self, namespace: &str) -> Self {
        self.object["metadata"]["namespace"] = Value::from(namespace);
        self
    }

    /// The one of `kinds` that its object is of.
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
    pub(crate) payload: fn(&PlatformBaseline) -> Payload,
    pub(crate) masters: Masters,
}

/// Whether machines of the control plane that carry virtual machines get the MachineConfig that
/// workers get.
pub(crate) enum Masters {
    /// They always do.
    AsWorkers,
    /// They do only if the options enable the feature.
    OnlyIfEnabledExplicitly {
        /// Why they do not otherwise.
        because: &'static str,
        /// The risk that the reviewer is told if they do.
        note: &'static str,
    },
}
