//! Taking a Machine away. Everything is read past the mirror: what is deleted is gone.

use kube::ResourceExt;
use kube::runtime::controller::Action;
use machines_api::{FINALIZER, GO_FINALIZER, Machine};
use machines_core::deletion::{Fate, Remains, Step, next};
use machines_core::ownership::{is_adopted, is_controlled};
use machines_core::report::Outcome;

use super::context::{Context, DiskDeletion};
use super::error::{Error, doing};
use super::gather;
use crate::cluster::kinds;

impl Context {
    /// The next step of a deletion.
    pub(super) async fn delete(&self, machine: &Machine) -> Result<Action, Error> {
        let is_held = machine.finalizers().iter().any(|name| [FINALIZER, GO_FINALIZER].contains(&name.as_str()));
        if !is_held {
            return Ok(Action::await_change());
        }
        let remains = self.remains(machine).await?;
        if let Some(pod) = self.leaving_pod(machine, &remains).await? {
            // It may write until its end: then nobody uses the claim any more.
            let why = format!("Pod {pod} is about to end and still uses a claim of this Machine");
            self.report_deletion(machine, &remains, why).await?;
            return Ok(Action::requeue(
                self.pause((machine.namespace().unwrap_or_default(), machine.name_any()), false),
            ));
        }
        let never = self.settings.disk_deletion == DiskDeletion::Never;
        match next(machine, &remains, never) {
            Step::DeleteVm { uid, resource_version } => {
                let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
                let object = (Some(namespace.as_str()), name.as_str());
                let removed = self.cluster.remove(&kinds::VM.served(), object, &uid, &resource_version, false).await;
                doing("deleting the VirtualMachine", removed)?;
                self.note(machine, "VMDeleted", false, format!("VirtualMachine {name} is being deleted"), &uid).await;
                self.report_deletion(machine, &remains, format!("VirtualMachine {name} is being deleted")).await?;
            }
            Step::Wait(why) => self.report_deletion(machine, &remains, why).await?,
            Step::Claims(fates) => {
                for fate in &fates {
                    self.decide(machine, fate).await?;
                }
                self.remove_finalizers(machine).await?;
            }
        }
        Ok(Action::await_change())
    }

    async fn remains(&self, machine: &Machine) -> Result<Remains, Error> {
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let reader = self.reader.past_the_mirror();
        let mut remains = Remains {
            vm: doing("reading the VirtualMachine", reader.get(kinds::VM, &namespace, &name).await)?,
            vmi: doing("reading the VirtualMachineInstance", reader.get(kinds::VMI, &namespace, &name).await)?,
            ..Remains::default()
        };
        let is_own = remains.vm.as_ref().is_some_and(|vm| is_controlled(machine, vm) || is_adopted(machine, vm));
        if is_own || (remains.vm.is_none() && remains.vmi.is_some()) {
            return Ok(remains);
        }
        for claim in machine.status.iter().flat_map(|status| &status.disks).filter_map(|disk| disk.pvc_name.clone()) {
            if let Some(found) = doing("reading claims", reader.get(kinds::CLAIM, &namespace, &claim).await)? {
                let users = gather::users(&self.reader, &namespace, &name, &claim).await;
                remains.users.insert(claim.clone(), doing("looking for who uses a claim", users)?);
                remains.claims.insert(claim, found);
            }
        }
        Ok(remains)
    }

    /// A Pod that uses a claim of the Machine and is about to end.
    async fn leaving_pod(&self, machine: &Machine, remains: &Remains) -> Result<Option<String>, Error> {
        let namespace = machine.namespace().unwrap_or_default();
        for claim in remains.claims.keys() {
            let pods = self.reader.pods_with(&namespace, claim, None).await;
            let (_, leaving) = doing("looking for who uses a claim", pods)?;
            if let Some(pod) = leaving.into_iter().next() {
                return Ok(Some(pod));
            }
        }
        Ok(None)
    }

    async fn decide(&self, machine: &Machine, fate: &Fate) -> Result<(), Error> {
        let namespace = machine.namespace().unwrap_or_default();
        let claim = &fate.claim;
        let Some((uid, resource_version)) = &fate.delete else {
            let text = format!("claim {claim} is kept: {}", fate.reason);
            self.note(machine, "ClaimKept", false, text, claim).await;
            return Ok(());
        };
        let object = (Some(namespace.as_str()), claim.as_str());
        let removed = self.cluster.remove(&kinds::CLAIM.served(), object, uid, resource_version, false).await;
        doing(format!("deleting the claim {claim}"), removed)?;
        self.note(machine, "ClaimDeleted", false, format!("claim {claim} is deleted: {}", fate.reason), uid).await;
        Ok(())
    }

    async fn report_deletion(&self, machine: &Machine, remains: &Remains, why: String) -> Result<(), Error> {
        let outcome =
            Outcome { vm: remains.vm.as_ref(), vmi: remains.vmi.as_ref(), deleting: Some(why), ..Outcome::default() };
        self.report(machine, outcome).await
    }
}
