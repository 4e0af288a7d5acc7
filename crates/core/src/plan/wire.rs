//! Forms that the API requires: times in whole seconds, texts and values of bounded length.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::api::{Input, TargetRef};
use object::digest;
use object::limits;
pub use object::limits::cut_text;

/// The longest name of a namespace.
pub(in crate::plan) const LABEL_LIMIT: usize = 63;

/// The most inputs of a plan, as in the CRD.
pub(in crate::plan) const INPUT_LIMIT: usize = 1000;

pub(in crate::plan) const REPLACED_LIMIT: usize = 20;

/// The longest text of a summary, as in the CRD.
pub const SUMMARY_LIMIT: usize = 1024;

/// The longest value of an input that is shown, in bytes of JSON. Of longer ones, and of those with
/// characters that are not displayed as themselves, only the digest is shown, which reveals a
/// change just as well.
const VALUE_LIMIT: usize = 1024;
/// The deepest value of an input that is shown, in levels of maps and lists.
const VALUE_DEPTH: usize = 20;
/// The longest path of an input, as in the CRD.
const PATH_LIMIT: usize = 1024;

/// The value at `path` of `target` as an input of a plan.
#[must_use]
pub fn input(target: TargetRef, path: &str, value: Option<Value>) -> Input {
    let secret = target.kind == "Secret" && target.api_version == "v1";
    let value = value.filter(|value| !value.is_null()).map(|value| {
        let text = value.to_string();
        let hidden = || Value::from(format!("sha256 {}", digest::sha256(&value)));
        let can_be_shown = text.len() <= VALUE_LIMIT && limits::is_plain(&text) && limits::depth(&value) <= VALUE_DEPTH;
        if secret || !can_be_shown { hidden() } else { value }
    });
    Input { target, path: cut_text(path, PATH_LIMIT), value, changed_from: None }
}

/// `now` in whole seconds, the precision of the API.
#[must_use]
pub fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
