//! load-aware-rebalancing: virtual machines are moved away from loaded nodes.
//!
//! Two objects: a MachineConfig that switches on pressure stall information (PSI) on the workers, and the KubeDescheduler
//! `cluster`, which evicts by it. The descheduler goes live one wave later, after PSI has reached the machines.

mod descheduler;
mod limits;
mod options;

use profile_sdk::{
    AUTOPILOT, About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, OptionsError, Planner,
    Prerequisite, Profile, Read, Rival, parse_options, render,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use options::LoadAware;

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &LoadAwareRebalancing;

static ABOUT: About = About {
    name: "load-aware-rebalancing",
    options_key: "loadAware",
    description: "Rebalances virtual machines with the load-aware descheduler, guided by pressure stall information",
    category: "scheduling",
    impact_summary: "Worker machines reboot one by one to switch on PSI; then virtual machines are live-migrated away from loaded nodes",
    impact: Impact::High,
    advertised: true,
};

const MACHINE_CONFIG: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfig",
    plural: "machineconfigs",
};
const KUBE_DESCHEDULER: Kind =
    Kind { group: "operator.openshift.io", versions: &["v1"], kind: "KubeDescheduler", plural: "kubedeschedulers" };
/// v1 groups the fields of v1beta1 differently; the migration limits are read in whichever is served.
const HYPER_CONVERGED: Kind =
    Kind { group: "hco.kubevirt.io", versions: &["v1", "v1beta1"], kind: "HyperConverged", plural: "hyperconvergeds" };
const CRD: Kind = Kind {
    group: "apiextensions.k8s.io",
    versions: &["v1"],
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

const HYPER_CONVERGED_NAMESPACE: &str = "openshift-cnv";
const HYPER_CONVERGED_NAME: &str = "kubevirt-hyperconverged";

static KINDS: &[Declared] = &[
    Declared { kind: MACHINE_CONFIG, access: Access::Write, name: Some("99-worker-psi-karg"), namespace: None },
    Declared { kind: KUBE_DESCHEDULER, access: Access::Create, name: Some(descheduler::NAME), namespace: None },
    Declared { kind: HYPER_CONVERGED, access: Access::Read, name: Some(HYPER_CONVERGED_NAME), namespace: None },
    Declared { kind: CRD, access: Access::Read, name: Some("kubedeschedulers.operator.openshift.io"), namespace: None },
];

/// The item that gives the descheduler what it measures.
const PSI: &str = "enable-psi-metrics";

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
    Read { kind: CRD, namespace: None, name: KUBE_DESCHEDULER.crd_name() }
}

fn descheduler_object() -> Read {
    Read {
        kind: KUBE_DESCHEDULER,
        namespace: Some(descheduler::NAMESPACE.to_owned()),
        name: descheduler::NAME.to_owned(),
    }
}

fn hyper_converged() -> Read {
    Read {
        kind: HYPER_CONVERGED,
        namespace: Some(HYPER_CONVERGED_NAMESPACE.to_owned()),
        name: HYPER_CONVERGED_NAME.to_owned(),
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
                hint: "PSI is switched on through the Machine Config Operator of OpenShift; where there is none, switch PSI on \
                       by other means and set options.loadAware.enablePSIMetrics to false",
            });
        }
        // Without KubeVirt this descheduler profile would evict pods that nothing migrates.
        needed.push(Prerequisite {
            kind: HYPER_CONVERGED,
            object: Some((Some(HYPER_CONVERGED_NAMESPACE.to_owned()), HYPER_CONVERGED_NAME.to_owned())),
            hint: "install OpenShift Virtualization and create its HyperConverged object",
        });
        needed
    }

    fn reads(&self) -> Vec<Read> {
        vec![descheduler_crd(), descheduler_object(), hyper_converged()]
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let mut drafts = Vec::new();
        if self.enable_psi_metrics {
            let object = render("machine-config.yaml", include_str!("../templates/machine-config.yaml.hbs"), &())?;
            let reason = "switches on pressure stall information (psi=1) on the workers";
            drafts.push(Draft::new(PSI, Body::Ensure(object), reason));
        }
        let needs = if self.enable_psi_metrics { vec![PSI.to_owned()] } else { Vec::new() };
        drafts.push(Draft { needs, ..descheduler::draft(self, inputs)? });
        Ok(drafts)
    }
}

#[cfg(test)]
mod tests;
