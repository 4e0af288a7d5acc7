//! The status of a VirtualMachine.
//!
//! pkg/virt-controller/watch/vm/vm.go `updateStatus`, `setPrintableStatus`, `syncConditions`,
//! `syncStartFailureStatus`, `isTrimFirstChangeRequestNeeded`, `syncGenerationInfo`.

use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::{self, is, is_false_for};
use super::guest::{Claims, has_run, is_final, phase};
use super::instance::{GENERATION, claims, list};

/// What virt-controller has done in this pass, and expects to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expects {
    pub(crate) start: bool,
    pub(crate) stop: bool,
}

/// The run strategy, also of machines that have `running`.
pub(crate) fn run_strategy(machine: &Value) -> &str {
    match (&machine["spec"]["runStrategy"], &machine["spec"]["running"]) {
        (Value::String(strategy), _) => strategy,
        (_, Value::Bool(true)) => "Always",
        _ => "Halted",
    }
}

/// Whether this is an instance that is being deleted, or another object that is.
pub(crate) fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The first request of `virtctl` that has not been carried out.
pub(crate) fn request<'a>(machine: &'a Value, action: &str) -> Option<&'a Value> {
    list(machine, "/status/stateChangeRequests").first().filter(|request| request["action"] == action)
}

/// Whether the instance is asked to stop.
pub(crate) fn is_asked_to_stop(machine: &Value, instance: &Value) -> bool {
    request(machine, "Stop").is_some_and(|request| request["uid"] == instance["metadata"]["uid"])
}

/// Brings the status of `machine` up to date with its instance. What the pass has set stays.
pub(crate) fn update(machine: &mut Value, instance: Option<&Value>, around: (&Claims, Expects, Duration), now: &str) {
    let (claims, expects, step) = around;
    let strategy = run_strategy(machine).to_owned();
    let generation = machine["metadata"]["generation"].clone();
    let popped = is_done(machine, instance);
    let deleted = is_deleted(machine);
    let uses = super::instance::claims(&machine["spec"]["template"]["spec"]).map(str::to_owned).collect::<Vec<_>>();
    if !machine["status"].is_object() {
        machine["status"] = json!({});
    }
    let status = &mut machine["status"];
    status["created"] = instance.is_some().into();
    status["ready"] = instance.is_some_and(|instance| is(&instance["status"], "Ready", "True")).into();
    if let Some(instance) = instance {
        let observed =
            instance["metadata"]["annotations"][GENERATION].as_str().and_then(|text| text.parse::<i64>().ok());
        status["observedGeneration"] = observed.map_or_else(|| generation.clone(), Value::from);
        status["desiredGeneration"] = generation;
    }
    if instance.is_some() || !status["runStrategy"].is_null() {
        status["runStrategy"] = strategy.clone().into();
    }
    if popped && let Some(requests) = status["stateChangeRequests"].as_array_mut() {
        requests.remove(0);
    }
    let none_left = list(status, "/stateChangeRequests").is_empty();
    if none_left && let Some(fields) = status.as_object_mut() {
        fields.remove("stateChangeRequests");
    }
    count_failures(status, instance, &strategy, step, now);
    sync_conditions(status, instance, now);
    let is_unbound = uses
        .iter()
        .any(|name| matches!(claims.get(name.as_str()), Some(Some(claim)) if claim["status"]["phase"] != "Bound"));
    let says = printable(machine, instance, &strategy, deleted, is_unbound, expects);
    machine["status"]["printableStatus"] = says.into();
}

/// Whether the first request has been carried out.
fn is_done(machine: &Value, instance: Option<&Value>) -> bool {
    if let Some(stop) = request(machine, "Stop") {
        return instance.is_none_or(|instance| stop["uid"] != instance["metadata"]["uid"]);
    }
    let runs = |instance: &Value| !is_deleted(instance) && !is_final(instance);
    request(machine, "Start").is_some() && instance.is_some_and(runs)
}

/// The time until a start is tried again, a hundredth of KubeVirt's: `calculateStartBackoffTime`.
pub(crate) fn backoff(failures: u64, step: Duration) -> Duration {
    let factor = u32::try_from(failures.clamp(1, 6).pow(2).min(30)).unwrap_or(30);
    step * 2 * factor
}

