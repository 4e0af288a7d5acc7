//! Removes from JSON what is nested too deep or is too much, so that one object can't make the list
//! that it is in unreadable, or fill the memory.

use bytes::Bytes;

use super::{WIRE_DEPTH, WIRE_MAPS};

/// Replaces by `null`, in a stream of JSON, whatever is nested deeper than [`WIRE_DEPTH`], and the
/// maps and lists of an object beyond [`WIRE_MAPS`]. Its memory does not grow with the answer, and
/// parts that need no change are passed on without a copy. Documents may follow each other, as in a
/// watch; the objects of a list are its `items`.
///
/// Times in managedFields in the last days of the year 9999, which the server accepts and no client
/// can parse (jiff ends on 30 December), are replaced by times ten days earlier. Anyone who may
/// edit an object may write such a time, and it would make the metadata of every other object in a
/// list unreadable.
#[derive(Debug, Default)]
pub struct Shallow {
    depth: usize,
    /// The maps and lists of the current object so far.
    maps: usize,
    /// Whether the document is a list of objects.
    listing: bool,
    /// The depth at which something is being left out, if it is.
    cut: Option<usize>,
    quoted: bool,
    escaped: bool,
    /// The beginning of the text that is being read, or was read last.
    text: Text,
    /// The name of the member whose value comes next.
    member: Text,
    /// The depth of the managedFields list that is being read, if one is.
    managed: Option<usize>,
}

/// The beginning of a text: enough to tell the few that matter from all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Text {
    bytes: [u8; 16],
    length: usize,
}

impl Text {
    fn is(&self, text: &[u8]) -> bool {
        self.length == text.len() && self.bytes.get(..self.length) == Some(text)
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
        }
        self.length += 1;
    }
}

impl Shallow {
    /// Filters the next part of the stream.
    #[must_use]
    pub fn filter(&mut self, part: Bytes) -> Bytes {
        let mut kept: Vec<u8> = Vec::new();
        // The first byte that was examined but not copied yet.
        let mut from = 0;
        let mut copies = self.cut.is_some();
        for (index, byte) in part.iter().enumerate() {
            let before = self.cut;
            let replaced = self.step(*byte);
            let instead: &[u8] = match (before, self.cut) {
                (None, Some(_)) => b"null",
                (Some(_), None) => {
                    from = index + 1;
                    continue;
                }
                (None, None) if replaced => b"2",
                _ => continue,
            };
            copies = true;
            kept.extend_from_slice(part.get(from..index).unwrap_or_default());
            kept.extend_from_slice(instead);
            from = index + 1;
        }
        if !copies {
            return part;
        }
        if self.cut.is_none() {
            kept.extend_from_slice(part.get(from..).unwrap_or_default());
        }
        Bytes::from(kept)
    }

    /// Whether this byte belongs to a time that can't be parsed, and is to be replaced.
    fn step(&mut self, byte: u8) -> bool {
        if self.quoted {
            return self.within_text(byte);
        }
        match byte {
            b'"' => (self.quoted, self.text) = (true, Text::default()),
            b':' => self.member = self.text,
            b'{' | b'[' => {
                self.depth += 1;
                self.count(byte);
                if byte == b'[' && self.member.is(b"managedFields") && self.managed.is_none() {
                    self.managed = Some(self.depth);
                }
                self.member = Text::default();
            }
            b'}' | b']' => {
                self.cut = self.cut.filter(|cut| self.depth > *cut);
                self.depth = self.depth.saturating_sub(1);
                self.managed = self.managed.filter(|managed| self.depth >= *managed);
            }
            b',' => self.member = Text::default(),
            _ => {}
        }
        false
    }

    /// Counts the map or list that begins with `byte`.
    fn count(&mut self, byte: u8) {
        match (self.depth, byte) {
            (1, _) => (self.maps, self.listing) = (0, false),
            (2, b'[') if self.member.is(b"items") => self.listing = true,
            (3, _) if self.listing => self.maps = 0,
            _ => {}
        }
        self.maps += 1;
        if self.cut.is_none() && (self.depth > WIRE_DEPTH || self.maps > WIRE_MAPS) {
            self.cut = Some(self.depth);
        }
    }

