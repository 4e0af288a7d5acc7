//! Objects from templates: Handlebars in strict mode, then YAML.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use handlebars::{
    Context, Handlebars, Helper, HelperResult, Output, PathAndJson, RenderContext, RenderError, RenderErrorReason,
};
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
    let wrong = |problem: String| DraftError::Template { template, problem };
    handlebars.register_template_string(template, text).map_err(|error| wrong(error.to_string()))?;
    let yaml = handlebars.render(template, data).map_err(|error| wrong(error.to_string()))?;
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

/// The `{{json value}}` of templates.
fn write_json(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    out.write(&as_yaml(&value(helper)?.to_string()))?;
    Ok(())
}

/// The `{{data_url text}}` of templates.
fn write_data_url(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let text = value(helper)?.as_str().ok_or_else(|| wrong(helper, "is not a text"))?;
    out.write(&format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text)))?;
    Ok(())
}

/// The value that the template passes.
fn value<'a>(helper: &'a Helper<'_>) -> Result<&'a Value, RenderError> {
    let given = helper.param(0).filter(|param| !param.is_value_missing());
    given.map(PathAndJson::value).ok_or_else(|| wrong(helper, "is missing from the data of the template"))
}

fn wrong(helper: &Helper<'_>, problem: &str) -> RenderError {
    let variable = helper.param(0).and_then(|param| param.relative_path().cloned()).unwrap_or_default();
    RenderErrorReason::Other(format!("variable {variable:?} of {{{{{} …}}}} {problem}", helper.name())).into()
}

/// `json` with escapes for what a text of YAML can't hold, or would hold as another one (YAML 1.2,
/// sections 5.1 and 5.4): JSON takes both as they are. All of it is within texts.
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
        for (text, data, problem) in [
            ("spec: {{json size}}", json!({}), "is missing"),
            ("spec: {{data_url size}}", json!({}), "is missing"),
            ("spec: {{data_url size}}", json!({"size": 3}), "is not a text"),
        ] {
            let error = render("t.yaml", text, &data).unwrap_err().to_string();
            assert!(error.contains("t.yaml") && error.contains("line 1"), "{error}");
            assert!(error.contains("variable \"size\"") && error.contains(problem), "{error}");
        }
    }
}
