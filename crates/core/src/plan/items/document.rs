//! Documents in fields, such as YAML in a ConfigMap, that administrators and programs keep
//! together. Settings are merged in and removed by key, line by line. No other line is touched:
//! what looks like the same value to us may not be the same to the program that reads it (`yes`,
//! `0644`).

use profile_sdk::{Access, Declared, Document};
use serde_json::{Map, Value};

use crate::api::TargetRef;
use crate::plan::remedy::Remedy;
use object::limits::OBJECT_SIZE;
use object::{diff, pointer};

/// The document in `target` that others keep too, as declared in `kinds`.
#[must_use]
pub fn declared_for(kinds: &[Declared], target: &TargetRef) -> Option<&'static Document> {
    match crate::plan::target::declared(kinds, target)?.access {
        Access::Merge(document) => Some(document),
        Access::Ask | Access::Read | Access::Update | Access::Create | Access::Write => None,
    }
}

/// The draft `desired` with its settings merged into the document of `live`. If the settings are
/// already there and the document is not `ours`, the field is left out: then nothing of it must be
/// removed later.
///
/// # Errors
///
/// A sentence if that document can't be parsed or edited.
pub fn into_document(document: &Document, desired: &Value, live: Option<&Value>, ours: bool) -> Result<Value, Remedy> {
    let target = TargetRef::of(desired);
    let mut merged = desired.clone();
    let text = |object: &Value| object.pointer(document.field).and_then(Value::as_str).map(str::to_owned);
    let settings = text(desired).unwrap_or_default();
    let problem = |problem| {
        format!(
            "{target}: {} {problem}, so nothing is merged into it. Correct it, or add the profile's settings there yourself",
            document.field
        )
    };
    let there = live.and_then(text);
    let wanted = with(there.as_deref(), &settings).map_err(problem)?;
    match there {
        Some(there) if there == wanted && !ours => pointer::take(&mut merged, document.field),
        _ => pointer::put(&mut merged, document.field, Value::String(wanted)),
    }
    Ok(merged)
}

/// The object to apply in order to remove the settings from the document of `live`: it keeps the
/// other settings. If none are left, the field is omitted if we own it `alone`: an apply without a
/// field removes nothing from others.
///
/// # Errors
///
/// As for [`into_document`].
pub fn remains(target: &TargetRef, document: &Document, live: &Value, alone: bool) -> Result<Value, Remedy> {
    let mut left = target.empty();
    let text = live.pointer(document.field).and_then(Value::as_str).unwrap_or_default();
    let problem = |problem| {
        format!(
            "{target}: {} {problem}. Edit it yourself and remove the settings that are no longer wanted",
            document.field
        )
    };
    let text = without(text, document.settings).map_err(problem)?;
    if live.pointer(document.field).is_some() && !(alone && text.trim().is_empty()) {
        pointer::put(&mut left, document.field, Value::String(text));
    }
    Ok(left)
}

/// The reason why the document can't be patched, if one of `pointers` names it, a part of it, or a
/// map that contains it. A patch could make all of the document readable.
#[must_use]
pub fn touched_by(document: &Document, pointers: &[&str]) -> Option<String> {
    let field: Vec<_> = pointer::segments(document.field).collect();
    let is_about = |named: &&&str| pointer::segments(named).zip(&field).all(|(segment, own)| segment == *own);
    let named = pointers.iter().find(is_about)?;
    Some(format!(
        "a patch names {named}, but {} is a document shared with others, which can't be patched. Edit the document yourself, or leave \
         the field alone with ignoreFields",
        document.field
    ))
}

/// `states` of one object for the diff, such that an unchanged line of the document is never part
/// of a changed line: if YAML would write one of the texts on a single line, the document becomes a
/// list of its lines.
#[must_use]
pub(in crate::plan) fn by_lines(document: &Document, states: [Value; 2]) -> [Value; 2] {
    let text = |object: &Value| object.pointer(document.field).and_then(Value::as_str).map(str::to_owned);
    let is_listed = |text: &str| {
        let written = diff::yaml(&serde_json::json!({"a": {"b": text}}));
        written.lines().count() != text.lines().count() + 2
    };
    if !states.iter().filter_map(text).any(|text| is_listed(&text)) {
        return states;
    }
    states.map(|mut object| {
        let lines = text(&object).map(|text| text.split('\n').map(Value::from).collect::<Vec<_>>());
        let (parent, key) = document.field.rsplit_once('/').unwrap_or_default();
        if let (Some(lines), Some(Value::Object(map))) = (lines, object.pointer_mut(parent))
            && let Some(key) = pointer::segments(&format!("/{key}")).next()
        {
            map.remove(&key);
            map.insert(format!("{key} (its lines)"), Value::from(lines));
        }
        object
    })
}

