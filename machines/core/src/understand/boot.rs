//! From which devices a Machine boots, and what it does at its first boot.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use machines_api::cloud_init::{CloudInit, CloudInitType, KeyReference};
use machines_api::{Machine, MachineSpec};

use crate::names;
use crate::problem::{Problem, Reason};

/// A kind of device in the order of booting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootClass {
    /// Disks.
    Disk,
    /// Interfaces.
    Network,
    /// The ISO image.
    Cdrom,
}

/// Data of the first boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudInitData {
    /// How it is offered.
    pub kind: CloudInitType,
    /// User data.
    pub user: Option<DataSource>,
    /// Network data.
    pub network: Option<DataSource>,
}

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// The Machine itself.
    Text(String),
    /// A key of a Secret.
    Secret {
        /// The field of the Machine that names it.
        path: &'static str,
        /// The Secret.
        name: String,
        /// The key, if it is named.
        key: Option<String>,
    },
    /// A key of a ConfigMap.
    ConfigMap {
        /// The field of the Machine that names it.
        path: &'static str,
        /// The ConfigMap.
        name: String,
        /// The key, if it is named.
        key: Option<String>,
    },
}

/// An ISO image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// From a web server.
    Http(String),
    /// From a container registry.
    Registry(String),
}

/// Annotation with which the guest's installer, or a person, has the ISO image taken out.
const EJECTED: [&str; 2] = ["vitistack.io/os-installed", "vitistack.io/cdrom-ejected"];

/// The order of booting.
pub(super) fn boot(spec: &MachineSpec, problems: &mut Vec<Problem>) -> Vec<BootClass> {
    let mut order = Vec::new();
    for (index, name) in spec.boot_order.iter().flatten().enumerate() {
        let path = format!("spec.bootOrder[{index}]");
        let class = match name.as_str() {
            "disk" => BootClass::Disk,
            "network" => BootClass::Network,
            "cdrom" => BootClass::Cdrom,
            other => {
                let message = format!("{other:?} is not one of disk, network, cdrom");
                problems.push(Problem::new(Reason::InvalidSpec, path, message));
                continue;
            }
        };
        if order.contains(&class) {
            problems.push(Problem::new(Reason::InvalidSpec, path, format!("{name} is listed twice: list it once")));
        } else {
            order.push(class);
        }
    }
    order
}

/// The ISO image, unless it was taken out.
pub(super) fn image(machine: &Machine) -> Option<Image> {
    let is_ejected = EJECTED.iter().any(|name| machine.annotations().get(*name).is_some_and(|value| value == "true"));
    let system = machine.spec.os.as_ref().filter(|_| !is_ejected)?;
    [system.image_id.as_deref(), system.iso_uri.as_deref()].into_iter().flatten().find_map(address)
}

/// What an image's name means, if it is the address of one.
pub(super) fn address(text: &str) -> Option<Image> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Some(Image::Http(text.to_owned()))
    } else if text.starts_with("docker://") {
        Some(Image::Registry(text.to_owned()))
    } else {
        None
    }
}

/// The data of the first boot. What is written in the Machine wins over what it names.
pub(super) fn cloud_init(spec: &MachineSpec, problems: &mut Vec<Problem>) -> Option<CloudInitData> {
    let data = spec.cloud_init.as_ref()?;
    let reference = user_reference(data, problems);
    let map = |path, reference: &Option<KeyReference>| {
        let KeyReference { name, key } = reference.clone()?;
        Some(DataSource::ConfigMap { path, name, key })
    };
    let user = text(
        "spec.cloudInit.userData",
        &data.user_data,
        "spec.cloudInit.userDataBase64",
        &data.user_data_base64,
        problems,
    )
    .or(reference)
    .or_else(|| map("spec.cloudInit.userDataConfigMapRef", &data.user_data_config_map_ref));
    let secret = data.network_data_secret_ref.clone().map(|KeyReference { name, key }| DataSource::Secret {
        path: "spec.cloudInit.networkDataSecretRef",
        name,
        key,
    });
    let network = text(
        "spec.cloudInit.networkData",
        &data.network_data,
        "spec.cloudInit.networkDataBase64",
        &data.network_data_base64,
        problems,
    )
    .or(secret)
    .or_else(|| map("spec.cloudInit.networkDataConfigMapRef", &data.network_data_config_map_ref));
    for (path, source) in [("user", &user), ("network", &network)] {
        if let Some(DataSource::Secret { path: field, name, .. } | DataSource::ConfigMap { path: field, name, .. }) =
            source
            && !names::is_subdomain(name)
        {
            let message = format!("{name:?} can't be the name of an object with {path} data: check its spelling");
            problems.push(Problem::new(Reason::InvalidSpec, format!("{field}.name"), message));
        }
    }
    (user.is_some() || network.is_some()).then(|| CloudInitData { kind: data.kind.unwrap_or_default(), user, network })
}

fn user_reference(data: &CloudInit, problems: &mut Vec<Problem>) -> Option<DataSource> {
    let (path, reference) = match (&data.secret_ref, &data.user_data_secret_ref) {
        (Some(one), Some(other)) if one != other => {
            let message = "spec.cloudInit.userDataSecretRef names another Secret or key: set one of them, or both to the same value";
            problems.push(Problem::new(Reason::InvalidSpec, "spec.cloudInit.secretRef", message));
            return None;
        }
        (Some(reference), _) => ("spec.cloudInit.secretRef", reference),
        (None, Some(reference)) => ("spec.cloudInit.userDataSecretRef", reference),
        (None, None) => return None,
    };
    Some(DataSource::Secret { path, name: reference.name.clone(), key: reference.key.clone() })
}

fn text(
    path: &str,
    plain: &Option<String>,
    encoded_path: &str,
    encoded: &Option<String>,
    problems: &mut Vec<Problem>,
) -> Option<DataSource> {
    let decoded = encoded.as_deref().filter(|text| !text.is_empty()).and_then(|text| {
        let compact: String = text.split_whitespace().collect();
        let decoded = BASE64_STANDARD.decode(compact).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if decoded.is_none() {
            let message = "it is not text in base64: encode it again";
            problems.push(Problem::new(Reason::InvalidSpec, encoded_path, message));
        }
        decoded
    });
    let plain = plain.clone().filter(|text| !text.is_empty());
    if let (Some(plain), Some(decoded)) = (&plain, &decoded)
        && plain != decoded
    {
        let message = format!("{encoded_path} has other contents: set one of them, or both to the same value");
        problems.push(Problem::new(Reason::InvalidSpec, path, message));
    }
    plain.or(decoded).map(DataSource::Text)
}
