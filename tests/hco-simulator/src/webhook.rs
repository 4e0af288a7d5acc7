//! The conversion webhook: a TLS server on the loopback address, and its entry in the CRD.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::convert::convert;

/// The running webhook. It ends when this is dropped.
#[derive(Debug)]
pub struct Webhook {
    address: String,
    certificate: String,
    task: JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Webhook {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    ///
    /// If no certificate can be made or no port is free.
    pub async fn start() -> Result<Self> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port of loopback")?;
        let address = format!("https://{}/convert", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection of the webhook ended early");
                    }
                });
            }
        });
        Ok(Self { address, certificate: cert.pem(), task })
    }

    /// `spec.conversion` of the CRD for this webhook.
    #[must_use]
    pub fn conversion(&self) -> Value {
        let encoded = serde_json::to_value(ByteString(self.certificate.as_bytes().to_vec())).unwrap_or_default();
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": {"url": self.address, "caBundle": encoded},
        }})
    }

    /// Makes the API server convert HyperConverged with this webhook.
    ///
    /// # Errors
    ///
    /// If the CRD cannot be changed.
    pub async fn install(&self, client: &Client) -> Result<()> {
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        let body = json!({"spec": {"conversion": self.conversion()}});
        crds.patch("hyperconvergeds.hco.kubevirt.io", &PatchParams::default(), &Patch::Merge(body)).await?;
        Ok(())
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let to = review.pointer("/request/desiredAPIVersion").and_then(Value::as_str).unwrap_or_default();
    let objects = review.pointer("/request/objects").and_then(Value::as_array).into_iter().flatten();
    let converted: Vec<_> = objects.map(|object| convert(object, to)).collect();
    let answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": review.pointer("/request/uid"), "result": {"status": "Success"}, "convertedObjects": converted},
    });
    Ok(Response::new(Full::new(Bytes::from(answer.to_string()))))
}
