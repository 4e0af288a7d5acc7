//! Records what the user has approved, independently of the operator and by other means: the
//! promise by which it is judged.
//!
//! An approval is recorded when the user gives it, from what was on display then, regardless of
//! whether the operator sees it in time, crashes or restarts.

use std::collections::BTreeSet;

use super::config::{Config, Does, NAMES, change};
use crate::api::{ApprovedBy, ItemState, Operation, Phase, VirtPlatformConfigStatus as Status};

/// The way in which something was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum How {
    /// The hash of the plan on display was set.
    Hash,
    /// The action was set to Apply while the plan was on display.
    Action,
    /// Apply was set before there was a plan.
    Advance,
    /// The policy approves the plan that this edit leads to.
    Policy,
    /// Nobody is asked about targets that change.
    Bypass,
}

/// An approval that the user gave.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Granted {
    pub(super) how: How,
    /// The plan on display, if there was one.
    digest: Option<String>,
    /// The changes that it covers; empty until an approval without a plan gets one.
    changes: BTreeSet<String>,
}

impl Granted {
    /// Whether it approves the plan with this digest by name.
    pub(super) fn stands_for(&self, digest: Option<&String>) -> bool {
        self.digest.is_some() && self.digest.as_ref() == digest
    }
}

/// Everything known about approvals.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Ghost {
    /// Approvals that were given and neither used nor withdrawn.
    pub(super) open: BTreeSet<Granted>,
    /// The approval that is being used, and the items written with it.
    pub(super) running: Option<(Granted, BTreeSet<u8>)>,
    /// The approval that was withdrawn while it was being used.
    withdrawn: Option<(Granted, BTreeSet<u8>)>,
    /// With bypassOptimisticLock: what was approved once may be restored.
    put_back: BTreeSet<String>,
    /// The number of consecutive executions that nobody asked for.
    corrections: u8,
    /// The time when the plan on display replaced another one.
    revised: Option<i64>,
    /// The plan that a person has read and not approved yet: its digest, and the failure policy
    /// shown with it.
    read: Option<(String, bool)>,
    /// The inputs of the last plan that was carried out or changed nothing.
    carried_out: Option<Vec<serde_json::Value>>,
    /// The hash in spec, if it has been carried out.
    used: Option<String>,
    /// Whether the plan on display was made with failure policy Continue.
    shown_goes_on: bool,
    shown_bypass: bool,
    /// Whether something since the last failure may have ended its cause.
    pub(super) cause_may_be_gone: bool,
    /// A forbidden action of the operator.
    pub(super) violation: Option<&'static str>,
}

/// The changes that `status` displays.
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
    /// The user edits the configuration from `before` to `after`, at time `clock`.
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
                // It names the plan that is being executed, which continues.
                self.running = self.withdrawn.take().or(self.running.take());
            } else if let Some(hash) = after.hash.clone().filter(|hash| Some(hash) == on_display.as_ref()) {
                self.grant(How::Hash, Some(hash), shown(status));
            }
        }
        if before.bypass != after.bypass {
            // The spec differs from the one on display: the action has approved nothing of it.
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
            // An approval was for the options of that time; but a hash names its plan whatever the
            // options are now.
            self.open.retain(|granted| matches!(granted.how, How::Advance | How::Hash));
        }
        if after.action != Does::Apply || after.deleting {
            return;
        }
        let asked = before.action != Does::Apply;
        // The restored options are those on display, and the action is Apply.
        let edited = before.option != after.option || before.goes_on != after.goes_on || before.bypass != after.bypass;
        if status.approval.is_some() && before.bypass == after.bypass && (asked || edited) {
            // The plan on display is the one that is being executed: it continues.
            self.running = self.withdrawn.take().or(self.running.take());
        }
        self.asked(status, after, asked || edited, clock);
    }

    /// Records what action Apply approves; `anew` if an edit has just asked for it.
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

    /// managedFields say that the action was set in the future: the time at which it is seen
    /// counts.
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

    /// The digest of the plan that a person has read.
    pub(super) fn has_read(&self) -> Option<String> {
        self.read.as_ref().map(|(digest, _)| digest.clone())
    }

    /// The configuration was deleted and created again: approvals of the old one do not apply to
    /// the new one.
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
            // Another plan is on display: approvals of the earlier one do not apply to it.
            self.open.retain(|granted| granted.digest.is_none() || granted.digest == after.plan_hash);
        }
        self.shown_goes_on = before.goes_on;
        self.shown_bypass = before.bypass;
        if old.plan_hash != after.plan_hash {
            self.revised = (old.plan_hash.is_some() || before.made_anew).then_some(clock);
        }
        self.revised = self.revised.map(|_| clock);
        if !runs && before.hash.is_some() && before.hash != after.plan_hash {
            // The hash names another plan, and the status said so.
            self.open.retain(|granted| granted.how == How::Hash);
        }
        if !runs && after.phase == Some(Phase::Drifted) {
            // Changes by others are reported, and an edit of the options does not approve them.
            self.open.retain(|granted| granted.how != How::Policy);
        }
        if begins || shown(after).is_empty() {
            self.carried_out = Some(inputs(after));
        }
        if !runs && after.phase == Some(Phase::ReviewRequired) {
            // A plan waits: approvals given before there was a plan have not approved it.
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
                // A plan that was approved in two ways is approved once.
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
    pub(super) fn wrote(&mut self, config: &Config, index: u8, live: Option<u8>, want: u8) {
        let item = NAMES[usize::from(index)];
        let status = &config.status.status;
        let violation = &mut self.violation;
        let mut violated = |problem| *violation = violation.or(Some(problem));
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
        match &mut self.running {
            None => violated("a write without an approval"),
            Some((granted, written)) => {
                if !granted.changes.contains(&change(item, live, want, Operation::Update)) {
                    violated("a write of something else than what was approved");
                }
                // A write that is not recorded is repeated if everything is as reviewed.
                let remembered = stored.is_some_and(|stored| stored.applied.is_some());
                if !written.insert(index) && remembered {
                    violated("a second write of one item under one approval");
                }
            }
        }
    }
}
