//! One Machine, in five steps: gather, plan, act, compose, report.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use machines_api::{FINALIZER, Machine};
use machines_core::plan::{Live, Plan, plan};
use machines_core::problem::{Problem, Reason};
use machines_core::report::Outcome;
use machines_core::resolve::resolve;
use machines_core::understand::{Wanted, is_ours, understand};
use operator_kit::backoff::{Backoff, spread};
use serde_json::Value;

use super::act::{Acted, reference};
use super::context::Context;
use super::error::{Error, doing};
use super::gather;
use crate::cluster::kinds;
use crate::cluster::mirror::{Key, text_at};
use crate::cluster::watches::WATCHED;

/// The pause before a Machine that changed meanwhile is looked at again.
const MOVED_PAUSE: Duration = Duration::from_millis(200);
/// The first pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Looks at a Machine.
pub(super) async fn reconcile(object: Arc<PartialObjectMeta<Machine>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let key: Key = (object.namespace().unwrap_or_default(), object.name_any());
    // A standby sees everything and writes nothing.
    ctx.settings.fence.opened().await;
    let is_complete = ctx.reader.mirror().is_none_or(|mirror| mirror.is_complete(&WATCHED));
    let found = ctx.reader.get(kinds::MACHINE, &key.0, &key.1).await;
    let Some(machine) = doing("reading the Machine", found)?.filter(|_| is_complete) else {
        ctx.forget(&key);
        return Ok(Action::await_change());
    };
    let machine: Machine = serde_json::from_value(machine).map_err(|error| Error::Unreadable(error.to_string()))?;
    let timer = ctx.settings.metrics.begin();
    let done = ctx.reconcile_machine(&machine).await;
    timer.end(done.as_ref().err().map(Error::reason));
    let done = done?;
    if done == Action::await_change() {
        ctx.failures.lock().remove(&key);
    }
    Ok(done)
}

/// When to look again after a failure.
pub(super) fn after_failure(object: Arc<PartialObjectMeta<Machine>>, error: &Error, ctx: Arc<Context>) -> Action {
    let key: Key = (object.namespace().unwrap_or_default(), object.name_any());
    let pause = ctx.pause(key, error.is_moved());
    if !error.is_moved() {
        let machine = object.name_any();
        let namespace = object.namespace().unwrap_or_default();
        tracing::warn!(controller = "Machine", machine, namespace, %error, "the Machine is tried again");
    }
    Action::requeue(pause)
}

impl Context {
    /// Forgets a Machine that is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.failures.lock().remove(key);
        self.settings.metrics.forget(key);
    }

    /// The pause before the next try; it doubles.
    pub(super) fn pause(&self, key: Key, moved: bool) -> Duration {
        let mut failures = self.failures.lock();
        let count = failures.entry(key.clone()).or_default();
        *count += 1;
        let first = if moved { MOVED_PAUSE } else { FIRST_PAUSE };
        let pauses = Backoff { first, longest: self.settings.longest_pause };
        spread(pauses.after(*count), &key.1, *count)
    }

    async fn reconcile_machine(&self, machine: &Machine) -> Result<Action, Error> {
        if !is_ours(&machine.spec) {
            return self.leave(machine).await;
        }
        if machine.metadata.deletion_timestamp.is_some() {
            return self.delete(machine).await;
        }
        let gathered = self.gather(machine).await?;
        if !machine.finalizers().iter().any(|name| name == FINALIZER) {
            self.add_finalizer(machine).await?;
        }
        let acted = match &gathered.plan {
            Some(plan) => self.act(machine, plan, async |disks| self.record(machine, disks).await).await?,
            None => Acted::default(),
        };
        let outcome = gathered.outcome(&acted);
        let has_drift = !outcome.drift.is_empty();
        let waits = [Reason::CloudInitNotFound, Reason::DiskInUse];
        let is_waiting = outcome.problems.iter().any(|problem| waits.contains(&problem.reason));
        let is_refused = !acted.problems.is_empty();
        self.report(machine, outcome).await?;
        tracing::debug!(controller = "Machine", machine = reference(machine), has_drift, "looked at");
        // Everything else is watched. Secrets and Pods are not, and a refusal may end without a
        // trace.
        if is_waiting || is_refused {
            let key = (machine.namespace().unwrap_or_default(), machine.name_any());
            return Ok(Action::requeue(self.pause(key, false)));
        }
        Ok(Action::await_change())
    }

    async fn gather(&self, machine: &Machine) -> Result<Gathered, Error> {
        let class = gather::machine_class(&self.reader, machine).await?;
        let wanted = match understand(machine, class.as_ref()) {
            Ok(wanted) => wanted,
            Err(problems) => return self.only_problems(machine, None, problems).await,
        };
        let facts = gather::facts(&self.reader, machine, &wanted).await?;
        let resolved = match resolve(&wanted, &facts) {
            Ok(resolved) => resolved,
            Err(problems) => {
                self.settings.metrics.network_errors(&problems, &wanted);
                return self.only_problems(machine, Some(wanted), problems).await;
            }
        };
        let live = gather::live(&self.reader, machine, &resolved).await?;
        let plan = plan(machine, &resolved, &live, &facts.kubevirt.unwrap_or_default());
        let problems = plan.problems.clone();
        Ok(Gathered { wanted: Some(wanted), plan: Some(plan), live, problems })
    }

    /// What runs is reported also where nothing can be planned.
    async fn only_problems(
        &self,
        machine: &Machine,
        wanted: Option<Wanted>,
        problems: Vec<Problem>,
    ) -> Result<Gathered, Error> {
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let mut live = Live::default();
        let vm = doing("reading the VirtualMachine", self.reader.get(kinds::VM, &namespace, &name).await)?;
        live.vm = vm.filter(|vm| machines_core::ownership::is_controlled(machine, vm));
        if live.vm.is_some() {
            live.vmi =
                doing("reading the VirtualMachineInstance", self.reader.get(kinds::VMI, &namespace, &name).await)?;
        }
        Ok(Gathered { wanted, plan: None, live, problems })
    }
}

/// What is known of a Machine before anything is written.
struct Gathered {
    wanted: Option<Wanted>,
    plan: Option<Plan>,
    live: Live,
    problems: Vec<Problem>,
}

impl Gathered {
    /// What is known of it afterwards.
    fn outcome<'a>(&'a self, acted: &'a Acted) -> Outcome<'a> {
        let is_taken = self.problems.iter().any(|problem| problem.reason == Reason::NameTaken);
        let vm = acted.vm.as_ref().or(self.live.vm.as_ref()).filter(|_| !is_taken);
        let wanted = |claim: &&Value| {
            let disks = self.plan.iter().flat_map(|plan| &plan.disks);
            let name = text_at(claim, "/metadata/name");
            let is_detached =
                self.plan.as_ref().is_some_and(|plan| plan.detached.iter().any(|detached| detached == name));
            !is_detached && disks.into_iter().any(|disk| disk.pvc_name.as_deref() == Some(name))
        };
        let written = |name: &str| acted.claims.iter().any(|claim| text_at(claim, "/metadata/name") == name);
        let known = self.live.claims.iter().filter(|(name, _)| !written(name)).map(|(_, claim)| claim);
        Outcome {
            wanted: self.wanted.as_ref(),
            plan: self.plan.as_ref(),
            problems: self.problems.iter().chain(&acted.problems).cloned().collect(),
            drift: acted.drift.clone(),
            vm,
            vmi: self.live.vmi.as_ref().filter(|_| !is_taken),
            claims: known.chain(&acted.claims).filter(wanted).collect(),
            deleting: None,
            lacking: Vec::new(),
        }
    }
}
