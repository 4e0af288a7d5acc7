//! The body of an answer that reports its progress. What that means is up to others.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// An event in the life of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Data has arrived.
    Data,
    /// It has been open for the requested time.
    Lasted,
    /// It has ended, with or without an error, or is no longer read.
    Ended,
}

/// A body, and the function that its events are reported to.
pub(super) struct Listened<B, F: FnMut(Sign)> {
    inner: B,
    lasting: Option<Pin<Box<Sleep>>>,
    tell: F,
    ended: bool,
}

impl<B, F: FnMut(Sign)> Listened<B, F> {
    /// Wraps `inner`. `tell` is called for its events, including that it is still open after
    /// `lasting`.
    pub(super) fn new(inner: B, lasting: Duration, tell: F) -> Self {
        Self { inner, lasting: Some(Box::pin(sleep(lasting))), tell, ended: false }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            (self.tell)(Sign::Ended);
        }
    }
}

impl<B, F: FnMut(Sign)> Drop for Listened<B, F> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<B, F> HttpBody for Listened<B, F>
where
    B: HttpBody<Data = Bytes> + Unpin,
    F: FnMut(Sign) + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.inner).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) if frame.is_data() => (this.tell)(Sign::Data),
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(_)) | None) => this.end(),
            Poll::Pending => {
                let is_over = |sleep: &mut Pin<Box<Sleep>>| sleep.as_mut().poll(cx).is_ready();
                if this.lasting.as_mut().is_some_and(is_over) {
                    this.lasting = None;
                    (this.tell)(Sign::Lasted);
                }
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::StreamExt;
    use futures::channel::mpsc::unbounded;
    use http_body_util::{BodyExt, Empty, StreamBody};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_tells_of_data_of_time_and_of_its_end_once() {
        let signs = Arc::new(Mutex::new(Vec::new()));
        let told = signs.clone();
        let tell = move |sign| told.lock().unwrap().push(sign);
        let (data, body) = unbounded::<&'static str>();
        let body = body.map(|text| Ok::<_, kube::Error>(Frame::data(Bytes::from(text))));
        let mut body = Listened::new(StreamBody::new(body), Duration::from_secs(30), tell);
        data.unbounded_send("x").unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
        let silent = tokio::time::timeout(Duration::from_secs(100), body.frame()).await;
        assert!(silent.is_err());
        drop(data);
        assert!(body.frame().await.is_none());
        drop(body);
        assert_eq!(*signs.lock().unwrap(), [Sign::Data, Sign::Lasted, Sign::Ended]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_reads_any_more_has_ended() {
        let signs = Arc::new(Mutex::new(Vec::new()));
        let told = signs.clone();
        let tell = move |sign| told.lock().unwrap().push(sign);
        drop(Listened::new(Empty::<Bytes>::new(), Duration::from_secs(30), tell));
        assert_eq!(*signs.lock().unwrap(), [Sign::Ended]);
    }
}
