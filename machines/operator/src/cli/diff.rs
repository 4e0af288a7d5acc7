//! `kubevirt-operator diff`: what applying a Machine would do, by the API server's own dry run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use advisor_cluster::{ApplyMode, Cluster, ClusterError, Precondition, bounded};
use clap::Args;
use kube::ResourceExt;
use machines_api::{MANAGER, Machine};
use machines_core::plan::{Plan, Write, plan};
use machines_core::problem::joined;
use machines_core::resolve::resolve;
use machines_core::understand::{is_ours, understand};
use object::diff::{unified, without_noise};
use object::limits;
use serde_json::Value;

use super::file::{FileFlag, contents};
use crate::cluster::kinds::{self, Kind};
use crate::cluster::mirror::text_at;
use crate::cluster::reader::Reader;
use crate::controller::gather;
use operator_kit::command::{CommandFailure, DIFFERENT, FAILED, SAME, print};

/// Print what applying a Machine would do: the difference of each object, computed by the API
/// server, and the effect on the running machine. Writes nothing.
///
/// Exit codes: 0 no differences, 1 differences, 2 the Machine is refused or the command failed.
#[derive(Debug, Args)]
pub(super) struct DiffFlags {
    #[command(flatten)]
    file: FileFlag,

    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of Machines that name none.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn run(flags: DiffFlags) -> Result<ExitCode, CommandFailure> {
    let machines = contents(&flags.file.file, &flags.namespace)?.machines;
    let client = advisor_cluster::connect(flags.kubeconfig)
        .await
        .map_err(|error| CommandFailure::of_comparison(error.to_string()))?;
    let cluster = Arc::new(Cluster::new(bounded(client), MANAGER));
    let mut text = String::new();
    let mut code = SAME;
    for machine in machines {
        code = code.max(one(&cluster, machine, &mut text).await?);
    }
    print(&limits::visible(&text)).map_err(CommandFailure::of_comparison)?;
    Ok(ExitCode::from(code))
}

/// Adds what applying `machine` would do to `text`, and returns the exit code.
async fn one(cluster: &Arc<Cluster>, machine: Machine, text: &mut String) -> Result<u8, CommandFailure> {
    let name = machine.name_any();
    let failed = |error: &dyn std::fmt::Display| CommandFailure::of_comparison(format!("Machine {name}: {error}"));
    let reader = Reader::direct(cluster.clone());
    let machine = stored(&reader, machine).await.map_err(|error| failed(&error.displayed()))?;
    if !is_ours(&machine.spec) {
        let _ = writeln!(text, "# Machine {name}: spec.provider names another provider: nothing is done");
        return Ok(SAME);
    }
    let refused = |problems: &[_], text: &mut String| {
        let _ = writeln!(text, "# Machine {name} is refused: {}", joined(problems));
        FAILED
    };
    let class = gather::machine_class(&reader, &machine).await.map_err(|error| failed(&error))?;
    let wanted = match understand(&machine, class.as_ref()) {
        Ok(wanted) => wanted,
        Err(problems) => return Ok(refused(&problems, text)),
    };
    let facts = gather::facts(&reader, &machine, &wanted).await.map_err(|error| failed(&error))?;
    let resolved = match resolve(&wanted, &facts) {
        Ok(resolved) => resolved,
        Err(problems) => return Ok(refused(&problems, text)),
    };
    let live = gather::live(&reader, &machine, &resolved).await.map_err(|error| failed(&error))?;
    let plan = plan(&machine, &resolved, &live, &facts.kubevirt.unwrap_or_default());
    if !plan.problems.is_empty() {
        return Ok(refused(&plan.problems, text));
    }
    for write in &plan.writes {
        write_difference(cluster, &reader, write, text).await.map_err(|error| failed(&error.displayed()))?;
    }
    effects(&name, &plan, text);
    for (path, why) in &wanted.without_effect {
        let _ = writeln!(text, "# {path} has no effect: {why}");
    }
    Ok(match (plan.refused.is_empty(), plan.writes.is_empty() && plan.pending.is_empty()) {
        (false, _) => FAILED,
        (true, true) => SAME,
        (true, false) => DIFFERENT,
    })
}

/// The Machine with the identity and the memory of the stored one, if there is one.
async fn stored(reader: &Reader, mut machine: Machine) -> Result<Machine, ClusterError> {
    let namespace = machine.namespace().unwrap_or_default();
    let found = reader.get(kinds::MACHINE, &namespace, &machine.name_any()).await?;
    let found: Option<Machine> = found.and_then(|found| serde_json::from_value(found).ok());
    if let Some(found) = found {
        machine.metadata.uid = found.metadata.uid;
        machine.status = found.status;
        let annotations = found.metadata.annotations.unwrap_or_default();
        let all = machine.metadata.annotations.get_or_insert_default();
        for (key, value) in annotations {
            all.entry(key).or_insert(value);
        }
    }
    Ok(machine)
}

/// The difference that a write makes, as the API server computes it.
async fn write_difference(
    cluster: &Cluster,
    reader: &Reader,
    write: &Write,
    text: &mut String,
) -> Result<(), ClusterError> {
    let object = match write {
        Write::CreateClaim(object) | Write::Create(object) => object,
        Write::ApplyVm { object, .. } => object,
        Write::ApplySecret { object, .. } => {
            // Its contents are nobody's to read.
            let _ = writeln!(text, "# Secret {} is written", text_at(object, "/metadata/name"));
            return Ok(());
        }
        Write::GrowClaim { object, .. } => {
            let size = text_at(object, "/spec/resources/requests/storage");
            let _ = writeln!(text, "# PersistentVolumeClaim {} grows to {size}", text_at(object, "/metadata/name"));
            return Ok(());
        }
        Write::Restart { .. } => {
            let _ = writeln!(text, "# the machine is restarted, as spec.updates says");
            return Ok(());
        }
    };
    let Some(kind) = Kind::of(object) else { return Ok(()) };
    let (namespace, name) = (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"));
    let mut object = object.clone();
    unowned(&mut object);
    let live = reader.get(kind, namespace, name).await?;
    let tried = cluster.apply(&kind.served(), &object, MANAGER, ApplyMode::ForcedDryRun, &Precondition::None).await?;
    let from = live.as_ref().map(without_noise);
    text.push_str(&unified(&format!("{}/{name}", kind.kind), from.as_ref(), Some(&without_noise(&tried))));
    Ok(())
}

/// A Machine that is not stored yet has no uid, and an owner reference without one is refused.
fn unowned(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("ownerReferences").and_then(|all| all.pointer("/0/uid")).is_some_and(|uid| uid == "")
    {
        metadata.remove("ownerReferences");
    }
}

fn effects(name: &str, plan: &Plan, text: &mut String) {
    for change in &plan.pending {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let _ = writeln!(
            text,
            "# {}: {} from {} to {}: {}",
            change.effect,
            change.path,
            value(&change.from),
            value(&change.to),
            change.reason
        );
    }
    for claim in &plan.detached {
        let _ = writeln!(text, "# the claim {claim} is kept: no edit deletes one");
    }
    if let Some(held) = &plan.held {
        let _ = writeln!(text, "# Machine {name}: nothing is written: {held}");
    }
}
