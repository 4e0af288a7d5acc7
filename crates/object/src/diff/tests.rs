//! Diffs: what counts as a change, and that the text describes it truthfully.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::arbitrary::objects;
use crate::embedded_files::tests::readable;

#[test]
fn s14_server_noise_is_no_change() {
    let noisy = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "2", "generation": 3, "selfLink": "/x",
        "creationTimestamp": "x", "managedFields": [], "annotations": {LAST_APPLIED: "{}"}}, "status": {"a": 1}, "spec": {}});
    assert_eq!(without_noise(&noisy), json!({"metadata": {"name": "a"}, "spec": {}}));
    let kept = json!({"metadata": {"annotations": {"a": "b"}, "finalizers": ["f"], "ownerReferences": []}});
    assert_eq!(without_noise(&kept), kept);
    for odd in [json!(null), json!("text"), json!([]), json!({"metadata": 5, "status": null})] {
        assert_eq!(without_noise(&without_noise(&odd)), without_noise(&odd));
    }
}

#[test]
fn changes_name_every_value() {
    let from = json!({"a": 1, "b": {"c/d": [1]}, "gone": true});
    let to = json!({"a": 1, "b": {"c/d": [2]}, "new": {}});
    let paths: Vec<_> = changes(&from, &to).into_iter().map(|change| change.path).collect();
    assert_eq!(paths, ["/b/c~1d", "/gone", "/new"]);
}

#[test]
fn the_text_is_a_unified_diff() {
    let from = json!({"spec": {"interval": 3600, "mode": "Automatic"}});
    let to = json!({"spec": {"interval": 60, "mode": "Automatic"}});
    assert_eq!(
        unified("X", Some(&from), Some(&to)),
        "--- live/X\n+++ planned/X\n@@ -1,3 +1,3 @@\n spec:\n-  interval: 3600\n+  interval: 60\n   mode: Automatic\n"
    );
    assert_eq!(unified("X", Some(&to), Some(&to)), "");
    let new = unified("X", None, Some(&json!({"a": "line\n\nline"})));
    assert_eq!(
        new, "--- /dev/null\n+++ planned/X\n@@ -0,0 +1,4 @@\n+a: |-\n+  line\n+\n+  line\n",
        "every line is there"
    );
    let gone = unified("X", Some(&json!({"a": 1})), None);
    assert_eq!(gone, "--- live/X\n+++ /dev/null\n@@ -1 +0,0 @@\n-a: 1\n");
}

#[test]
fn one_word_of_a_long_line_changes_one_line() {
    let text = |word: &str| json!({"a": format!("{}{word} {}", "word ".repeat(100), "word ".repeat(100))});
    let diff = unified("X", Some(&text("old")), Some(&text("quite another")));
    assert_eq!((diff.matches("\n-").count(), diff.matches("\n+").count()), (1, 2), "{diff}");
}

#[test]
fn odd_texts_stay_what_they_are() {
    for odd in [
        "crlf\r\nb\r\n",
        "cr\rb",
        "trail \n space ",
        "\t",
        "\n",
        "\n\n",
        "\u{85}\u{2028}",
        "\u{feff}",
        "é😀",
        "a\0b",
        "---",
        "+++ x\n@@ -1 +1 @@",
    ] {
        let (from, to) = (json!({"a": odd}), json!({"a": format!("{odd}x")}));
        assert_applies(Some(&from), Some(&to));
        assert!(!yaml(&from).contains('\r'), "{odd:?} is escaped: a bare CR ends a line for some tools");
    }
}

/// Fault T8: the comparison by lines is bounded, because the search takes time, and a deep one
/// takes stack.
#[test]
fn t8_a_diff_of_hundreds_of_thousands_of_lines_ends_and_is_true() {
    let list = |of: &dyn Fn(u64) -> Value| Value::from_iter((0..400_000).map(of));
    let mixed = |n: u64, salt: u64| n.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17) ^ n.wrapping_mul(salt);
    let few = |salt: u64| list(&|n| json!(mixed(n, salt) % 7));
    let diff = unified("X", Some(&few(3)), Some(&few(5)));
    assert_eq!(apply(&yaml(&few(3)), &diff), yaml(&few(5)));
}

