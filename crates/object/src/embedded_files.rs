//! Makes files inside objects readable: contents in data URLs (Ignition, RFC 2397), compressed or
//! not, and file modes, which JSON can only write in decimal.
//!
//! Files are recognized by their shape and not by the kind of the object, so this works wherever
//! they are embedded.

use std::collections::BTreeMap;
use std::io::Read;

use data_url::DataUrl;
use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::digest;

/// The most that one compressed text may cost to display ([`cost`]) once it is decompressed. A
/// larger one is shown like binary contents.
const UNFOLDED_LIMIT: u64 = 4 * 1024 * 1024;
/// The most that all compressed texts that are shown together may cost to display.
const UNFOLDED_IN_ALL: u64 = 2 * UNFOLDED_LIMIT;

/// Names of the members that hold a file's contents as a URL, and its compression.
const SOURCE: &str = "source";
const COMPRESSION: &str = "compression";

/// Embedded files by their encoding, with the number of those that are written the same way.
type Files<'a> = BTreeMap<Encoding, (&'a Map<String, Value>, usize)>;

/// Source and compression as written in the object.
type Encoding = (String, String);

fn collect<'a>(value: &'a Value, files: &mut Files<'a>) {
    match value {
        Value::Object(map) => {
            if let Some(encoding) = encoding(map) {
                files.entry(encoding).or_insert((map, 0)).1 += 1;
            }
            map.values().for_each(|member| collect(member, files));
        }
        Value::Array(list) => list.iter().for_each(|member| collect(member, files)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The decoded contents of the files in all states of an object that are shown together.
#[derive(Default)]
pub struct Texts {
    /// The contents for display, by their encoding.
    shown: BTreeMap<Encoding, String>,
    /// The number of encodings that each of the contents is written in.
    ways: BTreeMap<String, usize>,
}

impl Texts {
    /// Decodes the files of all `objects`. They are shown together, so they share the limit of what
    /// is decompressed.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut files = Files::new();
        objects.into_iter().for_each(|object| collect(object, &mut files));
        let mut texts = Self::default();
        let mut left = UNFOLDED_IN_ALL;
        for (encoding, (file, count)) in files {
            let count = count as u64;
            if let Some((shown, unfolded)) = source(file, UNFOLDED_LIMIT.min(left / count)) {
                left = left.saturating_sub(unfolded.saturating_mul(count));
                *texts.ways.entry(shown.clone()).or_default() += 1;
                texts.shown.insert(encoding, shown);
            }
        }
        texts
    }

    /// `object`, which is one of those states, with decoded contents and octal modes. For display
    /// only: it is not what is sent.
    ///
    /// Contents that also appear in another encoding stay encoded, so that the change of encoding
    /// can be seen.
    pub fn readable(&self, mut object: Value) -> Value {
        decode(&mut object, self);
        object
    }

    /// The decoded contents of the file `map`, unless the same contents also appear in another
    /// encoding.
    fn unique_contents(&self, map: &Map<String, Value>) -> Option<&String> {
        self.shown.get(&encoding(map)?).filter(|shown| self.ways.get(*shown) == Some(&1))
    }
}

fn decode(value: &mut Value, texts: &Texts) {
    match value {
        Value::Object(map) => {
            if is_file(map)
                && let Some(mode) = mode(map)
            {
                map.insert("mode".to_owned(), Value::from(format!("{mode} (octal {mode:04o})")));
            }
            if let Some(shown) = texts.unique_contents(map) {
                map.remove(COMPRESSION);
                map.remove(SOURCE);
                map.insert(format!("{SOURCE} (decoded)"), Value::from(shown.as_str()));
            }
            map.values_mut().for_each(|member| decode(member, texts));
        }
        Value::Array(list) => list.iter_mut().for_each(|member| decode(member, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn encoding(map: &Map<String, Value>) -> Option<Encoding> {
    let source = map.get(SOURCE)?.as_str()?;
    let compression = map.get(COMPRESSION).map_or_else(|| "absent".to_owned(), Value::to_string);
    Some((source.to_owned(), compression))
}

/// Whether `map` looks like an embedded file.
fn is_file(map: &Map<String, Value>) -> bool {
    map.get("path").is_some_and(Value::is_string) && (map.contains_key("contents") || map.contains_key("mode"))
}

fn mode(file: &Map<String, Value>) -> Option<u64> {
    file.get("mode").and_then(Value::as_u64)
}

/// The contents of the file `map`, if it has any, and what they cost to display if they had to be
/// decompressed (otherwise 0). Contents that cost more than `limit` are not decompressed.
fn source(map: &Map<String, Value>, limit: u64) -> Option<(String, u64)> {
    let url = map.get(SOURCE)?.as_str()?;
    let (bytes, _) = DataUrl::process(url).ok()?.decode_to_vec().ok()?;
    let compressed = map.get(COMPRESSION).and_then(Value::as_str).filter(|compression| !compression.is_empty());
    let (plain, length) = match compressed {
        None => (Some(bytes.clone()), 0),
        Some("gzip") => {
            let unfolded = unfold(&bytes, limit);
            let cost = unfolded.as_ref().map_or(0, |bytes| cost(bytes));
            (unfolded, cost)
        }
        Some(_) => (None, 0),
    };
    let shown = plain.as_ref().and_then(|bytes| text(bytes)).unwrap_or_else(|| {
        let shown = plain.as_ref().unwrap_or(&bytes);
        format!("{} bytes of binary contents, sha256 {}", shown.len(), digest::of_bytes(shown))
    });
    Some((shown, length))
}

fn unfold(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut unfolded = Vec::new();
    GzDecoder::new(bytes).take(limit + 1).read_to_end(&mut unfolded).ok()?;
    (cost(&unfolded) <= limit).then_some(unfolded)
}

/// Bytes that each line of a text takes in a diff, in addition to its own.
const LINE: u64 = 32;

/// The cost of displaying a text, in bytes.
fn cost(text: &[u8]) -> u64 {
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    text.len() as u64 + LINE * lines
}

/// `bytes` as text, if a person can read it.
fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let readable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(readable).then(|| text.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;

    pub(crate) fn readable<const N: usize>(objects: [Value; N]) -> [Value; N] {
        let texts = Texts::of(&objects);
        objects.map(|object| texts.readable(object))
    }

    fn file(source: &str, compression: Option<&str>) -> Value {
        json!({"path": "/etc/swap.sh", "mode": 493, "contents": {"source": source, "compression": compression}})
    }

    fn shown(file: Value) -> String {
        readable([file])[0]["contents"]["source (decoded)"].as_str().unwrap().to_owned()
    }

    fn gzip(text: &[u8]) -> String {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).unwrap();
        format!("data:;base64,{}", BASE64_STANDARD.encode(encoder.finish().unwrap()))
    }

    #[test]
    fn m15_contents_are_shown_as_the_machine_will_have_them() {
        let text = "#!/bin/sh\nswapon -a\n";
        let base64 = format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text));
        assert_eq!(shown(file(&base64, None)), text);
        assert_eq!(shown(file("data:,%23!/bin/sh%0Aswapon%20-a%0A", None)), text);
        assert_eq!(shown(file(&gzip(text.as_bytes()), Some("gzip"))), text);
        assert_eq!(readable([file("data:,", None)])[0]["mode"], "493 (octal 0755)");
    }

    #[test]
    fn m15_what_no_person_can_read_is_shown_by_size_and_digest() {
        let binary = format!("data:;base64,{}", BASE64_STANDARD.encode([0, 159, 146, 150]));
        assert_eq!(
            shown(file(&binary, None)),
            format!("4 bytes of binary contents, sha256 {}", digest::of_bytes(&[0, 159, 146, 150]))
        );
        let bomb = gzip(&vec![b'a'; 5 * 1024 * 1024]);
        assert!(shown(file(&bomb, Some("gzip"))).contains("bytes of binary contents"), "a bomb is not unfolded");
        assert!(shown(file("data:,not%20gzip", Some("gzip"))).starts_with("8 bytes of binary contents"));
    }

    /// Fault T8: many small files, or one that appears many times, would decompress to gigabytes.
    #[test]
    fn t8_compressed_contents_unfold_to_so_much_in_all_and_no_more() {
        let folded = |of: u8| file(&gzip(&vec![of; 1024 * 1024]), Some("gzip"));
        let texts = |files: Vec<Value>| {
            let [shown] = readable([Value::Array(files)]);
            let files = shown.as_array().unwrap().iter();
            files.filter(|file| file["contents"]["source (decoded)"].as_str().unwrap().len() == 1024 * 1024).count()
        };
        assert_eq!(texts((0..26).map(|n| folded(b'a' + n)).collect()), 8);
        assert_eq!(texts(vec![folded(b'a'); 8]), 8);
        assert_eq!(texts(vec![folded(b'a'); 9]), 0, "one file is shown alike wherever it is");
    }

    /// Found by make fuzz: four kilobytes that decompress to four million lines took a hundred
    /// megabytes in a diff.
    #[test]
    fn t8_lines_count_for_what_they_take_in_a_diff() {
        let lines = |count: usize| {
            let [shown] = readable([file(&gzip(&vec![b'\n'; count]), Some("gzip"))]);
            shown["contents"]["source (decoded)"].as_str().unwrap().to_owned()
        };
        assert_eq!(lines(100_000).len(), 100_000);
        assert!(lines(200_000).starts_with("2"), "{}", lines(200_000));
    }

    #[test]
    fn what_is_no_data_url_stays_as_it_is() {
        for other in [
            json!({"source": "https://example.dev/file"}),
            json!({"source": "data:broken;base64,@@"}),
            json!({"source": 5, "mode": 420}),
            json!({"source": [{"name": "00-worker"}]}),
        ] {
            assert_eq!(readable([other.clone()]), [other]);
        }
    }

    #[test]
    fn m15_another_encoding_of_the_same_contents_is_seen() {
        let [before, after] = readable([file("data:,a%20b", None), file("data:;base64,YSBi", None)]);
        assert_ne!(before, after);
        let empty = json!({"path": "/f", "contents": {"source": "data:,a", "compression": ""}});
        let absent = json!({"path": "/f", "contents": {"source": "data:,a"}});
        let [before, after] = readable([empty, absent]);
        assert_ne!(before, after, "also if only the compression is written otherwise");
        let [before, after] = readable([file("data:,a%20b", None), file("data:,a%20b", None)]);
        assert_eq!((&before, &before["contents"]["source (decoded)"]), (&after, &json!("a b")));
    }
}
