//! One look at a VirtualMachine and its instance: the next thing to do with them.
//!
//! pkg/virt-controller/watch/vm/vm.go `sync`, `syncRunStrategy`; firmware.go.

use std::time::Duration;

use serde_json::{Value, json};

use super::guest::{self, Ages, Around, Next, is_final};
use super::instance::{self, GENERATION, OF_CONTROLLER, OF_INSTANCE, list};
use super::live::{self, Obstacle};
use super::status::{self, Expects, is_deleted};
use super::{conditions, restart};
use crate::Fault;

/// Finalizers that the garbage collector of a real cluster removes when the dependents are gone.
const OF_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];

/// What is seen of a machine.
pub(crate) struct Seen<'a> {
    pub(crate) machine: Option<&'a Value>,
    pub(crate) instance: Option<&'a Value>,
    /// The spec with which the instance was started.
    pub(crate) started: Option<&'a Value>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Creates the instance, and the revision that keeps the spec it starts with.
    Start(Value),
    /// Writes the instance.
    Write(Value),
    /// Deletes the instance.
    Stop,
    /// Writes the machine.
    WriteMachine(Value),
}

/// What to do now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) step: Option<Step>,
    /// The machine with its new status, if that differs.
    pub(crate) status: Option<Value>,
    /// When to look again if nothing changes.
    pub(crate) after: Option<Duration>,
}

/// Decides about a machine, an instance, or both.
pub(crate) fn decide(seen: &Seen, around: &Around, ages: Ages) -> Decision {
    match (seen.machine, seen.instance) {
        (None, None) => Decision::default(),
        (None, Some(instance)) => live_on(instance.clone(), instance, around, ages),
        (Some(machine), _) => of_machine(machine, seen, around, ages),
    }
}

/// Lets an instance go on, and lets go of it after its end.
fn live_on(mut next: Value, instance: &Value, around: &Around, ages: Ages) -> Decision {
    let mut decision = Decision::default();
    if is_final(instance) {
        decision.step = released(instance, &[OF_CONTROLLER, OF_INSTANCE, OF_COLLECTOR[0], OF_COLLECTOR[1]]);
        return decision;
    }
    let comes = match is_deleted(instance) {
        true => guest::end(&mut next, around, ages),
        false => guest::advance(&mut next, around, ages),
    };
    match comes {
        Next::Wait => {}
        Next::After(time) => decision.after = Some(time),
        Next::Evict => decision.step = Some(Step::Stop),
    }
    if next != *instance {
        decision.step = Some(Step::Write(next));
    }
    decision
}

/// The write that removes finalizers, if one of them is there.
fn released(object: &Value, names: &[&str]) -> Option<Step> {
    let finalizers = list(object, "/metadata/finalizers");
    let kept: Vec<_> = finalizers.iter().filter(|name| !names.iter().any(|gone| **name == *gone)).cloned().collect();
    let is_changed = kept.len() < finalizers.len();
    is_changed.then(|| {
        let mut object = object.clone();
        object["metadata"]["finalizers"] = kept.into();
        Step::Write(object)
    })
}

fn of_machine(machine: &Value, seen: &Seen, around: &Around, ages: Ages) -> Decision {
    let mut next = machine.clone();
    let mut expects = Expects::default();
    let mut decision = Decision::default();
    let mut instance = seen.instance.cloned();
    if is_deleted(machine) {
        match seen.instance {
            None if around.faults.contains(&Fault::HangsInDeletion) => {}
            None => {
                let names = [OF_CONTROLLER, OF_COLLECTOR[0], OF_COLLECTOR[1]];
                decision.step = released(machine, &names).map(to_machine);
                return decision;
            }
            Some(_) if list(machine, "/metadata/finalizers").contains(&json!("orphan")) => {
                decision.step = released(machine, &[OF_CONTROLLER, "orphan"]).map(to_machine);
                return decision;
            }
            Some(_) => expects.stop = true,
        }
    } else if !list(machine, "/metadata/finalizers").contains(&json!(OF_CONTROLLER)) {
        instance::append(&mut next["metadata"]["finalizers"], json!(OF_CONTROLLER));
        decision.step = Some(Step::WriteMachine(next));
        return decision;
    } else if machine["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"].is_null() {
        // firmware.go: an identity that was taken away comes back as another one.
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        next["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"] = instance::uuid_of(name).into();
        decision.step = Some(Step::WriteMachine(next));
        return decision;
    } else {
        match wants(machine, seen.instance, ages, around.settings.step()) {
            Wants::Nothing => {}
            Wants::Wait(time) => decision.after = Some(time),
            Wants::Start => expects.start = true,
            Wants::Stop => expects.stop = true,
        }
        if expects.stop
            && status::run_strategy(machine) == "RerunOnFailure"
            && seen.instance.is_some_and(|instance| guest::phase(instance) == "Failed")
        {
            next["status"]["stateChangeRequests"] = json!([{"action": "Start"}]);
        }
        edit(&mut next, instance.as_mut(), seen.started, around);
    }
    if expects.start {
        // `cleanupRestartRequired`
        conditions::remove(&mut next["status"], "RestartRequired");
        decision.step = Some(Step::Start(instance::new(machine, around.config, around.now)));
    }
    if let (Some(edited), Some(seen)) = (&instance, seen.instance) {
        let lives = live_on(edited.clone(), seen, around, ages);
        decision.after = decision.after.into_iter().chain(lives.after).min();
        if let Some(Step::Write(written)) = &lives.step {
            instance = Some(written.clone());
        }
        decision.step = lives.step;
        let is_over = is_deleted(seen) || matches!(decision.step, Some(Step::Write(_)) if is_final(seen));
        if expects.stop && !is_over {
            decision.step = Some(Step::Stop);
        }
    }
    status::update(&mut next, instance.as_ref(), (around.claims, expects, around.settings.step()), around.now);
    if next["status"] != machine["status"] {
        let mut written = machine.clone();
        written["status"] = next["status"].take();
        decision.status = Some(written);
    }
    decision
}

