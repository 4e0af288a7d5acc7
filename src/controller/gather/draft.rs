//! Drafting: what the profile reads is read, and the profile drafts.

use std::collections::BTreeMap;
use std::sync::Arc;

use profile_sdk::{Draft, Kind, Planner, Read};

use super::watched::{read_targets, reads, scopes, served_kinds};
use super::{GatherError, Gathering};
use crate::controller::memory::{Drafted, PlanCache};
use advisor_cluster::Served;
use advisor_core::api::TargetRef;
use advisor_core::plan::items::prune;
use advisor_core::plan::target;
use advisor_engine::engine::{self, Drafting};

/// What became of drafting.
pub(super) enum DraftOutcome {
    /// The profile drafted.
    Drafted(Arc<Drafted>),
    /// It can't, since something is missing: one sentence for each.
    Missing(Vec<String>),
    /// It can't: an input breaks its promise.
    Invalid(String),
}

impl Gathering<'_> {
    /// The drafts of before, if nothing that they were made from has changed, or new ones.
    pub(super) async fn draft(
        &self,
        planner: &dyn Planner,
        cache: &mut PlanCache,
    ) -> Result<DraftOutcome, GatherError> {
        let is_as_read = |known: &Drafted| {
            known.generation == self.wanted.generation && !reads(planner).iter().any(|read| self.has_changed(read))
        };
        if let Some(known) = cache.drafted.as_ref().filter(|known| !self.all && is_as_read(known)) {
            return Ok(DraftOutcome::Drafted(known.clone()));
        }
        let outcome = self.draft_anew(planner, cache.drafted.as_deref()).await?;
        if let DraftOutcome::Drafted(drafted) = &outcome {
            cache.drafted = Some(drafted.clone());
        }
        Ok(outcome)
    }

    /// Reads the inputs and lets the profile draft.
    async fn draft_anew(&self, planner: &dyn Planner, before: Option<&Drafted>) -> Result<DraftOutcome, GatherError> {
        let served = served_kinds(self.ctx, self.config, self.profile, &self.engine).await?;
        let reads = scopes(self.ctx, self.profile, &served.served, read_targets(planner));
        if let Some(scope) = self.ctx.watches.follow(self.config, &reads).await?.first() {
            return Err(GatherError::Unwatched { kind: scope.served.resource.kind.clone(), remedy: scope.remedy() });
        }
        // Objects that a watch has followed since they were read are unchanged. But what a profile
        // makes of a value may depend on its options, so a new generation reads again.
        let same = before.filter(|before| !self.all && before.generation == self.wanted.generation);
        let used = same.map(|before| before.used.clone()).unwrap_or_default();
        let used = used.of(|read| !self.has_changed(read));
        let drafting =
            self.engine.draft(planner, &engine::manager(self.config), self.profile.kinds(), &served, used).await?;
        let engine::DraftedPlan { mut drafts, inputs, exclusions, left_out, used } = match drafting {
            Drafting::Drafted(drafted) => drafted,
            Drafting::Missing(missing) => return Ok(DraftOutcome::Missing(missing)),
            Drafting::Invalid(problem) => return Ok(DraftOutcome::Invalid(problem)),
        };
        let generation = self.wanted.generation;
        drafts.extend(prune::departed(self.status, &drafts, self.wanted.options.as_ref()));
        let unwatched = self.follow(&served.served, read_targets(planner), &drafts).await?;
        let drafted = Drafted { generation, drafts, inputs, exclusions, left_out, used, unwatched };
        Ok(DraftOutcome::Drafted(Arc::new(drafted)))
    }

    /// Watches exactly what was read and what is drafted. Returns the drafts whose objects may not
    /// be watched, with the remedy: these are blocked, and no others.
    async fn follow(
        &self,
        served: &BTreeMap<Kind, Served>,
        reads: impl Iterator<Item = TargetRef>,
        drafts: &[Draft],
    ) -> Result<BTreeMap<String, String>, GatherError> {
        let targets: Vec<_> = drafts.iter().map(|draft| (&draft.name, target::target(draft))).collect();
        let all = scopes(self.ctx, self.profile, served, reads.chain(targets.iter().map(|(_, target)| target.clone())));
        let forbidden = self.ctx.watches.follow(self.config, &all).await?;
        self.ctx.watches.keep_only(self.config, &all);
        let remedy = |target: &TargetRef| Some(forbidden.iter().find(|scope| scope.covers(target))?.remedy());
        Ok(targets.into_iter().filter_map(|(name, target)| Some((name.clone(), remedy(&target)?))).collect())
    }

    fn has_changed(&self, read: &Read) -> bool {
        self.changed.iter().any(|subject| {
            (subject.group.as_str(), subject.kind.as_str(), &subject.name)
                == (read.kind.group, read.kind.kind, &read.name)
                && read.may_be_in(subject.namespace.as_deref())
        })
    }
}
