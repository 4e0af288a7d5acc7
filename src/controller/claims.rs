//! Makes the claims of every configuration visible to the others: two that want different values
//! both report it.

use std::collections::BTreeMap;

use advisor_core::api::VirtPlatformConfig;
use advisor_core::plan::items::claims::Claim;
use parking_lot::{Mutex, MutexGuard};

/// The claims of all configurations, by name.
#[derive(Default)]
pub(super) struct Claims(Mutex<BTreeMap<String, Vec<Claim>>>);

impl Claims {
    /// Records that `name` is `config` now, or gone. Returns the other configurations that want a
    /// changed object too.
    pub(super) fn note(&self, name: &str, config: Option<&VirtPlatformConfig>) -> Vec<String> {
        let now = config.map(Claim::all_of).unwrap_or_default();
        let mut all = self.all();
        let before = if now.is_empty() { all.remove(name) } else { all.insert(name.to_owned(), now.clone()) };
        let before = before.unwrap_or_default();
        let changed: Vec<_> = before
            .iter()
            .filter(|claim| !now.contains(claim))
            .chain(now.iter().filter(|claim| !before.contains(claim)))
            .collect();
        let concerned = |claims: &[Claim]| {
            claims.iter().any(|claim| changed.iter().any(|changed| changed.target.is_same_object(&claim.target)))
        };
        let others = all.iter().filter(|(other, claims)| *other != name && concerned(claims));
        others.map(|(other, _)| other.clone()).collect()
    }

    /// The claims of all configurations except `name`.
    pub(super) fn of_others(&self, name: &str) -> Vec<Claim> {
        self.all().iter().filter(|(other, _)| *other != name).flat_map(|(_, claims)| claims.clone()).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Claim>>> {
        self.0.lock()
    }
}