    fn within_text(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.quoted = false;
                return false;
            }
            _ => {}
        }
        let is_time = byte == b'3' && self.managed.is_some() && self.member.is(b"time") && self.text.is(b"9999-12-");
        self.text.push(byte);
        is_time
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::{Beyond, OBJECT_DEPTH, beyond, depth};

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn filtered(parts: &[&[u8]]) -> Vec<u8> {
        let mut shallow = Shallow::default();
        parts.iter().flat_map(|part| shallow.filter(Bytes::copy_from_slice(part)).to_vec()).collect()
    }

    /// T6: a value that is nested too deep for the parser is left out, and its neighbours are read.
    #[test]
    fn t6_one_deep_object_of_a_list_leaves_the_others_readable() {
        for levels in [WIRE_DEPTH + 1, 140, 5000] {
            let list = format!(r#"{{"items":[{{"a":"]}}\"[["}},{},{{"b":2}}]}}"#, nested(levels));
            assert!(levels < 127 || serde_json::from_str::<Value>(&list).is_err(), "{levels}: this test shows nothing");
            let list: Value = serde_json::from_slice(&filtered(&[list.as_bytes()])).unwrap();
            assert_eq!((&list["items"][0], &list["items"][2]), (&json!({"a": "]}\"[["}), &json!({"b": 2})), "{levels}");
            assert!(depth(&list["items"][1]) > OBJECT_DEPTH, "what is left of it is still too deep");
        }
        let events = format!("{{\"object\":{}}}\n{{\"object\":2}}\n", nested(300));
        let events = String::from_utf8(filtered(&[events.as_bytes()])).unwrap();
        let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events[1], json!({"object": 2}));
    }

    #[test]
    fn what_is_shallow_is_passed_on_without_a_copy() {
        let part = Bytes::from(format!("{{\"a\":{}}}", nested(WIRE_DEPTH - 1)));
        let passed = Shallow::default().filter(part.clone());
        assert_eq!((passed.as_ptr(), &passed), (part.as_ptr(), &part));
    }

    /// An object that would take hundreds of megabytes is cut before it is parsed, and its
    /// neighbours are read.
    #[test]
    fn t8_of_an_object_of_many_maps_only_so_many_are_read() {
        let maps = |number: usize| format!("{{\"a\":[{}]}}", vec!["{\"b\":1}"; number].join(","));
        let list = format!("{{\"items\":[{},{},{}]}}", maps(WIRE_MAPS - 2), maps(400_000), maps(3));
        for cut in [1, list.len() / 2, list.len() - 1] {
            let (one, other) = list.as_bytes().split_at(cut);
            let found: Value = serde_json::from_slice(&filtered(&[one, other])).unwrap();
            let kept = |index: usize| {
                found["items"][index]["a"].as_array().unwrap().iter().filter(|map| map.is_object()).count()
            };
            assert_eq!((kept(0), kept(1), kept(2)), (WIRE_MAPS - 2, WIRE_MAPS - 2, 3));
            assert_eq!(beyond(&found["items"][1]), Some(Beyond::Count), "what is left of it is still too much");
        }
        let events = format!("{}\n{}\n", maps(400_000), maps(WIRE_MAPS - 2));
        let second = String::from_utf8(filtered(&[events.as_bytes()])).unwrap().lines().nth(1).unwrap().to_owned();
        assert_eq!(second, maps(WIRE_MAPS - 2));
    }

    /// Like T6: a time that no client can parse, in the metadata of one object.
    #[test]
    fn t6_a_time_at_the_end_of_the_calendar_makes_no_list_unreadable() {
        let object = |time: &str| {
            let entry = json!({"manager": "m", "time": time, "fieldsV1": {"f:spec": {"f:time": {}}}});
            json!({"metadata": {"managedFields": [entry]}, "spec": {"time": time}, "time": [time]}).to_string()
        };
        let far = "9999-12-31T23:59:59Z";
        let list = format!("{{\"items\":[{},{}]}}", object(far), object("2026-01-01T00:00:00Z"));
        for cut in 0..list.len() {
            let (one, other) = list.as_bytes().split_at(cut);
            let found: Value = serde_json::from_slice(&filtered(&[one, other])).unwrap();
            let first = &found["items"][0];
            assert_eq!(first["metadata"]["managedFields"][0]["time"], "9999-12-21T23:59:59Z");
            assert_eq!((&first["spec"]["time"], &first["time"][0]), (&json!(far), &json!(far)), "others are values");
            assert_eq!(found["items"][1]["metadata"]["managedFields"][0]["time"], "2026-01-01T00:00:00Z");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn where_a_stream_is_cut_makes_no_difference(
            levels in 100_usize..200, text in "[\\[\\]{}\"\\\\a]{0,12}", cuts in prop::collection::vec(0_usize..600, 0..6)
        ) {
            let document = json!({"text": text, "more": [1, {"x": text}]}).to_string();
            let stream = format!("{document}\n{}\n{document}", nested(levels).replace('1', &document));
            let whole = filtered(&[stream.as_bytes()]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let parts: Vec<_> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&filtered(&parts), &whole);
            let lines = String::from_utf8(whole).unwrap();
            for line in lines.lines() {
                prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
            }
        }
    }
}
