//! What the user has approved, kept beside the operator and by other means: the promise that it is measured by.
//!
//! An approval is noted when the user makes it, from what was on display then. Whether the operator sees it in time, crashes or
//! restarts is nothing to it.

use std::collections::BTreeSet;

use super::world::{Config, Does, NAMES, State};
use crate::api::{ApprovedBy, ItemState, Operation, Phase, VirtPlatformConfigStatus as Status};

/// How something was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum How {
    /// The digest on display was named.
    Hash,
    /// The action went to Apply under the plan on display.
    Action,
    /// Apply was asked for before there was a plan.
    Advance,
    /// The policy approves what this edit plans.
    Policy,
    /// Targets that move are not asked about.
    Bypass,
}

/// An approval that the user gave.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Granted {
    pub(super) how: How,
    /// The plan on display, if there was one.
    digest: Option<String>,
    /// What it covers; empty until a plan is made of an approval without one.
    changes: BTreeSet<String>,
}

impl Granted {
    /// Whether it approves the plan of that digest by name.
    pub(super) fn stands_for(&self, digest: Option<&String>) -> bool {
        self.digest.is_some() && self.digest.as_ref() == digest
    }
}

/// What is known of approvals.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Ghost {
    /// Given, and neither used nor withdrawn.
    pub(super) open: BTreeSet<Granted>,
    /// The one that is being used, and the items it has written.
    pub(super) running: Option<(Granted, BTreeSet<u8>)>,
    /// The one that was withdrawn while it was being used.
    withdrawn: Option<(Granted, BTreeSet<u8>)>,
    /// With bypassOptimisticLock: what was approved once may be put back.
    put_back: BTreeSet<String>,
    /// Executions in a row that nobody asked for.
    corrections: u8,
    /// When the plan on display took the place of another one.
    revised: Option<i64>,
    /// What a person has read and not approved yet: the digest, and the failure policy that it was shown with.
    read: Option<(String, bool)>,
    /// The inputs of what was carried out last, or was as wanted.
    carried_out: Option<Vec<serde_json::Value>>,
    /// The hash in spec has been carried out.
    used: Option<String>,
    /// The failure policy under which the plan on display was made.
    shown_goes_on: bool,
    shown_bypass: bool,
    /// Something has happened since the last failure that may have ended its cause.
    pub(super) cause_may_be_gone: bool,
    /// What the operator did that it must not.
    pub(super) violation: Option<&'static str>,
}

/// What `status` displays of changes.
fn shown(status: &Status) -> BTreeSet<String> {
    status.items.iter().filter(|item| item.operation.writes()).map(|item| item.item_hash.clone()).collect()
}

fn inputs(status: &Status) -> Vec<serde_json::Value> {
    status.inputs.iter().filter_map(|input| input.value.clone()).collect()
}

fn wanted_of(changes: &BTreeSet<String>) -> BTreeSet<String> {
    changes
        .iter()
        .filter_map(|change| {
            let (name, rest) = change.split_once(": ")?;
            Some(format!("{name} {}", rest.split_once(" to ")?.1))
        })
        .collect()
}

impl Ghost {
    /// The user edits the configuration from `before` to `after`, at that time.
    pub(super) fn edited(&mut self, before: &Config, after: &Config, clock: i64) {
        let status = &before.status.status;
        let on_display = status.plan_hash.clone();
        if after.deleting || after.action != Does::Apply {
            self.open.retain(|granted| granted.how == How::Hash && !after.deleting);
            self.withdrawn = self.running.take().or(self.withdrawn.take());
        }
        if before.hash != after.hash {
            self.used = None;
            self.open.retain(|granted| granted.how != How::Hash);
            if self.running.as_ref().is_some_and(|(granted, _)| granted.how == How::Hash) {
                self.withdrawn = self.running.take();
            }
            let executed = status.approval.as_ref().map(|approval| &approval.plan_hash);
            if after.hash.is_some() && after.hash.as_ref() == executed {
                // It names what is under way: that goes on.
                self.running = self.withdrawn.take().or(self.running.take());
            } else if let Some(hash) = after.hash.clone().filter(|hash| Some(hash) == on_display.as_ref()) {
                self.grant(How::Hash, Some(hash), shown(status));
            }
        }
        if before.bypass != after.bypass {
            // Another spec than that on display: the action has approved nothing of it.
            self.open.retain(|granted| !matches!(granted.how, How::Action | How::Bypass));
            let by_bypass = self.running.as_ref().is_some_and(|(granted, _)| granted.how == How::Bypass);
            if by_bypass && !after.bypass {
                self.withdrawn = self.running.take();
            } else if after.bypass && status.approval.is_some() {
                self.running = self.running.take().or(self.withdrawn.take());
            }
        }
        if before.goes_on != after.goes_on {
            self.open.retain(|granted| !matches!(granted.how, How::Action | How::Bypass));
        }
        if before.option != after.option {
            // What was approved was approved for the options of then; a hash names its plan whatever they are meanwhile.
            self.open.retain(|granted| matches!(granted.how, How::Advance | How::Hash));
        }
        if after.action != Does::Apply || after.deleting {
            return;
        }
        let asked = before.action != Does::Apply;
        // Options that are put back are those on display, and the action is Apply.
        let edited = before.option != after.option || before.goes_on != after.goes_on || before.bypass != after.bypass;
        if status.approval.is_some() && before.bypass == after.bypass && (asked || edited) {
            // The plan on display is the one that is executed: it goes on.
            self.running = self.withdrawn.take().or(self.running.take());
        }
        self.asked(status, after, asked || edited, clock);
    }

