//! Why a configuration is reconciled again: matches events to the configurations that depend on
//! their objects.
//!
//! Watches report everything about a kind. Only a new version of an object that a configuration's
//! plan touches or has read makes it dirty, so a busy cluster costs nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use parking_lot::{Mutex, MutexGuard};

use advisor_cluster::Subject;

/// The number of events that may come between the answer to a request and its reader.
const RECENT: usize = 64;

/// What has happened since a configuration was last reconciled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Causes {
    /// Whether any object that the plan touches or reads may have changed.
    pub(super) objects: bool,
    /// The objects that have changed.
    pub(super) changed: BTreeSet<Subject>,
    /// Whether the progress of a rollout has changed.
    pub(super) rollouts: bool,
    /// Whether the set of served kinds, or their definitions, may have changed.
    pub(super) kinds: bool,
}

/// A summary of what has happened since a configuration was last reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    /// Something about objects or rollouts.
    Objects,
    /// Something about the kinds themselves, and perhaps about objects too.
    Kinds,
}

impl Causes {
    /// Whether anything has happened.
    pub(super) fn any(&self) -> bool {
        self.objects || self.rollouts || self.kinds || !self.changed.is_empty()
    }
}

/// The configurations, what they depend on, and which are dirty.
pub(super) struct Triggers {
    state: Mutex<BTreeMap<String, Dependencies>>,
    /// The most recent events, whomever they concern.
    recent: Mutex<VecDeque<(Subject, Option<String>)>>,
    /// For objects that matter, the last reported version and the hash of what mattered of it.
    contents: Mutex<BTreeMap<Subject, (String, u64)>>,
    wake: UnboundedSender<()>,
}

#[derive(Default)]
struct Dependencies {
    /// The version in which each object was seen; `None` means that it did not exist.
    seen: BTreeMap<Subject, Option<String>>,
    /// Reported versions that had not been seen then. Our own may be among them: the event of a
    /// write can arrive before its answer.
    told: BTreeMap<Subject, Option<String>>,
    causes: Causes,
}

impl Dependencies {
    fn is_news(&self, subject: &Subject, version: &Option<String>) -> bool {
        match self.seen.get(subject) {
            Some(seen) => seen != version,
            None => version.is_some() && self.awaits(subject),
        }
    }

    /// Whether an object with this name is searched for in all namespaces, and none existed.
    fn awaits(&self, subject: &Subject) -> bool {
        let anywhere = Subject { namespace: None, ..subject.clone() };
        subject.namespace.is_some() && self.seen.get(&anywhere).is_some_and(Option::is_none)
    }
}

impl Triggers {
    /// Starts without configurations. The receiver gets an item whenever one becomes dirty.
    pub(super) fn new() -> (Self, UnboundedReceiver<()>) {
        let (wake, woken) = unbounded();
        (Self { state: Mutex::default(), recent: Mutex::default(), contents: Mutex::default(), wake }, woken)
    }

    /// Records that `config` depends on `subject` and has seen it in `version`.
    pub(super) fn record_version(&self, config: &str, subject: Subject, version: Option<String>) {
        let overtaken = self.overtaken(&subject, version.as_deref());
        let arrived = if version.is_none() { self.arrived(&subject) } else { Vec::new() };
        let mut state = self.state();
        let found = state.entry(config.to_owned()).or_default();
        found.told.extend(arrived);
        if let Some(newer) = overtaken {
            found.told.insert(subject.clone(), newer);
        }
        found.seen.insert(subject, version);
    }

    /// The version of `subject` that a watch has already reported, if it is newer than the one that
    /// was just read: the event came between the answer and its reader, when nobody knew yet that
    /// the object matters.
    fn overtaken(&self, subject: &Subject, read: Option<&str>) -> Option<Option<String>> {
        let recent = lock(&self.recent);
        let (_, told) = recent.iter().rev().find(|(known, _)| known == subject)?;
        let number = |version: &str| version.parse::<u64>().ok();
        let newer = match (told.as_deref(), read) {
            (told, read) if told == read => false,
            (Some(told), Some(read)) => number(told) > number(read),
            (None, Some(_)) | (Some(_), None) => true,
            (None, None) => false,
        };
        newer.then(|| told.clone())
    }

    /// Recent objects that match `subject`, which has no namespace because it is searched for in
    /// all of them: they appeared between the answer and its reader.
    fn arrived(&self, subject: &Subject) -> Vec<(Subject, Option<String>)> {
        let recent = lock(&self.recent);
        let mut last = BTreeMap::new();
        for (known, version) in recent.iter() {
            let anywhere = Subject { namespace: None, ..known.clone() };
            if known.namespace.is_some() && subject.namespace.is_none() && anywhere == *subject {
                last.insert(known.clone(), version.clone());
            }
        }
        last.into_iter().filter(|(_, version)| version.is_some()).collect()
    }

    /// Records that `config` no longer depends on anything.
    pub(super) fn forget(&self, config: &str) {
        self.state().remove(config);
    }

