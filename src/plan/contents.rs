//! Files inside objects, made readable: contents that travel as data URLs (Ignition, RFC 2397), compressed or not, and file
//! modes, which JSON can only write in decimal.
//!
//! It goes by the shape and not by the kind, so that it holds wherever such files are embedded.

use std::collections::BTreeMap;
use std::io::Read;

use data_url::DataUrl;
use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::digest;

/// What all compressed texts of one change may unfold to, each counted once; what is beyond is shown like binary contents. A thousandth of
/// it is enough to write it, and an object has room for hundreds of such texts.
const UNFOLDED_LIMIT: u64 = 4 * 1024 * 1024;

/// Names of members that hold a file's contents as a URL, and its compression.
const SOURCE: &str = "source";
const COMPRESSION: &str = "compression";

/// `objects`, two states of one, with decoded contents and octal modes, as they are shown. It is not what is sent.
///
/// Contents that are the same in another encoding stay encoded: the change must be seen.
#[must_use]
pub fn readable<const N: usize>(mut objects: [Value; N]) -> [Value; N] {
    let mut decoded = Decoded { contents: BTreeMap::new(), room: UNFOLDED_LIMIT };
    // What is planned comes first: others, by what they put into the object, take no room from it.
    objects.iter().rev().for_each(|object| decoded.collect(object));
    let mut encodings: BTreeMap<_, usize> = BTreeMap::new();
    decoded.contents.values().flatten().for_each(|shown| *encodings.entry(shown.as_str()).or_default() += 1);
    let is_shown = |shown: &str| encodings.get(shown) == Some(&1);
    objects.iter_mut().for_each(|object| decode(object, &decoded.contents, &is_shown));
    objects
}

/// The members that contents were read from, as they are written.
type Encoding = (String, String);

/// What is shown of each contents, if they are readable.
struct Decoded {
    contents: BTreeMap<Encoding, Option<String>>,
    /// As many bytes may still be unfolded.
    room: u64,
}

impl Decoded {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                if map.contains_key(SOURCE) {
                    let Self { contents, room } = self;
                    contents.entry(encoding(map)).or_insert_with(|| source(map, room));
                }
                map.values().for_each(|member| self.collect(member));
            }
            Value::Array(list) => list.iter().for_each(|member| self.collect(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn encoding(map: &Map<String, Value>) -> Encoding {
    let written = |key: &str| map.get(key).map_or_else(|| "absent".to_owned(), Value::to_string);
    (written(SOURCE), written(COMPRESSION))
}

/// The paths of embedded files that the machine would let only their owner read: a mode without rights for others.
pub(super) fn private_files(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Object(map) => {
            if let (Some(path), Some(mode), true) = (map.get("path").and_then(Value::as_str), mode(map), is_file(map))
                && mode & 0o077 == 0
            {
                found.push(path.to_owned());
            }
            found.extend(map.values().flat_map(private_files));
        }
        Value::Array(list) => found.extend(list.iter().flat_map(private_files)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found
}

/// Whether `map` looks like an embedded file.
pub(super) fn is_file(map: &Map<String, Value>) -> bool {
    map.get("path").is_some_and(Value::is_string) && (map.contains_key("contents") || map.contains_key("mode"))
}

fn mode(file: &Map<String, Value>) -> Option<u64> {
    file.get("mode").and_then(Value::as_u64)
}

fn decode(value: &mut Value, contents: &BTreeMap<Encoding, Option<String>>, is_shown: &impl Fn(&str) -> bool) {
    match value {
        Value::Object(map) => {
            if is_file(map)
                && let Some(mode) = mode(map)
            {
                map.insert("mode".to_owned(), Value::from(format!("{mode} (octal {mode:04o})")));
            }
            if map.contains_key(SOURCE)
                && let Some(shown) = contents.get(&encoding(map)).and_then(Option::as_deref)
                && is_shown(shown)
            {
                map.remove(COMPRESSION);
                map.remove(SOURCE);
                map.insert(format!("{SOURCE} (decoded)"), Value::from(shown));
            }
            map.values_mut().for_each(|member| decode(member, contents, is_shown));
        }
        Value::Array(list) => list.iter_mut().for_each(|member| decode(member, contents, is_shown)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The contents that `map` holds, if it holds any. What is unfolded takes `room`.
fn source(map: &Map<String, Value>, room: &mut u64) -> Option<String> {
    let url = map.get(SOURCE)?.as_str()?;
    let (bytes, _) = DataUrl::process(url).ok()?.decode_to_vec().ok()?;
    let compressed = map.get(COMPRESSION).and_then(Value::as_str).filter(|compression| !compression.is_empty());
    let unfolded = match compressed {
        None => Some(bytes.clone()),
        Some("gzip") => unfold(&bytes, room),
        Some(_) => None,
    };
    let text = unfolded.as_ref().and_then(|bytes| text(bytes));
    Some(text.unwrap_or_else(|| {
        let shown = unfolded.as_ref().unwrap_or(&bytes);
        format!("{} bytes of binary contents, sha256 {}", shown.len(), digest::of_bytes(shown))
    }))
}

fn unfold(bytes: &[u8], room: &mut u64) -> Option<Vec<u8>> {
    let mut unfolded = Vec::new();
    let read = GzDecoder::new(bytes).take(*room + 1).read_to_end(&mut unfolded);
    // What was unfolded in vain has taken room, too: a text that is too long is unfolded once, and not again for each that follows.
    let taken = unfolded.len() as u64;
    let fits = taken <= *room;
    *room = room.saturating_sub(taken);
    read.ok().filter(|_| fits).map(|_| unfolded)
}

/// The text that `bytes` are, if a person can read it.
fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let readable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(readable).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    use super::*;

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

    /// Found by `make fuzz`: each of many small files may unfold to a thousand times its size.
    #[test]
    fn many_compressed_files_unfold_to_no_more_than_one_may() {
        let files = |first: usize| -> Value {
            (first..first + 30).map(|length| file(&gzip(&vec![b'a'; (1 << 20) + length]), Some("gzip"))).collect()
        };
        let [live, planned] = readable([files(100), files(0)]);
        let shown = |file: &Value| file["contents"]["source (decoded)"].as_str().unwrap().len();
        let lengths = |list: &Value| -> Vec<_> { list.as_array().unwrap().iter().map(shown).collect() };
        assert_eq!(
            lengths(&planned).iter().filter(|length| **length >= 1 << 20).count(),
            3,
            "as many as there is room for"
        );
        assert!(lengths(&live).iter().all(|length| *length < 200), "what is planned is shown first");
        let [live, planned] = readable([files(0), files(0)]);
        assert_eq!(lengths(&live), lengths(&planned), "equal contents are shown alike, and counted once");
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
