//! The cluster's requirements for TLS: protocol and ciphers, if it has a profile for them, and the
//! authority that signs client certificates, by which OpenShift's Prometheus authenticates.
//!
//! They are read when a client connects, if the last time was long ago; as long as nobody asks for
//! metrics, nothing is read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{CipherSuite, RootCertStore, ServerConfig, SupportedCipherSuite};
use serde_json::Value;
use tokio::sync::Mutex;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::tls::Certificate;

/// The ConfigMap in which every API server publishes the authority of client certificates, for
/// other servers.
const AUTHORITY: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
/// The object with OpenShift's TLS profile.
const PROFILE: &str = "/apis/config.openshift.io/v1/apiservers/cluster";
/// How long the requirements are used after they were read.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// How soon reading is retried after an error.
const RETRY: Duration = Duration::from_secs(10);
/// The longest time for an answer of the API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// TLS 1.2 ciphers by the names that a profile uses, which are those of OpenSSL. TLS 1.3 has no
/// weak ones to exclude.
const CIPHERS: [(&str, CipherSuite); 6] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The TLS configuration for new connections.
pub(super) struct Tls {
    client: Client,
    certificate: Certificate,
    known: Mutex<Option<KnownDemands>>,
}

struct KnownDemands {
    demands: Demands,
    config: Arc<ServerConfig>,
    read_again: Instant,
}

/// The requirements of the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
struct Demands {
    /// The certificates of the authority, as PEM.
    authority: Option<String>,
    /// `spec.tlsSecurityProfile`.
    profile: Value,
}

impl Tls {
    pub(super) fn new(certificate: Certificate, client: Client) -> Self {
        Self { client, certificate, known: Mutex::default() }
    }

    /// The configuration for the next connection.
    pub(super) async fn config(&self) -> Arc<ServerConfig> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref().filter(|known| Instant::now() < known.read_again) {
            return known.config.clone();
        }
        let read = tokio::time::timeout(PATIENCE, read(&self.client)).await;
        let (demands, pause) = match read.map_err(|_| "no answer".to_owned()).and_then(|read| read) {
            Ok(demands) => (demands, READ_AGAIN),
            Err(problem) => {
                tracing::warn!(
                    problem,
                    "the cluster's TLS settings can't be read; the last known ones, or the defaults, stay in use"
                );
                (known.as_ref().map(|known| known.demands.clone()).unwrap_or_default(), RETRY)
            }
        };
        let config = match known.take() {
            Some(known) if known.demands == demands => known.config,
            _ => Arc::new(configuration(&demands, self.certificate.0.clone())),
        };
        *known = Some(KnownDemands { demands, config: config.clone(), read_again: Instant::now() + pause });
        config
    }
}

async fn read(client: &Client) -> Result<Demands, String> {
    let authority = get(client, AUTHORITY).await?;
    let authority = authority.pointer("/data/client-ca-file").and_then(Value::as_str).map(str::to_owned);
    let mut profile = get(client, PROFILE).await?;
    let profile = profile.pointer_mut("/spec/tlsSecurityProfile").map(Value::take).unwrap_or_default();
    Ok(Demands { authority, profile })
}

/// The object, or null if it does not exist or may not be read.
async fn get(client: &Client, path: &str) -> Result<Value, String> {
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match client.request(request).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            tracing::info!(path, "no right to read this object; metrics are served without it");
            Ok(Value::Null)
        }
        Err(error) => Err(error.to_string()),
    }
}

fn configuration(demands: &Demands, certificate: Arc<dyn ResolvesServerCert>) -> ServerConfig {
    let (modern, suites) = allowed(&demands.profile);
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..ring::default_provider() });
    let versions: &[_] = if modern { &[&rustls::version::TLS13] } else { rustls::ALL_VERSIONS };
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(versions).expect("TLS 1.3 and its ciphers are always among them");
    let verifier = demands.authority.as_ref().and_then(|authority| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authority.as_bytes()).flatten());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        // Without an authority, no client can present a certificate.
        verifier.allow_unauthenticated().build().ok()
    });
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Whether only TLS 1.3 is allowed, and the allowed ciphers. Versions before TLS 1.2 are never
/// allowed: a profile that asks for one gets TLS 1.2.
fn allowed(profile: &Value) -> (bool, Vec<SupportedCipherSuite>) {
    let custom = &profile["custom"];
    let is = |value: &Value, text: &str| value.as_str() == Some(text);
    let is_custom = is(&profile["type"], "Custom");
    let modern = is(&profile["type"], "Modern") || (is_custom && is(&custom["minTLSVersion"], "VersionTLS13"));
    let named = custom["ciphers"].as_array().filter(|_| is_custom);
    let is_named = |suite: CipherSuite| {
        named.is_none_or(|names| {
            CIPHERS.iter().any(|(name, known)| *known == suite && names.iter().any(|named| is(named, name)))
        })
    };
    let all = ring::ALL_CIPHER_SUITES.iter().copied();
    (modern, all.filter(|suite| suite.tls13().is_some() || is_named(suite.suite())).collect())
}

/// The user that a verified client certificate names, as the API server reads it: the common name
/// is the user, organizations are groups.
pub(super) fn user(certificate: &CertificateDer<'_>) -> Option<UserInfo> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let username = subject.iter_common_name().find_map(|name| name.as_str().ok()).filter(|name| !name.is_empty())?;
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    let groups = groups.chain(["system:authenticated".to_owned()]).collect();
    Some(UserInfo { username: Some(username.to_owned()), groups: Some(groups), ..UserInfo::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_profile_says_which_protocol_and_ciphers_there_are() {
        let count = |profile: Value| {
            let (modern, suites) = allowed(&profile);
            (modern, suites.iter().filter(|suite| suite.tls13().is_none()).count())
        };
        assert_eq!(count(Value::Null), (false, 6));
        assert_eq!(count(json!({"type": "Intermediate", "intermediate": {}})), (false, 6));
        assert_eq!(count(json!({"type": "Old"})), (false, 6));
        assert!(count(json!({"type": "Modern"})).0);
        let custom = |version: &str, ciphers: &[&str]| {
            count(json!({"type": "Custom", "custom": {"minTLSVersion": version, "ciphers": ciphers}}))
        };
        assert_eq!(
            custom("VersionTLS12", &["ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256", "RC4"]),
            (false, 1)
        );
        assert!(custom("VersionTLS13", &[]).0);
        for profile in [json!({"type": "Custom", "custom": {"ciphers": []}}), json!({"type": "Modern"}), json!(7)] {
            let demands = Demands { profile, authority: Some("nonsense".to_owned()) };
            configuration(&demands, super::super::tls::certificate(None).unwrap().0);
        }
    }
}
