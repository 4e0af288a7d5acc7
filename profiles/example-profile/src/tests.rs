//! The profile on data alone: what it drafts from which options.

use super::*;

fn object(options: Option<&Value>) -> Value {
    let drafts = PROFILE.configure(options).expect("valid options").draft(&Inputs::default()).expect("drafts");
    match &drafts[..] {
        [Draft { body: Body::Ensure(object), .. }] => object.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_defaults_are_drafted() {
    insta::assert_yaml_snapshot!(object(None));
}

#[test]
fn the_option_reaches_the_target() {
    let object = object(Some(&json!({"value": "a: \"b\""})));
    assert_eq!(object["data"], json!({"example-key": "a: \"b\""}));
}

#[test]
fn options_of_the_wrong_type_name_the_option() {
    let error = PROFILE.configure(Some(&json!({"value": 3}))).err().expect("refused").to_string();
    assert!(error.contains("spec.options.exampleProfile"), "{error}");
}