    /// Returns, and forgets, what has happened since the last call.
    pub(super) fn take(&self, config: &str) -> Causes {
        let mut state = self.state();
        let Some(found) = state.get_mut(config) else {
            return Causes::default();
        };
        let mut causes = std::mem::take(&mut found.causes);
        let told = std::mem::take(&mut found.told);
        let news = told.into_iter().filter(|(subject, version)| found.is_news(subject, version));
        causes.changed.extend(news.map(|(subject, _)| subject));
        causes
    }

    /// A summary of what [`Self::take`] would return, which stays recorded.
    pub(super) fn news(&self, config: &str) -> News {
        let state = self.state();
        let Some(found) = state.get(config) else { return News::Nothing };
        let mut told = found.told.iter().filter(|(subject, version)| found.is_news(subject, version)).peekable();
        if !found.causes.any() && told.peek().is_none() {
            return News::Nothing;
        }
        let of_kinds = found.causes.kinds || told.any(|(subject, _)| subject.is_definition());
        if of_kinds { News::Kinds } else { News::Objects }
    }

    /// Like [`Self::changed`], with the hash of what matters of the object, if known. A new version
    /// with the same hash does not concern anybody who has seen the version before.
    pub(super) fn content_changed(&self, subject: &Subject, version: Option<&str>, content: Option<u64>) {
        let mut contents = lock(&self.contents);
        let before = contents.remove(subject);
        if let (Some(version), Some(content)) = (version, content)
            && self.state().values().any(|found| found.seen.contains_key(subject))
        {
            contents.insert(subject.clone(), (version.to_owned(), content));
            if let Some((before, _)) = before.filter(|(_, before)| *before == content) {
                self.is_as_before(subject, &before, version);
            }
        }
        drop(contents);
        self.changed(subject, version);
    }

    /// Treats `subject` in `version` as seen by everybody who has seen it in version `before`.
    fn is_as_before(&self, subject: &Subject, before: &str, version: &str) {
        for found in self.state().values_mut() {
            let seen = found.seen.get_mut(subject).filter(|seen| seen.as_deref() == Some(before));
            if let Some(seen) = seen {
                *seen = Some(version.to_owned());
                // It was not news, and still is not.
                found.told.remove(subject);
            }
        }
    }

    /// Records that `subject` is in `version` now, or deleted.
    pub(super) fn changed(&self, subject: &Subject, version: Option<&str>) {
        {
            let mut recent = lock(&self.recent);
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back((subject.clone(), version.map(str::to_owned)));
        }
        self.mark(|found| {
            let version = version.map(str::to_owned);
            let news = found.is_news(subject, &version);
            if news {
                found.told.insert(subject.clone(), version);
            }
            news
        });
    }

    /// Records that `subject` may mean something else now, although its version has been seen.
    pub(super) fn look_again(&self, subject: &Subject) {
        self.mark(|found| {
            let concerned = found.seen.contains_key(subject);
            found.causes.objects |= concerned;
            found.causes.kinds |= concerned && subject.is_definition();
            concerned
        });
    }

    /// Records that anything of this kind may have changed: a watch was interrupted, or the kind
    /// itself has changed.
    pub(super) fn may_have_changed(&self, group: &str, kind: &str) {
        // Earlier reports may no longer be true.
        lock(&self.recent).retain(|(subject, _)| subject.group != group || subject.kind != kind);
        self.mark(|found| {
            let concerned = found.seen.keys().any(|subject| subject.group == group && subject.kind == kind);
            found.causes.objects |= concerned;
            concerned
        });
    }

    /// Records that something has happened that concerns `config`.
    pub(super) fn happened(&self, config: &str, causes: &Causes) {
        if let Some(found) = self.state().get_mut(config) {
            found.causes.objects |= causes.objects;
            found.causes.rollouts |= causes.rollouts;
        }
        self.wake();
    }

    /// Makes every configuration dirty.
    pub(super) fn look_at_all(&self) {
        self.state().values_mut().for_each(|found| found.causes.objects = true);
        self.wake();
    }

    fn mark(&self, mut concerns: impl FnMut(&mut Dependencies) -> bool) {
        let concerned = self.state().values_mut().filter_map(|found| concerns(found).then_some(())).count();
        if concerned > 0 {
            self.wake();
        }
    }

    fn wake(&self) {
        // The receiver ends with the process; then nobody needs to wake up.
        let _ = self.wake.unbounded_send(());
    }

