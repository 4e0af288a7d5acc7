//! Bounds on everything that others write: how deep, how large, how many, and which characters.
//!
//! Everything from a spec, an annotation, a target, an input or an error passes here once, where it
//! enters. Past that edge every recursion, loop, log line and status is bounded, and no code needs
//! to check again.
//!
//! **Invariant:** pure. No IO, no clock, no client.

mod shallow;
mod text;
mod value;

pub use shallow::Shallow;
pub use text::{cut_text, is_plain, unambiguous, visible, within_line, words};
pub use value::{Beyond, beyond, count, depth, size};

/// The deepest nesting kept in the API server's answers, in levels of maps and lists. serde_json
/// refuses 128 levels, and the API server accepts 5,000 (observed on kube-apiserver 1.36.3):
/// without a bound, one object makes the whole list unreadable.
pub const WIRE_DEPTH: usize = 120;
/// The deepest object that is planned or read as an input. It is less than [`WIRE_DEPTH`] by more
/// than a list or a watch event adds, so that an object from which something was left out is always
/// recognized as too deep.
pub const OBJECT_DEPTH: usize = 100;
/// The most values, maps and lists in total of an object that is planned or read as an input. A
/// MachineConfig of 9,000 files has 72,000.
pub const OBJECT_VALUES: usize = 100_000;
/// The most maps and lists of such an object. A map with one member takes some 600 bytes of memory,
/// and an object that is planned is held five times: 170,000 of them, 1.4 MB of JSON, took 590 MB
/// (observed). This many leave room for everything else in the container, which has 128 MiB.
pub const OBJECT_MAPS: usize = 20_000;
/// The most maps and lists of one object kept in the API server's answers. As with [`WIRE_DEPTH`],
/// an object from which some were left out is always recognized.
pub const WIRE_MAPS: usize = 40_000;
/// The largest object that etcd stores, in bytes: 1.5 MiB, less what the request itself takes. A
/// dry run does not check this limit (observed: 1,572,000 bytes are stored, 1,575,000 are not).
pub const OBJECT_SIZE: usize = 1_572_000;
/// The largest `spec`, in bytes of JSON. Together with the status, which has at most 256 KiB, and
/// managedFields it stays below [`OBJECT_SIZE`], so that there is always room to report what is
/// wrong.
pub const SPEC_SIZE: usize = 512 * 1024;
/// The most values, maps and lists in `spec` in total. A value takes many times as much memory as
/// its JSON has bytes: 50,000 maps with one number each, 400 KB of JSON, took 330 MiB during
/// planning (observed).
pub const SPEC_VALUES: usize = 10_000;
/// The most values that patches add to one object, counted like those of a spec. A plan of eight
/// such objects fits into the container's memory.
pub const PATCH_VALUES: usize = 5000;
/// The most patch operations for one object, from spec and annotation together.
pub const OPERATIONS: usize = 200;
/// The most pointers to ignored fields of one object, from spec and annotation together.
pub const POINTERS: usize = 1000;
/// The longest pointer, as in the CRD.
pub const POINTER_SIZE: usize = 1024;
/// The longest annotation that is read, in bytes. The API server accepts 256 KiB for all
/// annotations of an object.
pub const ANNOTATION_SIZE: usize = 64 * 1024;
/// The most objects that a list of exclusions may name.
pub const EXCLUSIONS: usize = 1000;
/// The most bytes kept of an error's text.
pub const WORDS: usize = 2048;
