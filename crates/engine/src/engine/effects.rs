//! The effects of planned changes elsewhere, for all items of a plan together: the rendered
//! configurations of pools are large, and one read of each serves every item.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use profile_sdk::{Body, Draft, Kind};

use super::{Engine, EngineError};
use advisor_cluster::ClusterError;
use advisor_core::plan::items::{Effect, Preview};
use advisor_core::plan::remedy::Remedy;
use advisor_core::plan::target::target;
use advisor_core::rollout::{Forecast, Needed, PlannedChange};
use object::diff;

/// The most rendered configurations that are in memory at a time: each has hundreds of kilobytes.
const LARGE_READS: usize = 2;

/// The effect of a change, or why it must not be made.
type EffectOrRemedy = Result<Effect, Remedy>;

/// A change that needs an object to be read.
struct Asking<'a> {
    /// The place of its item in the plan.
    index: usize,
    change: PlannedChange<'a>,
    needed: Needed,
}

impl Engine<'_> {
    /// The effects of `previews`, which belong to `drafts`, in the same order. A change that would
    /// reach no machine is refused. With `exact`, everything that can change is read again.
    pub(super) async fn effects(
        &self,
        drafts: &[&Draft],
        previews: Vec<Preview>,
        exact: bool,
    ) -> Result<Vec<(Preview, Effect)>, EngineError> {
        let removed = drafts.iter().zip(&previews).filter(|(_, preview)| is_removed(preview));
        let learned = self.rollouts.read_kind().kind;
        let leaving: Vec<_> =
            removed.map(|(draft, _)| target(draft)).filter(|of| of.kind == learned).map(|of| of.name).collect();
        let changes: Vec<_> =
            drafts.iter().zip(&previews).map(|(draft, preview)| self.foreseen(draft, preview, &leaving)).collect();
        if exact {
            self.rollouts.read_anew();
        }
        let mut verdicts: Vec<Option<EffectOrRemedy>> =
            changes.iter().map(|change| change.is_none().then(|| Ok(Effect::default()))).collect();
        loop {
            let mut unread: BTreeMap<String, Vec<Asking<'_>>> = BTreeMap::new();
            let mut unlisted = Vec::new();
            for (index, (verdict, change)) in verdicts.iter_mut().zip(&changes).enumerate() {
                let Some(change) = change.filter(|_| verdict.is_none()) else { continue };
                match self.rollouts.forecast(change) {
                    Forecast::Known(known) => *verdict = Some(known),
                    Forecast::Unread(all) => {
                        for needed in all {
                            let asking = unread.entry(needed.name().to_owned()).or_default();
                            asking.push(Asking { index, change, needed });
                        }
                    }
                    Forecast::Unlisted(kind) if unlisted.contains(&kind) => {}
                    Forecast::Unlisted(kind) => unlisted.push(kind),
                }
            }
            if unread.is_empty() && unlisted.is_empty() {
                break;
            }
            for kind in unlisted {
                self.list(kind).await?;
            }
            let reads: Vec<_> = unread.into_iter().map(|(name, asking)| self.read_for_forecast(name, asking)).collect();
            let reads = stream::iter(reads).buffer_unordered(LARGE_READS);
            for (index, remedy) in reads.try_collect::<Vec<_>>().await?.into_iter().flatten() {
                if let Some(verdict) = verdicts.get_mut(index) {
                    *verdict = Some(Err(remedy.into()));
                }
            }
        }
        let judged = previews.into_iter().zip(verdicts).map(|(preview, verdict)| match verdict {
            Some(Ok(effect)) => (preview, effect),
            Some(Err(remedy)) => (Preview::refused(remedy), Effect::default()),
            None => (preview, Effect::default()),
        });
        Ok(judged.collect())
    }

    /// Lists objects that effects depend on. If that is forbidden, plans are made without them.
    async fn list(&self, kind: Kind) -> Result<(), EngineError> {
        let fails = |source| EngineError::Object { object: kind.plural.to_owned(), source };
        let found = match self.cluster.resolve(&kind).await.map_err(fails)? {
            Some(served) => self.cluster.list(&served).await,
            None => Ok(Vec::new()),
        };
        let found = match found {
            Err(ClusterError::Refused(refusal)) => {
                tracing::warn!(%refusal, kind = kind.kind, "objects of this kind can't be listed; planning as if there were none");
                Vec::new()
            }
            found => found.map_err(fails)?,
        };
        self.rollouts.kind_listed(kind, &found);
        Ok(())
    }

    /// The change of an object whose changes have effects. `None` if nothing changes: then no pool
    /// has to be read.
    fn foreseen<'a>(&self, draft: &Draft, preview: &'a Preview, leaving: &'a [String]) -> Option<PlannedChange<'a>> {
        let takes_back = matches!(draft.body, Body::Remove(_));
        let (live, result) = match preview {
            Preview::Known { live, result, .. } => (live.as_deref(), Some(result)),
            Preview::Removal { live, result, .. } => (live.as_deref(), result.as_ref()),
            Preview::Approximate { .. }
            | Preview::SetAside { .. }
            | Preview::Deferred { .. }
            | Preview::Refused { .. } => return None,
        };
        let changes = live.map(diff::without_noise) != result.map(diff::without_noise);
        (changes && self.rollouts.has_effects(&target(draft))).then_some(PlannedChange {
            live,
            result,
            takes_back,
            leaving,
        })
    }

    /// Reads one object for all that ask for it. Returns the remedies of changes that can't be
    /// judged without it.
    async fn read_for_forecast(&self, name: String, all: Vec<Asking<'_>>) -> Result<Vec<(usize, String)>, EngineError> {
        let kind = self.rollouts.read_kind();
        let fails = |source| EngineError::Object { object: format!("{} {name}", kind.kind), source };
        let read = match self.cluster.resolve(&kind).await.map_err(fails)? {
            Some(served) => self.cluster.get(&served, None, &name).await,
            None => Ok(None),
        };
        match read {
            Ok(read) => {
                for Asking { change, needed, .. } in &all {
                    self.rollouts.record_for_forecast(*change, needed, read.as_ref());
                }
                Ok(Vec::new())
            }
            Err(ClusterError::Refused(refusal)) => {
                let right = if refusal.is_missing_right() { ". Give the operator the right to get it" } else { "" };
                let remedy = format!(
                    "its effect on machines is unknown, because {} {name} can't be read: {refusal}{right}",
                    kind.kind
                );
                Ok(all.into_iter().map(|asking| (asking.index, remedy.clone())).collect())
            }
            Err(source) => Err(fails(source)),
        }
    }
}

fn is_removed(preview: &Preview) -> bool {
    matches!(preview, Preview::Removal { live: Some(_), result: None, .. })
}