#[test]
fn what_is_not_compared_line_by_line_is_one_change_with_its_context() {
    let text = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (before, after) = (text(&["a", "b", "c", "d", "1", "x", "2", "e"]), text(&["a", "b", "c", "d", "3", "x", "e"]));
    assert_eq!(
        lines::bounded(["old", "new"], [&before, &after], 3, 4),
        "--- old\n+++ new\n@@ -2,7 +2,6 @@\n b\n c\n d\n-1\n-x\n-2\n+3\n+x\n e\n"
    );
    assert!(lines::bounded(["old", "new"], [&before, &after], 3, 5).contains("-1\n+3\n x\n-2\n"), "few enough");
}

/// Applies a unified diff as `patch` does, but strictly: every count, number and context line must
/// be right.
fn apply(before: &str, diff: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut new, mut at) = (Vec::new(), 0);
    let mut lines = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(heading) = lines.next() {
        let range = |sign: char| -> (usize, usize) {
            let part = heading.split(sign).nth(1).unwrap().split(' ').next().unwrap();
            let (start, count) = part.split_once(',').unwrap_or((part, "1"));
            (start.parse().unwrap(), count.parse().unwrap())
        };
        let ((old_start, old_count), (new_start, new_count)) = (range('-'), range('+'));
        let begin = if old_count == 0 { old_start } else { old_start - 1 };
        new.extend_from_slice(&old[at..begin]);
        at = begin;
        assert_eq!(new.len(), if new_count == 0 { new_start } else { new_start - 1 }, "{heading}");
        let (mut removed, mut added) = (0, 0);
        while let Some(line) = lines.next_if(|line| !line.starts_with("@@")) {
            let text = &line[1..];
            if matches!(&line[..1], "-" | " ") {
                assert_eq!(old[at], text, "{line:?}");
                (at, removed) = (at + 1, removed + 1);
            }
            if matches!(&line[..1], "+" | " ") {
                new.push(text);
                added += 1;
            }
        }
        assert_eq!((removed, added), (old_count, new_count), "{heading}");
    }
    new.extend_from_slice(&old[at..]);
    new.concat()
}

fn assert_applies(from: Option<&Value>, to: Option<&Value>) {
    let text = |object: Option<&Value>| object.map(yaml).unwrap_or_default();
    let (diff, bare) = (unified("X", from, to), changed_lines("X", from, to));
    if from == to {
        assert_eq!((diff.as_str(), bare.as_str()), ("", ""));
    } else {
        assert_eq!(apply(&text(from), &diff), text(to), "{diff}");
        assert_eq!(apply(&text(from), &bare), text(to), "{bare}");
        assert!(!bare.lines().skip(2).any(|line| line.starts_with(' ')), "{bare}");
        if let Some(to) = to {
            let back: Value = serde_saphyr::from_str(&yaml(to)).expect("YAML");
            assert_eq!(&back, to, "what is shown is what will be");
        }
    }
}

/// Two states of an object, mostly alike.
fn states() -> impl Strategy<Value = (Value, Value)> {
    (objects(), objects(), any::<bool>()).prop_map(|(from, other, alike)| {
        let mut to = other.clone();
        if alike {
            to = from.clone();
            if let (Some(map), Some(other)) = (to.as_object_mut(), other.as_object()) {
                map.extend(other.iter().take(1).map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        (from, to)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s2_applying_the_shown_diff_to_live_gives_the_result((from, to) in states()) {
        assert_applies(Some(&from), Some(&to));
        assert_applies(None, Some(&to));
        assert_applies(Some(&from), None);
    }

    #[test]
    fn t8_a_diff_that_compares_no_lines_is_as_true((from, to) in states()) {
        let (from, to) = (yaml(&from), yaml(&to));
        prop_assert_eq!(apply(&from, &lines::bounded(["X", "X"], [&from, &to], 3, 0)), to.clone());
        prop_assert_eq!(apply("", &lines::bounded(["X", "X"], ["", &to], 3, 0)), to);
        prop_assert_eq!(apply(&from, &lines::bounded(["X", "X"], [&from, ""], 3, 0)), "");
    }

    #[test]
    fn s2_no_change_of_data_is_hidden_by_what_is_made_readable((from, to) in states()) {
        let [shown_from, shown_to] = readable([from.clone(), to.clone()]);
        prop_assert_eq!(from == to, unified("X", Some(&shown_from), Some(&shown_to)).is_empty());
    }

    #[test]
    fn changes_are_empty_for_equal_worlds_only((from, to) in states()) {
        prop_assert_eq!(from == to, changes(&from, &to).is_empty());
        prop_assert!(changes(&from, &from).is_empty());
    }
}