fn count_failures(status: &mut Value, instance: Option<&Value>, strategy: &str, step: Duration, now: &str) {
    let retries = ["Always", "RerunOnFailure", "Once"].contains(&strategy);
    if instance.is_some_and(has_run) || !retries {
        if let Some(fields) = status.as_object_mut() {
            fields.remove("startFailure");
        }
        return;
    }
    let Some(instance) = instance.filter(|instance| is_final(instance)) else { return };
    let old = &status["startFailure"];
    if old["lastFailedVMIUID"] == instance["metadata"]["uid"] {
        return;
    }
    let count = old["consecutiveFailCount"].as_u64().unwrap_or(0) + 1;
    let after = now.parse::<jiff::Timestamp>().ok().and_then(|now| now.checked_add(backoff(count, step)).ok());
    let after = after.map_or_else(|| now.to_owned(), |after| format!("{after:.0}"));
    status["startFailure"] = json!({"consecutiveFailCount": count,
        "lastFailedVMIUID": instance["metadata"]["uid"], "retryAfterTimestamp": after});
}

fn sync_conditions(status: &mut Value, instance: Option<&Value>, now: &str) {
    const OWN: [&str; 3] = ["Ready", "Failure", "RestartRequired"];
    let Some(instance) = instance else {
        conditions::set(status, "Ready", ("False", "VMINotExists", "VMI does not exist"), now);
        return;
    };
    let theirs = list(instance, "/status/conditions");
    match theirs.iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) => conditions::put(status, ready.clone()),
        None => {
            let said = ("False", "VMIConditionMissing", "VMI is missing the Ready condition");
            conditions::set(status, "Ready", said, now);
        }
    }
    let is_own = |condition: &Value| OWN.iter().any(|name| condition["type"] == *name);
    for condition in theirs.iter().filter(|condition| !is_own(condition)) {
        conditions::put(status, condition.clone());
    }
    if let Some(ours) = status["conditions"].as_array_mut() {
        ours.retain(|one| is_own(one) || theirs.iter().any(|other| other["type"] == one["type"]));
    }
}

/// `isSetToStart`.
fn is_set_to_start(machine: &Value, instance: Option<&Value>, strategy: &str) -> bool {
    match (strategy, instance) {
        ("Always", _) | ("Once", None) | ("RerunOnFailure", None) => true,
        ("Manual", Some(instance)) => !is_asked_to_stop(machine, instance),
        ("Manual", None) => request(machine, "Start").is_some(),
        ("RerunOnFailure", Some(instance)) => phase(instance) != "Succeeded",
        _ => false,
    }
}

/// The first that fits, in KubeVirt's order.
fn printable(
    machine: &Value,
    instance: Option<&Value>,
    strategy: &str,
    deleted: bool,
    is_unbound: bool,
    expects: Expects,
) -> &'static str {
    let is_stopping = |one: &Value| !is_final(one) && (is_deleted(one) || expects.stop);
    let failed = machine["status"]["startFailure"]["consecutiveFailCount"].as_u64().unwrap_or(0) > 0;
    let starts = |one: &Value| ["", "Pending", "Scheduling", "Scheduled"].contains(&phase(one));
    let lacks = |one: &Value, name, reason| is_false_for(&one["status"], name, reason);
    let ended = instance.is_none_or(is_final) && !expects.start;
    match instance {
        _ if deleted => "Terminating",
        Some(one) if is_stopping(one) => "Stopping",
        Some(one) if phase(one) == "Running" => "Running",
        Some(one) if lacks(one, "Synchronized", "FailedPvcNotFound") => "ErrorPvcNotFound",
        Some(one) if lacks(one, "PodScheduled", "Unschedulable") => "ErrorUnschedulable",
        _ if is_unbound && is_set_to_start(machine, instance, strategy) => "WaitingForVolumeBinding",
        Some(one) if starts(one) => "Starting",
        None if expects.start => "Starting",
        _ if ended && failed => "CrashLoopBackOff",
        _ if ended => "Stopped",
        _ => "Unknown",
    }
}

/// The claims that a machine and its instance name.
pub(crate) fn uses(machine: Option<&Value>, instance: Option<&Value>) -> Vec<String> {
    let of_machine = machine.map(|machine| &machine["spec"]["template"]["spec"]);
    let of_instance = instance.map(|instance| &instance["spec"]);
    of_machine.into_iter().chain(of_instance).flat_map(claims).map(str::to_owned).collect()
}
