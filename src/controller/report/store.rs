//! Writes the status of a configuration as a whole.

use advisor_cluster::{Cluster, ClusterError, Stored};
use advisor_core::api::{VirtPlatformConfig, VirtPlatformConfigStatus};

/// A status as the server has stored it.
#[derive(Debug)]
pub(super) struct StoredStatus {
    /// The resourceVersion of the configuration after the write.
    pub(super) version: String,
    /// The status. It may differ from the one sent: a CRD that is older than this program lacks
    /// fields, and the server drops what it does not know.
    pub(super) status: VirtPlatformConfigStatus,
}

/// Replaces the status of `config`, if `config` has not changed since it was read.
///
/// # Errors
///
/// As for [`Cluster::replace_status`].
pub(super) async fn write_status(
    cluster: &Cluster,
    config: &VirtPlatformConfig,
    status: &VirtPlatformConfigStatus,
) -> Result<StoredStatus, ClusterError> {
    let object = VirtPlatformConfig { status: Some(status.clone()), ..config.clone() };
    let Stored { version, status } = cluster.replace_status(object).await?;
    // It is stored, even if it does not parse.
    Ok(StoredStatus { version, status: serde_json::from_value(status).unwrap_or_default() })
}
