//! virt-higher-density: more virtual machines for the same memory.
//!
//! Two objects: a MachineConfig that lets the workers swap, and the HyperConverged object, which
//! gives guests more memory than is requested for them and lets the kernel share equal pages. The
//! second follows one wave later, after every machine has taken the first one in.

mod options;

use profile_sdk::kinds::{HYPER_CONVERGED, HYPER_CONVERGED_NAME, MACHINE_CONFIG, hyper_converged};
use profile_sdk::platform::{
    KUBELET_OF_WORKERS, QUESTIONS, Role, kubelet_of_workers, namespace, needs_hyper_converged, patched, reads_settings,
    roles,
};
use profile_sdk::{
    AUTOPILOT, About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, NodeQuestion, ObjectRef, OptionsError,
    Planner, Prerequisite, Profile, Read, Rival, parse_options, render,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use options::{HigherDensity, NO_OVERCOMMIT, RATIO_WITHOUT_SWAP};

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &VirtHigherDensity;

static ABOUT: About = About {
    name: "virt-higher-density",
    options_key: "virtHigherDensity",
    description: "Increases the density of virtual machines, with swap, kernel samepage merging (KSM) and memory overcommitment",
    category: "density",
    impact_summary: "Worker machines reboot, by default one at a time per pool, to use the partition labeled CNV_SWAP as swap; then guests that start see more memory than is requested for them",
    impact: Impact::High,
    advertised: true,
};

static KINDS: &[Declared] = &[
    Declared { kind: MACHINE_CONFIG, access: Access::Write, name: Some(SWAP_CONFIG), namespace: None },
    Declared { kind: MACHINE_CONFIG, access: Access::Read, name: Some(KUBELET_OF_WORKERS), namespace: None },
    Declared { kind: HYPER_CONVERGED, access: Access::Update, name: Some(HYPER_CONVERGED_NAME), namespace: None },
];

/// Its object.
const SWAP_CONFIG: &str = "90-worker-kubelet-swap";

/// Where there are no workers that are no control plane.
const ONLY_MASTERS: &str = "all machines that can run virtual machines belong to the control plane, where etcd would share a disk with swap: set \
                            spec.options.virtHigherDensity.enableSwap to false and memoryToRequestRatio to 120 or less";

/// Where machines would reboot for nothing.
const READS_NO_SETTINGS: &str = "the kubelets of this release do not read settings from /etc/openshift/kubelet.conf.d (MachineConfig 01-worker-kubelet starts \
                                 them without that folder), so no virtual machine would get swap: update to OpenShift 4.21 or later, or set \
                                 spec.options.virtHigherDensity.enableSwap to false and memoryToRequestRatio to 120 or less";

/// The item that gives the workers swap.
const SWAP: &str = "enable-kubelet-swap";

struct VirtHigherDensity;

impl Profile for VirtHigherDensity {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<HigherDensity>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn rivals(&self) -> &'static [Rival] {
        &[AUTOPILOT]
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        let options = parse_options::<HigherDensity>(ABOUT.options_key, options)?;
        match options.problem() {
            Some(problem) => Err(OptionsError { key: ABOUT.options_key, problem }),
            None => Ok(Box::new(options)),
        }
    }
}

impl Planner for HigherDensity {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        let mut needed = Vec::new();
        if self.enable_swap {
            needed.push(Prerequisite {
                kind: MACHINE_CONFIG,
                object: None,
                hint: "the profile enables swap through the Machine Config Operator of OpenShift; on a cluster without it, for example with a \
                       hosted control plane, set spec.options.virtHigherDensity.enableSwap to false and memoryToRequestRatio to 120 or less",
            });
        }
        needed.push(needs_hyper_converged());
        needed
    }

    fn reads(&self) -> Vec<Read> {
        match self.enable_swap {
            true => vec![hyper_converged(), kubelet_of_workers()],
            false => vec![hyper_converged()],
        }
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn node_questions(&self) -> &'static [NodeQuestion] {
        if self.enable_swap { &QUESTIONS } else { &[] }
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let mut drafts = Vec::new();
        if self.enable_swap {
            drafts.push(self.swap(inputs)?);
        }
        drafts.push(self.density(inputs)?);
        Ok(drafts)
    }
}

