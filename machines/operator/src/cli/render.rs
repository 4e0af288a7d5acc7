//! `kubevirt-operator render`: the objects of a Machine, without a cluster.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use machines_core::facts::{Facts, KubeVirt, Network, StorageClass};
use machines_core::problem::joined;
use machines_core::resolve::resolve;
use machines_core::understand::{DataSource, NetworkRef, Wanted, understand};
use machines_core::{objects, plan};

use super::file::{Contents, FileFlag, contents};
use operator_kit::command::{CommandFailure, print};

/// Print the objects that a Machine becomes, without asking a cluster. What the Machine names is
/// assumed to exist; a MachineClass has to be in the file.
#[derive(Debug, Args)]
pub(super) struct RenderFlags {
    #[command(flatten)]
    file: FileFlag,

    /// The cluster's default storage class.
    #[arg(long, value_name = "NAME", default_value = "default")]
    storage_class: String,

    /// Namespace of Machines that name none.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
}

pub(super) fn run(flags: RenderFlags) -> Result<ExitCode, CommandFailure> {
    let mut texts = Vec::new();
    let Contents { machines, classes } = contents(&flags.file.file, &flags.namespace)?;
    for machine in machines {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let class = machine.spec.machine_class.as_ref().and_then(|class| classes.get(class));
        let refused =
            |problems: Vec<_>| CommandFailure::of_comparison(format!("Machine {name}: {}", joined(&problems)));
        let wanted = understand(&machine, class).map_err(refused)?;
        let resolved = resolve(&wanted, &assumed(&wanted, &flags.storage_class)).map_err(refused)?;
        let mut all = objects::claims(&resolved);
        all.extend(objects::network_attachments(&resolved));
        all.extend(objects::image(&resolved));
        all.extend(objects::secret(&resolved).map(|mut secret| {
            // Read by people: the text of a Secret may be written as it is.
            if let Some(data) = secret.as_object_mut().and_then(|secret| secret.remove("data")) {
                secret["stringData"] = plain(&data);
            }
            secret
        }));
        all.push(plan::desired_vm(&resolved, None, &BTreeMap::new()));
        texts.extend(all.iter().map(object::diff::yaml));
        for (path, why) in &wanted.without_effect {
            texts.push(format!("# {path} has no effect: {why}\n"));
        }
    }
    print(&texts.join("---\n")).map(|()| ExitCode::SUCCESS).map_err(CommandFailure::of_comparison)
}

fn plain(data: &serde_json::Value) -> serde_json::Value {
    let entries = data.as_object().into_iter().flatten();
    let texts = entries.map(|(key, value)| {
        let text = value.as_str().and_then(objects::decoded).and_then(|bytes| String::from_utf8(bytes).ok());
        (key.clone(), serde_json::Value::from(text.unwrap_or_default()))
    });
    serde_json::Value::Object(texts.collect())
}

/// Everything that the Machine names, as if it were there.
fn assumed(wanted: &Wanted, default_class: &str) -> Facts {
    let class = |name: &str| StorageClass { name: name.to_owned(), allows_expansion: true, ..StorageClass::default() };
    let named = wanted.disks.iter().filter_map(|disk| disk.storage_class.as_deref()).map(class);
    let mut facts = Facts {
        storage_classes: named.collect(),
        kubevirt: Some(KubeVirt { machine_types: vec!["*".to_owned()], ..KubeVirt::default() }),
        has_data_volumes: true,
        namespace_vlan: Some(0),
        ..Facts::default()
    };
    facts.storage_classes.push(StorageClass { is_default: true, ..class(default_class) });
    for nic in &wanted.nics {
        if let NetworkRef::Named(name) = &nic.network {
            facts.networks.insert(name.clone(), Some(Network::Attachment(name.clone())));
        }
    }
    let sources = wanted.cloud_init.iter().flat_map(|data| [(&data.user, "userdata"), (&data.network, "networkdata")]);
    for (source, usual) in sources {
        let content = |key: &Option<String>| {
            let key = key.clone().unwrap_or_else(|| usual.to_owned());
            let text = format!("# from the key {key}\n");
            Some(BTreeMap::from([(key, text.into_bytes())]))
        };
        match source {
            Some(DataSource::Secret { name, key, .. }) => drop(facts.secrets.insert(name.clone(), content(key))),
            Some(DataSource::ConfigMap { name, key, .. }) => drop(facts.config_maps.insert(name.clone(), content(key))),
            Some(DataSource::Text(_)) | None => {}
        }
    }
    facts
}
