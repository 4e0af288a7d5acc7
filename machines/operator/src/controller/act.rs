//! Writing a plan: first everything as a dry run, so that a refusal leaves nothing half made, then
//! what new claims need to be known by, then for real.

use advisor_cluster::{ApplyMode, ClusterError, Note, Precondition};
use kube::{Resource, ResourceExt};
use machines_api::status::DiskStatus;
use machines_api::{MANAGER, Machine};
use machines_core::ownership::is_adopted;
use machines_core::plan::{APPLIED, Plan, Write};
use machines_core::problem::{Problem, Reason};
use object::fields::{FieldPath, Lookup};
use operator_kit::clock;
use serde_json::{Value, json};

use super::context::Context;
use super::error::{Error, doing};
use crate::cluster::kinds::{self, Kind};
use crate::cluster::mirror::text_at;

/// Annotation of a Machine: managers, separated by commas, whose changes are taken back.
pub(super) const TAKE_BACK: &str = "machine.vitistack.io/take-back";
/// Lists that are written as a whole with everything that others have put into them.
const SHARED_LISTS: [&str; 4] = [
    "/spec/template/spec/domain/devices/disks",
    "/spec/template/spec/domain/devices/interfaces",
    "/spec/template/spec/volumes",
    "/spec/template/spec/networks",
];

/// What came of a plan.
#[derive(Debug, Default)]
pub(super) struct Acted {
    /// The VirtualMachine as it was written.
    pub(super) vm: Option<Value>,
    /// Claims as they were written.
    pub(super) claims: Vec<Value>,
    /// Who has changed fields of ours, a sentence each.
    pub(super) drift: Vec<String>,
    /// What the API server refuses.
    pub(super) problems: Vec<Problem>,
}

/// How a VirtualMachine is written.
enum Verdict {
    Write(ApplyMode),
    Leave(Vec<String>),
}

