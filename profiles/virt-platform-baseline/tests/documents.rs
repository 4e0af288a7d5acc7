//! The page of the features in the documents is that of the code.

#[test]
fn the_page_of_the_features_is_in_the_documents() {
    let written = include_str!("../../../docs/profiles/virt-platform-baseline.md");
    assert_eq!(written, virt_platform_baseline::page(), "run make generate");
}
