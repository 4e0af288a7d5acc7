//! The certificate of the metrics: the one in two files, which are read again when they change, or
//! a self-signed one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// How long the files are not checked again after a check. The check is made at a handshake, so
/// nothing happens without clients.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A certificate can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the metrics certificate {} with the key {} can't be used: {problem}", certificate.display(), key.display())]
pub struct CertificateError {
    certificate: PathBuf,
    key: PathBuf,
    problem: String,
}

/// The files of the certificate.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The certificate with its chain, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

/// A certificate with its key, which may be renewed between handshakes.
#[derive(Debug, Clone)]
pub struct Certificate(pub(super) Arc<dyn ResolvesServerCert>);

/// The certificate in `files`; without files a new self-signed one, as in Go operators.
pub(super) fn certificate(files: Option<CertificateFiles>) -> Result<Certificate, CertificateError> {
    Ok(Certificate(match files {
        Some(files) => Arc::new(Reloaded::new(files)?),
        None => Arc::new(Fixed(Arc::new(self_signed()?))),
    }))
}

fn self_signed() -> Result<CertifiedKey, CertificateError> {
    let unfit = |problem: String| CertificateError {
        certificate: "(self-signed)".into(),
        key: "(self-signed)".into(),
        problem,
    };
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| unfit(error.to_string()))?;
    certified(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).map_err(unfit)
}

fn certified(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate is not valid PEM: {error}"))?;
    if chain.is_empty() {
        return Err("the certificate file contains no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key is not valid PEM: {error}"))?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(error) => Err(format!("the key does not belong to the certificate: {error}")),
        Ok(()) => Ok(certified),
    }
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A certificate in files that are renewed while the process runs.
#[derive(Debug)]
struct Reloaded {
    files: CertificateFiles,
    known: Mutex<KnownFiles>,
}

#[derive(Debug)]
struct KnownFiles {
    read: (Vec<u8>, Vec<u8>),
    looked: Instant,
    key: Arc<CertifiedKey>,
}

impl Reloaded {
    fn new(files: CertificateFiles) -> Result<Self, CertificateError> {
        let unfit = |problem: String| CertificateError {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            problem,
        };
        let read = read(&files).map_err(unfit)?;
        let key = Arc::new(certified(&read.0, &read.1).map_err(unfit)?);
        Ok(Self { files, known: Mutex::new(KnownFiles { read, looked: Instant::now(), key }) })
    }
}

fn read(files: &CertificateFiles) -> Result<(Vec<u8>, Vec<u8>), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("reading {}: {error}", path.display()));
    Ok((read(&files.certificate)?, read(&files.key)?))
}

impl ResolvesServerCert for Reloaded {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut known = self.known.lock();
        if known.looked.elapsed() >= LOOK_AGAIN {
            known.looked = Instant::now();
            let found = read(&self.files);
            if found.as_ref().is_ok_and(|read| *read == known.read) {
                return Some(known.key.clone());
            }
            // Both files change, one after the other: if they do not match now, they may in a
            // moment.
            match found.and_then(|read| certified(&read.0, &read.1).map(|key| (read, key))) {
                Ok((read, key)) => {
                    tracing::info!("the metrics certificate was reloaded");
                    (known.read, known.key) = (read, Arc::new(key));
                }
                Err(problem) => {
                    tracing::warn!(problem, "the metrics certificate can't be reloaded; the old one stays in use")
                }
            }
        }
        Some(known.key.clone())
    }
}