/// The most lines of a document that is edited.
const LINES: usize = 10_000;

/// `text` with `settings` added where they are missing or differ. An absent or empty text has no
/// settings.
///
/// # Errors
///
/// A clause that says why the text can't be parsed, or why no line can be added to it.
fn with(text: Option<&str>, settings: &str) -> Result<String, String> {
    let text = text.unwrap_or_default();
    if text.lines().count() > LINES {
        return Err(format!("has more than {LINES} lines"));
    }
    let (before, settings) = (parse(text)?, parse(settings)?);
    let mut after = before.clone();
    merge(&mut after, &settings);
    edited(text, &before, &after, &settings, true)
}

/// `text` without those of `settings` that have the same value in it, and without the maps that
/// become empty.
///
/// # Errors
///
/// As for [`with`].
fn without(text: &str, settings: &str) -> Result<String, String> {
    let (before, settings) = (parse(text)?, parse(settings)?);
    let mut after = before.clone();
    remove(&mut after, &settings);
    edited(text, &before, &after, &settings, false)
}

/// Adds or removes the lines of `settings` in `text`, which parses to `before`; fails unless the
/// result parses to exactly `after`.
fn edited(
    text: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    settings: &Map<String, Value>,
    wanted: bool,
) -> Result<String, String> {
    if before == after {
        return Ok(text.to_owned());
    }
    let mut lines = Lines(text.split_inclusive('\n').map(str::to_owned).collect());
    let has = leaves(before);
    for leaf in leaves(settings) {
        match (has.contains(&leaf), wanted) {
            (false, true) => lines.put(&leaf.0, &leaf.1),
            (true, false) => lines.take(&leaf.0),
            (true, true) | (false, false) => {}
        }
    }
    let edited = lines.0.concat();
    if parse(&edited).as_ref() == Ok(after) {
        return Ok(edited);
    }
    let names: Vec<_> = leaves(settings).iter().map(|(path, value)| format!("{}: {value}", path.join("."))).collect();
    Err(format!(
        "uses YAML syntax, such as flow style or anchors, that can't be edited line by line for {}",
        names.join(", ")
    ))
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    // The budget stops anchors from multiplying: the contents can't be larger than an object.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_total_scalar_bytes: OBJECT_SIZE },
    };
    match serde_saphyr::from_str_with_options::<Option<Value>>(text, options) {
        Ok(None | Some(Value::Null)) => Ok(Map::new()),
        Ok(Some(Value::Object(map))) => Ok(map),
        Ok(Some(_)) => Err("is not a YAML mapping".to_owned()),
        // The parser's message quotes the text, which may be confidential, over several lines.
        Err(_) => Err("is not valid YAML".to_owned()),
    }
}

