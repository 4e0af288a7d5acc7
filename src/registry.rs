//! The registered profiles: the one line of the core that a new profile edits.

use profile_sdk::Profile;

/// Every profile, in the order in which they are advertised.
pub static PROFILES: &[&dyn Profile] = &[load_aware_rebalancing::PROFILE];

/// The profile of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Profile> {
    PROFILES.iter().copied().find(|profile| profile.about().name == name)
}