    /// Under action Apply; `anew` if an edit has asked for it.
    fn asked(&mut self, status: &Status, after: &Config, anew: bool, clock: i64) {
        let on_display = status.plan_hash.clone();
        let same_options = status.applied_options == after.options();
        let as_shown = same_options && self.shown_goes_on == after.goes_on && self.shown_bypass == after.bypass;
        let nothing_waits = match status.phase {
            None => true,
            Some(Phase::Ignored) => {
                let unchanged = status.items.iter().all(|item| item.operation == Operation::NoChange);
                unchanged && (status.plan_hash.is_none() || as_shown)
            }
            Some(_) => false,
        };
        if after.automatic && (!same_options || nothing_waits) {
            self.grant(How::Policy, None, BTreeSet::new());
        }
        if !anew {
            return;
        }
        if nothing_waits {
            self.grant(How::Advance, None, BTreeSet::new());
        }
        let was_readable = self.revised.is_none_or(|revised| clock - revised >= 60);
        let under_dry_run = status.planned_action == Some(crate::api::Action::DryRun);
        if on_display.is_some() && under_dry_run && as_shown && status.phase != Some(Phase::Ignored) {
            if after.bypass {
                self.put_back.extend(wanted_of(&shown(status)));
                self.grant(How::Bypass, None, BTreeSet::new());
            }
            if was_readable {
                self.grant(How::Action, on_display, shown(status));
            }
        }
    }

    /// managedFields say that the action was set later than now: what counts is when it is seen.
    pub(super) fn waited(&mut self, config: &Config, clock: i64) {
        let unseen = config.status.status.observed_generation != Some(config.generation);
        if config.action == Does::Apply && !config.deleting && config.action_at > clock && unseen {
            self.asked(&config.status.status.clone(), config, true, clock);
        }
    }

    /// A person reads what is on display.
    pub(super) fn reads(&mut self, config: &Config) {
        self.read = config.status.status.plan_hash.clone().map(|digest| (digest, self.shown_goes_on));
    }

    /// The digest of what a person has read.
    pub(super) fn has_read(&self) -> Option<String> {
        self.read.as_ref().map(|(digest, _)| digest.clone())
    }

    /// The configuration was deleted and made anew: nothing that was approved of the one before was approved of this one.
    pub(super) fn recreated(&mut self, after: &Config, clock: i64) {
        let read = self.read.take();
        *self = Self { read, violation: self.violation, cause_may_be_gone: true, ..Self::default() };
        self.edited(&Config::new(Does::Ignore), after, clock);
    }

    fn grant(&mut self, how: How, digest: Option<String>, changes: BTreeSet<String>) {
        self.put_back.extend(wanted_of(&changes));
        self.corrections = 0;
        self.open.insert(Granted { how, digest, changes });
    }

    /// The operator stores a status.
    pub(super) fn stored(&mut self, before: &Config, after: &Status, clock: i64) {
        let old = &before.status.status;
        let (ran, runs) = (old.approval.is_some(), after.approval.is_some());
        if ran && !runs {
            self.running = None;
            self.withdrawn = None;
        }
        let begins =
            runs && old.approval.as_ref().map(|a| &a.plan_hash) != after.approval.as_ref().map(|a| &a.plan_hash);
        if begins {
            self.begin(before, after);
        } else if !runs && old.plan_hash != after.plan_hash {
            // Another plan is on display: who approved the one before did not mean this one.
            self.open.retain(|granted| granted.digest.is_none() || granted.digest == after.plan_hash);
        }
        self.shown_goes_on = before.goes_on;
        self.shown_bypass = before.bypass;
        if old.plan_hash != after.plan_hash {
            self.revised = (old.plan_hash.is_some() || before.made_anew).then_some(clock);
        }
        self.revised = self.revised.map(|_| clock);
        if !runs && before.hash.is_some() && before.hash != after.plan_hash {
            // The hash names another plan, and that was said.
            self.open.retain(|granted| granted.how == How::Hash);
        }
        if !runs && after.phase == Some(Phase::Drifted) {
            // What others have changed is told, and no edit of the options approves it.
            self.open.retain(|granted| granted.how != How::Policy);
        }
        if begins || shown(after).is_empty() {
            self.carried_out = Some(inputs(after));
        }
        if !runs && after.phase == Some(Phase::ReviewRequired) {
            // A plan waits: what was approved before there was one has not approved it.
            self.open.retain(|granted| granted.digest.is_some());
        }
    }

