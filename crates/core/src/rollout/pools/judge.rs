//! Judges how far an object is on the pools that have it, from what was learned about them.
//!
//! The rule for "done" was derived from the real machine-config controllers:
//! `syncGeneratedMachineConfig` of pkg/controller/render, `calculateStatus` of pkg/controller/node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ChangeKind, GeneratedConfig, KnownPools, Needed, Removal, Tracked, content, name};
use crate::api::TargetRef;
use crate::plan::items::health::Rollout;
use crate::rollout::kubelet::{self, Acceptance};
use crate::rollout::pool::{Pool, reason};

/// The reason why an object waits.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) text: String,
    /// Whether somebody has paused it.
    pub(super) paused: bool,
    /// Whether only a person can make it progress, if the problem lasts.
    pub(super) stuck: bool,
}

/// How far an object is.
pub(super) enum Judged {
    Unread(Vec<Needed>),
    Waits(Hold),
    Is(Rollout),
}

/// How far one pool is with an object.
pub(super) struct Stage<'a> {
    pool: &'a Pool,
    /// Whether the pool has rendered the object in its present state, or without it if it was
    /// removed.
    rendered: bool,
}

/// All pools that an object concerns, or a result that does not depend on the single pools.
type Stages<'a> = Result<Vec<Stage<'a>>, Judged>;

impl KnownPools {
    pub(super) fn judged(&self, tracked: &Tracked, change: ChangeKind) -> Judged {
        let is_removed = matches!(tracked, Tracked::Removed { .. });
        let stages = match self.stages(tracked, change) {
            Ok(stages) => stages,
            Err(judged) => return judged,
        };
        for Stage { pool, rendered } in &stages {
            if is_removed && !rendered {
                return waiting(format!(
                    "waiting for MachineConfigPool {} to render a configuration without it",
                    pool.name
                ));
            }
            if let Some(hold) = unfinished(pool, *rendered) {
                return Judged::Waits(hold);
            }
        }
        if is_removed {
            return Judged::Is(Rollout::Done("no pool's configuration contains it".to_owned()));
        }
        done(&stages.iter().map(|stage| stage.pool).collect::<Vec<_>>())
    }

    /// How many machines of each pool that `tracked` concerns have it, as far as what was read
    /// tells.
    pub(super) fn machines_updated(&self, tracked: &Tracked, change: ChangeKind) -> BTreeMap<String, u32> {
        let count = |stage: &Stage<'_>| match stage.rendered && stage.pool.observed_generation >= stage.pool.generation
        {
            true => stage.pool.updated,
            false => 0,
        };
        let stages = self.stages(tracked, change).unwrap_or_default();
        stages.iter().map(|stage| (stage.pool.name.clone(), count(stage))).collect()
    }

    fn stages(&self, tracked: &Tracked, change: ChangeKind) -> Stages<'_> {
        let object = match tracked {
            Tracked::Object(object) => object,
            Tracked::Removed { target, .. } => return self.without(target, self.concerned(tracked)),
        };
        let selecting = self.selecting(object);
        if selecting.is_empty() {
            return Err(waiting("no MachineConfigPool selects it".to_owned()));
        }
        if kubelet::is(&TargetRef::of(object)) {
            return self.of_kubelet(object, change);
        }
        let content = content(object);
        // The list of sources comes first: the content matters only if the pool lists the object.
        let name = name(object);
        let listed = |pool: &&&Pool| pool.sources.contains(name);
        let unread: BTreeSet<_> =
            selecting.iter().filter(listed).flat_map(|pool| self.unread(pool, name, &content, change)).collect();
        if !unread.is_empty() {
            return Err(Judged::Unread(unread.into_iter().collect()));
        }
        let rendered = |pool: &Pool| listed(&&pool) && self.holds(pool, name, object, &content, change);
        Ok(selecting.into_iter().map(|pool| Stage { pool, rendered: rendered(pool) }).collect())
    }

    /// How far `pools` are without `removed`: first none of them may list it any more, nor what was
    /// made of it. Of that the name is not known any more: it is listed and does not exist.
    fn without<'a>(&'a self, removed: &TargetRef, pools: Vec<&'a Pool>) -> Stages<'a> {
        let is_kubelet = kubelet::is(removed);
        let made = |pool: &Pool| -> Vec<String> {
            pool.sources.iter().filter(|source| is_kubelet && kubelet::is_generated(source)).cloned().collect()
        };
        let exists = |pool: &Pool, source: &str| {
            let removal = Removal { removed: removed.name.clone(), source: source.to_owned() };
            self.facts.of(pool).and_then(|facts| facts.exists.get(&removal)).copied()
        };
        let unread =
            |pool: &&Pool| made(pool).into_iter().filter(|source| exists(pool, source).is_none()).collect::<Vec<_>>();
        let unread: BTreeSet<_> = pools.iter().flat_map(unread).map(Needed::Existence).collect();
        if !unread.is_empty() {
            return Err(Judged::Unread(unread.into_iter().collect()));
        }
        let has_it = |pool: &Pool| {
            let is_gone = |source: &String| exists(pool, source) == Some(false);
            pool.sources.contains(&removed.name) || made(pool).iter().any(is_gone)
        };
        Ok(pools.into_iter().map(|pool| Stage { pool, rendered: !has_it(pool) }).collect())
    }

    /// How far the pools that a KubeletConfig reaches are: they render the MachineConfig that is
    /// generated from it.
    fn of_kubelet(&self, object: &Value, change: ChangeKind) -> Stages<'_> {
        match kubelet::verdict(object) {
            Acceptance::Unseen => {
                return Err(waiting("waiting for the Machine Config Operator to accept it".to_owned()));
            }
            Acceptance::Refused(problem) => {
                let text = format!("the Machine Config Operator rejects it{}", reason(&problem));
                return Err(Judged::Is(Rollout::Failed(text)));
            }
            Acceptance::Accepted => {}
        }
        let reached: Vec<_> = kubelet::reached(&self.pools, object)
            .into_iter()
            .filter(|(pool, made_for)| kubelet::counts(object, pool, made_for) || kubelet::has_files_beside(object))
            .collect();
        if reached.is_empty() {
            // A listed source may come from an object that no longer exists: that resolves itself.
            let all = kubelet::reached(&self.pools, object);
            let by: BTreeSet<_> =
                all.iter().filter_map(|(pool, made_for)| kubelet::later(object, pool, made_for)).collect();
            let text = format!(
                "another KubeletConfig overrides it (rendered as {}): merge both into one of them, then delete the other or skip this item in spec.items",
                Vec::from_iter(by).join(", ")
            );
            return Err(Judged::Waits(Hold { text, paused: false, stuck: true }));
        }
        let mut unread = BTreeSet::new();
        let mut held = Vec::new();
        for (pool, made_for) in &reached {
            let name = kubelet::generated(object, made_for);
            held.push(match self.generated.get(&GeneratedConfig::of(object, &name)) {
                _ if !pool.sources.contains(&name) => false,
                None => {
                    unread.insert(Needed::Generated(name));
                    false
                }
                Some(made) => {
                    unread.extend(self.unread(pool, &name, &content(made), change));
                    self.holds(pool, &name, made, &content(made), change)
                }
            });
        }
        if !unread.is_empty() {
            return Err(Judged::Unread(unread.into_iter().collect()));
        }
        Ok(reached.into_iter().zip(held).map(|((pool, _), rendered)| Stage { pool, rendered }).collect())
    }
}

