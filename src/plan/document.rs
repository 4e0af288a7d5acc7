//! Documents inside of fields: YAML in a ConfigMap, which administrators and programs keep together. Settings are merged into what is
//! there by key and taken out of it again; all else of the text, comments included, stays as it was written wherever that can be.

use profile_sdk::{Access, Declared, Document};
use serde_json::{Map, Value};

use super::pointer;
use crate::api::TargetRef;

/// The document of the object that others keep too, by what `kinds` declare.
#[must_use]
pub fn of(kinds: &[Declared], target: &TargetRef) -> Option<&'static Document> {
    match super::check::declared(kinds, target)?.access {
        Access::Merge(document) => Some(document),
        Access::Read | Access::Update | Access::Create | Access::Write => None,
    }
}

/// `desired`, a draft, with its settings merged into the document of `live`.
///
/// # Errors
///
/// A sentence if that document can't be understood.
pub fn into_document(
    target: &TargetRef,
    document: &Document,
    desired: &Value,
    live: Option<&Value>,
) -> Result<Value, String> {
    let mut merged = desired.clone();
    let text = |object: &Value| object.pointer(document.field).and_then(Value::as_str).map(str::to_owned);
    let settings = text(desired).unwrap_or_default();
    let problem = |problem| {
        format!("{target} has {} that {problem}: nothing can be merged into it. Correct it first", document.field)
    };
    if let Some(place) = merged.pointer_mut(document.field) {
        *place = Value::String(with(live.and_then(text).as_deref(), &settings).map_err(problem)?);
    }
    Ok(merged)
}

/// What is applied to take the settings out of the document of `live` again: its other settings, or nothing where there are none.
///
/// # Errors
///
/// As [`into_document`].
pub fn remains(target: &TargetRef, document: &Document, live: &Value) -> Result<Value, String> {
    let mut left = target.empty();
    let text = live.pointer(document.field).and_then(Value::as_str).unwrap_or_default();
    let problem = |problem| {
        format!("{target} has {} that {problem}: take out of it yourself what is not wanted any more", document.field)
    };
    let text = without(text, document.settings).map_err(problem)?;
    if !text.trim().is_empty() {
        pointer::put(&mut left, document.field, Value::String(text));
    }
    Ok(left)
}

/// `text` with `settings`, which may be there already. A text that is absent or empty is no settings at all.
///
/// # Errors
///
/// A clause that says what is wrong with a text that can't be understood: nothing is ever written over that.
fn with(text: Option<&str>, settings: &str) -> Result<String, String> {
    let text = text.unwrap_or_default();
    let (before, settings) = (parse(text)?, parse(settings)?);
    let mut after = before.clone();
    merge(&mut after, &settings);
    Ok(rewritten(text, &before, &after))
}

/// `text` without what `settings` say, as far as it says the same. Maps that hold nothing else go too.
///
/// # Errors
///
/// As [`with`].
fn without(text: &str, settings: &str) -> Result<String, String> {
    let (before, settings) = (parse(text)?, parse(settings)?);
    let mut after = before.clone();
    remove(&mut after, &settings);
    Ok(rewritten(text, &before, &after))
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    match serde_saphyr::from_str::<Option<Value>>(text) {
        Ok(None | Some(Value::Null)) => Ok(Map::new()),
        Ok(Some(Value::Object(map))) => Ok(map),
        Ok(Some(_)) => Err("is no map of settings".to_owned()),
        // What the parser says quotes the text, which may be confidential, over several lines.
        Err(_) => Err("can't be understood as YAML".to_owned()),
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
            (Some(Value::Object(from)), Value::Object(settings)) => {
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

/// `text`, which says `before`, so that it says `after`: only the sections that differ are written anew.
fn rewritten(text: &str, before: &Map<String, Value>, after: &Map<String, Value>) -> String {
    if before == after {
        return text.to_owned();
    }
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut added = String::new();
    let mut keys: Vec<_> =
        before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key)).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        if let Some(section) = section(&lines, key) {
            lines.drain(section);
        }
        added.extend(after.get(key).map(|value| written(&Map::from_iter([(key.clone(), value.clone())]))));
    }
    let mut kept: String = lines.concat();
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    let patched = kept + &added;
    // Whatever is written otherwise than expected, as in one line or with anchors, is written anew as a whole.
    if parse(&patched).as_ref() == Ok(after) { patched } else { written(after) }
}

