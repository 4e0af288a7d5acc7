//! The arguments of the two programs, and the files that they and their clients read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use k8s_openapi::ByteString;

use crate::certificates::{self, Authority, Identity};
use crate::{Error, audit};

/// The name of cluster and context in the kubeconfig files.
const CONTEXT: &str = "virt-advisor-demo";

pub(crate) fn etcd_arguments(port: u16) -> Vec<String> {
    let client = format!("http://127.0.0.1:{port}");
    [
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        // It has no peers: any port that the kernel chooses will do.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
    .into()
}

/// The paths are relative to the plane's folder, in which the server runs.
pub(crate) fn server_arguments(port: u16, etcd_port: u16) -> Vec<String> {
    let mut arguments = vec![format!("--secure-port={port}"), format!("--etcd-servers=http://127.0.0.1:{etcd_port}")];
    arguments.extend(
        [
            "--bind-address=127.0.0.1",
            // Otherwise it looks for a network address, which a sandbox may not have.
            "--advertise-address=127.0.0.1",
            // Lets it bind the port that we have reserved, and again at once after a crash.
            "--permit-address-sharing",
            "--cert-dir=certificates",
            "--tls-cert-file=server.crt",
            "--tls-private-key-file=server.key",
            "--client-ca-file=authority.crt",
            "--service-account-key-file=service-account.pub",
            "--service-account-signing-key-file=service-account.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            // Nothing makes the service accounts that it would require.
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
            "--event-ttl=1h",
            "--profiling=false",
            "--audit-policy-file=audit-policy.yaml",
            "--audit-log-path=audit.log",
            "--audit-log-mode=blocking",
            // One file that is never rotated: positions in it stay valid.
            "--audit-log-maxsize=0",
        ]
        .map(String::from),
    );
    arguments
}

pub(crate) fn write_server_files(folder: &Path, authority: &Authority) -> Result<(), Error> {
    let server = authority.server()?;
    let (private, public) = certificates::service_account_keys()?;
    for (name, text) in [
        ("authority.crt", authority.pem().as_str()),
        ("server.crt", &server.certificate),
        ("server.key", &server.key),
        ("service-account.key", &private),
        ("service-account.pub", &public),
        ("audit-policy.yaml", audit::POLICY),
    ] {
        write_private(&folder.join(name), text)?;
    }
    Ok(())
}

/// A self-contained kubeconfig.
pub(crate) fn kubeconfig(url: &str, authority: &str, user: &str, identity: &Identity) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: {CONTEXT}\n\
         clusters:\n\
         - name: {CONTEXT}\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n\
         contexts:\n\
         - name: {CONTEXT}\n  context:\n    cluster: {CONTEXT}\n    user: {user}\n\
         users:\n\
         - name: {user}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n",
        authority = base64(authority),
        // JSON strings are valid YAML; the quotes are needed because user names have colons.
        user = serde_json::Value::from(user),
        certificate = base64(&identity.certificate),
        key = base64(&identity.key),
    )
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::io(format!("write {}", path.display())))
}

pub(crate) fn base64(text: &str) -> String {
    // The bytes of a Secret have the same encoding as data in a kubeconfig.
    let encoded = serde_json::to_value(ByteString(text.as_bytes().to_vec()));
    encoded.ok().and_then(|value| value.as_str().map(String::from)).expect("bytes are encoded as one string")
}
