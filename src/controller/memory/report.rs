//! The configuration as it was when the last reconcile ended, and what of its report is still to be
//! done.

use advisor_core::api::{self, Action, Item, Operation, Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use advisor_core::plan::status::conditions;
use jiff::Timestamp;
use kube::ResourceExt;

/// What was reported of one configuration.
#[derive(Default)]
pub(in crate::controller) struct LastReport {
    /// The configuration at the end of the last reconcile.
    pub(in crate::controller) settled: Option<Settled>,
    /// The configuration at the time of a failed reconcile, until one succeeds.
    pub(in crate::controller) failed: Option<Settled>,
    /// The version that our last status write replaced: a cache that still shows it is outdated.
    pub(in crate::controller) replaced_version: Option<String>,
    /// Whether the audit trail is complete.
    pub(in crate::controller) recorded: bool,
    /// Whether the log has said that the CRD is too old.
    pub(in crate::controller) told_of_crd: bool,
    /// When the status was last written.
    pub(in crate::controller) written_at: Option<Timestamp>,
    /// Whether a new status is held back until its time.
    pub(in crate::controller) deferred: bool,
}

/// The part of a configuration that needs no reconcile while it is unchanged.
#[derive(Debug, PartialEq)]
pub(in crate::controller) struct Settled {
    pub(in crate::controller) generation: Option<i64>,
    pub(in crate::controller) uid: Option<String>,
    pub(in crate::controller) action: Action,
    pub(in crate::controller) replan: Option<String>,
    pub(in crate::controller) deleting: bool,
    pub(in crate::controller) status: VirtPlatformConfigStatus,
}

impl LastReport {
    /// The configuration as it was when it was reconciled last.
    pub(super) fn last_settled(&self) -> Option<&Settled> {
        self.settled.as_ref().or(self.failed.as_ref())
    }

    /// A reconcile of the configuration, which was `seen` at its beginning, has failed.
    pub(super) fn has_failed(&mut self, seen: Settled) {
        // The status may have been written before the failure.
        self.failed = self.settled.take().filter(|written| written.says_as(&seen)).or(Some(seen));
    }

    /// Whether this is the first reconcile, or a fresh plan was asked for since.
    pub(super) fn is_replan_asked(&self, now: &Settled) -> bool {
        self.settled.as_ref().is_none_or(|before| before.replan != now.replan)
    }

    /// Whether `config`, which a cache shows, is what our last status write replaced: the event of
    /// that write is on its way.
    pub(in crate::controller) fn is_replaced(&self, config: &VirtPlatformConfig) -> bool {
        let version = config.resource_version();
        version.is_some() && version == self.replaced_version
    }
}

impl Settled {
    /// The configuration as it is now.
    pub(in crate::controller) fn of(config: &VirtPlatformConfig) -> Self {
        Self {
            generation: config.metadata.generation,
            uid: config.uid(),
            action: config.spec.action,
            replan: config.annotations().get(api::REPLAN_ANNOTATION).cloned(),
            deleting: config.metadata.deletion_timestamp.is_some(),
            status: our_status(config),
        }
    }

    /// Whether `other` has the same content, whatever its status.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        let said = |settled: &Self| (settled.generation, settled.uid.clone(), settled.replan.clone(), settled.deleting);
        said(self) == said(other)
    }

    /// Whether an approved plan is being executed.
    pub(super) fn is_executing(&self) -> bool {
        self.status.phase == Some(Phase::InProgress) && self.status.approval.is_some()
    }

    /// The configuration asks for what is under way.
    pub(super) fn is_applying(&self) -> bool {
        self.action == Action::Apply && self.status.phase == Some(Phase::InProgress)
    }

    /// An approved plan is to be executed of which nothing is written yet.
    pub(super) fn is_first_write(&self) -> bool {
        // A removal that was made is recorded only by its wait.
        let is_unwritten = |item: &Item| {
            item.operation == Operation::NoChange || (item.applied.is_none() && item.wait_started_at.is_none())
        };
        self.is_applying() && self.status.approval.is_some() && self.status.items.iter().all(is_unwritten)
    }
}

/// The status without the conditions of others.
pub(in crate::controller) fn our_status(config: &VirtPlatformConfig) -> VirtPlatformConfigStatus {
    let mut status = config.status.clone().unwrap_or_default();
    conditions::retain_ours(&mut status.conditions);
    status
}
