//! The start: waits for a cluster that serves our API, and says what is missing.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, ListParams};

use advisor_cluster::{ClusterError, Refusal};
use advisor_core::api::VirtPlatformConfig;
use operator_kit::backoff::Backoff;

/// Between two tries.
const BETWEEN_TRIES: Backoff = Backoff { first: Duration::from_millis(250), longest: LIMIT };
/// How long one try may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns as soon as configurations can be listed. Logs what prevents that, once for each change
/// of the reason.
pub(super) async fn wait_until_served(client: &Client) {
    let configs: Api<VirtPlatformConfig> = Api::all(client.clone());
    let mut said = String::new();
    let mut failures = 0;
    loop {
        // Metadata is enough, and can be parsed whatever the objects hold.
        let list = ListParams::default().limit(1);
        let problem = match tokio::time::timeout(LIMIT, configs.list_metadata(&list)).await {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => problem(&ClusterError::from(error)),
            Err(_) => problem(&ClusterError::Transient { message: format!("no answer within {LIMIT:?}") }),
        };
        if problem != said {
            tracing::warn!("{problem}");
            said = problem;
        }
        failures += 1;
        tokio::time::sleep(BETWEEN_TRIES.after(failures)).await;
    }
}

fn problem(error: &ClusterError) -> String {
    match error {
        ClusterError::NotServed | ClusterError::NotFound { .. } => {
            "waiting for the cluster to serve VirtPlatformConfig: apply crds/advisor.kubevirt.io_virtplatformconfigs.yaml".to_owned()
        }
        ClusterError::Refused(Refusal { code: 401 | 403, message, .. }) => format!(
            "the API server denies access; waiting until this user has the rights that `virt-advisor rbac` prints: {message}"
        ),
        ClusterError::Refused(Refusal { message, .. }) => {
            format!("the API server refuses to list VirtPlatformConfigs; trying again until it does: {message}")
        }
        ClusterError::Transient { message } | ClusterError::Webhook { message } => {
            format!("the API server can't be reached; trying again until it answers: {message}")
        }
        ClusterError::Conflicts(_) | ClusterError::TooDeep | ClusterError::TooMany | ClusterError::Moved => format!("the API server can't be used: {error}"),
    }
}
