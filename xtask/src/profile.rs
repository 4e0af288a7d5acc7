//! The crate of a new profile: a copy of profiles/example-profile under another name, and the lines
//! that make it known.
//!
//! The template is a profile that is built and tested like any other, so it can't grow stale.

use std::fs;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = "example-profile";
/// The list of profiles, and the manifest of the crate that has it.
const REGISTRY: &str = "crates/engine/src/registry.rs";
const MANIFEST: &str = "crates/engine/Cargo.toml";
/// What the template has outside of its folder: a sample, and the plan that comes of it.
const BESIDE: [&str; 2] = [
    "samples/example-profile-dry-run.yaml",
    "tests/cluster/profiles/snapshots/cluster__profiles__samples__sample_example-profile-dry-run.snap",
];
/// The longest name: it becomes a label value and part of a field manager.
const LONGEST: usize = 40;
/// The shortest: longer than the keywords of Rust.
const SHORTEST: usize = 9;

/// The forms of a profile's name.
struct Names {
    /// `numa-placement`
    dashed: String,
    /// `numa_placement`
    snake: String,
    /// `NumaPlacement`
    pascal: String,
    /// `numaPlacement`
    camel: String,
}

impl Names {
    fn of(name: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let dashes = name.starts_with('-') || name.ends_with('-') || name.contains("--");
        let letter = name.starts_with(|first: char| first.is_ascii_lowercase());
        if name.len() > LONGEST || !letter || dashes || !name.chars().all(fits) {
            return Err(format!(
                "{name:?} is not a valid name for a profile: use up to {LONGEST} lower-case letters, digits and single dashes, and begin with a letter"
            ));
        }
        let pascal: String = name.split('-').map(capitalized).collect();
        let mut camel = pascal.clone();
        if let Some(first) = camel.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Ok(Self { dashed: name.to_owned(), snake: name.replace('-', "_"), pascal, camel })
    }

    /// The template's text with this name in every place.
    fn put_into(&self, text: &str) -> String {
        text.replace("configure-example-component", &format!("configure-{}", self.dashed))
            .replace("example-config", &format!("{}-config", self.dashed))
            .replace(TEMPLATE, &self.dashed)
            .replace("example_profile", &self.snake)
            .replace("ExampleProfile", &self.pascal)
            .replace("exampleProfile", &self.camel)
    }
}

fn capitalized(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    word
}

/// Makes the crate `name` in the repository at `root` and makes it known. Returns what to do next.
///
/// # Errors
///
/// A sentence if the name can't be used or something can't be written. Nothing of the repository is
/// changed if the name is taken.
pub(crate) fn create(root: &Path, name: &str) -> Result<String, String> {
    let names = Names::of(name)?;
    let folder = root.join("profiles").join(name);
    if folder.exists() || name == "sdk" {
        return Err(format!("profiles/{name} already exists: choose another name"));
    }
    free(root, &names)?;
    let registry = edited(&root.join(REGISTRY), |text| {
        let (before, list) = text.split_once("PROFILES: Profiles")?;
        let (list, after) = list.split_once("];")?;
        let list = list.trim_end().trim_end_matches(',');
        Some(format!("{before}PROFILES: Profiles{list}, {}::PROFILE];{after}", names.snake))
    })?;
    let manifest = edited(&root.join(MANIFEST), |text| {
        let (before, after) = text.split_once("\n[dependencies]\n")?;
        Some(format!("{before}\n[dependencies]\n{name} = {{ path = \"../../profiles/{name}\" }}\n{after}"))
    })?;
    let owners = edited(&root.join("CODEOWNERS"), |text| {
        Some(format!("{}\n{:<37} @kubevirt/virt-advisor-maintainers\n", text.trim_end(), format!("/profiles/{name}/")))
    })?;
    let template = root.join("profiles").join(TEMPLATE);
    let mut files = Vec::new();
    copies(&template, &folder, &|text| names.put_into(text), &mut files)?;
    for file in BESIDE {
        files.push((root.join(names.put_into(file)), names.put_into(&read(&root.join(file))?)));
    }
    for (path, text) in files.into_iter().chain([registry, manifest, owners]) {
        write(&path, &text)?;
    }
    Ok(format!(
        "Created profiles/{name} with a sample, and registered it in {REGISTRY}, {MANIFEST} and CODEOWNERS.\n\
         Next: run make generate (make new-profile does so itself), then follow docs/PROFILE-AUTHORS.md."
    ))
}

/// Whether the name is free for a crate, a module and a member of the options.
fn free(root: &Path, names: &Names) -> Result<(), String> {
    let taken = |by: &str| format!("{} is the name of {by}: choose another name", names.dashed);
    let of_language = ["core", "std", "alloc", "test", "proc-macro", "self", "super", "crate"];
    // Rust's keywords have up to eight letters and no dash; so short a name tells nobody anything.
    if of_language.contains(&names.dashed.as_str()) || names.dashed.len() < SHORTEST {
        return Err(taken("a part of Rust, or may become one"));
    }
    let locked = read(&root.join("Cargo.lock"))?;
    let is_crate = |name: &str| locked.contains(&format!("name = \"{name}\"\n"));
    if is_crate(&names.dashed) || is_crate(&names.snake) {
        return Err(taken("a crate that this repository uses"));
    }
    let crd = read(&root.join("crds/advisor.kubevirt.io_virtplatformconfigs.yaml"))?;
    if crd.contains(&format!("options.{})", names.camel)) {
        return Err(format!("spec.options.{} belongs to another profile: choose another name", names.camel));
    }
    Ok(())
}