fn merge(into: &mut Map<String, Value>, settings: &Map<String, Value>) {
    for (key, value) in settings {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(settings)) => merge(into, settings),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn remove(from: &mut Map<String, Value>, settings: &Map<String, Value>) {
    for (key, value) in settings {
        let is_empty = match (from.get_mut(key), value) {
            // A map that was empty before belongs to somebody else.
            (Some(Value::Object(from)), Value::Object(settings)) if !from.is_empty() => {
                remove(from, settings);
                from.is_empty()
            }
            (found, value) => found.is_some_and(|found| found == value),
        };
        if is_empty {
            from.remove(key);
        }
    }
}

/// The values of `settings` that are not maps, each with the keys that lead to it.
fn leaves(settings: &Map<String, Value>) -> Vec<(Vec<String>, Value)> {
    let mut all = Vec::new();
    for (key, value) in settings {
        let inner = match value {
            Value::Object(inner) => leaves(inner),
            value => vec![(Vec::new(), value.clone())],
        };
        all.extend(inner.into_iter().map(|(path, value)| ([vec![key.clone()], path].concat(), value)));
    }
    all
}

/// The lines of a text, each with its line ending.
struct Lines(Vec<String>);

/// The line of a key, and the end of the lines below it.
struct Found {
    line: usize,
    end: usize,
    indent: usize,
}

impl Lines {
    /// Sets the value at `path`: on its line, or on a new line below the last key of `path` that
    /// exists.
    fn put(&mut self, path: &[String], value: &Value) {
        let found = self.walk(path);
        if let Some(leaf) = found.get(path.len() - 1) {
            self.0[leaf.line] = format!("{}{}: {value}\n", " ".repeat(leaf.indent), path[path.len() - 1]);
            return;
        }
        let (place, mut indent) = match found.last() {
            // At the end of the text.
            None => (self.0.len(), self.first_indent(0..self.0.len()).unwrap_or_default()),
            Some(parent) => {
                let own = &mut self.0[parent.line];
                if let Some(key) = own.trim_end().strip_suffix("{}") {
                    *own = format!("{}\n", key.trim_end());
                }
                let below = self.first_indent(parent.line + 1..parent.end);
                (parent.line + 1, below.unwrap_or(parent.indent + 2))
            }
        };
        let missing = &path[found.len()..];
        let mut new = Vec::new();
        for (depth, key) in missing.iter().enumerate() {
            let value = if depth + 1 == missing.len() { format!(" {value}") } else { String::new() };
            new.push(format!("{}{key}:{value}\n", " ".repeat(indent)));
            indent += 2;
        }
        if let Some(before) = place.checked_sub(1).and_then(|before| self.0.get_mut(before))
            && !before.ends_with('\n')
        {
            before.push('\n');
        }
        self.0.splice(place..place, new);
    }

    /// Removes the line of `path`, and the lines of keys above it that have nothing else below
    /// them.
    fn take(&mut self, path: &[String]) {
        for depth in (1..=path.len()).rev() {
            let mut found = self.walk(&path[..depth]);
            let (is_there, last) = (found.len() == depth, found.pop());
            let Some(last) = last.filter(|_| is_there) else { return };
            if depth < path.len() && self.first_indent(last.line + 1..last.end).is_some() {
                return;
            }
            self.0.remove(last.line);
        }
    }

    /// The lines of the keys of `path`, outermost first, as far as they exist.
    fn walk(&self, path: &[String]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        let mut range = 0..self.0.len();
        for key in path {
            let Some(indent) = self.first_indent(range.clone()) else { break };
            let is_it = |line: &usize| {
                let text = &self.0[*line];
                indent_of(text) == Some(indent) && text[indent..].strip_prefix(key.as_str()).is_some_and(is_value)
            };
            let Some(line) = range.clone().find(is_it) else { break };
            let is_below = |line: &usize| indent_of(&self.0[*line]).is_none_or(|found| found > indent);
            let end = (line + 1..range.end).take_while(is_below).last().map_or(line + 1, |last| last + 1);
            found.push(Found { line, end, indent });
            range = line + 1..end;
        }
        found
    }

    /// The indentation of the first key in `range`.
    fn first_indent(&self, range: std::ops::Range<usize>) -> Option<usize> {
        let is_marker = |line: &str| line.starts_with("---") || line.starts_with('%');
        self.0[range].iter().filter(|line| !is_marker(line)).find_map(|line| indent_of(line))
    }
}

/// Whether `rest`, which follows a key, is a colon and then whitespace or nothing.
fn is_value(rest: &str) -> bool {
    rest.strip_prefix(':').is_some_and(|value| value.is_empty() || value.starts_with(char::is_whitespace))
}

/// The indentation of a line; `None` if it is blank or a comment.
fn indent_of(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let says_something = !text.trim().is_empty() && !text.starts_with('#');
    says_something.then(|| line.len() - text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: &str = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n";

    #[test]
    fn w_2_settings_are_merged_and_taken_out_and_nothing_else_is_touched() {
        let admins =
            "# retention: ask Ann\nprometheusK8s:\n  retention: 30d # a month\nenableUserWorkload: yes\nmode: 0644\n";
        for (text, merged) in [
            ("", SETTINGS.to_owned()),
            (admins, format!("{admins}{SETTINGS}")),
            ("---\na: 1\n", format!("---\na: 1\n{SETTINGS}")),
            ("a: 1\r\nb: 2\r\n", format!("a: 1\r\nb: 2\r\n{SETTINGS}")),
            ("nodeExporter2:\n  collectors: {}\n", format!("nodeExporter2:\n  collectors: {{}}\n{SETTINGS}")),
            // Among other settings of the same section, which stay as written.
            (
                "nodeExporter:\n    # few\n    maxProcs: 0o4\n\n# mine\nb: [1]\n",
                "nodeExporter:\n    collectors:\n      ksmd:\n        enabled: true\n    # few\n    maxProcs: 0o4\n\n# mine\nb: [1]\n".to_owned(),
            ),
            (
                "nodeExporter:\n  collectors:\n    cpufreq: {enabled: yes}\nb: |\n  nodeExporter:\n",
                "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n    cpufreq: {enabled: yes}\nb: |\n  nodeExporter:\n".to_owned(),
            ),
            (
                "nodeExporter:\n# odd\n  collectors:\n    ksmd:\n      more: 1\n",
                "nodeExporter:\n# odd\n  collectors:\n    ksmd:\n      enabled: true\n      more: 1\n".to_owned(),
            ),
        ] {
            assert_eq!(with(Some(text), SETTINGS).as_deref(), Ok(merged.as_str()));
            assert_eq!(with(Some(&merged), SETTINGS).as_deref(), Ok(merged.as_str()), "again");
            assert_eq!(without(&merged, SETTINGS).as_deref(), Ok(text));
        }
        assert_eq!(with(None, SETTINGS).as_deref(), Ok(SETTINGS));
        assert_eq!(with(Some("a: 1"), SETTINGS), Ok(format!("a: 1\n{SETTINGS}")));
        let empty = "nodeExporter:\n  collectors: {}\n";
        assert_eq!(with(Some(empty), SETTINGS).as_deref(), Ok(SETTINGS));
        // A setting with another value was not set by us and must not be removed.
        let other = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: false\n";
        for other in [other, "nodeExporter: {}\n", "nodeExporter:\n  collectors: {}\n"] {
            assert_eq!(without(other, SETTINGS).as_deref(), Ok(other));
        }
        assert_eq!(with(Some(other), SETTINGS).as_deref(), Ok(SETTINGS));
    }

    /// Found besides `make fuzz`: 50 KiB of aliases stood for 64 MiB.
    #[test]
    fn a_document_says_no_more_than_an_object_holds() {
        let document = |times: usize| format!("a: &a {}\nb: [{}]\n", "x".repeat(20_000), vec!["*a"; times].join(","));
        assert!(with(Some(&document(10)), SETTINGS).is_ok());
        assert!(with(Some(&document(200)), SETTINGS).is_err());
        let large = format!("a: {}\n", "x".repeat(1_400_000));
        assert!(with(Some(&large), SETTINGS).is_ok(), "as long as an object may be");
    }

    fn config(text: Option<&str>) -> Value {
        let mut object =
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}});
        if let Some(text) = text {
            object["data"] = serde_json::json!({"config.yaml": text});
        }
        object
    }

    #[test]
    fn what_its_owner_has_set_already_is_not_ours_and_what_is_not_alone_ours_is_emptied() {
        let document = Document { field: "/data/config.yaml", settings: SETTINGS };
        let draft = config(Some(SETTINGS));
        let there = config(Some(SETTINGS));
        assert_eq!(into_document(&document, &draft, Some(&there), false), Ok(config(None)));
        assert_eq!(into_document(&document, &draft, Some(&there), true).as_ref(), Ok(&draft));
        assert_eq!(into_document(&document, &draft, None, false).as_ref(), Ok(&draft));
        let target = TargetRef::of(&draft);
        let left = |alone: bool| remains(&target, &document, &there, alone).unwrap();
        assert_eq!((left(true).get("data").cloned(), left(false)), (None, config(Some(""))));
        assert_eq!(remains(&target, &document, &config(None), false).unwrap().get("data"), None);
    }

    #[test]
    fn t10_patches_of_the_document_of_its_parts_and_of_what_holds_it_are_refused() {
        let document = Document { field: "/data/a~1b", settings: SETTINGS };
        for pointer in ["", "/data", "/data/a~1b", "/data/a~1b/0", "/data/a~1b/"] {
            let problem = touched_by(&document, &["/data/more", pointer]).unwrap();
            assert!(problem.contains(&format!("names {pointer}, but /data/a~1b")) && problem.contains("ignoreFields"));
        }
        let others = ["/data/a", "/data/a~1bc", "/data/a/b", "/metadata/labels/x", "/databases", "/data/a~01b"];
        assert_eq!(touched_by(&document, &others), None);
        assert_eq!(touched_by(&document, &[]), None);
    }

    /// The diff shown for the change from `before` to `after`.
    fn shown(before: &str, after: &str) -> String {
        let document = Document { field: "/data/config.yaml", settings: SETTINGS };
        let [before, after] = by_lines(&document, [config(Some(before)), config(Some(after))]);
        diff::changed_lines("c", Some(&before), Some(&after))
    }

    #[test]
    fn t10_only_the_lines_of_a_document_that_change_are_shown_however_it_is_written() {
        for text in [
            "password: canary\n",
            "password: canary",
            "{password: canary}",
            "password: canary\r\na: 1\r\n",
            "# canary\ta tab, and a blank at the end \npassword: canary\n\n\n",
            "  password: canary\n  a: 1\n",
            "\u{feff}password: canary\nb: \u{7f}\n",
            "password: |\n  canary\n  canary\n# canary\nnodeExporter:\n  collectors: {}\n# canary\n",
            "nodeExporter:\n  # canary\n  collectors:\n    canary: {enabled: true}\n    ksmd:\n      enabled: false\nx: canary\n",
            "---\n%canary: canary\n",
        ] {
            let Ok(merged) = with(Some(text), SETTINGS) else { continue };
            for (before, after) in [(text, merged.as_str()), (&merged, text)] {
                let diff = shown(before, after);
                assert!(diff.contains("ksmd") || diff.contains("enabled"), "{text:?}: {diff}");
                assert!(!diff.contains("canary"), "{text:?}: {diff}");
            }
        }
        let listed = shown("a: 1\r\n", "a: 1\r\nb: 2\n");
        assert_eq!(listed, "--- live/c\n+++ planned/c\n@@ -4,0 +5 @@\n+  - \"b: 2\"\n");
    }

    #[test]
    fn several_settings_are_merged_and_those_that_are_there_are_left_as_they_are() {
        let two = "nodeExporter:\n  a: 1\n  b: text\n";
        let merged = with(Some("nodeExporter:\n  a: 1 # why\n"), two).unwrap();
        assert_eq!(merged, "nodeExporter:\n  b: \"text\"\n  a: 1 # why\n");
        assert_eq!(without("nodeExporter:\n  a: 1\n  b: other\n", two).as_deref(), Ok("nodeExporter:\n  b: other\n"));
    }

    #[test]
    fn what_can_not_be_edited_by_lines_is_left_to_its_owner() {
        for text in [
            "{\"a\": 1, \"nodeExporter\": {\"maxProcs\": 4}}",
            "nodeExporter: {maxProcs: 4}\n",
            "nodeExporter: &n\n  maxProcs: 4\ncopy: *n\n",
            "\"nodeExporter\":\n  maxProcs: 4\n",
            "a: 1\n...\n",
        ] {
            let problem = with(Some(text), SETTINGS).unwrap_err();
            assert!(problem.contains("for nodeExporter.collectors.ksmd.enabled: true"), "{text}: {problem}");
        }
    }

    #[test]
    fn w_3_what_can_not_be_understood_is_never_written_over() {
        for text in ["a: [", "- a\n- b\n", "just words", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n"] {
            assert!(with(Some(text), SETTINGS).is_err(), "{text:?}");
            assert!(without(text, SETTINGS).is_err(), "{text:?}");
        }
    }

    /// Documents of all shapes, most of them with secrets next to our settings.
    fn documents() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec![
            "a: canary\n",
            "a: canary\r\n",
            "# canary\n",
            "  # canary\t\n",
            "\n",
            "nodeExporter:\n",
            "nodeExporter: {}\n",
            "  collectors:\n",
            "  collectors: {}\n",
            "    ksmd:\n",
            "      enabled: false\n",
            "      enabled: true\n",
            "      more: canary\n",
            "    x: {enabled: canary}\n",
            "b: [canary, canary]\n",
            "c: |\n  canary\n\n  canary\n",
            "z: canary",
        ]);
        prop::collection::vec(line, 0..9).prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn t10_no_line_that_stays_is_shown_of_any_document(text in documents()) {
            for change in [with(Some(&text), SETTINGS), without(&text, SETTINGS)] {
                let Ok(changed) = change else { continue };
                let diff = shown(&text, &changed);
                prop_assert!(!diff.contains("canary"), "{}", diff);
                prop_assert_eq!(diff.is_empty(), text == changed);
            }
        }
    }
}