/// The lines of the section of `key`: its own and those that are indented or lists below it, up to the next one.
fn section(lines: &[&str], key: &str) -> Option<std::ops::Range<usize>> {
    let is_its = |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    let start = lines.iter().position(is_its)?;
    let is_part = |line: &&str| line.starts_with([' ', '-']) || line.trim().is_empty();
    let length = lines[start + 1..].iter().take_while(|line| is_part(line)).count();
    Some(start..start + 1 + length)
}

fn written(map: &Map<String, Value>) -> String {
    if map.is_empty() {
        return String::new();
    }
    serde_saphyr::to_string(map).unwrap_or_else(|_| Value::Object(map.clone()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n";

    #[test]
    fn w_2_settings_are_merged_and_taken_out_and_nothing_else_is_touched() {
        let admins = "# retention: ask Ann\nprometheusK8s:\n  retention: 30d # a month\nenableUserWorkload: true\n";
        for (text, merged) in
            [("", SETTINGS.to_owned()), (admins, format!("{admins}{SETTINGS}")), ("a: 1", format!("a: 1\n{SETTINGS}"))]
        {
            assert_eq!(with(Some(text), SETTINGS).unwrap(), merged);
            assert_eq!(with(Some(&merged), SETTINGS).unwrap(), merged, "again");
            assert_eq!(without(&merged, SETTINGS).unwrap().trim_end(), text.trim_end());
        }
        assert_eq!(with(None, SETTINGS).unwrap(), SETTINGS);
        // Beside other settings of the same section, which stay: only that section is written anew.
        let both = "nodeExporter:\n  collectors:\n    cpufreq: {enabled: true}\n  maxProcs: 4\n# mine\nb: [1]\n";
        let merged = with(Some(both), SETTINGS).unwrap();
        assert!(merged.starts_with("# mine\nb: [1]\nnodeExporter:\n"), "{merged}");
        assert_eq!(parse(&without(&merged, SETTINGS).unwrap()), parse(both));
        assert!(merged.contains("cpufreq") && merged.contains("maxProcs: 4") && merged.contains("ksmd"), "{merged}");
        // What says otherwise is not ours to take out.
        let other = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: false\n";
        assert_eq!(without(other, SETTINGS).unwrap(), other);
        assert_eq!(with(Some(other), SETTINGS).unwrap(), SETTINGS);
    }

    #[test]
    fn however_it_is_written_nothing_is_lost() {
        for text in [
            "{\"a\": 1, \"nodeExporter\": {\"maxProcs\": 4}}",
            "base: &base {x: 1}\nother: *base\n",
            "nodeExporter: &n\n  maxProcs: 4\ncopy: *n\n",
            "\"nodeExporter\":\n  maxProcs: 4\n",
            "nodeExporter: {}\na: |\n  text\n\n  more\nb: 2\n",
            "---\na: 1\n",
        ] {
            let (before, merged) = (parse(text).unwrap(), with(Some(text), SETTINGS).unwrap());
            let after = parse(&merged).unwrap();
            assert_eq!(after["nodeExporter"]["collectors"]["ksmd"]["enabled"], true, "{merged}");
            for (key, value) in before.iter().filter(|(key, _)| *key != "nodeExporter") {
                assert_eq!(after.get(key), Some(value), "{merged}");
            }
            let mut back = parse(&without(&merged, SETTINGS).unwrap()).unwrap();
            back.retain(|_, value| *value != serde_json::json!({}));
            let mut before = before;
            before.retain(|_, value| *value != serde_json::json!({}));
            assert_eq!(back, before, "{merged}");
        }
    }

    #[test]
    fn w_3_what_can_not_be_understood_is_never_written_over() {
        for text in ["a: [", "- a\n- b\n", "just words", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n"] {
            assert!(with(Some(text), SETTINGS).is_err(), "{text:?}");
            assert!(without(text, SETTINGS).is_err(), "{text:?}");
        }
    }
}