/// Every file below `from`, as it is to be below `to`, with names and texts changed.
fn copies(
    from: &Path,
    to: &Path,
    changed: &dyn Fn(&str) -> String,
    all: &mut Vec<(PathBuf, String)>,
) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("{} can't be read: {error}", from.display());
    for entry in fs::read_dir(from).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = to.join(changed(&name));
        if path.is_dir() {
            copies(&path, &target, changed, all)?;
        } else {
            all.push((target, changed(&read(&path)?)));
        }
    }
    Ok(())
}

/// The file with another text.
fn edited(path: &Path, edit: impl FnOnce(&str) -> Option<String>) -> Result<(PathBuf, String), String> {
    let text = read(path)?;
    let text = edit(&text)
        .ok_or_else(|| format!("{} does not have the expected form: add the profile by hand", path.display()))?;
    Ok((path.to_owned(), text))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{} can't be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_not_work_are_refused_and_nothing_is_written() {
        let empty = tempfile::tempdir().unwrap();
        let long = "a".repeat(41);
        for name in ["", "-a", "a-", "a--b", "9a", "Numa", "a_b", "a/b", "..", "sdk", &long] {
            assert!(create(empty.path(), name).is_err(), "{name}");
        }
        assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(create(&root, TEMPLATE).unwrap_err().contains("already exists"));
        for (name, why) in [
            ("serde", "a part of Rust"),
            ("proc-macro", "a part of Rust"),
            ("controlplane", "a crate that this repository uses"),
            ("serde-json", "a crate that this repository uses"),
            ("virt-higher-density-", "is not a valid name"),
            ("load-aware", "spec.options.loadAware belongs to another profile"),
        ] {
            let problem = create(&root, name).unwrap_err();
            assert!(problem.contains(why), "{name}: {problem}");
        }
    }

    #[test]
    fn every_form_of_the_name_is_in_its_place() {
        let names = Names::of("numa-placement2").unwrap();
        let text = "pub const PROFILE: &dyn Profile = &ExampleProfile; name: \"example-profile\", options_key: \"exampleProfile\" \
                    example_profile::PROFILE example-config configure-example-component";
        assert_eq!(
            names.put_into(text),
            "pub const PROFILE: &dyn Profile = &NumaPlacement2; name: \"numa-placement2\", options_key: \"numaPlacement2\" \
             numa_placement2::PROFILE numa-placement2-config configure-numa-placement2"
        );
    }

    /// In a copy of what it touches: the new profile is complete, and everything else is as it was
    /// but for its lines.
    #[test]
    fn the_new_profile_is_complete_and_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let scratch = tempfile::tempdir().unwrap();
        let read_only = ["Cargo.lock", "crds/advisor.kubevirt.io_virtplatformconfigs.yaml"];
        for file in [REGISTRY, MANIFEST, "CODEOWNERS"].into_iter().chain(BESIDE).chain(read_only) {
            write(&scratch.path().join(file), &read(&root.join(file)).unwrap()).unwrap();
        }
        let unchanged = |text: &str| text.to_owned();
        let copy = scratch.path().join("profiles").join(TEMPLATE);
        let mut files = Vec::new();
        copies(&root.join("profiles").join(TEMPLATE), &copy, &unchanged, &mut files).unwrap();
        for (path, text) in &files {
            write(path, text).unwrap();
        }
        create(scratch.path(), "numa-placement").unwrap();
        let new = |file: &str| read(&scratch.path().join(file)).unwrap();
        for (file, holds) in [
            (REGISTRY, "numa_placement::PROFILE"),
            (MANIFEST, "numa-placement = { path = \"../../profiles/numa-placement\" }"),
            ("CODEOWNERS", "/profiles/numa-placement/ "),
            ("samples/numa-placement-dry-run.yaml", "profile: numa-placement"),
            ("profiles/numa-placement/Cargo.toml", "name = \"numa-placement\""),
            ("profiles/numa-placement/README.md", "spec.options.numaPlacement"),
        ] {
            assert!(new(file).contains(holds), "{file}: {}", new(file));
        }
        let mut made = Vec::new();
        let folder = scratch.path().join("profiles/numa-placement");
        copies(&folder, &folder, &unchanged, &mut made).unwrap();
        assert_eq!(made.len(), files.len());
        for (path, _) in made {
            let text = read(&path).unwrap();
            assert!(
                !text.contains("ExampleProfile") && !text.contains("example-profile"),
                "{}: {text}",
                path.display()
            );
        }
        assert!(create(scratch.path(), "numa-placement").unwrap_err().contains("already exists"));
    }
}
