//! All reads and writes of Kubernetes, in our own verbs. Nothing here decides: objects go in and
//! out as JSON, and refusals are returned by their meaning. It knows none of our own kinds: callers
//! pass their types.
//!
//! ```text
//!   client ──► Cluster ──► kinds: which are served, in which version
//!     │           ├──────► get, list, visit: bounded answers
//!   bounds        ├──────► preview, apply, remove: server-side apply
//!                 ├──────► own: typed objects and their status
//!                 └──────► events: what happened, once
//!   error: what each refusal means, and what may be displayed
//! ```

mod access;
mod bounds;
mod client;
mod error;
mod events;
mod kinds;
mod own;
mod preview;
mod write;

pub use bounds::{Unended, bounded};
pub use client::{ConnectError, client, connect};
pub use error::{Cause, ClusterError, Refusal};
pub use events::Note;
pub use kinds::{LookUpError, Served, SilentGroup, Subject};
pub use own::Stored;
pub use preview::Previewed;
pub use write::{ApplyMode, Precondition};

use std::ops::ControlFlow;

use kube::Client;
use kube::api::{GetParams, ListParams};
use kube::core::Request;
use parking_lot::Mutex;
use serde_json::Value;

use error::within_bounds;
use kinds::KindCache;

/// Objects in one page of a list.
const PAGE: u32 = 500;
/// Objects in one page of a list whose objects are examined and dropped one by one: a node's
/// metadata is about 8 kB.
const SMALL_PAGE: u32 = 50;

/// The cluster that this process is connected to.
pub struct Cluster {
    client: Client,
    /// The field manager with which this program writes its own objects.
    field_manager: &'static str,
    kinds: Mutex<KindCache>,
    resolving: tokio::sync::Mutex<()>,
}

impl Cluster {
    /// The cluster behind `client`, on which this program writes its own objects and events as
    /// `field_manager`.
    #[must_use]
    pub fn new(client: Client, field_manager: &'static str) -> Self {
        Self { client, field_manager, kinds: Mutex::default(), resolving: tokio::sync::Mutex::default() }
    }

    /// The client, for watches.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The object called `name`, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// A read error is never treated as an absent object. [`ClusterError::TooDeep`] or
    /// [`ClusterError::TooMany`] if the object can't be compared.
    pub async fn get(&self, kind: &Served, namespace: Option<&str>, name: &str) -> Result<Option<Value>, ClusterError> {
        let request = Request::new(kind.path(namespace)).get(name, &GetParams::default());
        match self.request(request).await {
            Ok(object) => within_bounds(object).map(Some),
            // A read in a namespace that does not exist gets this answer too.
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind, in one request: only for kinds with few and small objects.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn list(&self, kind: &Served) -> Result<Vec<Value>, ClusterError> {
        let request = Request::new(kind.path(None)).list(&ListParams::default());
        let mut answer = self.request(request).await?;
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// All objects of a kind in a namespace, in one request: only for namespaces with few of them.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn list_in(&self, kind: &Served, namespace: &str) -> Result<Vec<Value>, ClusterError> {
        let request = Request::new(kind.path(Some(namespace))).list(&ListParams::default());
        let mut answer = self.request(request).await?;
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// All objects of a kind that `field_selector` selects, or their metadata, in pages.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn list_selected(
        &self,
        kind: &Served,
        field_selector: Option<&str>,
        metadata_only: bool,
    ) -> Result<Vec<Value>, ClusterError> {
        let mut found = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        params.field_selector = field_selector.map(str::to_owned);
        while let Some(items) = self.page(kind, &mut params, metadata_only).await? {
            found.extend(items);
        }
        Ok(found)
    }

    /// Calls `see` with the metadata of each object of a kind, or of those that `label_selector`
    /// selects, page by page, until it breaks.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn visit_metadata(
        &self,
        kind: &Served,
        label_selector: Option<&str>,
        mut see: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(), ClusterError> {
        let mut params = ListParams::default().limit(SMALL_PAGE);
        params.label_selector = label_selector.map(str::to_owned);
        while let Some(items) = self.page(kind, &mut params, true).await? {
            if items.iter().try_for_each(&mut see).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The next page; `params` then points to the one after it. `None` after the last one.
    async fn page(
        &self,
        kind: &Served,
        params: &mut ListParams,
        metadata_only: bool,
    ) -> Result<Option<Vec<Value>>, ClusterError> {
        if params.continue_token.as_deref() == Some("") {
            return Ok(None);
        }
        let request = Request::new(kind.path(None));
        let request = if metadata_only { request.list_metadata(params) } else { request.list(params) };
        let mut answer = self.request(request).await?;
        let next = answer.pointer("/metadata/continue").and_then(Value::as_str);
        params.continue_token = Some(next.unwrap_or_default().to_owned());
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(Some(items)),
            _ => Ok(Some(Vec::new())),
        }
    }

    /// Sends a request and reads the answer as JSON.
    async fn request(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, ClusterError> {
        let unfit = |error: kube::core::request::Error| {
            ClusterError::Refused(Refusal { message: error.to_string(), ..Refusal::default() })
        };
        let request = request.map_err(unfit)?;
        self.client.request(request).await.map_err(ClusterError::from)
    }
}
