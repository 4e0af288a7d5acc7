//! Writing the status of a Machine, and its finalizer: one write where something has changed, and
//! none where nothing has.

use advisor_cluster::ClusterError;
use kube::ResourceExt;
use machines_api::status::DiskStatus;
use machines_api::{FINALIZER, GO_FINALIZER, Machine};
use machines_core::ownership::{is_controlled, is_created_for};
use machines_core::report::{Outcome, Phase, status};
use machines_core::understand::is_ours;
use operator_kit::clock;
use serde_json::{Map, Value, json};

use super::context::Context;
use super::error::{Error, doing};
use crate::cluster::kinds;

/// Fields of the spec that the published definition lacks.
const DOCUMENTED: [&str; 7] = ["template", "resources", "networks", "bootOrder", "domain", "updates", "runStrategy"];

/// What the definition of Machines serves.
#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    version: String,
    lacking: Vec<String>,
    status: Vec<String>,
    conditions: Vec<String>,
}

impl Context {
    /// Writes the status that follows from `outcome`, as far as it has changed.
    pub(super) async fn report(&self, machine: &Machine, mut outcome: Outcome<'_>) -> Result<(), Error> {
        let definition = self.definition().await?;
        outcome.lacking = definition.lacking.iter().map(|field| format!("spec.{field}")).collect();
        let mut found = status(machine, &outcome, &clock::now().to_string());
        // The uid of a claim that was just created is known from the answer.
        for disk in &mut found.disks {
            let is_its = |claim: &&&Value| claim["metadata"]["name"].as_str() == disk.pvc_name.as_deref();
            let created = outcome.claims.iter().find(is_its).filter(|claim| is_created_for(machine, claim));
            if let Some(uid) =
                created.and_then(|claim| claim["metadata"]["uid"].as_str()).filter(|_| is_new(machine, disk))
            {
                disk.uuid = Some(uid.to_owned());
            }
        }
        self.announce(machine, &found.phase, &outcome).await;
        let template = machine.spec.template.clone().or_else(|| machine.spec.machine_class.clone()).unwrap_or_default();
        self.settings.metrics.machine(
            machine,
            found.phase.as_deref().unwrap_or_default(),
            &template,
            found.state.as_deref(),
        );
        self.settings.metrics.provisioned(machine, &outcome);
        let before = serde_json::to_value(&machine.status).unwrap_or_default();
        let mut after = serde_json::to_value(&found).unwrap_or_default();
        // What the definition lacks is dropped when it is stored, and would look new for ever.
        for condition in after["conditions"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            condition.retain(|field, _| definition.conditions.is_empty() || definition.conditions.contains(field));
        }
        self.merge_status(machine, changed(&before, &after, &definition)).await
    }

    /// Records the claims that are about to be created: should the process end in between, they are
    /// known to be this Machine's.
    pub(super) async fn record(&self, machine: &Machine, disks: &[DiskStatus]) -> Result<(), Error> {
        let recorded = machine.status.as_ref().map(|status| status.disks.clone()).unwrap_or_default();
        let is_known = |disk: &&DiskStatus| recorded.iter().any(|known| known.pvc_name == disk.pvc_name);
        if disks.iter().all(|disk| is_known(&disk)) {
            return Ok(());
        }
        let mut change = Map::new();
        change.insert("disks".to_owned(), json!(disks));
        if machine.status.as_ref().is_none_or(|status| status.phase.is_none()) {
            change.insert("phase".to_owned(), json!(Phase::Creating.name()));
        }
        self.merge_status(machine, change).await
    }

    async fn merge_status(&self, machine: &Machine, change: Map<String, Value>) -> Result<(), Error> {
        if change.is_empty() {
            return Ok(());
        }
        let body = json!({"metadata": {"uid": machine.uid()}, "status": change});
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let merged = self.cluster.merge(&kinds::MACHINE.served(), (Some(&namespace), &name), true, &body).await;
        match merged {
            Ok(object) => {
                if let Some(mirror) = self.reader.mirror() {
                    mirror.keep(kinds::MACHINE, &object);
                }
                Ok(())
            }
            Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => doing("writing the status", Err(error)),
        }
    }

    /// What the served definition of Machines has; read again when it changes.
    async fn definition(&self) -> Result<Definition, Error> {
        let name = kinds::MACHINE.definition().unwrap_or_default();
        let version = self.reader.mirror().and_then(|mirror| mirror.definition(&name)).unwrap_or_default();
        let known = self.definition.lock().clone().filter(|known| known.version == version);
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.reader.get(kinds::DEFINITION, "", &name).await;
        let found = doing("reading the definition of Machines", found)?.unwrap_or_default();
        let served = |pointer: &str| -> Vec<String> {
            let versions = found.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
            let of_version = versions.into_iter().filter(|version| version["name"] == "v1alpha1");
            let fields = of_version.filter_map(|version| version.pointer(pointer)?.as_object());
            fields.flat_map(|fields| fields.keys().cloned()).collect()
        };
        let root = "/schema/openAPIV3Schema/properties";
        let spec = served(&format!("{root}/spec/properties"));
        let lacking = DOCUMENTED.iter().filter(|field| !spec.iter().any(|served| served == *field));
        let definition = Definition {
            version,
            lacking: lacking.map(|field| (*field).to_owned()).collect(),
            status: served(&format!("{root}/status/properties")),
            conditions: served(&format!("{root}/status/properties/conditions/items/properties")),
        };
        *self.definition.lock() = Some(definition.clone());
        Ok(definition)
    }

