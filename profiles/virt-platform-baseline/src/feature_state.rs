//! The decision whether a feature is planned on a cluster, and the reason if it is not.

use std::collections::BTreeSet;

use profile_sdk::kinds::{MACHINE_CONFIG, hyper_converged};
use profile_sdk::platform::{reads_settings, sets_up_machines};
use profile_sdk::{DraftError, Kind};
use serde_json::{Value, json};

use crate::feature::{AskedBy, Condition, Feature, Maturity, NamedBy};
use crate::options::Choice;
use crate::situation::Situation;

/// Whether a feature is planned.
pub(crate) enum FeatureState {
    /// It is planned.
    On {
        /// Notes for the reviewer.
        notes: Vec<String>,
        /// Whether the options ask for it, so that all of it is drafted whatever the cluster lacks.
        explicitly_enabled: bool,
    },
    /// It is left out, for this reason.
    Off(String),
}

/// An earlier choice of the administrator, made before there was this profile.
enum EarlierChoice {
    On,
    Off,
    /// A value that is neither: a clause that quotes it.
    Unclear(String),
}

/// A condition that does not hold.
enum FailedCondition {
    /// The feature is left out, whatever the options say.
    Final(String),
    /// The feature is left out for this reason. If the options ask for it, it is planned with this
    /// note.
    Overridable { reason: String, note: String },
}

impl Feature {
    /// Whether it is planned in this situation.
    pub(crate) fn state(&self, situation: &Situation<'_>) -> Result<FeatureState, DraftError> {
        if let Some(reason) = self.reason_not_chosen(situation)? {
            return Ok(FeatureState::Off(reason));
        }
        let explicitly_enabled = self.is_enabled(situation) || self.is_named(situation);
        let mut notes = Vec::new();
        for condition in self.conditions {
            match self.failure(condition, situation)? {
                None => {}
                Some(FailedCondition::Overridable { note, .. }) if explicitly_enabled => notes.push(note),
                Some(FailedCondition::Final(reason) | FailedCondition::Overridable { reason, .. }) => {
                    return Ok(FeatureState::Off(reason));
                }
            }
        }
        // Read even where it decides nothing, so that both choices record the same inputs.
        match self.reason_not_possible(situation)? {
            Some(reason) if !explicitly_enabled => Ok(FeatureState::Off(reason)),
            Some(_) | None => Ok(FeatureState::On { notes, explicitly_enabled }),
        }
    }

    /// Whether it is planned in this situation, for features that depend on it.
    pub(crate) fn is_on(&self, situation: &Situation<'_>) -> Result<bool, DraftError> {
        Ok(matches!(self.state(situation)?, FeatureState::On { .. }))
    }

    /// Why only a part of it is planned, if kinds that it writes are not served.
    pub(crate) fn reason_for_missing_parts(&self, situation: &Situation<'_>) -> Option<String> {
        let missing: Vec<_> = self.optional_kinds().iter().filter(|kind| !situation.inputs.serves(kind)).collect();
        let names: Vec<_> = missing.iter().map(|kind| kind.kind).collect();
        (!names.is_empty())
            .then(|| format!("only part of it is planned, because this cluster does not serve {}: install the operators that provide these kinds", names.join(", ")))
    }

    /// Whether the options enable it by its own switch.
    fn is_enabled(&self, situation: &Situation<'_>) -> bool {
        (self.choice)(&situation.options.features) == Some(Choice::Enabled)
    }

    /// Whether the options name the devices or storage that it is for.
    fn is_named(&self, situation: &Situation<'_>) -> bool {
        self.named_by.as_ref().is_some_and(|named_by| (named_by.is_set)(situation.options))
    }

    /// Its switch, for messages.
    fn option(&self) -> String {
        format!("spec.options.platformBaseline.features.{}", self.name)
    }

    /// Why it is left out by the options, or because nobody asks for it.
    fn reason_not_chosen(&self, situation: &Situation<'_>) -> Result<Option<String>, DraftError> {
        let option = self.option();
        let is_named = self.is_named(situation);
        match (self.choice)(&situation.options.features) {
            Some(Choice::Disabled) => return Ok(Some(format!("{option} is Disabled"))),
            Some(Choice::Enabled) => {}
            None if self.maturity == Maturity::GeneralAvailability || is_named => {}
            None => match self.earlier_choice(situation)? {
                EarlierChoice::On => {}
                EarlierChoice::Off => {
                    return Ok(Some(format!(
                        "it is a {} and off by default: to use it, {}",
                        self.maturity.name(),
                        self.how_to_enable()
                    )));
                }
                EarlierChoice::Unclear(what) => {
                    return Ok(Some(format!(
                        "{what}, but only \"true\" enables the feature: correct the annotation, or set {option} to Enabled or Disabled"
                    )));
                }
            },
        }
        Ok(match self.named_by {
            Some(NamedBy { option, needed: true, .. }) if !is_named => Some(format!(
                "it requires spec.options.platformBaseline.{option}, which is not set: to use the feature, set that option"
            )),
            Some(_) | None => None,
        })
    }

