//! The registered profiles: the one line of the core that a new profile edits.

use profile_sdk::Profile;

/// Every profile, in the order in which they are advertised.
pub static PROFILES: Profiles = &[
    load_aware_rebalancing::PROFILE,
    virt_higher_density::PROFILE,
    virt_platform_baseline::PROFILE,
    example_profile::PROFILE,
];

/// Profiles that an operator is run with.
pub type Profiles = &'static [&'static dyn Profile];

/// The registered profile of that name.
///
/// # Errors
///
/// A sentence that names those that there are.
pub fn known(name: &str) -> Result<&'static dyn Profile, String> {
    find(PROFILES, name).ok_or_else(|| {
        let known: Vec<_> = PROFILES.iter().map(|profile| profile.about().name).collect();
        format!("there is no profile {name}; this version has {}", known.join(", "))
    })
}

/// The profile of that name among `profiles`.
#[must_use]
pub fn find(profiles: Profiles, name: &str) -> Option<&'static dyn Profile> {
    profiles.iter().copied().find(|profile| profile.about().name == name)
}
