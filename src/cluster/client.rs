//! The connection to the cluster.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

/// Longest time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long what was sent may wait for its acknowledgement by the other machine. What a broken network holds back for longer is dropped
/// and not delivered late, when another replica may lead already.
const UNANSWERED: Duration = Duration::from_secs(20);

/// How long a connection may be silent before the kernel asks whether the other machine is still there. A watch sends nothing, so
/// nothing else shows that its network has gone.
const IDLE: Duration = Duration::from_secs(30);

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
    let config = match kubeconfig {
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
    client(config)
}

/// A client for `config`, with what matters to us: requests are sent at once, and not retried behind our back.
///
/// kube's own connector leaves Nagle's algorithm on, which holds small requests back until the answer to the one before is
/// acknowledged: 40 ms each, measured as 100 ms of a plan.
///
/// # Errors
///
/// If the configuration holds credentials or certificates that can't be used.
pub fn client(mut config: Config) -> Result<Client, ConnectError> {
    let problem = |error: kube::Error| ConnectError::Client { problem: error.to_string() };
    // Retries are ours: a look that failed is made anew, from what the world is then.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.headers.push((USER_AGENT, HeaderValue::from_static(concat!("virt-advisor/", env!("CARGO_PKG_VERSION")))));
    if config.proxy_url.is_some() {
        return Client::try_from(config).map_err(problem);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_tcp_user_timeout(Some(UNANSWERED));
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(IDLE));
    let connector = config.rustls_https_connector_with_connector(connector).map_err(problem)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(problem)?)
        .layer(config.extra_headers_layer().map_err(problem)?)
        .map_err(BoxError::from)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
