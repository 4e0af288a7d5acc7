//! Cuts long diffs to the available space: at line ends, with the counts of the whole, and removed
//! lines first.

use crate::api::Truncated;

/// Cuts `diffs` so that together they take at most `budget` bytes of JSON. Short ones stay whole,
/// and the others share what is left. Each one that is cut comes with its counts.
#[must_use]
pub fn to_budget(diffs: &[&str], budget: usize) -> Vec<(String, Option<Truncated>)> {
    let mut costs: Vec<usize> = diffs.iter().map(|diff| cost(diff)).collect();
    costs.sort_unstable();
    let (mut rest, mut left) = (budget, costs.len());
    for cost in costs {
        // Diffs that are shorter than an equal share stay whole.
        if cost * left > rest {
            break;
        }
        rest -= cost;
        left -= 1;
    }
    let share = rest.checked_div(left).unwrap_or(usize::MAX);
    diffs.iter().map(|diff| if cost(diff) <= share { ((*diff).to_owned(), None) } else { one(diff, share) }).collect()
}

/// `diff` in at most `budget` bytes of JSON, with the counts of the whole if anything is missing.
#[must_use]
pub fn one(diff: &str, budget: usize) -> (String, Option<Truncated>) {
    if cost(diff) <= budget {
        return (diff.to_owned(), None);
    }
    let mut lines = diff.split_inclusive('\n');
    let mut header: Vec<&str> = lines.by_ref().take(2).collect();
    let hunks = hunks(lines);
    let mut rest = budget.saturating_sub(header.iter().map(|line| cost(line)).sum());
    if header.iter().map(|line| cost(line)).sum::<usize>() > budget {
        header.clear();
        rest = 0;
    }
    // Hunks that remove lines get space before others, wherever they are in the object.
    let mut kept: Vec<(usize, String)> = Vec::new();
    for dangerous in [true, false] {
        for (index, hunk) in hunks.iter().enumerate().filter(|(_, hunk)| removes(hunk) == dangerous) {
            let shown = part(hunk, rest);
            rest -= cost(&shown);
            kept.push((index, shown));
        }
    }
    kept.sort_by_key(|(index, _)| *index);
    let shown: String = header.into_iter().map(str::to_owned).chain(kept.into_iter().map(|(_, hunk)| hunk)).collect();
    let count = |text: &str, sign: char| number(body(text).filter(|line| line.starts_with(sign)).count());
    let truncated = Truncated {
        shown: number(shown.lines().count()),
        total: number(diff.lines().count()),
        added: count(diff, '+'),
        removed: count(diff, '-'),
    };
    (shown, Some(truncated))
}

/// As much of `hunk` as fits into `budget`: all of it, or else its removed lines before the others.
fn part(hunk: &[&str], budget: usize) -> String {
    let whole: usize = hunk.iter().map(|line| cost(line)).sum();
    if whole <= budget {
        return hunk.concat();
    }
    let (heading, body) = hunk.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let mut rest = budget.saturating_sub(cost(heading));
    let mut chosen = vec![false; body.len()];
    for removed in [true, false] {
        for (index, line) in body.iter().enumerate().filter(|(_, line)| line.starts_with('-') == removed) {
            if cost(line) > rest {
                // In order: no line is shown if one before it is not.
                break;
            }
            rest -= cost(line);
            if let Some(chosen) = chosen.get_mut(index) {
                *chosen = true;
            }
        }
    }
    let lines = body.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(line, _)| *line);
    let lines: String = lines.collect();
    if lines.is_empty() { String::new() } else { format!("{heading}{lines}") }
}

/// The hunks of a unified diff without its header. A hunk begins with `@@`; lines within it never
/// do.
fn hunks<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let mut hunks: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        match hunks.last_mut() {
            Some(hunk) if !line.starts_with("@@") => hunk.push(line),
            Some(_) | None => hunks.push(vec![line]),
        }
    }
    hunks
}