impl Context {
    /// Carries `plan` out. `record` is called before the first claim is created.
    pub(super) async fn act(
        &self,
        machine: &Machine,
        plan: &Plan,
        record: impl AsyncFnOnce(&[DiskStatus]) -> Result<(), Error>,
    ) -> Result<Acted, Error> {
        let mut acted = Acted::default();
        if plan.writes.is_empty() {
            return Ok(acted);
        }
        let mut decided = Vec::new();
        for write in &plan.writes {
            match self.try_out(machine, write).await? {
                Ok(Verdict::Write(mode)) => decided.push((write, mode)),
                Ok(Verdict::Leave(drift)) => acted.drift.extend(drift),
                Err(problem) => acted.problems.push(problem),
            }
        }
        if !acted.problems.is_empty() {
            return Ok(acted);
        }
        if plan.writes.iter().any(|write| matches!(write, Write::CreateClaim(_))) {
            record(&plan.disks).await?;
        }
        for (write, mode) in decided {
            match self.write(machine, write, mode, &mut acted).await {
                Ok(()) => {}
                // What the server will refuse again is told; a claim that can't grow holds nothing
                // else up.
                Err(Error::Request { doing, source }) if is_refusal(&source) => {
                    acted.problems.push(refused(&doing, &source));
                    if !matches!(write, Write::GrowClaim { .. }) {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(vm) = acted.vm.as_ref().filter(|_| !plan.drift.is_empty()) {
            // Nobody owns what was removed: it is no conflict, and told all the same.
            let text = format!("fields that somebody has removed are written again: {}", plan.drift.join(", "));
            self.note(machine, "Restored", false, text, text_at(vm, "/metadata/resourceVersion")).await;
        }
        Ok(acted)
    }

    /// The outcome of a write without writing.
    async fn try_out(&self, machine: &Machine, write: &Write) -> Result<Result<Verdict, Problem>, Error> {
        let (object, live) = match write {
            Write::CreateClaim(object) | Write::Create(object) => (object, None),
            Write::ApplySecret { object, live } | Write::ApplyVm { object, live, .. } => (object, live.as_ref()),
            Write::GrowClaim { .. } | Write::Restart { .. } => return Ok(Ok(Verdict::Write(ApplyMode::Real))),
        };
        let Some(kind) = Kind::of(object) else { return Ok(Ok(Verdict::Write(ApplyMode::Real))) };
        let precondition = precondition(live);
        let what = format!("trying out {} {}", kind.kind, text_at(object, "/metadata/name"));
        let tried = self.cluster.apply(&kind.served(), object, MANAGER, ApplyMode::DryRun, &precondition).await;
        match tried {
            Ok(_) => Ok(Ok(Verdict::Write(ApplyMode::Real))),
            Err(ClusterError::Conflicts(conflicts)) => {
                let only_lists = matches!(write, Write::ApplyVm { only_lists: true, .. });
                let verdict = self.judge(machine, kind, object, &conflicts, only_lists).await?;
                if let Verdict::Write(_) = verdict {
                    // Without the conflicts there may be another refusal behind them.
                    let forced = ApplyMode::ForcedDryRun;
                    let tried = self.cluster.apply(&kind.served(), object, MANAGER, forced, &precondition).await;
                    match tried {
                        Ok(_) => {}
                        Err(error) if is_refusal(&error) => {
                            return Ok(Err(Problem::new(
                                reason_of(&error),
                                "",
                                format!("{what}: {}", error.displayed()),
                            )));
                        }
                        Err(error) => return doing(what, Err(error)),
                    }
                }
                Ok(Ok(verdict))
            }
            Err(error) if is_refusal(&error) => {
                // What is refused was made from the Machine, and only a Secret holds what it must
                // not tell.
                let shown = if kind == kinds::SECRET { error.displayed() } else { server_words(&error) };
                Ok(Err(Problem::new(reason_of(&error), "", format!("{what}: {shown}"))))
            }
            Err(error) => doing(what, Err(error)),
        }
    }

    /// Fields of others are taken only where nothing of theirs is lost, or where a person has said
    /// so after they were shown.
    async fn judge(
        &self,
        machine: &Machine,
        kind: Kind,
        object: &Value,
        conflicts: &[(String, String)],
        only_lists: bool,
    ) -> Result<Verdict, Error> {
        let (namespace, name) = (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"));
        let read = self.reader.past_the_mirror().get(kind, namespace, name).await;
        let live = doing(format!("reading {} {name}", kind.kind), read)?.unwrap_or_default();
        let objects = [object, &live].map(Lookup::of);
        let paths: Vec<(FieldPath, &str)> = conflicts
            .iter()
            .map(|(field, manager)| (object::fields::from_cause(field, &objects), manager.as_str()))
            .collect();
        // A change of somebody else that was told stays until a person decides.
        let told =
            machine.status.iter().flat_map(|status| &status.conditions).any(|condition| condition.kind == "Drifted");
        let only_lists = only_lists && !told;
        let is_shared = |path: &FieldPath| SHARED_LISTS.contains(&path.pointer(&live).as_str());
        let named = machine.annotations().get(TAKE_BACK).map(String::as_str).unwrap_or_default();
        // Who runs the machine is the Machine's to say, if it does.
        let is_power =
            |path: &FieldPath| machine.spec.run_strategy.is_some() && path.pointer(&live) == "/spec/runStrategy";
        // What is taken over by word was shown before, with everything that changes.
        let is_taken_over = is_adopted(machine, &live) && text_at(&live, &applied_pointer()).is_empty();
        let is_taken_back = |manager: &str| named.split(',').any(|named| named.trim() == manager);
        let may_take = |path: &FieldPath, manager: &str| {
            is_taken_over || (only_lists && is_shared(path)) || is_power(path) || is_taken_back(manager)
        };
        if paths.iter().all(|(path, manager)| may_take(path, manager)) {
            return Ok(Verdict::Write(ApplyMode::Forced));
        }
        let owners = object::fields::Owners::of(&live);
        let own = machine.name_any();
        let told = paths.iter().map(|(path, manager)| {
            let when = owners.last_of(path).map(|(_, time)| format!(" at {time}")).unwrap_or_default();
            format!(
                "{} of {} {name} was changed by {manager}{when}: change the Machine to match, or take it back with \
                 kubectl annotate machine {own} {TAKE_BACK}={manager}",
                path.dotted(),
                kind.kind
            )
        });
        Ok(Verdict::Leave(told.collect()))
    }

    async fn write(&self, machine: &Machine, write: &Write, mode: ApplyMode, acted: &mut Acted) -> Result<(), Error> {
        match write {
            Write::CreateClaim(object) => {
                let written = self.apply(object, None, ApplyMode::Real).await?;
                let name = text_at(object, "/metadata/name").to_owned();
                let size = text_at(object, "/spec/resources/requests/storage");
                self.note(machine, "ClaimCreated", false, format!("claim {name} of {size} is created"), &name).await;
                acted.claims.push(written);
            }
            Write::Create(object) => {
                self.apply(object, None, ApplyMode::Real).await?;
            }
            Write::ApplySecret { object, live } => {
                self.apply(object, live.as_ref(), mode).await?;
            }
            Write::ApplyVm { object, live, .. } => {
                let written = self.apply(object, live.as_ref(), mode).await?;
                let (reason, verb) = if live.is_none() { ("VMCreated", "created") } else { ("VMChanged", "changed") };
                let text = format!("VirtualMachine {} is {verb}", text_at(object, "/metadata/name"));
                let version = text_at(&written, "/metadata/resourceVersion").to_owned();
                self.note(machine, reason, false, text, &version).await;
                acted.vm = Some(written);
            }
            Write::GrowClaim { object, uid, resource_version } => {
                // An apply would give up what was written at creation: only the size is merged.
                let change = json!({
                    "metadata": {"uid": uid, "resourceVersion": resource_version},
                    "spec": object["spec"],
                });
                let (namespace, name) = (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"));
                let grown = self.cluster.merge(&kinds::CLAIM.served(), (Some(namespace), name), false, &change).await;
                let grown = doing(format!("growing the claim {name}"), grown)?;
                self.keep(kinds::CLAIM, &grown);
                let size = text_at(object, "/spec/resources/requests/storage");
                self.note(
                    machine,
                    "ClaimGrows",
                    false,
                    format!("claim {name} grows to {size}"),
                    &format!("{name}{size}"),
                )
                .await;
                acted.claims.push(grown);
            }
            Write::Restart { uid } => self.restart(machine, uid).await?,
        }
        Ok(())
    }

    async fn restart(&self, machine: &Machine, uid: &str) -> Result<(), Error> {
        let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
        let vmi = self.reader.past_the_mirror().get(kinds::VMI, &namespace, &name).await;
        let vmi = doing("reading the VirtualMachineInstance", vmi)?;
        let Some(vmi) = vmi.filter(|vmi| text_at(vmi, "/metadata/uid") == uid) else { return Ok(()) };
        let version = text_at(&vmi, "/metadata/resourceVersion");
        let removed = self.cluster.remove(&kinds::VMI.served(), (Some(&namespace), &name), uid, version, false).await;
        doing("restarting the machine", removed)?;
        let text = "the machine restarts for changes that need it, as spec.updates says".to_owned();
        self.note(machine, "Restarted", false, text, uid).await;
        Ok(())
    }

    async fn apply(&self, object: &Value, live: Option<&(String, String)>, mode: ApplyMode) -> Result<Value, Error> {
        // The plan holds only kinds of this table.
        let Some(kind) = Kind::of(object) else { return Ok(Value::Null) };
        let written = self.cluster.apply(&kind.served(), object, MANAGER, mode, &precondition(live)).await;
        let written = doing(format!("writing {} {}", kind.kind, text_at(object, "/metadata/name")), written)?;
        self.keep(kind, &written);
        Ok(written)
    }

    /// What a write has answered is newer than the mirror.
    fn keep(&self, kind: Kind, object: &Value) {
        let is_watched = [kinds::VM, kinds::CLAIM].contains(&kind);
        if let Some(mirror) = self.reader.mirror().filter(|_| is_watched) {
            mirror.keep(kind, object);
        }
    }

    /// Records an event about a Machine. One that can't be recorded stops nothing.
    pub(super) async fn note(&self, machine: &Machine, reason: &'static str, warning: bool, text: String, key: &str) {
        let note = Note { reason, action: "Reconcile", warning, text, key: key.to_owned() };
        if let Err(error) = self.cluster.record(machine, &note, clock::now()).await {
            tracing::warn!(reason, %error, "the event could not be recorded");
        }
    }
}

fn precondition(live: Option<&(String, String)>) -> Precondition {
    match live {
        None => Precondition::Absent,
        Some((uid, resource_version)) => {
            Precondition::Exactly { uid: uid.clone(), resource_version: resource_version.clone() }
        }
    }
}

/// Whether the server will answer the same way until somebody changes something.
fn is_refusal(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Refused(_) | ClusterError::Conflicts(_) | ClusterError::Webhook { .. })
}

fn reason_of(error: &ClusterError) -> Reason {
    match error {
        ClusterError::Refused(refusal) if refusal.message.contains("exceeded quota") => Reason::InsufficientResources,
        _ => Reason::KubeVirtApiError,
    }
}

/// The words of the server, where they can quote no secret.
fn server_words(error: &ClusterError) -> String {
    match error {
        ClusterError::Refused(refusal) => refusal.message.clone(),
        other => other.displayed(),
    }
}

fn refused(doing: &str, error: &ClusterError) -> Problem {
    Problem::new(reason_of(error), "", format!("{doing}: {}", error.displayed()))
}

/// Where a VirtualMachine has the record of what the operator wrote.
fn applied_pointer() -> String {
    format!("/metadata/annotations/{}", APPLIED.replace('/', "~1"))
}

/// The reference of a Machine for logs.
pub(super) fn reference(machine: &Machine) -> String {
    let reference = machine.object_ref(&());
    format!("{}/{}", reference.namespace.unwrap_or_default(), reference.name.unwrap_or_default())
}