fn to_machine(step: Step) -> Step {
    match step {
        Step::Write(machine) => Step::WriteMachine(machine),
        other => other,
    }
}

enum Wants {
    Nothing,
    Wait(Duration),
    Start,
    Stop,
}

/// What the run strategy asks for.
fn wants(machine: &Value, instance: Option<&Value>, ages: Ages, step: Duration) -> Wants {
    let strategy = status::run_strategy(machine);
    let Some(instance) = instance else {
        let is_asked = status::request(machine, "Start").is_some();
        let starts = match strategy {
            "Always" | "Once" => true,
            "RerunOnFailure" => is_asked || machine["status"]["runStrategy"] != "RerunOnFailure",
            "Manual" => is_asked,
            _ => false,
        };
        let failures = machine["status"]["startFailure"]["consecutiveFailCount"].as_u64().unwrap_or(0);
        if !starts {
            return Wants::Nothing;
        }
        if failures > 0 && strategy != "Once" {
            let (due, age) = (status::backoff(failures, step), ages(&format!("failure {failures}")));
            if age < due {
                return Wants::Wait(due - age);
            }
        }
        return Wants::Start;
    };
    let is_asked = status::is_asked_to_stop(machine, instance);
    let stops = match strategy {
        "Always" | "RerunOnFailure" => is_asked || is_final(instance),
        "Manual" => is_asked,
        "Halted" => true,
        _ => false,
    };
    if stops { Wants::Stop } else { Wants::Nothing }
}

/// Carries edits of the machine over to its running instance, or says that it has to be restarted.
fn edit(machine: &mut Value, instance: Option<&mut Value>, started: Option<&Value>, around: &Around) {
    let (Some(instance), Some(started)) = (instance, started) else { return };
    let template = machine["spec"]["template"].clone();
    if started["template"] == template {
        // `conditionallyBumpGenerationAnnotationOnVmi`
        let generation = machine["metadata"]["generation"].to_string();
        instance["metadata"]["annotations"][GENERATION] = generation.into();
    }
    let (wanted, is_live) = (&template["spec"], around.config.is_live());
    let status = &mut machine["status"];
    conditions::remove(status, "Failure");
    if restart::is_required(&started["template"]["spec"], wanted, instance, is_live) {
        conditions::set(status, "RestartRequired", ("True", "", restart::CHANGED), around.now);
    } else {
        conditions::remove(status, "RestartRequired");
    }
    if is_deleted(instance) || guest::phase(instance) != "Running" {
        return;
    }
    if !restart::networks_need_restart(wanted, &instance["spec"]) && live::networks(wanted, instance) {
        conditions::set(&mut instance["status"], "MigrationRequired", ("True", "", ""), around.now);
    }
    live::volumes(wanted, instance);
    if !is_live || conditions::find(status, "RestartRequired").is_some() {
        return;
    }
    let mut obstacles = Vec::new();
    obstacles.extend(live::sockets(wanted, instance).err());
    live::placement(wanted, instance);
    obstacles.extend(live::memory(wanted, instance).err());
    for obstacle in obstacles {
        match obstacle {
            Obstacle::Restart(message) => {
                conditions::set(status, "RestartRequired", ("True", "", &message), around.now);
            }
            Obstacle::Failure(reason, message) => {
                conditions::set(status, "Failure", ("True", reason, &message), around.now);
            }
        }
    }
}
