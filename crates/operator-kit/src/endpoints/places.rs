//! The connections of a listener: a table with few places, which decides whose connection ends when
//! another one needs a place.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The places of one listener. Clones share them.
#[derive(Clone)]
pub(super) struct Places(Arc<Mutex<Table>>);

/// A place that is taken until this is dropped.
pub(super) struct Place {
    all: Places,
    number: u64,
    /// Cancelled when another connection gets the place.
    pub(super) lost: CancellationToken,
}

/// A request at a place; it lasts until this is dropped.
pub(super) struct Busy {
    all: Places,
    number: u64,
}

impl Places {
    /// Creates `all` places, of which one peer gets at most `share`.
    pub(super) fn new(all: usize, share: usize) -> Self {
        Self(Arc::new(Mutex::new(Table { all, share, taken: BTreeMap::new(), now: 0 })))
    }

    /// A place for a connection of `peer`. `None` if every connection that could make room is
    /// handling a request.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Place> {
        let (number, lost) = self.table().take(peer)?;
        Some(Place { all: self.clone(), number, lost })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

impl Place {
    /// Marks that a request has arrived: the place is kept until it is answered.
    pub(super) fn busy(&self) -> Busy {
        self.all.table().set_busy(self.number, true);
        Busy { all: self.all.clone(), number: self.number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.table().taken.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.all.table().set_busy(self.number, false);
    }
}

struct Table {
    all: usize,
    share: usize,
    /// The taken places, by a number that is never reused.
    taken: BTreeMap<u64, Taken>,
    /// Counts events, as a logical clock.
    now: u64,
}

struct Taken {
    peer: IpAddr,
    /// Whether a request is being handled. Otherwise its head has not arrived, or it has been
    /// answered.
    busy: bool,
    /// When the connection was accepted, or began or ended its last request.
    since: u64,
    lost: CancellationToken,
}

impl Table {
    fn take(&mut self, peer: IpAddr) -> Option<(u64, CancellationToken)> {
        // On a listener for both protocols, ::ffff:10.0.0.1 is 10.0.0.1.
        let peer = peer.to_canonical();
        if !self.make_room(peer) {
            return None;
        }
        let (number, lost) = (self.tick(), CancellationToken::new());
        self.taken.insert(number, Taken { peer, busy: false, since: number, lost: lost.clone() });
        Some((number, lost))
    }

    /// Makes room for `peer`, if possible. Ends the connection without a request that has waited
    /// longest: one of the peer's own if it has used up its share, otherwise one of the peer with
    /// the most places, counting the new connection.
    fn make_room(&mut self, peer: IpAddr) -> bool {
        let count = |peer: IpAddr| self.taken.values().filter(|taken| taken.peer == peer).count();
        let has_its_share = count(peer) >= self.share;
        if !has_its_share && self.taken.len() < self.all {
            return true;
        }
        let free = self.taken.iter().filter(|(_, taken)| !taken.busy && (taken.peer == peer || !has_its_share));
        let places = |taken: &Taken| count(taken.peer) + usize::from(taken.peer == peer);
        let loser = free.max_by_key(|(_, taken)| (places(taken), Reverse(taken.since))).map(|(number, _)| *number);
        let lost = loser.and_then(|number| self.taken.remove(&number));
        lost.inspect(|taken| taken.lost.cancel()).is_some()
    }

    fn set_busy(&mut self, number: u64, busy: bool) {
        let since = self.tick();
        if let Some(taken) = self.taken.get_mut(&number) {
            (taken.busy, taken.since) = (busy, since);
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn lost(places: &[&Place]) -> Vec<bool> {
        places.iter().map(|place| place.lost.is_cancelled()).collect()
    }

    #[test]
    fn t18_the_connection_that_has_waited_longest_without_a_request_makes_room() {
        let places = Places::new(3, 3);
        let [first, second, third] = [1, 2, 3].map(|last| places.take(peer(last)).unwrap());
        let busy = first.busy();
        let fourth = places.take(peer(4)).unwrap();
        assert_eq!(lost(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        // Between two requests, it has waited since the last one.
        drop(busy);
        let fifth = places.take(peer(5)).unwrap();
        assert_eq!(lost(&[&first, &third, &fourth, &fifth]), [false, true, false, false]);
        let sixth = places.take(peer(6)).unwrap();
        assert_eq!(lost(&[&first, &fourth, &fifth, &sixth]), [false, true, false, false]);
        let seventh = places.take(peer(7)).unwrap();
        assert_eq!(lost(&[&first, &fifth, &sixth, &seventh]), [true, false, false, false]);
    }

    #[test]
    fn t18_a_connection_within_a_request_is_never_closed_for_another() {
        let places = Places::new(2, 2);
        let taken = [1, 2].map(|last| places.take(peer(last)).unwrap());
        let busy = taken.each_ref().map(Place::busy);
        assert!(places.take(peer(3)).is_none());
        assert_eq!(lost(&[&taken[0], &taken[1]]), [false, false]);
        drop(busy);
        assert!(places.take(peer(3)).is_some());
    }

    #[test]
    fn t18_a_peer_with_all_of_its_share_loses_a_connection_of_its_own() {
        let places = Places::new(8, 2);
        let other = places.take(peer(1)).unwrap();
        let own = [2, 2].map(|last| places.take(peer(last)).unwrap());
        let third = places.take(peer(2)).unwrap();
        assert_eq!(lost(&[&other, &own[0], &own[1], &third]), [false, true, false, false]);
        let _busy = [own[1].busy(), third.busy()];
        assert!(places.take(peer(2)).is_none(), "all of its share is within requests");
        assert!(places.take(peer(3)).is_some(), "and none of the others'");
        // Both forms of one address are one peer.
        assert!(places.take("::ffff:10.0.0.2".parse().unwrap()).is_none());
    }

    #[test]
    fn t18_whoever_has_most_places_makes_room_for_whoever_has_few() {
        let places = Places::new(4, 3);
        let quiet = places.take(peer(1)).unwrap();
        let many = [2, 2, 2].map(|last| places.take(peer(last)).unwrap());
        let newcomer = places.take(peer(3)).unwrap();
        assert_eq!(lost(&[&quiet, &many[0], &many[1], &many[2]]), [false, true, false, false]);
        // However often it comes back, and from however many addresses, only its own addresses lose
        // places.
        let _again: Vec<_> = (0..50).flat_map(|_| [2, 4].map(|last| places.take(peer(last)).unwrap())).collect();
        assert_eq!(lost(&[&quiet, &newcomer]), [false, false]);
    }

    #[test]
    fn t18_who_leaves_makes_room() {
        let places = Places::new(1, 1);
        let first = places.take(peer(1)).unwrap();
        let busy = first.busy();
        drop(first);
        let second = places.take(peer(2)).unwrap();
        // The rest of the first one's request changes nothing for others.
        drop(busy);
        let _busy = second.busy();
        assert!(places.take(peer(3)).is_none());
    }
}
