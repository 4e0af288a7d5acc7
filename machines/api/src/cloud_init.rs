//! The first boot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the machine does at its first boot. An edit after that usually has no effect: cloud-init runs once for each machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CloudInit {
    /// How the data is offered: noCloud (the default) or configDrive.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<CloudInitType>,
    /// User data. It is kept in a Secret, and wins over the other sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// User data in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_base64: Option<String>,
    /// A Secret with user data; key userdata unless it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyReference>,
    /// A Secret with user data, in the spelling of the published CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_secret_ref: Option<KeyReference>,
    /// A ConfigMap with user data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_config_map_ref: Option<KeyReference>,
    /// Network data, version 1 or 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<String>,
    /// Network data in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data_base64: Option<String>,
    /// A Secret with network data; key networkdata unless it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data_secret_ref: Option<KeyReference>,
    /// A ConfigMap with network data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data_config_map_ref: Option<KeyReference>,
}

/// How cloud-init data is offered.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
pub enum CloudInitType {
    #[default]
    NoCloud,
    ConfigDrive,
}

/// A key of a Secret or ConfigMap in the Machine's namespace.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct KeyReference {
    /// Name of the object.
    pub name: String,
    /// The key in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
