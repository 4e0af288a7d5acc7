//! Determines what is watched for a configuration: the objects that its plan reads or is about, and
//! nothing else that its profile declares.

use std::collections::BTreeMap;

use profile_sdk::{Kind, Planner, Profile, Read};

use super::GatherError;
use crate::controller::Context;
use crate::controller::watches::{Scope, crd_subject};
use advisor_cluster::{Served, Subject};
use advisor_core::api::{Item, TargetRef, VirtPlatformConfigSpec};
use advisor_engine::engine::{Engine, Kinds};
use advisor_engine::registry::{self, WatchScope};

/// Opens the watches that `config` will need, so that a standby replica has them when it becomes
/// the leader. Those that can't be opened now are opened then.
pub(in crate::controller) async fn warm(ctx: &Context, config: &str, spec: &VirtPlatformConfigSpec, items: &[Item]) {
    let Some(profile) = registry::find(ctx.profiles, config) else { return };
    let options = spec.options.as_ref().and_then(|options| options.get(profile.about().options_key));
    // Options that are not valid are not planned either.
    let Ok(planner) = profile.configure(options) else { return };
    let seen = |subject: Subject, version: Option<String>| ctx.triggers.record_version(config, subject, version);
    let engine = Engine::new(&ctx.cluster, ctx.rollouts.as_ref(), &seen);
    let opened = async {
        let served = served_kinds(ctx, config, profile, &engine).await?;
        let targets = read_targets(planner.as_ref()).chain(items.iter().map(|item| item.target_ref.clone()));
        Ok::<_, GatherError>(ctx.watches.follow(config, &scopes(ctx, profile, &served.served, targets)).await?)
    };
    if let Err(error) = opened.await {
        tracing::debug!(config, %error, "watches can't be opened yet");
    }
}

/// Looks up which of the profile's kinds are served. The CRDs of all of them are followed, since
/// others may be installed later. Kinds whose group does not answer are not watched: they are
/// looked up again together with Blocked items.
pub(super) async fn served_kinds(
    ctx: &Context,
    config: &str,
    profile: &dyn Profile,
    engine: &Engine<'_>,
) -> Result<Kinds, GatherError> {
    let mut kinds: Vec<_> = profile.kinds().iter().map(|declared| declared.kind).collect();
    kinds.push(ctx.rollouts.watched_kind());
    for kind in &kinds {
        let name = kind.crd_name();
        ctx.triggers.record_version(config, crd_subject(&name), ctx.watches.crd_version(&name));
    }
    Ok(engine.served(kinds).await?)
}

/// The objects that the planner reads, including its prerequisites.
pub(super) fn reads(planner: &dyn Planner) -> Vec<Read> {
    let needed = planner.prerequisites().into_iter().filter_map(|needed| needed.object);
    planner.reads().into_iter().chain(needed).collect()
}

/// Like [`reads`], as references.
pub(super) fn read_targets(planner: &dyn Planner) -> impl Iterator<Item = TargetRef> {
    reads(planner).into_iter().map(|Read { kind, namespace, name, .. }| TargetRef {
        // The version in which it is read does not matter for its identity.
        api_version: format!("{}/{}", kind.group, kind.versions.first().unwrap_or(&"")),
        kind: kind.kind.to_owned(),
        namespace,
        name,
    })
}

/// The scopes to watch for `targets`: the other kinds that the profile declares cost nothing. Pools
/// are always watched.
pub(super) fn scopes(
    ctx: &Context,
    profile: &dyn Profile,
    served: &BTreeMap<Kind, Served>,
    targets: impl IntoIterator<Item = TargetRef>,
) -> Vec<Scope> {
    let targets: Vec<_> = targets.into_iter().collect();
    let declared = registry::watched(profile).into_iter().filter_map(|WatchScope { kind, namespace, name }| {
        // CRDs have a watch of their own.
        let served = served.get(&kind).filter(|_| kind.group != "apiextensions.k8s.io")?;
        Some(Scope { served: served.clone(), namespace, name })
    });
    let needed = declared.filter(|scope| targets.iter().any(|target| scope.covers(target)));
    let pools = ctx.rollouts.watched_kind();
    let pools = served.get(&pools).map(|served| Scope { served: served.clone(), namespace: None, name: None });
    needed.chain(pools).collect()
}
