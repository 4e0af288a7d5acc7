//! The connection to the cluster.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Response};
use http_body::Body;
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt, RustlsTlsError};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls::InconsistentKeys;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tower::util::MapResponseLayer;
use tower::{BoxError, ServiceBuilder};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use object::limits::Shallow;

/// The longest time for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long sent data may wait for its acknowledgement by the other machine. What a broken network
/// holds back for longer is dropped, and not delivered late, when another replica may already lead.
const UNANSWERED: Duration = Duration::from_secs(20);

/// How long a connection may be silent before the kernel checks whether the other machine is still
/// there. A watch sends nothing, so nothing else shows that its network is down.
const IDLE: Duration = Duration::from_secs(30);

/// There is no usable configuration for a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file can't be used.
    #[error("kubeconfig {path} can't be used: {problem}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The problem with it.
        problem: String,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error(
        "no cluster is configured: {problem}. Set --kubeconfig or KUBECONFIG to a kubeconfig whose current context is the \
         cluster, or run in a Pod with a service account"
    )]
    NoCluster {
        /// The sources that were tried.
        problem: String,
    },
    /// The client could not be made from the configuration.
    #[error("the cluster's configuration can't be used: {problem}")]
    Client {
        /// The problem with it.
        problem: String,
    },
}

/// A client for the cluster of `kubeconfig`, or else of the environment: `KUBECONFIG`, the home
/// folder, the Pod. Sends no request.
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

/// A client for `config` that sends requests at once and never retries on its own.
///
/// kube's own connector leaves Nagle's algorithm on, which holds small requests back until the
/// answer to the previous one is acknowledged: 40 ms each, measured as 100 ms of a plan.
///
/// # Errors
///
/// If the configuration holds credentials or certificates that can't be used.
pub fn client(mut config: Config) -> Result<Client, ConnectError> {
    let user = config.auth_info.clone();
    let problem = |error: kube::Error| ConnectError::Client { problem: refusal(&error, &user) };
    // Retries are up to us: a failed reconcile is repeated with the state of the cluster at that
    // time.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.headers.push((USER_AGENT, HeaderValue::from_static(concat!("virt-advisor/", env!("CARGO_PKG_VERSION")))));
    if config.proxy_url.is_some() {
        let builder = ClientBuilder::try_from(config).map_err(problem)?;
        return Ok(builder.with_layer(&MapResponseLayer::new(shallow)).build());
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
        .map_response(shallow)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// `answer` without anything nested too deep to be parsed: one object must not make the others of
/// its list unreadable.
fn shallow<B>(answer: Response<B>) -> Response<impl Body<Data = Bytes, Error = B::Error> + Send>
where
    B: Body<Data = Bytes> + Send,
{
    answer.map(|body| {
        let mut shallow = Shallow::default();
        body.map_frame(move |frame| frame.map_data(|data| shallow.filter(data)))
    })
}

/// The reason why there is no client. kube reports every problem with a client certificate as an
/// invalid private key.
fn refusal(error: &kube::Error, user: &AuthInfo) -> String {
    let kube::Error::RustlsTls(RustlsTlsError::InvalidPrivateKey(refused)) = error else { return error.to_string() };
    match refused {
        rustls::Error::InvalidCertificate(problem) => match version(user) {
            None | Some(X509Version::V3) => format!("the client certificate is not accepted: {problem}"),
            Some(version) => format!(
                "the client certificate is of X.509 version {}, but only version 3 is accepted. Create one of version 3: \
                 openssl x509 -req does so if -extfile names a file with at least one extension, such as \
                 basicConstraints=CA:FALSE",
                version.0 + 1
            ),
        },
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the client key does not belong to the client certificate. Take both from the same source".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The version of the client certificate, if it can be parsed.
fn version(user: &AuthInfo) -> Option<X509Version> {
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => data_url::forgiving_base64::decode_to_vec(data.as_bytes()).ok()?,
        (None, Some(path)) => std::fs::read(path).ok()?,
        (None, None) => return None,
    };
    let certificate = CertificateDer::from_pem_slice(&pem).ok()?;
    X509Certificate::from_der(&certificate).ok().map(|(_, certificate)| certificate.version())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;

    /// A certificate as openssl x509 -req makes it without extensions. Its key is kept nowhere.
    const VERSION_1: &str = include_str!("version-1.crt");

    /// The error for a user with this certificate and this key.
    fn said(certificate: &str, key: &str) -> String {
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let user = json!({"client-certificate-data": encode(certificate), "client-key-data": encode(key)});
        let mut config = Config::new("https://localhost:1".parse().unwrap());
        config.root_cert = Some(Vec::new());
        config.auth_info = serde_json::from_value(user).unwrap();
        client(config).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[tokio::test]
    async fn t12_what_is_wrong_with_a_client_certificate_is_not_told_of_its_key() {
        let made = || rcgen::generate_simple_self_signed(["user".to_owned()]).unwrap();
        let (own, other) = (made(), made());
        let key = own.signing_key.serialize_pem();
        assert_eq!(said(&own.cert.pem(), &key), "");
        for (certificate, words) in [
            (VERSION_1, &["X.509 version 1", "only version 3", "-extfile", "basicConstraints=CA:FALSE"][..]),
            (&other.cert.pem(), &["the client key does not belong to the client certificate"]),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &["client certificate is not accepted"]),
        ] {
            let said = said(certificate, &key);
            assert!(words.iter().all(|word| said.contains(word)) && !said.contains("private key"), "{said}");
        }
    }

    #[test]
    fn t12_the_certificate_in_a_file_is_looked_at_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), VERSION_1).unwrap();
        let path = file.path().display().to_string();
        let user = AuthInfo { client_certificate: Some(path), ..AuthInfo::default() };
        assert_eq!(version(&user), Some(X509Version::V1));
    }
}
