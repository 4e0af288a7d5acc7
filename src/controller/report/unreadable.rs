//! What can't be read, said in the status: the world that a plan is made from, or the configuration
//! itself.

use kube::ResourceExt;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action as Next;
use serde_json::json;

use super::replaced;
use super::store::write_status;
use crate::controller::Context;
use crate::controller::error::BUDGET;
use crate::controller::memory::LastReport;
use advisor_core::api::{Phase, Summary, VirtPlatformConfig};
use advisor_core::plan::decision::reason;
use advisor_core::plan::status::conditions::{self, PhaseReport};
use advisor_core::plan::wire;
use object::limits;
use operator_kit::clock::now;

/// Reports in the status what can't be read. If that fails too, the log already has it.
pub(in crate::controller) async fn report_unread(
    ctx: &Context,
    config: &VirtPlatformConfig,
    reason: &str,
    problem: &str,
    last: &mut LastReport,
) {
    let mut status = config.status.clone().unwrap_or_default();
    let generation = config.metadata.generation.unwrap_or_default();
    if !conditions::unreadable(&mut status, reason, problem, generation, now()) {
        return;
    }
    let write = write_status(&ctx.cluster, config, &status);
    match tokio::time::timeout(BUDGET, write).await {
        Ok(Ok(mut written)) => {
            last.replaced_version = replaced(config, &written);
            conditions::retain_ours(&mut written.status.conditions);
            // The status that comes back with the event of this write is not news.
            last.failed.iter_mut().for_each(|failed| failed.status = written.status.clone());
        }
        Ok(Err(error)) => tracing::debug!(config = config.name_any(), %error, "the status could not be written either"),
        Err(_) => tracing::debug!(config = config.name_any(), "the status could not be written either"),
    }
}

/// Reports in the status that an object no longer matches our types; other objects are not
/// affected. Text and time are the same on every run, so a restart writes nothing new.
pub(in crate::controller) async fn reject(ctx: &Context, invalid: &InvalidObject) -> Next {
    let name = invalid.metadata.name.clone().unwrap_or_default();
    let memory = ctx.memory(&name);
    let mut memory = memory.lock().await;
    let version = invalid.metadata.resource_version.clone();
    if memory.report.replaced_version == version {
        return Next::await_change();
    }
    ctx.stand_aside(&name, &mut memory);
    // Once corrected, it is reconciled, whatever it was before.
    memory.report.settled = None;
    let message = format!(
        "This object does not match this version's schema: {}. Correct it, or delete it.",
        limits::words(&invalid.error)
    );
    let generation = invalid.metadata.generation.unwrap_or_default();
    let verdict = PhaseReport {
        phase: Phase::Failed,
        reason: reason::INVALID,
        message: &message,
        input_drift: None,
        trouble: None,
        overridden: None,
        generation,
    };
    // The object's own time, so that a restart writes the same.
    let since = invalid.metadata.creation_timestamp.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0);
    let status = json!({
        "phase": Phase::Failed,
        "observedGeneration": generation,
        "summary": Summary { text: wire::cut_text(&message, wire::SUMMARY_LIMIT), ..Summary::default() },
        "conditions": conditions::derive(&[], &verdict, since),
    });
    tracing::warn!(
        config = name,
        error = limits::words(&invalid.error),
        "the object does not match this version's schema"
    );
    let write = ctx.cluster.patch_status::<VirtPlatformConfig>(&name, version.as_deref().unwrap_or_default(), &status);
    let problem = match tokio::time::timeout(BUDGET, write).await {
        Ok(Ok(written)) => {
            memory.report.replaced_version = Some(written);
            memory.has_succeeded();
            return Next::await_change();
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(config = name, problem, "could not report in the status that the object is invalid");
    Next::requeue(memory.timing.pause_after_error(&name))
}