    fn begin(&mut self, config: &Config, status: &Status) {
        let Some(approval) = &status.approval else { return };
        let needs_no_person = matches!(approval.how, ApprovedBy::Policy | ApprovedBy::Bypass);
        match &config.hash {
            Some(hash) if *hash == approval.plan_hash => self.used = Some(hash.clone()),
            Some(hash) if !(needs_no_person && self.used.as_ref() == Some(hash)) => {
                self.violation = Some("a plan is carried out although the hash in spec names another one");
            }
            Some(_) | None => {}
        }
        let others = config.status.status.phase == Some(Phase::Drifted)
            || self.carried_out.as_ref().is_some_and(|before| *before != inputs(status));
        if approval.how == ApprovedBy::Policy && others {
            self.violation = Some("what others have changed is approved by an edit of the options");
        }
        let of_what_was_read = self.read.take_if(|(digest, _)| *digest == approval.plan_hash);
        if of_what_was_read.is_some_and(|(_, goes_on)| goes_on != config.goes_on) {
            self.violation = Some("a plan is carried out in another way than was read");
        }
        let how = match approval.how {
            ApprovedBy::Hash => How::Hash,
            ApprovedBy::Action => How::Action,
            ApprovedBy::InAdvance => How::Advance,
            ApprovedBy::Policy => How::Policy,
            ApprovedBy::Bypass => How::Bypass,
        };
        let changes = shown(status);
        let covers = |granted: &&Granted| {
            granted.how == how && granted.digest.as_ref().is_none_or(|digest| *digest == approval.plan_hash)
        };
        let found = self.open.iter().find(covers).cloned();
        match found {
            Some(_) if how == How::Bypass && !wanted_of(&changes).is_subset(&self.put_back) => {
                self.violation = Some("something is done without asking that was never on display");
            }
            Some(granted) => {
                // Whoever approved the plan in two ways has approved it once.
                self.open.retain(|open| open.digest.as_ref().is_some_and(|digest| *digest != approval.plan_hash));
                if how == How::Advance && status.items.iter().any(|item| !item.conflicts.is_empty()) {
                    self.violation = Some("approval in advance takes something from others");
                }
                self.put_back.extend(wanted_of(&changes));
                self.running = Some((Granted { changes, ..granted }, BTreeSet::new()));
            }
            None if how == How::Bypass => {
                if !wanted_of(&changes).is_subset(&self.put_back) {
                    self.violation = Some("something is put back that nobody ever approved");
                }
                self.corrections += 1;
                if self.corrections > 3 {
                    self.violation = Some("a fight without an end");
                }
                self.running = Some((Granted { how, digest: None, changes }, BTreeSet::new()));
            }
            None => self.violation = Some("an execution begins that nobody approved"),
        }
    }

    /// The operator writes item `index`: from `live` to `want`.
    pub(super) fn wrote(state: &mut State, index: u8, live: Option<u8>, want: u8) {
        let item = NAMES[usize::from(index)];
        let (config, status) = (&state.config, state.config.status.status.clone());
        let mut violated = |problem| state.ghost.violation = state.ghost.violation.or(Some(problem));
        if config.deleting || config.action != Does::Apply {
            violated("a write without action Apply");
        }
        let stored = status.items.iter().find(|stored| stored.name == item);
        let intent = status.phase == Some(Phase::InProgress)
            && status.approval.is_some()
            && stored.is_some_and(|stored| stored.state == ItemState::InProgress);
        if !intent {
            violated("a write without a stored intent");
        }
        let waves_before = status.items.iter().filter(|other| stored.is_some_and(|stored| other.wave < stored.wave));
        for other in waves_before {
            match other.state {
                ItemState::Completed => {}
                ItemState::Failed if config.goes_on => {}
                ItemState::Failed => violated("a write after a failure, with Abort"),
                ItemState::Pending | ItemState::InProgress => violated("a write before the wave before it is done"),
            }
        }
        if status.items.iter().any(|item| item.operation == Operation::Blocked) {
            violated("a plan with a blocked item is executed");
        }
        match &mut state.ghost.running {
            None => violated("a write without an approval"),
            Some((granted, written)) => {
                if !granted.changes.contains(&super::world::change(item, live, want, Operation::Update)) {
                    violated("a write of something else than what was approved");
                }
                // A write that nobody remembers is made again where everything is as it was reviewed.
                let remembered = stored.is_some_and(|stored| stored.applied.is_some());
                if !written.insert(index) && remembered {
                    violated("a second write of one item under one approval");
                }
            }
        }
    }
}
