//! The registered profiles: the only line of the core that a new profile edits.

use std::collections::BTreeSet;

use profile_sdk::{Access, Kind, Profile};

/// Every profile, in the order in which they are advertised.
pub static PROFILES: Profiles = &[
    load_aware_rebalancing::PROFILE,
    virt_higher_density::PROFILE,
    virt_platform_baseline::PROFILE,
    example_profile::PROFILE,
];

/// The profiles that an operator runs with.
pub type Profiles = &'static [&'static dyn Profile];

/// What is watched of a kind: all objects, or those in a namespace or with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchScope {
    /// The kind.
    pub kind: Kind,
    /// The only namespace.
    pub namespace: Option<&'static str>,
    /// The only name.
    pub name: Option<&'static str>,
}

/// The scopes to watch for the kinds that `profile` declares, except those that it only asks about.
#[must_use]
pub fn watched(profile: &dyn Profile) -> BTreeSet<WatchScope> {
    let watched = |declared: &profile_sdk::Declared| {
        let kind = declared.kind;
        let mut uses = profile.kinds().iter().filter(|other| other.kind == kind);
        let everywhere = uses.clone().any(|other| other.namespace.is_none());
        let by_name = kind.is_built_in() && uses.all(|other| other.name.is_some());
        let namespace = declared.namespace.filter(|_| !everywhere);
        WatchScope { kind, namespace, name: declared.name.filter(|_| by_name) }
    };
    profile.kinds().iter().filter(|declared| declared.access != Access::Ask).map(watched).collect()
}

/// The registered profile called `name`.
///
/// # Errors
///
/// A sentence that names the registered profiles.
pub fn profile_named(name: &str) -> Result<&'static dyn Profile, String> {
    find(PROFILES, name).ok_or_else(|| {
        let known: Vec<_> = PROFILES.iter().map(|profile| profile.about().name).collect();
        format!("there is no profile {name}; this version has {}", known.join(", "))
    })
}

/// The profile called `name` among `profiles`.
#[must_use]
pub fn find(profiles: Profiles, name: &str) -> Option<&'static dyn Profile> {
    profiles.iter().copied().find(|profile| profile.about().name == name)
}