    /// Everything that an administrator must set to use it.
    fn how_to_enable(&self) -> String {
        let own = match &self.named_by {
            Some(NamedBy { option, needed: true, .. }) => format!("set spec.options.platformBaseline.{option}"),
            Some(_) | None => format!("set {} to Enabled", self.option()),
        };
        let hosts = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Planned(host) => Some(host.name),
            _ => None,
        });
        let needed: BTreeSet<_> = hosts.chain(self.needs.iter().copied()).collect();
        match needed.is_empty() {
            true => own,
            false => format!("{own}, and enable {} too", Vec::from_iter(needed).join(" and ")),
        }
    }

    fn earlier_choice(&self, situation: &Situation<'_>) -> Result<EarlierChoice, DraftError> {
        let AskedBy::Annotation(name) = &self.asked_by else { return Ok(EarlierChoice::Off) };
        let place = format!("/metadata/annotations/platform.kubevirt.io~1{name}");
        // True, false, or the text if it is neither.
        let parse = |value: Option<&Value>| match value.and_then(Value::as_str) {
            Some("true") => Some(json!(true)),
            None | Some("" | "false") => Some(json!(false)),
            Some(other) => Some(json!(other)),
        };
        Ok(match situation.inputs.derive(&hyper_converged(), &place, parse)? {
            Some(Value::String(other)) => EarlierChoice::Unclear(format!(
                "the annotation platform.kubevirt.io/{name} of HyperConverged has the value {other:?}"
            )),
            Some(Value::Bool(true)) => EarlierChoice::On,
            Some(_) | None => EarlierChoice::Off,
        })
    }

    /// How `condition` fails, if it does not hold.
    fn failure(&self, condition: &Condition, situation: &Situation<'_>) -> Result<Option<FailedCondition>, DraftError> {
        let option = self.option();
        Ok(match condition {
            Condition::HyperConvergedLacks { v1, v1beta1 } => {
                let path = if situation.is_v1 { v1 } else { v1beta1 };
                situation.hyper_converged_sets(path)?.then(|| {
                    FailedCondition::Final(format!(
                        "HyperConverged sets {path}, which conflicts with this feature: to use the feature, remove that field first"
                    ))
                })
            }
            Condition::NodeHas(question, what) => {
                (!situation.inputs.of_nodes(question)).then(|| FailedCondition::Overridable {
                    reason: format!("no node is labeled as having {what}: if that is wrong, set {option} to Enabled"),
                    note: format!(
                        "feature {} is planned because the options ask for it, although no node is labeled as having {what}", self.name
                    ),
                })
            }
            Condition::KubeletsReadDropIns => {
                (reads_settings(situation.inputs)? == Some(false)).then(|| FailedCondition::Overridable {
                    reason: format!(
                        "the kubelets of this release do not read settings from /etc/openshift/kubelet.conf.d, so it would have no effect: update to \
                         OpenShift 4.21 or later, or set {option} to Enabled to plan it anyway"
                    ),
                    note: "the kubelets of this release do not read settings from /etc/openshift/kubelet.conf.d, so it has no effect until you update to OpenShift 4.21 or later".to_owned(),
                })
            }
            Condition::Served(kind) => (!situation.inputs.serves(kind)).then(|| {
                let reason = format!(
                        "this cluster does not serve kind {}, without which it has no effect: install the operator that provides the kind",
                        kind.kind
                    );
                FailedCondition::Overridable { note: reason.clone(), reason }
            }),
            Condition::Planned(feature) => (!feature.is_on(situation)?).then(|| {
                FailedCondition::Final(format!("it has no effect without the feature {}, which is not planned: enable that feature too", feature.name))
            }),
        })
    }

    /// Why it can't take effect on this cluster: kinds that are not served, or machines that no
    /// MachineConfig reaches.
    fn reason_not_possible(&self, situation: &Situation<'_>) -> Result<Option<String>, DraftError> {
        let (required, optional) = (self.required_kinds(), self.optional_kinds());
        let is_missing = |kind: &&Kind| !situation.inputs.serves(kind);
        if let Some(kind) = required.iter().find(is_missing) {
            let remedy = match *kind == MACHINE_CONFIG {
                true => ", which comes with OpenShift",
                false => ": install the operator that provides it",
            };
            return Ok(Some(format!("this cluster does not serve kind {}{remedy}", kind.kind)));
        }
        if self.reboots_machines() && !sets_up_machines(situation.inputs)? {
            let reason = "MachineConfigs have no effect on the machines of this cluster: if the control plane is hosted, set it up in the NodePools of \
                          the hosting cluster";
            return Ok(Some(reason.to_owned()));
        }
        let has_none = required.is_empty() && optional.iter().all(|kind| is_missing(&kind));
        let names = || optional.iter().map(|kind| kind.kind).collect::<Vec<_>>().join(", ");
        Ok(has_none.then(|| {
            format!(
                "this cluster serves none of these kinds: {}. Install an operator that provides one of them",
                names()
            )
        }))
    }
}