    fn state(&self) -> MutexGuard<'_, BTreeMap<String, Dependencies>> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject {
        Subject { group: "g".into(), kind: "K".into(), namespace: None, name: name.into() }
    }

    #[test]
    fn only_unseen_versions_of_what_matters_make_a_configuration_dirty() {
        let (triggers, _woken) = Triggers::new();
        triggers.record_version("a", subject("x"), Some("5".into()));
        triggers.record_version("a", subject("absent"), None);
        for (name, version, dirty) in [
            ("x", Some("5"), false),
            ("other", Some("1"), false),
            ("absent", None, false),
            ("x", Some("6"), true),
            ("x", None, true),
        ] {
            triggers.changed(&subject(name), version);
            assert_eq!(triggers.news("a"), if dirty { News::Objects } else { News::Nothing }, "{name} {version:?}");
            assert_eq!(triggers.take("a").any(), dirty, "{name} {version:?}");
        }
        triggers.may_have_changed("g", "K");
        assert!(triggers.take("a").objects);
        triggers.forget("a");
        triggers.may_have_changed("g", "K");
        assert!(!triggers.take("a").any());
    }

    /// Fault R18: an object that is searched for in all namespaces, and did not exist, is news
    /// wherever it appears.
    #[test]
    fn r18_what_is_awaited_anywhere_is_news_in_any_namespace() {
        let (triggers, _woken) = Triggers::new();
        let at = |namespace: Option<&str>| Subject { namespace: namespace.map(str::to_owned), ..subject("x") };
        triggers.record_version("a", at(None), None);
        triggers.changed(&at(Some("one")), None);
        assert_eq!(triggers.news("a"), News::Nothing, "what goes was not there");
        triggers.changed(&at(Some("one")), Some("5"));
        assert!(triggers.take("a").changed.contains(&at(Some("one"))));
        // Once it has been read, it is followed like any other.
        triggers.record_version("a", at(Some("one")), Some("5".into()));
        triggers.changed(&at(Some("one")), Some("5"));
        assert_eq!(triggers.news("a"), News::Nothing);
    }

    #[test]
    fn news_of_kinds_are_told_from_those_of_objects_and_stay_until_they_are_taken() {
        let crd =
            Subject { group: "apiextensions.k8s.io".into(), kind: "CustomResourceDefinition".into(), ..subject("crd") };
        let (triggers, _woken) = Triggers::new();
        triggers.record_version("a", subject("x"), Some("5".into()));
        triggers.record_version("a", crd.clone(), Some("1".into()));
        triggers.changed(&subject("x"), Some("6"));
        assert_eq!(triggers.news("a"), News::Objects);
        triggers.changed(&crd, Some("2"));
        assert_eq!((triggers.news("a"), triggers.news("a")), (News::Kinds, News::Kinds));
        assert_eq!(triggers.take("a").changed.len(), 2);
        assert_eq!(triggers.news("a"), News::Nothing);
        triggers.look_again(&crd);
        assert_eq!(triggers.news("a"), News::Kinds);
    }

    #[test]
    fn r15_another_version_of_the_same_content_is_no_news() {
        let (triggers, _woken) = Triggers::new();
        triggers.record_version("a", subject("x"), Some("5".into()));
        for (version, content, dirty) in [
            (Some("5"), Some(1), false),
            (Some("6"), Some(1), false),
            (Some("7"), Some(1), false),
            (Some("8"), Some(2), true),
            // It has not been read in version 8.
            (Some("9"), Some(2), true),
            (Some("10"), None, true),
        ] {
            triggers.content_changed(&subject("x"), version, content);
            assert_eq!(triggers.news("a") != News::Nothing, dirty, "{version:?} {content:?}");
        }
        triggers.take("a");
        triggers.record_version("a", subject("x"), Some("10".into()));
        triggers.content_changed(&subject("x"), Some("11"), Some(2));
        assert!(triggers.take("a").any(), "what it was in version 10 is not known");
        triggers.record_version("a", subject("x"), Some("11".into()));
        triggers.content_changed(&subject("x"), Some("12"), Some(2));
        assert!(!triggers.take("a").any());
        triggers.content_changed(&subject("x"), None, None);
        assert!(triggers.take("a").any(), "it is gone");
        // Objects that nobody depends on are not remembered.
        triggers.content_changed(&subject("other"), Some("1"), Some(1));
        assert!(lock(&triggers.contents).is_empty());
    }

    /// Defect D33: an event that comes before it is recorded that the object matters.
    #[test]
    fn an_event_that_overtakes_the_first_reading_is_no_less_news() {
        for (told, read, dirty) in [
            (Some("6"), Some("5"), true),
            (Some("5"), Some("5"), false),
            (Some("10"), Some("9"), true),
            (Some("9"), Some("10"), false),
            (None, Some("5"), true),
            (Some("5"), None, true),
            (None, None, false),
        ] {
            let (triggers, _woken) = Triggers::new();
            triggers.changed(&subject("x"), told);
            triggers.record_version("a", subject("x"), read.map(str::to_owned));
            assert_eq!(triggers.take("a").any(), dirty, "{told:?} {read:?}");
        }
    }

    #[test]
    fn the_event_of_our_own_write_is_no_news_even_if_it_comes_before_the_answer() {
        let (triggers, _woken) = Triggers::new();
        triggers.record_version("a", subject("x"), Some("5".into()));
        triggers.changed(&subject("x"), Some("6"));
        triggers.record_version("a", subject("x"), Some("6".into()));
        assert!(!triggers.take("a").any());
    }
}
