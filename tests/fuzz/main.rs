//! Whatever others write is tried here, at random and at length: the same properties hold for every
//! input.
//!
//! `cargo test` tries a few inputs of each subject. `make fuzz` goes on for `FUZZ_SECONDS`, and
//! prints how many inputs that were.

mod contents;
mod documents;
mod exclusions;
mod fields;
mod harness;
mod overrides;
mod quantities;
mod rollouts;
mod specs;
mod statuses;
mod streams;
mod texts;
mod values;

/// What is tried; each has its share of the time.
const SUBJECTS: [&str; 18] = [
    "causes",
    "contents",
    "diffs",
    "documents",
    "durations",
    "exclusions",
    "managed-fields",
    "overrides",
    "overrides-unlike",
    "paths",
    "pointers",
    "quantities",
    "rollouts",
    "specs",
    "statuses",
    "streams",
    "texts",
    "yaml",
];
