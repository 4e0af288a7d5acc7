//! Decides who may read the metrics: the API server is asked by TokenReview and
//! SubjectAccessReview. A client certificate that was verified needs no TokenReview.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use parking_lot::{Mutex, MutexGuard};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use super::demands;

/// How long an answer is reused; as in controller-runtime.
const ALLOWED_FOR: Duration = Duration::from_secs(60);
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// The longest time for an answer of the API server.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most answers that are remembered. More clients cause old ones to be forgotten, and no
/// growth.
const REMEMBERED: usize = 64;
/// The longest token that is reviewed, in bytes. A service account's token has about a thousand
/// characters.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The digest of a token or of a certificate. The token itself is not kept.
type ReviewKey = [u8; 32];

/// The credential that a client presents.
enum Shown<'a> {
    Certificate(&'a CertificateDer<'static>),
    Token(&'a str),
}

/// Asks the API server, and remembers its answers.
pub(super) struct Reviewer {
    client: Client,
    answers: Mutex<BTreeMap<ReviewKey, (Instant, StatusCode)>>,
}

impl Reviewer {
    pub(super) fn new(client: Client) -> Self {
        Self { client, answers: Mutex::default() }
    }

    /// `OK`, or the status with which a request for `/metrics` is refused if it has these headers
    /// and comes from a client with this certificate.
    pub(super) async fn check(&self, headers: &HeaderMap, certificate: Option<&CertificateDer<'static>>) -> StatusCode {
        let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let token = token.filter(|token| !token.is_empty() && token.len() <= LONGEST_TOKEN);
        let (shown, key) = match (certificate, token) {
            (Some(certificate), _) => (Shown::Certificate(certificate), Sha256::digest(certificate)),
            (None, Some(token)) => (Shown::Token(token), Sha256::digest(token)),
            (None, None) => return StatusCode::UNAUTHORIZED,
        };
        let key: ReviewKey = key.into();
        if let Some(answer) = self.remembered(&key) {
            return answer;
        }
        match tokio::time::timeout(PATIENCE, self.ask(shown)).await {
            Ok(Ok(answer)) => {
                self.remember(key, answer);
                answer
            }
            Ok(Err(error)) => {
                // Without the error itself, which may quote the request.
                let code = match &error {
                    kube::Error::Api(status) => status.code,
                    _ => 0,
                };
                tracing::warn!(
                    code,
                    "can't authenticate or authorize a metrics client: are the rights to create tokenreviews and subjectaccessreviews missing?"
                );
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Err(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    async fn ask(&self, shown: Shown<'_>) -> kube::Result<StatusCode> {
        let user = match shown {
            Shown::Certificate(certificate) => demands::user(certificate),
            Shown::Token(token) => self.user_of(token).await?,
        };
        let Some(user) = user else { return Ok(StatusCode::UNAUTHORIZED) };
        let review = SubjectAccessReview { spec: question(user), ..SubjectAccessReview::default() };
        let reviewed = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        Ok(if reviewed.status.is_some_and(|status| status.allowed) { StatusCode::OK } else { StatusCode::FORBIDDEN })
    }

    async fn user_of(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: None },
            ..TokenReview::default()
        };
        let reviewed = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        Ok(reviewed.status.filter(|status| status.authenticated == Some(true)).and_then(|status| status.user))
    }

    fn remembered(&self, key: &ReviewKey) -> Option<StatusCode> {
        let answers = self.answers();
        let (at, answer) = answers.get(key)?;
        let lasts = if *answer == StatusCode::OK { ALLOWED_FOR } else { REFUSED_FOR };
        (at.elapsed() < lasts).then_some(*answer)
    }

    fn remember(&self, key: ReviewKey, answer: StatusCode) {
        let mut answers = self.answers();
        if answers.len() >= REMEMBERED {
            // Refusals first: a client that sends many wrong tokens must not push Prometheus out.
            let oldest =
                answers.iter().min_by_key(|(_, (at, answer))| (*answer == StatusCode::OK, *at)).map(|(key, _)| *key);
            oldest.and_then(|oldest| answers.remove(&oldest));
        }
        answers.insert(key, (Instant::now(), answer));
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<ReviewKey, (Instant, StatusCode)>> {
        self.answers.lock()
    }
}

fn question(user: UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        groups: user.groups,
        uid: user.uid,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some("/metrics".to_owned()),
            verb: Some("get".to_owned()),
        }),
        ..SubjectAccessReviewSpec::default()
    }
}
