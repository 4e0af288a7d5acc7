//! The authority of one plane and the certificates it signs: the server's, and one for each user.
//!
//! A user is a client certificate: its common name is the user, its organisations are the groups.

use std::sync::LazyLock;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

use crate::Error;

/// rcgen keeps one value for each attribute type, so the second group uses the other spelling of
/// the same type. Two are enough for a service account: `system:serviceaccounts` and
/// `system:serviceaccounts:NAMESPACE`.
static ORGANISATION: LazyLock<[DnType; 2]> =
    LazyLock::new(|| [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])]);

/// Signs for one plane; its key exists in memory only.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, both PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, Error> {
        let subject = "virt-advisor test authority";
        let mut params = params(subject, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, key(subject)?).map_err(failed(subject))?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate, PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own certificate, DER.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// The certificate of the API server, for the loopback address.
    pub(crate) fn server(&self) -> Result<Identity, Error> {
        let subject = "kube-apiserver";
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from);
        let mut params = CertificateParams::new(names).map_err(failed(subject))?;
        describe(&mut params, subject, &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params, subject)
    }

    /// The certificate of a user in these groups.
    pub(crate) fn user(&self, user: &str, groups: &[&str]) -> Result<Identity, Error> {
        if groups.len() > ORGANISATION.len() {
            return Err(Error::Groups { user: user.to_owned(), most: ORGANISATION.len() });
        }
        let mut params = params(user, groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params, user)
    }

    fn sign(&self, params: &CertificateParams, subject: &str) -> Result<Identity, Error> {
        let key = key(subject)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed(subject))?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// A key pair for signing service account tokens: the private and the public half, both PEM.
pub(crate) fn service_account_keys() -> Result<(String, String), Error> {
    let key = key("service accounts")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn key(subject: &str) -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(failed(subject))
}

fn params(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    describe(&mut params, name, groups);
    params
}

fn describe(params: &mut CertificateParams, name: &str, groups: &[&str]) {
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    for (kind, group) in ORGANISATION.iter().zip(groups) {
        params.distinguished_name.push(kind.clone(), *group);
    }
    // Fixed dates: nothing here reads the clock, and the clock of every machine that runs this is
    // between them.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
}

fn failed(subject: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let subject = subject.to_owned();
    move |source| Error::Certificate { subject, source }
}
