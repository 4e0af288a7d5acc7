//! Kernel arguments that other MachineConfigs set as well.

use std::collections::{BTreeMap, BTreeSet};

use super::View;
use crate::plan::items::Effect;
use crate::plan::items::message::listed;
use crate::rollout::contents::Differences;

/// The most pairs of kernel arguments that are reported for a pool.
const TOLD: usize = 10;

impl View<'_> {
    /// Adds notes about kernel arguments that other MachineConfigs set as well.
    pub(super) fn note_rivals(&self, found: &Differences, effect: &mut Effect) {
        let rivals = Rivals::among(found);
        for (ours, theirs) in rivals.pairs().take(TOLD) {
            let by = self.sources().filter(|(_, other)| other.parts.sets(theirs));
            let by: Vec<_> = by.map(|(source, _)| source.to_owned()).collect();
            if by.is_empty() {
                if self.listed().any(|(_, other)| other.parts.sets(theirs)) {
                    continue;
                }
                // It was rendered from a source that has changed since, or that can't be read.
                effect.notes.push(format!(
                    "Kernel argument {theirs} is in the rendered configuration of pool {}, although no other MachineConfig of the pool sets it now: its \
                     machines may have it already.",
                    self.pool.name
                ));
                continue;
            }
            let by = listed(&by);
            effect.notes.push(if ours == theirs {
                format!("Kernel argument {ours} is already provided by {by}: it would be set twice, and the machines would reboot unnecessarily. Turn off the option that sets it, or skip the item in spec.items.")
            } else {
                format!("Kernel argument {theirs} is set by {by}: it is on the command line together with {ours}, and the later one usually wins.")
            });
        }
        if let Some(more) = rivals.count().checked_sub(TOLD).filter(|more| *more > 0) {
            effect
                .notes
                .push(format!("There are {more} more such pairs of kernel arguments on pool {}.", self.pool.name));
        }
    }
}

/// New kernel arguments, and those with the same name from other objects.
pub(super) struct Rivals<'a> {
    ours: BTreeSet<&'a str>,
    theirs: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Rivals<'a> {
    pub(super) fn among(differences: &'a Differences) -> Self {
        let ours: BTreeSet<_> = differences.new_arguments.iter().map(String::as_str).collect();
        let mut theirs: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for argument in &differences.other_arguments {
            theirs.entry(name_of(argument)).or_default().insert(argument.as_str());
        }
        Self { ours, theirs }
    }

    fn of(&self, argument: &str) -> Option<&BTreeSet<&'a str>> {
        self.theirs.get(name_of(argument))
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.ours.iter().any(|ours| self.of(ours).is_some())
    }

    /// The number of pairs.
    fn count(&self) -> usize {
        self.ours.iter().filter_map(|ours| self.of(ours)).fold(0, |sum, theirs| sum.saturating_add(theirs.len()))
    }

    /// Each of ours with each of theirs that has the same name; sorted.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let theirs = |ours: &'_ str| self.of(ours).into_iter().flatten();
        self.ours.iter().flat_map(move |ours| theirs(ours).map(move |theirs| (*ours, *theirs)))
    }
}

/// The name of a kernel argument.
fn name_of(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}
