//! The certificate of the metrics: the one in two files, read again when they change, or one of our own making.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The files are looked at again after so long, at the next handshake: nothing happens while nobody asks.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A certificate can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the metrics certificate {} with the key {} can't be used: {problem}", certificate.display(), key.display())]
pub struct CertificateError {
    certificate: PathBuf,
    key: PathBuf,
    problem: String,
}

/// Where the certificate is.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The certificate with its chain, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

/// A certificate with its key, as it is when it is asked for.
#[derive(Debug, Clone)]
pub struct Certificate(pub(super) Arc<dyn ResolvesServerCert>);

/// The certificate of `files`; without files a new one that is signed by itself, as Go operators do.
pub(super) fn certificate(files: Option<CertificateFiles>) -> Result<Certificate, CertificateError> {
    Ok(Certificate(match files {
        Some(files) => Arc::new(Reloaded::new(files)?),
        None => Arc::new(Fixed(Arc::new(self_signed()?))),
    }))
}

fn self_signed() -> Result<CertifiedKey, CertificateError> {
    let unfit = |problem: String| CertificateError {
        certificate: "made at the start".into(),
        key: "made at the start".into(),
        problem,
    };
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| unfit(error.to_string()))?;
    certified(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).map_err(unfit)
}

fn certified(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate is no PEM: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key is no PEM: {error}"))?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(error) => Err(format!("the key is not that of the certificate: {error}")),
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

/// A certificate that is renewed while the process runs, by whoever mounts the files.
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
            // Both files change, one after the other: what does not fit together now may in a moment.
            match found.and_then(|read| certified(&read.0, &read.1).map(|key| (read, key))) {
                Ok((read, key)) => {
                    tracing::info!("the metrics certificate is renewed");
                    (known.read, known.key) = (read, Arc::new(key));
                }
                Err(problem) => {
                    tracing::warn!(problem, "the metrics certificate can't be renewed; the old one is used")
                }
            }
        }
        Some(known.key.clone())
    }
}
