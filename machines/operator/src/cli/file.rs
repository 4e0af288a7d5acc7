//! Machines from a file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use machines_api::Machine;
use machines_api::references::MachineClassSpec;
use serde_json::Value;

use operator_kit::command::CommandFailure;

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;

/// What a file has of Machines.
pub(super) struct Contents {
    /// The Machines, in order.
    pub(super) machines: Vec<Machine>,
    /// MachineClasses beside them, by name.
    pub(super) classes: BTreeMap<String, MachineClassSpec>,
}

/// The Machines and MachineClasses in a file, or in standard input for `-`. Other objects are
/// skipped.
pub(super) fn contents(path: &Path, namespace: &str) -> Result<Contents, CommandFailure> {
    let text = text(path)
        .map_err(|error| CommandFailure::of_comparison(format!("{} can't be read: {error}", path.display())))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|error| CommandFailure::of_comparison(format!("{} is not YAML: {error}", path.display())))?;
    let classes = documents.iter().filter(|object| object["kind"] == "MachineClass");
    let classes = classes.filter_map(|class| {
        let spec = serde_json::from_value(class["spec"].clone()).ok()?;
        Some((class["metadata"]["name"].as_str()?.to_owned(), spec))
    });
    let classes = classes.collect();
    let objects = documents.into_iter().filter(|object| object["kind"] == "Machine");
    let machines: Result<Vec<Machine>, CommandFailure> =
        objects.map(|object| machine(path, object, namespace)).collect();
    let machines = machines?;
    if machines.is_empty() {
        return Err(CommandFailure::of_comparison(format!(
            "{} has no Machine: name a file with at least one",
            path.display()
        )));
    }
    Ok(Contents { machines, classes })
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(LARGEST).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// A Machine; fields that it does not know are mistakes, and are named.
fn machine(path: &Path, object: Value, namespace: &str) -> Result<Machine, CommandFailure> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let unfit = |why: String| CommandFailure::of_comparison(format!("{}: Machine {name}: {why}", path.display()));
    let mut machine: Machine = serde_json::from_value(object.clone()).map_err(|error| unfit(error.to_string()))?;
    let read = serde_json::to_value(&machine.spec).map_err(|error| unfit(error.to_string()))?;
    let mut unknown = Vec::new();
    unknown_fields(&object["spec"], &read, "spec", &mut unknown);
    if !unknown.is_empty() {
        return Err(unfit(format!("there is no field {}: correct or remove it", unknown.join(", "))));
    }
    if machine.namespace().is_none() {
        machine.metadata.namespace = Some(namespace.to_owned());
    }
    Ok(machine)
}

fn unknown_fields(written: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written.iter().filter(|(_, value)| !value.is_null()) {
                match read.get(key) {
                    Some(read) => unknown_fields(value, read, &format!("{path}.{key}"), found),
                    None => found.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (index, (written, read)) in written.iter().zip(read).enumerate() {
                unknown_fields(written, read, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// The file of `-f`.
#[derive(Debug, clap::Args)]
pub(super) struct FileFlag {
    /// A file with Machines, or - for standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(super) file: PathBuf,
}
