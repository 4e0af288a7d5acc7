//! Looks at a VirtualMachine and the instance of its name.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use super::watches::Kind;
use super::{Shared, clock, lock};
use crate::rules::config::Config;
use crate::rules::guest::{Around, is_final};
use crate::rules::instance::{owner, revision_name};
use crate::rules::machine::{Seen, Step, decide};

/// Does the next thing, and says when to look again.
pub(crate) async fn look(shared: &Shared, namespace: &str, name: &str) -> Result<Option<Duration>, kube::Error> {
    let (machine, instance, claims, kubevirt) = {
        let world = lock(&shared.world);
        let get = |kind| world.get(kind, namespace, name);
        (get(Kind::Machine), get(Kind::Instance), world.claims(namespace, name), world.any(Kind::KubeVirt))
    };
    let started = match (&machine, &instance) {
        (Some(_), Some(instance)) => started(shared, namespace, instance).await?,
        _ => None,
    };
    let config = Config::new(kubevirt.as_deref(), &shared.settings);
    let faults = shared.faults(namespace, name);
    let now = clock::now();
    let around = Around { claims: &claims, config: &config, settings: &shared.settings, faults: &faults, now: &now };
    let seen = Seen { machine: machine.as_deref(), instance: instance.as_deref(), started: started.as_deref() };
    let newest = instance.as_deref().or(machine.as_deref());
    let uid = newest.and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or_default();
    let decision = decide(&seen, &around, &mut |what| shared.age(uid, what));
    // A machine reports what its instance says already, and the end of one before that is let go.
    let mut step = decision.step;
    if let Some(Step::Write(written)) = &step
        && !instance.as_deref().is_some_and(is_final)
    {
        shared.replace(Kind::Instance, written).await?;
        step = None;
    }
    if let Some(machine) = &decision.status {
        shared.replace_status(Kind::Machine, machine).await?;
    }
    match step {
        Some(Step::Start(instance)) => {
            if let Some(machine) = machine.as_deref() {
                keep(shared, namespace, machine).await?;
            }
            shared.create(Kind::Instance, &instance).await?;
        }
        Some(Step::Write(instance)) => shared.replace(Kind::Instance, &instance).await?,
        Some(Step::WriteMachine(machine)) => shared.replace(Kind::Machine, &machine).await?,
        Some(Step::Stop) => {
            if let Some(instance) = instance.as_deref() {
                shared.delete(Kind::Instance, instance).await?;
            }
        }
        None => {}
    }
    Ok(decision.after)
}

fn revisions(shared: &Shared, namespace: &str) -> Api<ControllerRevision> {
    Api::namespaced(shared.client.clone(), namespace)
}

/// Keeps the spec with which a machine is started: vm.go `createVMRevision`.
async fn keep(shared: &Shared, namespace: &str, machine: &Value) -> Result<(), kube::Error> {
    let name = revision_name(machine);
    let api = revisions(shared, namespace);
    let uid = machine["metadata"]["uid"].as_str().unwrap_or_default();
    let older: Vec<String> = {
        let known = lock(&shared.revisions);
        known.keys().filter(|known| known.contains(uid) && **known != name).cloned().collect()
    };
    for old in older {
        if let Err(error) = api.delete(&old, &DeleteParams::default()).await {
            tracing::debug!(%error, "an older revision stays");
        }
        lock(&shared.revisions).remove(&old);
    }
    let kept = json!({
        "metadata": {"name": name, "ownerReferences": owner(machine)},
        "data": {"spec": machine["spec"]}, "revision": machine["metadata"]["generation"],
    });
    let kept: ControllerRevision = serde_json::from_value(kept).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &kept).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    lock(&shared.revisions).insert(name, Arc::new(machine["spec"].clone()));
    Ok(())
}

/// The spec with which an instance was started; `None` if nobody has kept it.
async fn started(shared: &Shared, namespace: &str, instance: &Value) -> Result<Option<Arc<Value>>, kube::Error> {
    let Some(name) = instance["status"]["virtualMachineRevisionName"].as_str() else { return Ok(None) };
    if let Some(known) = lock(&shared.revisions).get(name) {
        return Ok(Some(known.clone()));
    }
    let Some(kept) = revisions(shared, namespace).get_opt(name).await? else { return Ok(None) };
    let spec = Arc::new(kept.data.map(|data| data.0["spec"].clone()).unwrap_or_default());
    lock(&shared.revisions).insert(name.to_owned(), spec.clone());
    Ok(Some(spec))
}