impl HigherDensity {
    /// Case M14: swap of the control plane would share a disk with etcd.
    fn swap(&self, inputs: &Inputs) -> Result<Draft, DraftError> {
        let roles = roles(inputs);
        let data = json!({
            "script": include_str!("../templates/find-swap-partition.sh"),
            "kubelet": include_str!("../templates/90-swap.conf"),
            "swap_unit": include_str!("../templates/swap-provision.service"),
            "slice_unit": include_str!("../templates/cgroup-system-slice-config.service"),
        });
        let object = render("machine-config.yaml", include_str!("../templates/machine-config.yaml.hbs"), &data)?;
        let reason = "lets virtual machines on worker machines use the partition labeled CNV_SWAP as swap";
        let reads = reads_settings(inputs)?;
        let release = match reads {
            None => ", and a release whose kubelet reads /etc/openshift/kubelet.conf.d",
            Some(_) => "",
        };
        let note = format!(
            "each worker machine needs a partition labeled CNV_SWAP that is formatted as swap (mkswap){release}; a machine that lacks this runs \
             without swap, and the log of its swap-provision.service says so"
        );
        let mut notes = vec![note];
        if roles.contains(&Role::Master) {
            notes.push(
                "control-plane machines can run virtual machines too, but get no swap: etcd would share a disk with it"
                    .to_owned(),
            );
        }
        let target = ObjectRef {
            api_version: "machineconfiguration.openshift.io/v1".to_owned(),
            kind: MACHINE_CONFIG.kind.to_owned(),
            namespace: None,
            name: SWAP_CONFIG.to_owned(),
        };
        let body = match (roles.contains(&Role::Worker), reads) {
            (false, _) => Body::Blocked { target, remedy: ONLY_MASTERS.to_owned() },
            (true, Some(false)) => Body::Blocked { target, remedy: READS_NO_SETTINGS.to_owned() },
            (true, Some(true) | None) => Body::Ensure(object),
        };
        Ok(Draft { notes, ..Draft::new(SWAP, body, reason) })
    }

    fn density(&self, inputs: &Inputs) -> Result<Draft, DraftError> {
        let ksm = self.ksm();
        let namespace = namespace(inputs)?;
        let data = json!({"namespace": namespace, "ratio": self.ratio(), "ksm": ksm.is_some(), "selector": ksm});
        let (object, parent) = match inputs.version(&hyper_converged())?.as_str() {
            "v1beta1" => {
                let template = include_str!("../templates/hyper-converged-v1beta1.yaml.hbs");
                (render("hyper-converged-v1beta1.yaml", template, &data)?, "/spec")
            }
            _ => {
                let template = include_str!("../templates/hyper-converged-v1.yaml.hbs");
                (render("hyper-converged-v1.yaml", template, &data)?, "/spec/virtualization")
            }
        };
        // What somebody else has switched on is theirs to switch off; the plan says who.
        let unwanted = match ksm {
            Some(_) => Vec::new(),
            None => vec![format!("{parent}/ksmConfiguration/nodeLabelSelector")],
        };
        let reason = match (self.ratio() > NO_OVERCOMMIT, ksm.is_some()) {
            (true, true) => {
                "lets guests see more memory than is requested for them, and merges identical memory pages (KSM)"
            }
            (true, false) => "lets guests see more memory than is requested for them",
            (false, true) => {
                "merges identical memory pages (KSM), and gives guests exactly the memory that is requested for them"
            }
            (false, false) => "gives guests exactly the memory that is requested for them",
        };
        let draft = Draft::new("configure-higher-density", Body::Ensure(object), reason);
        let mut notes = Vec::new();
        if self.ratio() > NO_OVERCOMMIT {
            notes.push(
                "because memory is overcommitted, HyperConverged 1.16 and later deploys wasp-agent, a privileged DaemonSet with its own \
                 SecurityContextConstraints, unless virt-platform-autopilot manages swap"
                    .to_owned(),
            );
        }
        if self.ratio() > RATIO_WITHOUT_SWAP {
            notes.push("the API does not show whether worker machines have a partition for swap: check them before memory is overcommitted".to_owned());
        }
        notes.extend(patched(inputs, &["memoryOvercommit", "ksmConfiguration"])?);
        let needs = if self.enable_swap { vec![SWAP.to_owned()] } else { Vec::new() };
        Ok(Draft { impact: Impact::Medium, wave: 1, needs, unwanted, notes, ..draft })
    }
}

#[cfg(test)]
mod tests;