/// What `pool` still waits for; `None` if it is done. Nothing is rendered for a pool that is
/// RenderDegraded, and there is no image for one that is ImageBuildDegraded. Both are retried, and
/// may resolve themselves (`handleErr` of the render controller;
/// `updateImageBuildDegradedCondition`, pkg/controller/build/reconciler.go, release-4.20 and
/// later).
fn unfinished(pool: &Pool, held: bool) -> Option<Hold> {
    let name = &pool.name;
    let hold = |text: String, stuck: bool| {
        Some(Hold { text: format!("MachineConfigPool {name} {text}"), paused: false, stuck })
    };
    if !held {
        return match pool.holds("RenderDegraded") {
            Some(message) => hold(
                format!(
                    "can't render it{}. Until it can, nothing new reaches its machines: correct or delete the faulty MachineConfig",
                    reason(message)
                ),
                true,
            ),
            None => hold("has not rendered it yet".to_owned(), false),
        };
    }
    if pool.observed_generation < pool.generation {
        return hold("has not started to roll it out yet".to_owned(), false);
    }
    let updated = pool.holds("Updated").is_some()
        && pool.present == pool.wanted
        && pool.updated == pool.machines
        && pool.ready == pool.machines;
    if updated {
        return None;
    }
    let mut progress = format!("{} of {} machines are updated", pool.updated, pool.machines);
    if pool.unavailable > 0 {
        progress.push_str(&format!(", {} updating, cordoned or not ready", pool.unavailable));
    }
    if pool.paused {
        let text = format!("MachineConfigPool {name} is paused ({progress}): unpause it to continue");
        return Some(Hold { text, paused: true, stuck: false });
    }
    let has_no_image = pool.holds("ImageBuildDegraded").is_some();
    match (pool.holds("NodeDegraded"), pool.trouble()) {
        (Some(message), _) => hold(
            format!(
                "is degraded on {} of its {} machines ({progress}){}",
                pool.degraded,
                pool.machines,
                reason(message)
            ),
            false,
        ),
        (None, Some(trouble)) => hold(format!("is degraded ({progress}): {trouble}"), has_no_image),
        (None, None) => hold(format!("is rolling it out: {progress}"), false),
    }
}

/// The result when all `pools` are done.
fn done(pools: &[&Pool]) -> Judged {
    if pools.iter().all(|pool| pool.machines == 0) {
        return waiting("its pools have no machines".to_owned());
    }
    let names: Vec<_> = pools.iter().map(|pool| pool.name.as_str()).collect();
    Judged::Is(Rollout::Done(format!("All machines of MachineConfigPool {} run with it", names.join(", "))))
}

fn waiting(text: String) -> Judged {
    Judged::Waits(Hold { text, paused: false, stuck: false })
}
