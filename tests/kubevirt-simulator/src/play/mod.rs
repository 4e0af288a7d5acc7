//! What watches, reads and writes: one loop that looks at each machine and claim that has changed,
//! and at no object twice at the same time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod claim;
pub(crate) mod clock;
mod datavolume;
mod machine;
pub(crate) mod watches;
mod world;
pub(crate) mod write;

use world::{Key, World};

use crate::{Fault, Faults, Settings};

/// How long to leave an object alone that somebody else has just written.
const RETRY: Duration = Duration::from_millis(20);

/// What all looks share.
pub(crate) struct Shared {
    client: Client,
    settings: Settings,
    faults: Faults,
    world: Mutex<World>,
    /// When something was first seen, by what it is about.
    ages: Mutex<BTreeMap<(String, String), Instant>>,
    /// The specs with which instances were started, by the name of their revision.
    revisions: Mutex<BTreeMap<String, Arc<Value>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// How long something of this object has lasted.
    fn age(&self, uid: &str, what: &str) -> Duration {
        let first = *lock(&self.ages).entry((uid.to_owned(), what.to_owned())).or_insert_with(Instant::now);
        first.elapsed()
    }

    /// Forgets an object that is gone.
    fn forget(&self, uid: &str) {
        let key = |text: &str| (text.to_owned(), String::new());
        let mut ages = lock(&self.ages);
        let gone: Vec<_> =
            ages.range(key(uid)..).take_while(|((of, _), _)| of == uid).map(|(key, _)| key.clone()).collect();
        for key in gone {
            ages.remove(&key);
        }
    }

    fn faults(&self, namespace: &str, name: &str) -> Vec<Fault> {
        lock(&self.faults).get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }
}

/// Plays until `stop`.
pub(crate) async fn run(
    client: Client,
    settings: Settings,
    faults: Faults,
    stop: CancellationToken,
    mut pokes: mpsc::UnboundedReceiver<(String, String)>,
) {
    let shared = Arc::new(Shared {
        client: client.clone(),
        settings,
        faults,
        world: Mutex::default(),
        ages: Mutex::default(),
        revisions: Mutex::default(),
    });
    let mut events = watches::start(&client);
    let mut queue = Queue::default();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < shared.settings.concurrency.max(1)
            && let Some(key) = queue.next()
        {
            running.push(look(shared.clone(), key));
        }
        tokio::select! {
            () = stop.cancelled() => break,
            Some(event) = events.next() => {
                let (keys, gone) = lock(&shared.world).take(event);
                keys.into_iter().for_each(|key| queue.add(key));
                gone.iter().for_each(|uid| shared.forget(uid));
            }
            Some((namespace, name)) = pokes.recv() => queue.add(Key::Machine(namespace, name)),
            Some((key, again)) = running.next() => {
                queue.done(&key);
                if let Some(time) = again {
                    queue.add_at(key, Instant::now() + time);
                }
            }
            () = queue.wake() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Looks at one object, and says when to look again.
async fn look(shared: Arc<Shared>, key: Key) -> (Key, Option<Duration>) {
    let looked = match &key {
        Key::Machine(namespace, name) => machine::look(&shared, namespace, name).await,
        Key::Claim(namespace, name) => claim::look(&shared, namespace, name).await,
        Key::DataVolume(namespace, name) => datavolume::look(&shared, namespace, name).await,
    };
    let again = match looked {
        Ok(again) => again,
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Some(RETRY),
        Err(error) => {
            tracing::warn!(?key, %error, "a look of the simulation has failed");
            Some(RETRY * 10)
        }
    };
    (key, again)
}

/// The objects to look at.
#[derive(Default)]
struct Queue {
    due: VecDeque<Key>,
    queued: BTreeSet<Key>,
    busy: BTreeSet<Key>,
    /// Changed while they were looked at.
    again: BTreeSet<Key>,
    later: BTreeSet<(Instant, Key)>,
    times: BTreeMap<Key, Instant>,
}

impl Queue {
    fn add(&mut self, key: Key) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.due.push_back(key);
        }
    }

    fn add_at(&mut self, key: Key, time: Instant) {
        if let Some(known) = self.times.get(&key) {
            if *known <= time {
                return;
            }
            self.later.remove(&(*known, key.clone()));
        }
        self.times.insert(key.clone(), time);
        self.later.insert((time, key));
    }

    fn next(&mut self) -> Option<Key> {
        let now = Instant::now();
        while let Some((time, key)) = self.later.first().cloned()
            && time <= now
        {
            self.later.pop_first();
            self.times.remove(&key);
            self.add(key);
        }
        let key = self.due.pop_front()?;
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    fn done(&mut self, key: &Key) {
        self.busy.remove(key);
        if self.again.remove(key) {
            self.add(key.clone());
        }
    }

    async fn wake(&self) {
        match self.later.first() {
            Some((time, _)) => tokio::time::sleep_until(*time).await,
            None => std::future::pending().await,
        }
    }
}