    /// Events for what a person would want to know.
    async fn announce(&self, machine: &Machine, phase: &Option<String>, outcome: &Outcome<'_>) {
        let before = machine.status.as_ref();
        let generation = machine.metadata.generation.unwrap_or_default();
        if phase.as_deref() != before.and_then(|status| status.phase.as_deref()) {
            let (name, namespace) = (machine.name_any(), machine.namespace().unwrap_or_default());
            let phase = phase.as_deref().unwrap_or_default();
            tracing::info!(controller = "Machine", machine = name, namespace, phase, "the Machine is in another phase");
        }
        if let Some(problem) = outcome.problems.first() {
            let text = machines_core::problem::joined(&outcome.problems);
            let is_new = before.is_none_or(|status| status.message.as_deref() != Some(&text));
            if is_new {
                self.note(machine, problem.reason.name(), true, text.clone(), &format!("{generation}{text}")).await;
            }
        } else if phase.as_deref() != before.and_then(|status| status.phase.as_deref())
            && phase.as_deref() == Some("Running")
        {
            let uid = outcome.vmi.and_then(|vmi| vmi["metadata"]["uid"].as_str()).unwrap_or_default();
            self.note(machine, "Running", false, "the machine runs".to_owned(), uid).await;
        }
    }

    /// Makes sure that the Machine stays until its virtual machine is gone.
    pub(super) async fn add_finalizer(&self, machine: &Machine) -> Result<(), Error> {
        let finalizers = machine.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
        self.set_finalizers(machine, finalizers).await
    }

    /// Lets the Machine go.
    pub(super) async fn remove_finalizers(&self, machine: &Machine) -> Result<(), Error> {
        let kept = machine.finalizers().iter().map(String::as_str);
        let kept: Vec<_> = kept.filter(|name| ![FINALIZER, GO_FINALIZER].contains(name)).collect();
        if kept.len() == machine.finalizers().len() {
            return Ok(());
        }
        self.set_finalizers(machine, kept).await
    }

    async fn set_finalizers(&self, machine: &Machine, finalizers: Vec<&str>) -> Result<(), Error> {
        let metadata = json!({
            "uid": machine.uid(),
            "resourceVersion": machine.resource_version(),
            "finalizers": finalizers,
        });
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let body = json!({"metadata": metadata});
        let merged = self.cluster.merge(&kinds::MACHINE.served(), (Some(&namespace), &name), false, &body).await;
        match merged {
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => doing("writing the finalizer", Err(error)),
        }
    }

    /// Takes the owner reference off the virtual machine: nothing deletes it with the Machine then.
    async fn release(&self, machine: &Machine) -> Result<(), Error> {
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let vm = self.reader.past_the_mirror().get(kinds::VM, &namespace, &name).await;
        let Some(vm) = doing("reading the VirtualMachine", vm)?.filter(|vm| is_controlled(machine, vm)) else {
            return Ok(());
        };
        let uid = machine.uid().unwrap_or_default();
        let references = vm["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let others: Vec<_> = references.filter(|reference| reference["uid"] != uid.as_str()).collect();
        let change = json!({"metadata": {
            "uid": vm["metadata"]["uid"], "resourceVersion": vm["metadata"]["resourceVersion"], "ownerReferences": others,
        }});
        let merged = self.cluster.merge(&kinds::VM.served(), (Some(&namespace), &name), false, &change).await;
        doing("releasing the VirtualMachine", merged).map(drop)
    }

    /// A Machine of another provider is left alone; one that was ours is let go.
    pub(super) async fn leave(&self, machine: &Machine) -> Result<kube::runtime::controller::Action, Error> {
        debug_assert!(!is_ours(&machine.spec));
        if machine.finalizers().iter().any(|name| name == FINALIZER) {
            let text = "spec.provider names another provider: the virtual machine and its claims are left as they are"
                .to_owned();
            self.note(machine, "Left", false, text, &machine.metadata.generation.unwrap_or_default().to_string()).await;
            self.release(machine).await?;
            self.remove_finalizers(machine).await?;
        }
        Ok(kube::runtime::controller::Action::await_change())
    }
}

/// Whether a claim is recorded without a uid, or not at all.
fn is_new(machine: &Machine, disk: &DiskStatus) -> bool {
    let recorded = machine.status.iter().flat_map(|status| &status.disks);
    disk.uuid.is_none() && !recorded.into_iter().any(|known| known.pvc_name == disk.pvc_name && known.uuid.is_some())
}

/// The members of a status that have changed, as a merge: what is gone is null.
fn changed(before: &Value, after: &Value, definition: &Definition) -> Map<String, Value> {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let is_served = |key: &String| definition.status.is_empty() || definition.status.contains(key);
    let mut change = Map::new();
    for (key, value) in after.iter().filter(|(key, _)| is_served(key)) {
        if before.get(key) != Some(value) {
            change.insert(key.clone(), value.clone());
        }
    }
    for key in before.keys().filter(|key| is_served(key) && !after.contains_key(*key)) {
        change.insert(key.clone(), Value::Null);
    }
    // A new time alone is no news.
    if change.keys().all(|key| key == "lastUpdated") {
        change.clear();
    }
    change
}
