//! What a plan says of files and units that other MachineConfigs bring too.

use std::collections::BTreeMap;

use crate::plan::items::message::listed;

/// Whether `name` is the path of a file: names of units contain no slash at the beginning.
pub(super) fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

/// Other MachineConfigs that also contain one of our files.
#[derive(Default)]
pub(super) struct Shared<'a> {
    pub(super) by: Vec<&'a str>,
    /// The source that overrides part of it, if one does.
    pub(super) overridden_by: Option<&'a str>,
}

/// A sentence about the files that stay as they are on the pool.
pub(super) fn note_overridden(
    pool: &str,
    shared: &BTreeMap<&str, Shared<'_>>,
    another: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let overridden: Vec<_> = shared
        .iter()
        .filter_map(|(file, found)| found.overridden_by.map(|by| (*file, by)))
        .filter(|(file, _)| !another(file))
        .collect();
    match overridden.as_slice() {
        [] => None,
        [(file, by)] => Some(format!("On pool {pool}, MachineConfig {by} overrides {file}, which stays as it is.")),
        files => {
            let told: Vec<_> = files.iter().map(|(file, by)| format!("{file} (by {by})")).collect();
            Some(format!(
                "On pool {pool}, {} files are overridden and stay as they are: {}.",
                files.len(),
                listed(&told)
            ))
        }
    }
}

/// A sentence about the files of which a part stays as it is on the pool.
pub(super) fn note_overridden_in_part(
    pool: &str,
    shared: &BTreeMap<&str, Shared<'_>>,
    another: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let overridden = shared.iter().filter_map(|(file, found)| found.overridden_by.map(|by| (*file, by)));
    let told: Vec<_> =
        overridden.filter(|(file, _)| another(file)).map(|(file, by)| format!("{file} (by {by})")).collect();
    (!told.is_empty())
        .then(|| format!("On pool {pool}, other MachineConfigs override parts of files: {}.", listed(&told)))
}

/// A sentence about the parts of units that stay as they are on the pool.
pub(super) fn note_overridden_units(pool: &str, overridden: &BTreeMap<&str, &str>) -> Option<String> {
    let told: Vec<_> =
        overridden.iter().map(|(claim, by)| format!("{} (by {by})", claim.replacen(' ', ": ", 1))).collect();
    (!told.is_empty()).then(|| {
        format!(
            "On pool {pool}, other MachineConfigs override parts of units, which stay as they are: {}.",
            listed(&told)
        )
    })
}

/// A sentence about the files of other MachineConfigs that are replaced on the pool.
pub(super) fn note_replaced(
    pool: &str,
    shared: &BTreeMap<&str, Shared<'_>>,
    replaces: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let in_force: Vec<_> =
        shared.iter().filter(|(file, found)| found.overridden_by.is_none() && replaces(file)).collect();
    let owners = |found: &Shared<'_>| listed(&found.by.iter().map(|by| (*by).to_owned()).collect::<Vec<_>>());
    match in_force.as_slice() {
        [] => None,
        [(file, found)] => Some(format!("On pool {pool}, it replaces {file} of MachineConfig {}.", owners(found))),
        files => {
            let told: Vec<_> = files.iter().map(|(file, found)| format!("{file} (of {})", owners(found))).collect();
            let told = listed(&told);
            Some(format!("On pool {pool}, it replaces {} files of other MachineConfigs: {told}.", files.len()))
        }
    }
}