fn removes(hunk: &[&str]) -> bool {
    hunk.iter().any(|line| line.starts_with('-'))
}

/// The lines after the header.
fn body(diff: &str) -> impl Iterator<Item = &str> {
    diff.lines().skip(2)
}

/// The size of `text` inside a JSON document, in bytes.
#[must_use]
pub fn cost(text: &str) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::diff;
    use serde_json::{Value, json};

    #[test]
    fn z5_short_diffs_stay_whole_and_long_ones_share_the_rest() {
        let (short, long) = ("a\n".repeat(10), "b\n".repeat(1000));
        let cut = to_budget(&[&short, &long, &long], 1000);
        assert_eq!(cut[0], (short.clone(), None));
        assert_eq!(cut[1], cut[2]);
        let shown: usize = cut.iter().map(|(shown, _)| cost(shown)).sum();
        assert!(shown <= 1000 && shown > 900, "{shown}");
        assert_eq!(to_budget(&[&short, &short], 1000)[1].1, None);
        assert!(to_budget(&[], 0).is_empty());
    }

    #[test]
    fn z4_the_cut_hides_what_is_added_before_what_is_removed() {
        let mut before = json!({"z": {"guard": true}});
        let mut after = json!({"z": {}});
        for index in 0..1000 {
            before[format!("a{index:04}")] = json!(1);
            after[format!("a{index:04}")] = json!(1);
            after[format!("a{index:04}+")] = json!("new");
        }
        let text = diff::unified("X", Some(&before), Some(&after));
        let (shown, truncated) = one(&text, 2000);
        let truncated = truncated.unwrap();
        assert!(cost(&shown) <= 2000);
        assert!(shown.contains("\n-  guard: true\n"), "{shown}");
        assert!(shown.starts_with("--- live/X\n+++ planned/X\n@@"), "{shown}");
        assert!(truncated.removed >= 1 && truncated.added >= 1000, "{truncated:?}");
        assert_eq!(truncated.total, u32::try_from(text.lines().count()).unwrap());
        assert_eq!(truncated.shown, u32::try_from(shown.lines().count()).unwrap());
    }

    #[test]
    fn z4_a_hunk_that_only_adds_gives_way_to_one_that_removes() {
        let member = |index: u32| (format!("k{index:03}"), json!("same"));
        let mut before: Value = Value::Object((0..100).map(member).collect());
        let mut after = before.clone();
        for index in 0..50 {
            after[format!("k005-{index}")] = json!("added, and long enough to take all of the room");
        }
        before["k090"] = json!("a guard");
        after.as_object_mut().unwrap().remove("k090");
        let text = diff::unified("X", Some(&before), Some(&after));
        let (shown, truncated) = one(&text, 500);
        assert!(shown.contains("\n-k090: a guard\n"), "{shown}");
        assert_eq!((truncated.unwrap().added, truncated.unwrap().removed), (50, 1));
    }

    #[test]
    fn hunks_are_shown_whole_as_long_as_they_fit() {
        let world = |change: &str, at: &[u32]| -> Value {
            let member = |index: u32| {
                let value = if at.contains(&index) { change } else { "same" };
                (format!("k{index:03}"), json!(value))
            };
            Value::Object((0..200).map(member).collect())
        };
        let (before, after) = (world("old", &[10, 100, 190]), world("new", &[10, 100, 190]));
        let text = diff::unified("X", Some(&before), Some(&after));
        let (shown, _) = one(&text, cost(&text) - 20);
        assert!(text.starts_with(shown.split("@@ -188").next().unwrap()), "two of three are whole: {shown}");
        assert!(shown.contains("\n-k190: old\n"), "of the last one what is removed: {shown}");
    }

    #[test]
    fn nothing_fits_into_nothing() {
        let text = diff::unified("X", None, Some(&json!({"a": "x".repeat(100)})));
        for budget in 0..60 {
            assert!(cost(&one(&text, budget).0) <= budget);
        }
    }
}
