//! Limits every wait: a server, or a proxy in front of it, that never answers can't block anyone
//! forever.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tokio::time::{Sleep, sleep};
use tower::BoxError;

/// How long the head of an answer may take, and then the rest of it. An API server itself gives up
/// a request after a minute.
const LIMIT: Duration = Duration::from_secs(60);
/// How much longer than requested a watch may stay open.
///
/// Silence alone proves nothing. For a kind that does not change, a server sends only bookmarks: it
/// tries to send one each minute and one just before the end (kubernetes,
/// staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, `nextBookmarkTime`), and
/// promises none. But it does end a watch after `timeoutSeconds`, so one that is open for longer is
/// no longer connected to a server. Two seconds later kube would take the silence for a regular
/// end.
const MARGIN: Duration = Duration::from_secs(3);

/// An answer did not begin in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", LIMIT.as_secs())]
struct Unanswered;

/// An answer did not end in time.
#[derive(Debug, thiserror::Error)]
#[error("the answer has not ended within {} s", .0.as_secs())]
pub struct Unended(Duration);

impl Unended {
    /// Whether `error` was caused by this.
    #[must_use]
    pub fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<Self>())
    }
}

/// `client`, with a time limit for every request.
#[must_use]
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let limit = limit(request.uri().query().unwrap_or_default());
            let answer = tokio::time::timeout(LIMIT, client.send(request)).await;
            let answer = answer.map_err(|_| BoxError::from(Unanswered))??;
            Ok::<Response<Ending<Body>>, BoxError>(answer.map(|body| Ending::new(body, limit)))
        }
    });
    Client::new(service, namespace)
}

/// How long the answer to a request with this query may last.
fn limit(query: &str) -> Duration {
    let value = |wanted: &str| {
        let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
        parameters.find_map(|(name, value)| (name == wanted).then_some(value))
    };
    match (value("watch"), value("timeoutSeconds").and_then(|seconds| seconds.parse().ok())) {
        (Some("true"), Some(seconds)) => Duration::from_secs(seconds) + MARGIN,
        _ => LIMIT,
    }
}

/// A body that ends with an error when its time is up.
struct Ending<B> {
    inner: B,
    limit: Duration,
    time: Option<Pin<Box<Sleep>>>,
}

impl<B> Ending<B> {
    fn new(inner: B, limit: Duration) -> Self {
        Self { inner, limit, time: Some(Box::pin(sleep(limit))) }
    }
}

impl<B> HttpBody for Ending<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Some(time) = &mut this.time else { return Poll::Ready(None) };
        // Checked first: an endless trickle of data is no better than silence.
        if time.as_mut().poll(cx).is_ready() {
            this.time = None;
            return Poll::Ready(Some(Err(Unended(this.limit).into())));
        }
        Pin::new(&mut this.inner).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.time.is_none() || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ListParams, WatchParams};
    use tokio::time::Instant;

    use super::*;

    /// A client whose server answers with `head` or not at all, sends `text` every second, and
    /// never ends.
    fn stalled(answers: bool, text: &'static str) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            let frames = stream::unfold((), move |()| async move {
                match text {
                    "" => std::future::pending().await,
                    _ => sleep(Duration::from_secs(1)).await,
                }
                Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), ()))
            });
            Ok::<_, BoxError>(Response::new(StreamBody::new(frames.boxed())))
        });
        bounded(Client::new(service, "default"))
    }

    #[tokio::test(start_paused = true)]
    async fn t17_an_answer_that_does_not_begin_or_does_not_end_is_an_error() {
        for (answers, text) in [(false, ""), (true, ""), (true, " ")] {
            let began = Instant::now();
            let configs: Api<ConfigMap> = Api::default_namespaced(stalled(answers, text));
            let error = configs.list(&ListParams::default()).await.unwrap_err();
            assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs(), "{error}");
            assert_eq!(Unended::is_cause_of(&error), answers, "{error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn t17_a_watch_that_stalls_ends_with_an_error_after_its_time() {
        for text in ["", " "] {
            let began = Instant::now();
            let configs: Api<ConfigMap> = Api::default_namespaced(stalled(true, text));
            let mut events = std::pin::pin!(configs.watch(&WatchParams::default(), "0").await.unwrap());
            let error = events.next().await.unwrap().unwrap_err();
            assert_eq!(began.elapsed().as_secs(), 293);
            assert!(Unended::is_cause_of(&error), "{error:?}");
            assert!(events.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn a_body_that_ends_in_time_is_as_it_was() {
        let frames = [Frame::data(Bytes::from("a")), Frame::data(Bytes::from("b"))].map(Ok::<_, Infallible>);
        let body = Ending::new(StreamBody::new(stream::iter(frames)), LIMIT);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "ab");
    }

    #[test]
    fn a_watch_lasts_as_long_as_was_asked_for() {
        for (query, seconds) in [
            ("", 60),
            ("limit=50&timeoutSeconds=900", 60),
            ("&watch=true&timeoutSeconds=290&allowWatchBookmarks=true", 293),
            ("watch=true&timeoutSeconds=1", 4),
            ("watch=true", 60),
        ] {
            assert_eq!(limit(query).as_secs(), seconds, "{query}");
        }
    }
}
