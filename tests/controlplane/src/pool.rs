//! The control planes that the tests of one process share, each leased to one test at a time.

use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ControlPlane, Error};

/// Environment variable with the number of planes that may exist at once.
const SIZE: &str = "ADVISOR_TEST_PLANES";

/// Never dropped, like every static: the guards of the planes notice the end of the process.
static POOL: LazyLock<Pool> = LazyLock::new(|| {
    let size = std::env::var(SIZE).map_or(2, |text| match text.parse() {
        Ok(size @ 1..=64) => size,
        _ => panic!("{SIZE}={text} is not a number of control planes from 1 to 64"),
    });
    Pool { permits: Arc::new(Semaphore::new(size)), idle: Mutex::new(Vec::new()) }
});

struct Pool {
    // tokio's, yet not bound to a runtime: each waiter is woken in its own.
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<ControlPlane>>,
}

/// A control plane that is ours until this is dropped.
///
/// Before that, end everything that still writes to the plane: the next test expects no more
/// writes. The audit log continues from test to test, so take a [`crate::Mark`] first.
pub struct Lease {
    plane: Option<ControlPlane>,
    _permit: OwnedSemaphorePermit,
}

/// An empty control plane from the pool; waits while all are leased, and starts one if there may be
/// more.
///
/// The environment variable `ADVISOR_TEST_PLANES` is the greatest number of planes, 2 if it is not
/// set. A test that takes a second one while it has the first may wait forever for another test
/// that does the same.
///
/// # Panics
/// With the reason, if a plane cannot be started.
pub async fn lease() -> Lease {
    let permit = Arc::clone(&POOL.permits).acquire_owned().await.expect("the pool is never closed");
    let plane = match idle() {
        Some(plane) => emptied(plane).await,
        None => ControlPlane::start().await,
    };
    let plane = plane.unwrap_or_else(|error| panic!("no control plane for this test: {error}"));
    Lease { plane: Some(plane), _permit: permit }
}

fn idle() -> Option<ControlPlane> {
    POOL.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// The plane without what the last test left behind, or a new one if it cannot be emptied.
async fn emptied(plane: ControlPlane) -> Result<ControlPlane, Error> {
    match plane.wipe().await {
        Ok(()) => Ok(plane),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a control plane could not be emptied and is replaced"
            );
            plane.shutdown().await;
            ControlPlane::start().await
        }
    }
}

impl Deref for Lease {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane.as_ref().expect("a lease has its plane until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A plane whose server the test left stopped or paused ends here, before the permit lets
        // the next test continue.
        if let Some(plane) = self.plane.take().filter(ControlPlane::is_usable) {
            POOL.idle.lock().unwrap_or_else(PoisonError::into_inner).push(plane);
        }
    }
}
