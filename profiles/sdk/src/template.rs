//! Objects from templates: Handlebars in strict mode, then YAML.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use handlebars::{Context, Handlebars, Helper, HelperResult, Output, RenderContext};
use serde::Serialize;
use serde_json::Value;

use crate::DraftError;

/// Renders the YAML template `text`, named `template` in errors, with `data`.
///
/// A variable that `data` lacks is an error, never an empty text. `{{json value}}` writes any value as JSON, which is
/// YAML too: use it for every text, list or map, so that no value can break out of its place. `{{data_url text}}` writes a
/// text as the data URL that files of a MachineConfig have.
///
/// # Errors
///
/// [`DraftError::Template`] names the template, and the line where Handlebars or YAML gave up.
pub fn render(template: &'static str, text: &str, data: &impl Serialize) -> Result<Value, DraftError> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars.register_helper("json", Box::new(write_json));
    handlebars.register_helper("data_url", Box::new(write_data_url));
    let yaml = handlebars
        .render_template(text, data)
        .map_err(|error| DraftError::Template { template, problem: error.to_string() })?;
    serde_saphyr::from_str(&yaml).map_err(|error| DraftError::Template { template, problem: error.to_string() })
}

fn write_json(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let value = helper.param(0).map_or(&Value::Null, |param| param.value());
    out.write(&value.to_string())?;
    Ok(())
}

fn write_data_url(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let text = helper.param(0).and_then(|param| param.value().as_str()).unwrap_or_default();
    write!(out, "data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text))?;
    Ok(())
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

    #[test]
    fn a_file_is_a_data_url() {
        let object = render("t.yaml", "source: {{data_url file}}\n", &json!({"file": "a: b\n"})).unwrap();
        assert_eq!(object, json!({"source": "data:text/plain;charset=utf-8;base64,YTogYgo="}));
    }

    #[test]
    fn a_missing_variable_is_an_error() {
        let error = render("t.yaml", "spec: {{size}}", &json!({})).unwrap_err().to_string();
        assert!(error.contains("t.yaml") && error.contains("size"), "{error}");
    }
}
