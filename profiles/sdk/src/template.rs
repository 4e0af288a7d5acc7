//! Objects from templates: Handlebars in strict mode, then YAML.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use handlebars::{Handlebars, handlebars_helper};
use serde::Serialize;
use serde_json::Value;

use crate::DraftError;

/// Renders the YAML template `text`, named `template` in errors, with `data`.
///
/// A variable that is missing from `data` is an error, never an empty text. `{{json value}}` writes
/// any value as JSON, which is also YAML: use it for every text, list or map, so that no value can
/// break out of its place. `{{data_url text}}` writes a text as a data URL, for the files of a
/// MachineConfig.
///
/// # Errors
///
/// [`DraftError::Template`] names the template and the line at which Handlebars or the YAML parser
/// failed.
pub fn render(template: &'static str, text: &str, data: &impl Serialize) -> Result<Value, DraftError> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars.register_helper("json", Box::new(write_json));
    handlebars.register_helper("data_url", Box::new(write_data_url));
    let yaml = handlebars
        .render_template(text, data)
        .map_err(|error| DraftError::Template { template, problem: error.to_string() })?;
    parse(template, &yaml)
}

/// Parses the YAML `text`, named `template` in errors, without filling in anything.
///
/// # Errors
///
/// [`DraftError::Template`] names `template` and the line at which the YAML parser failed.
pub fn parse(template: &'static str, text: &str) -> Result<Value, DraftError> {
    serde_saphyr::from_str(text).map_err(|error| DraftError::Template { template, problem: error.to_string() })
}

// Both refuse a value that is missing, or of another type, as the rest of a template does.
handlebars_helper!(write_json: |value: Json| as_yaml(&value.to_string()));
handlebars_helper!(write_data_url: |text: str| format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text)));

/// `json` with escapes for what a text of YAML can't hold, or would hold as another one (YAML 1.2, sections 5.1 and 5.4): JSON takes both
/// as they are. All of it is within texts.
fn as_yaml(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut yaml, character| {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                yaml.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => yaml.push(other),
        }
        yaml
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_can_not_break_out_of_their_place() {
        let nasty = "x\"\nkind: Secret # {{a}}";
        let object = render("t.yaml", "spec:\n  name: {{json name}}\n", &json!({"name": nasty})).unwrap();
        assert_eq!(object, json!({"spec": {"name": nasty}}));
    }

    /// Some characters YAML refuses, and some it takes for the end of a line.
    #[test]
    fn every_character_comes_through() {
        let all: String = ('\0'..=char::MAX).filter(|character| u32::from(*character) < 0x1_0100).collect();
        let object = render("t.yaml", "name: {{json name}}\n", &json!({"name": [all]})).unwrap();
        assert_eq!(object, json!({"name": [all]}));
        for key in ["\u{7f}", "a\u{85}b", "\u{9b}", "\u{2028}", "\u{feff}", "\u{fffe}"] {
            let object = render("t.yaml", "name: {{json name}}\n", &json!({"name": {key: 1}})).unwrap();
            assert_eq!(object, json!({"name": {key: 1}}));
        }
    }

    #[test]
    fn a_file_is_a_data_url() {
        let object = render("t.yaml", "source: {{data_url file}}\n", &json!({"file": "a: b\n"})).unwrap();
        assert_eq!(object, json!({"source": "data:text/plain;charset=utf-8;base64,YTogYgo="}));
    }

    #[test]
    fn a_missing_variable_is_an_error() {
        let error = render("t.yaml", "spec: {{size}}", &json!({})).unwrap_err().to_string();
        assert!(error.contains("t.yaml") && error.contains("size"), "{error}");
        for text in ["spec: {{json size}}", "spec: {{data_url size}}"] {
            assert!(render("t.yaml", text, &json!({})).is_err(), "{text}");
        }
        assert!(render("t.yaml", "spec: {{data_url size}}", &json!({"size": 3})).is_err(), "a number is no text");
    }
}
