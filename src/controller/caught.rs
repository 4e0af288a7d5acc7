//! The boundary of a reconcile: a fault of ours in the plan of one configuration must not stop the
//! others.
//!
//! A panic within a reconcile is caught, reported in the status, and retried with growing pauses.
//! Anywhere else a panic ends the process: a watch or an election that stopped silently would be
//! worse than a restart.

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use object::limits;

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// A reconcile panicked, with this message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Panicked(pub(super) String);

/// Whether this thread is within a reconcile, so that a panic ends that reconcile and nothing else.
#[must_use]
pub fn is_caught() -> bool {
    WITHIN.get()
}

/// Runs `look`, and catches its panic.
///
/// The data it holds is used again afterwards: locks ignore poisoning here, and the caller that
/// gets the error forgets what is remembered of the configuration.
pub(super) async fn caught<T>(look: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut look = pin!(look);
    poll_fn(move |context| {
        let before = WITHIN.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| look.as_mut().poll(context)));
        WITHIN.set(before);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(payload) => Poll::Ready(Err(Panicked(words(payload.as_ref())))),
        }
    })
    .await
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    limits::words(text.unwrap_or("no words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_look_and_nothing_else() {
        assert_eq!(caught(async { 1 }).await, Ok(1));
        let panics = caught(async {
            tokio::task::yield_now().await;
            assert!(is_caught());
            assert!(!is_caught(), "a {}", "fault");
        });
        assert_eq!(panics.await, Err(Panicked("a fault".to_owned())));
        assert!(!is_caught());
    }
}
