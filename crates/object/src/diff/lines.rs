//! The unified diff of two texts, in bounded time.

use similar::TextDiff;

/// The most lines, of both texts together, that may lie between the first and the last change for
/// the shortest diff to be searched for. The time for the search grows faster than their number,
/// and so does its depth, which the stack bounds.
const COMPARED: usize = 100_000;

/// The unified diff of two texts under their `names`; every line must end in a line feed. If too
/// many lines may differ, all lines from the first change to the last are one change. `context` is
/// the number of unchanged lines shown around a change.
pub(super) fn unified(names: [&str; 2], texts: [&str; 2], context: usize) -> String {
    bounded(names, texts, context, COMPARED)
}

pub(super) fn bounded(
    [name, other]: [&str; 2],
    [before_text, after_text]: [&str; 2],
    context: usize,
    compared: usize,
) -> String {
    let [before, after] = [before_text, after_text].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = before.iter().zip(&after).take_while(same).count();
    let (rest_before, rest_after) = (before.iter().skip(head).rev(), after.iter().skip(head).rev());
    let tail = rest_before.zip(rest_after).take_while(same).count();
    if before.len() + after.len() - 2 * (head + tail) > compared {
        return coarse([name, other], [&before, &after], (head, tail), context);
    }
    TextDiff::from_lines(before_text, after_text).unified_diff().context_radius(context).header(name, other).to_string()
}

/// The diff that replaces all lines between the first `head` and the last `tail` lines of the first
/// text by those of the second.
fn coarse(
    [name, other]: [&str; 2],
    [before, after]: [&[&str]; 2],
    (head, tail): (usize, usize),
    context: usize,
) -> String {
    let start = head.saturating_sub(context);
    let context = tail.min(context);
    let range = |lines: &[&str]| match lines.len() - tail + context - start {
        // An empty range names the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let marked = |mark: char, lines: &[&str], from: usize, to: usize| -> String {
        let lines = lines.iter().take(to).skip(from);
        lines.fold(String::new(), |mut text, line| {
            text.push(mark);
            text.push_str(line);
            text
        })
    };
    [
        format!("--- {name}\n+++ {other}\n@@ -{} +{} @@\n", range(before), range(after)),
        marked(' ', before, start, head),
        marked('-', before, head, before.len() - tail),
        marked('+', after, head, after.len() - tail),
        marked(' ', after, after.len() - tail, after.len() - tail + context),
    ]
    .concat()
}
