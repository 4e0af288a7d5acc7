//! MachineConfigs: files, units and kernel arguments for the machines of a role.

use std::borrow::Cow;

use profile_sdk::{DraftError, render};
use serde::Serialize;
use serde_json::{Value, json};

/// The content of a MachineConfig. Files are not compressed: another version of the compressor
/// would write other bytes, and every machine would reboot.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pub(crate) kernel_arguments: Vec<&'static str>,
    pub(crate) files: Vec<File>,
    pub(crate) units: Vec<Unit>,
}

/// A file on the machine, owned by root.
#[derive(Debug, Serialize)]
pub(crate) struct File {
    path: &'static str,
    /// The permissions, in decimal in the object, as Ignition demands.
    mode: u32,
    text: Cow<'static, str>,
}

impl File {
    /// A file that every user may read.
    pub(crate) fn text(path: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { path, mode: 0o644, text: text.into() }
    }

    /// A file that every user may execute.
    pub(crate) fn program(path: &'static str, text: &'static str) -> Self {
        Self { path, mode: 0o755, text: text.into() }
    }
}

/// A systemd unit.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Unit {
    /// A service that the profile brings and enables.
    Service { name: &'static str, enabled: bool, contents: &'static str },
    /// Settings for a unit that exists already.
    DropIn { name: &'static str, dropins: [DropIn; 1] },
}

#[derive(Debug, Serialize)]
pub(crate) struct DropIn {
    name: &'static str,
    contents: &'static str,
}

impl Unit {
    pub(crate) fn service(name: &'static str, contents: &'static str) -> Self {
        Self::Service { name, enabled: true, contents }
    }

    pub(crate) fn drop_in(unit: &'static str, name: &'static str, contents: &'static str) -> Self {
        Self::DropIn { name: unit, dropins: [DropIn { name, contents }] }
    }
}

/// The MachineConfig `name` for machines of `role`.
pub(crate) fn machine_config(name: &str, role: &str, payload: &Payload) -> Result<Value, DraftError> {
    let Payload { kernel_arguments, files, units } = payload;
    let ignition = !files.is_empty() || !units.is_empty();
    let data = json!({
        "name": name, "role": role, "kernelArguments": kernel_arguments, "ignition": ignition, "files": files, "units": units,
    });
    render("machine-config.yaml", include_str!("../templates/machine-config.yaml.hbs"), &data)
}
