//! Act: the writes that a decision names, and no others.

use std::collections::BTreeMap;

use super::Context;
use super::memory::PlanCache;
use advisor_cluster::ClusterError;
use advisor_core::api::VirtPlatformConfig;
use advisor_core::plan::Plan;
use advisor_core::plan::decision::approval::Mandate;
use advisor_core::plan::decision::observed::World;
use advisor_core::plan::decision::{Decision, Execution};
use advisor_core::plan::status::Written;
use advisor_engine::engine;
use operator_kit::clock::now;

/// A write that did not happen; the next reconcile finds out why.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// The configuration could not be read again.
    #[error("reading the configuration before writing failed: {0}")]
    Configuration(#[source] ClusterError),
    /// Somebody edited the configuration after the decision.
    #[error("the configuration was edited; nothing is written until it is reconciled again")]
    Superseded,
    /// The process is stopping.
    #[error("the operator is stopping; nothing more is written")]
    Stopping,
    /// A target could not be written.
    #[error("writing {target} failed: {source}")]
    Target {
        /// The object.
        target: String,
        /// The cause.
        source: ClusterError,
    },
}

impl ActError {
    /// A word for logs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Configuration(source) | Self::Target { source, .. } => source.reason(),
            Self::Superseded => "Superseded",
            Self::Stopping => "Stopping",
        }
    }
}

/// Writes what `decision` says, if anything. What was written before an error is returned with it,
/// so that it can be reported.
pub(super) async fn act(
    ctx: &Context,
    config: &VirtPlatformConfig,
    decision: &Decision,
    world: &World,
    cache: &mut PlanCache,
) -> (BTreeMap<String, Written>, Result<(), ActError>) {
    match (decision, world) {
        (Decision::Execute(execution), World::Planned(plan)) if !execution.write.is_empty() => {
            write(ctx, config, execution, plan, cache).await
        }
        _ => (BTreeMap::new(), Ok(())),
    }
}

/// Writes the items that `execution` names, in order.
async fn write(
    ctx: &Context,
    config: &VirtPlatformConfig,
    execution: &Execution,
    plan: &Plan,
    cache: &mut PlanCache,
) -> (BTreeMap<String, Written>, Result<(), ActError>) {
    let mut written = BTreeMap::new();
    for item in execution.write.iter().filter_map(|name| plan.item(name)) {
        if ctx.stop.is_cancelled() {
            return (written, Err(ActError::Stopping));
        }
        if let Err(error) = still_wanted(ctx, config).await {
            return (written, Err(error));
        }
        cache.items.remove(&item.name);
        let began = now();
        let outcome = engine::write(&ctx.cluster, &config.spec.profile, item).await;
        if let Some(approval) = config.status.as_ref().and_then(|status| status.approval.as_ref()) {
            // The cause may quote the object.
            let result = outcome.as_ref().map(drop).map_err(ClusterError::reason);
            ctx.traces.wrote(approval, &item.name, &item.target.to_string(), (began, now()), result);
        }
        match outcome {
            Ok(outcome) => {
                let (subject, version) = outcome.seen;
                // The event of our own write must not cause a reconcile.
                ctx.triggers.record_version(&config.spec.profile, subject, version);
                tracing::info!(config = config.spec.profile, item = item.name, object = %item.target, "item written");
                written.insert(item.name.clone(), outcome.written)
            }
            Err(source) => {
                return (written, Err(ActError::Target { target: item.target.to_string(), source }));
            }
        };
    }
    (written, Ok(()))
}

/// Reads the configuration, bypassing the cache: somebody may have withdrawn the approval between
/// decision and write.
async fn still_wanted(ctx: &Context, config: &VirtPlatformConfig) -> Result<(), ActError> {
    let name = &config.spec.profile;
    let live = ctx
        .cluster
        .find::<VirtPlatformConfig>(name)
        .await
        .map_err(ActError::Configuration)?
        .ok_or(ActError::Superseded)?;
    let covers = Mandate::of(config).covers(&Mandate::of(&live));
    if covers { Ok(()) } else { Err(ActError::Superseded) }
}
