//! What the operator is installed from, made of config/ by kustomize: dist/, the Helm chart, the
//! OLM bundle, dashboards. One source, so that no two ways of installing it differ.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{Files, GENERATED, Source};
use crate::{bundle, chart, dashboards, machines};

/// Writes all files.
pub fn write(root: &Path) -> Result<String, String> {
    let files = all(root)?;
    for (path, text) in &files {
        let target = root.join(path);
        let folder = target.parent().unwrap_or(root);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&target, text));
        written.map_err(|error| format!("{} can't be written: {error}", path.display()))?;
    }
    Ok(format!("wrote {} files", files.len()))
}

/// Says which files are not what would be written.
pub fn check(root: &Path) -> Result<String, String> {
    let files = all(root)?;
    let differs = |(path, text): &(&PathBuf, &String)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(*text);
    let stale: Vec<_> = files.iter().filter(differs).map(|(path, _)| path.display().to_string()).collect();
    match stale.is_empty() {
        true => Ok(format!("{} files match config/", files.len())),
        false => Err(format!("these files do not match config/: {}. Run make generate", stale.join(", "))),
    }
}

fn all(root: &Path) -> Result<Files, String> {
    let source = Source::at(root);
    let mut files = Files::new();
    for (target, folder) in
        [("dist/crd.yaml", "crd"), ("dist/install.yaml", "default"), ("dist/openshift.yaml", "openshift")]
    {
        files.insert(target.into(), format!("{GENERATED}{}", source.text(folder)?));
    }
    files.extend(chart::files(&source)?);
    files.extend(bundle::files(&source)?);
    files.extend(dashboards::files()?);
    files.extend(machines::files(root)?);
    Ok(files)
}
