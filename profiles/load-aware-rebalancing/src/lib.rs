//! load-aware-rebalancing: virtual machines are moved away from loaded nodes.
//!
//! Two kinds of objects: for each role a MachineConfig that switches on pressure stall information
//! (PSI) on the machines that carry virtual machines, and the KubeDescheduler `cluster`, which
//! evicts by it. The descheduler goes live one wave later, after PSI has reached the machines.

mod descheduler;
mod limits;
mod options;

use profile_sdk::kinds::{
    HYPER_CONVERGED, HYPER_CONVERGED_NAME, KUBE_DESCHEDULER, KUBE_DESCHEDULER_NAME, KUBE_DESCHEDULER_NAMESPACE,
    MACHINE_CONFIG, hyper_converged,
};
use profile_sdk::platform::{QUESTIONS, Role, needs_hyper_converged, roles};
use profile_sdk::{
    AUTOPILOT, About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, NodeQuestion, OptionsError,
    Planner, Prerequisite, Profile, Read, Rival, parse_options, render,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use options::LoadAware;

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &LoadAwareRebalancing;

static ABOUT: About = About {
    name: "load-aware-rebalancing",
    options_key: "loadAware",
    description: "Moves virtual machines away from heavily loaded nodes (load-aware rebalancing), with the Kube Descheduler and pressure stall information (PSI)",
    category: "scheduling",
    impact_summary: "Machines that run virtual machines reboot to enable PSI, by default one at a time per pool; then virtual machines are live-migrated away from heavily loaded nodes",
    impact: Impact::High,
    advertised: true,
};

const CRD: Kind = Kind {
    group: "apiextensions.k8s.io",
    versions: &["v1"],
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

static KINDS: &[Declared] = &[
    Declared { kind: MACHINE_CONFIG, access: Access::Write, name: Some("99-worker-psi-karg"), namespace: None },
    Declared { kind: MACHINE_CONFIG, access: Access::Write, name: Some("99-master-psi-karg"), namespace: None },
    Declared { kind: KUBE_DESCHEDULER, access: Access::Create, name: Some(KUBE_DESCHEDULER_NAME), namespace: None },
    Declared { kind: HYPER_CONVERGED, access: Access::Read, name: Some(HYPER_CONVERGED_NAME), namespace: None },
    Declared { kind: CRD, access: Access::Read, name: Some("kubedeschedulers.operator.openshift.io"), namespace: None },
];

/// The item that gives the descheduler what it measures, on machines of that role.
fn psi(role: Role) -> &'static str {
    match role {
        Role::Worker => "enable-psi-metrics",
        Role::Master => "enable-psi-metrics-master",
    }
}

struct LoadAwareRebalancing;

impl Profile for LoadAwareRebalancing {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<LoadAware>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn rivals(&self) -> &'static [Rival] {
        &[AUTOPILOT]
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        Ok(Box::new(parse_options::<LoadAware>(ABOUT.options_key, options)?))
    }
}

fn descheduler_crd() -> Read {
    Read { kind: CRD, namespace: None, name: KUBE_DESCHEDULER.crd_name(), elsewhere: false }
}

fn descheduler_object() -> Read {
    Read {
        kind: KUBE_DESCHEDULER,
        namespace: Some(KUBE_DESCHEDULER_NAMESPACE.to_owned()),
        name: KUBE_DESCHEDULER_NAME.to_owned(),
        elsewhere: false,
    }
}

impl Planner for LoadAware {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        let mut needed =
            vec![Prerequisite { kind: KUBE_DESCHEDULER, object: None, hint: "install the Kube Descheduler Operator" }];
        if self.enable_psi_metrics {
            needed.push(Prerequisite {
                kind: MACHINE_CONFIG,
                object: None,
                hint: "the profile enables PSI through the Machine Config Operator of OpenShift; on a cluster without it, enable PSI \
                       by other means and set spec.options.loadAware.enablePSIMetrics to false",
            });
        }
        // Without KubeVirt this descheduler profile would evict pods that nothing migrates.
        needed.push(needs_hyper_converged());
        needed
    }

    fn reads(&self) -> Vec<Read> {
        vec![descheduler_crd(), descheduler_object(), hyper_converged()]
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn node_questions(&self) -> &'static [NodeQuestion] {
        if self.enable_psi_metrics { &QUESTIONS } else { &[] }
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let roles = if self.enable_psi_metrics { roles(inputs) } else { Vec::new() };
        let mut drafts = Vec::new();
        for role in &roles {
            let (data, whose) = (
                json!({"role": role.name()}),
                match role {
                    Role::Worker => "worker machines",
                    Role::Master => "control-plane machines, which can run virtual machines on this cluster",
                },
            );
            let object = render("machine-config.yaml", include_str!("../templates/machine-config.yaml.hbs"), &data)?;
            let reason = format!("enables pressure stall information (psi=1) on {whose}");
            drafts.push(Draft::new(psi(*role), Body::Ensure(object), reason));
        }
        let needs = roles.into_iter().map(|role| psi(role).to_owned()).collect();
        drafts.push(Draft { needs, ..descheduler::draft(self, inputs)? });
        Ok(drafts)
    }
}

#[cfg(test)]
mod tests;
