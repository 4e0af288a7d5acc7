//! The connection to the cluster.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Longest time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// There is no usable configuration for a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file can't be used.
    #[error("kubeconfig {path} can't be used: {problem}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error(
        "no cluster is configured: {problem}. Set --kubeconfig or KUBECONFIG to a kubeconfig whose current context is the \
         cluster, or run in a Pod with a service account"
    )]
    NoCluster {
        /// What was tried.
        problem: String,
    },
    /// The client could not be made from the configuration.
    #[error("the cluster's configuration can't be used: {problem}")]
    Client {
        /// What is wrong with it.
        problem: String,
    },
}

/// A client for the cluster of `kubeconfig`, else of the environment: `KUBECONFIG`, the home folder, the Pod. No request
/// is sent.
///
/// # Errors
///
/// If there is no cluster to connect to.
pub async fn connect(kubeconfig: Option<PathBuf>) -> Result<Client, ConnectError> {
    let mut config = match kubeconfig {
        Some(path) => {
            let problem = |error: kube::config::KubeconfigError| ConnectError::Kubeconfig {
                path: path.clone(),
                problem: error.to_string(),
            };
            let file = Kubeconfig::read_from(&path).map_err(problem)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(problem)?
        }
        None => Config::infer().await.map_err(|error| ConnectError::NoCluster { problem: error.to_string() })?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Retries are ours: a reconcile that failed is made anew, from what the world is then.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| ConnectError::Client { problem: error.to_string() })
}
