//! Makes texts written by others safe to display: every character is visible, and the length is
//! bounded.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::WORDS;

/// `text` in at most `limit` bytes, ending in an ellipsis if it was longer.
#[must_use]
pub fn cut_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit.saturating_sub('…'.len_utf8())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Whether a terminal displays `character` as itself, in its place. Control characters move the
/// cursor and change or hide what is displayed; bidirectional controls change the order of the text
/// around them; the others here are invisible (Unicode 16, `Default_Ignorable_Code_Point` of
/// DerivedCoreProperties.txt, with the separators of lines and paragraphs, the controls of
/// annotations, of hieroglyphs, and the empty pattern of Braille). Line feed and tab are allowed:
/// texts of several lines have them.
fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{13440}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        other => !other.is_control(),
    }
}

/// Whether every character of `text` is displayed as itself.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    text.chars().all(is_shown)
}

/// `text` with an escape such as `\u{202e}` in place of each character that a terminal would not
/// display as itself. Applying it again changes nothing.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(escaped(text, false)) }
}

/// Like [`visible`], for text within a line: line feeds and tabs are escaped too, so that no text
/// can pass for a line of its own.
#[must_use]
pub fn within_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\t']) {
        true => Cow::Owned(visible(text).replace('\n', "\\u{a}").replace('\t', "\\u{9}")),
        false => visible(text),
    }
}

/// An error text from elsewhere, for one of our own lines: of bounded length, on one line, with
/// every character visible.
#[must_use]
pub fn words(text: &str) -> String {
    within_line(&cut_text(text, WORDS)).into_owned()
}

/// Like [`visible`], where two texts that differ must not look alike: if a text needs or already
/// holds an escape, its backslashes are doubled.
#[must_use]
pub fn unambiguous(text: &str) -> Cow<'_, str> {
    if is_plain(text) && !text.contains("\\u{") { Cow::Borrowed(text) } else { Cow::Owned(escaped(text, true)) }
}

fn escaped(text: &str, double: bool) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\\' if double => shown.push_str("\\\\"),
            character if is_shown(character) => shown.push(character),
            // Writing to a String can't fail.
            character => drop(write!(shown, "\\u{{{:x}}}", u32::from(character))),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_text("short", 10), "short");
        assert_eq!(cut_text("ääääää", 8), "ää…");
        assert!(cut_text("ääääää", 2).len() <= 3);
    }

    /// T7: an editor can't write text that clears, hides or reorders what an approver reads.
    #[test]
    fn t7_no_text_moves_the_cursor_or_hides_itself() {
        for (text, shown) in [
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("one\rtwo", "one\\u{d}two"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{200b}b\u{feff}\u{e0041}", "a\\u{200b}b\\u{feff}\\u{e0041}"),
            ("\u{2028}", "\\u{2028}"),
            ("a\u{3164}\u{fe0f}\u{e01ef}b", "a\\u{3164}\\u{fe0f}\\u{e01ef}b"),
            (
                "\u{115f}\u{1160}\u{ffa0}\u{34f}\u{17b4}\u{180b}",
                "\\u{115f}\\u{1160}\\u{ffa0}\\u{34f}\\u{17b4}\\u{180b}",
            ),
            ("\u{1d173}\u{1bca0}\u{2800}\u{13430}", "\\u{1d173}\\u{1bca0}\\u{2800}\\u{13430}"),
            ("plain, ä, 漢字, \u{1f600}\n\ttab", "plain, ä, 漢字, \u{1f600}\n\ttab"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(
            within_line("freeze\n# plan v1:1: the status shows this plan"),
            "freeze\\u{a}# plan v1:1: the status shows this plan"
        );
        assert_eq!(unambiguous("a\\u{202e}"), "a\\\\u{202e}");
        assert_eq!(unambiguous("a\u{202e}"), "a\\u{202e}");
        assert_eq!(unambiguous("C:\\windows"), "C:\\windows", "a backslash alone says nothing");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_visible_is_plain_and_stays_as_it_is(text in "\\PC*|[\\\\u{}0-9a-f\u{1b}\u{202e}\r]*") {
            let shown = visible(&text).into_owned();
            prop_assert!(is_plain(&shown));
            prop_assert_eq!(visible(&shown).into_owned(), shown);
        }

        #[test]
        fn two_texts_never_look_alike(one in "[\\\\u{}a\u{1b}\u{202e}]{0,8}", other in "[\\\\u{}a\u{1b}\u{202e}]{0,8}") {
            prop_assert!(is_plain(&unambiguous(&one)));
            prop_assert_eq!(one == other, unambiguous(&one) == unambiguous(&other));
        }
    }
}
