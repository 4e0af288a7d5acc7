//! The list of objects that are excluded from all plans, in an annotation of the object that stands
//! for the platform.

use glob::Pattern;
use serde::Deserialize;

use profile_sdk::Declared;

use crate::api::TargetRef;
use crate::plan::remedy::Remedy;
use object::limits::{ANNOTATION_SIZE, EXCLUSIONS, cut_text};

/// The most bytes of somebody else's text that a sentence quotes.
const QUOTED: usize = 200;

/// The excluded objects, or why the list can't be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusions(Result<Vec<Rule>, Remedy>);

/// Objects by kind, name and namespace; `*`, `?` and `[…]` work as in file names.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    kind: Pattern,
    name: Pattern,
    namespace: Option<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExclusionEntry {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

impl Default for Exclusions {
    fn default() -> Self {
        Self(Ok(Vec::new()))
    }
}

impl Exclusions {
    /// Parses the annotation, a YAML list of `{kind, name, namespace}`.
    #[must_use]
    pub fn parse(text: Option<&str>) -> Self {
        let text = text.map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Self::default();
        }
        let unclear = |problem: String| {
            let name = profile_sdk::DISABLED_RESOURCES;
            format!(
                "The excluded objects are unknown: the annotation {name} is not a list of kind, name and namespace: {problem}. Correct or remove it."
            )
        };
        if text.len() > ANNOTATION_SIZE {
            return Self(Err(unclear(format!(
                "it has {} bytes, but at most {ANNOTATION_SIZE} are allowed",
                text.len()
            ))
            .into()));
        }
        // The budget stops anchors from multiplying: the contents can't be larger than the
        // annotation.
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_total_scalar_bytes: ANNOTATION_SIZE },
        };
        let written: Result<Vec<ExclusionEntry>, String> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| cut_text(error.to_string().lines().next().unwrap_or_default(), QUOTED));
        let written = written.and_then(|written| match written.len() {
            many if many > EXCLUSIONS => Err(format!("it names {many} objects, but at most {EXCLUSIONS} are allowed")),
            _ => Ok(written),
        });
        let pattern = |text: &str| {
            let wrong = |why: &str| format!("{:?} is not a pattern: {why}", cut_text(text, QUOTED));
            // Characters with which other programs negate, quote and choose would be taken
            // literally, and no name contains them.
            match text.contains(['^', '\\', '{', '}']) {
                true => Err(wrong("^, \\, { and } are not supported; to exclude characters, write [!…]")),
                false => Pattern::new(text).map_err(|error| wrong(&error.to_string())),
            }
        };
        let rule = |written: ExclusionEntry| {
            let empty = [&written.kind, &written.name].iter().any(|text| text.is_empty());
            if empty {
                return Err("an entry has no kind or no name".to_owned());
            }
            let namespace = Some(&written.namespace).filter(|namespace| !namespace.is_empty());
            let namespace = namespace.map(|namespace| pattern(namespace)).transpose()?;
            Ok(Rule { kind: pattern(&written.kind)?, name: pattern(&written.name)?, namespace })
        };
        let rules = written.and_then(|written| written.into_iter().map(rule).collect::<Result<Vec<_>, _>>());
        Self(rules.map_err(|problem| unclear(problem).into()))
    }

    /// The reason why `target` is excluded, if it is.
    ///
    /// # Errors
    ///
    /// Why the list can't be read: then nothing may be written.
    pub fn excludes(&self, target: &TargetRef) -> Result<Option<String>, Remedy> {
        let rules = self.0.as_ref().map_err(Clone::clone)?;
        Ok(rules.iter().find(|rule| rule.covers(target)).map(|rule| {
            format!("the annotation {} excludes {} {}", profile_sdk::DISABLED_RESOURCES, rule.kind, rule.name)
        }))
    }

    /// Entries that can't match any object that profiles have `declared`: a sentence for each. Pass
    /// the declarations of all profiles, including those that are not in use: the list is common to
    /// all configurations.
    pub fn unused<'a>(&'a self, declared: &'a [&'a Declared]) -> impl Iterator<Item = String> + 'a {
        let rules = self.0.as_deref().unwrap_or_default().iter();
        rules.filter(|rule| !declared.iter().any(|declared| rule.may_cover(declared))).map(|rule| {
            let namespace = rule.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            format!(
                "The annotation {} names {} {namespace}{}, which can't be an object of any plan.",
                profile_sdk::DISABLED_RESOURCES,
                rule.kind,
                rule.name
            )
        })
    }
}

impl Rule {
    fn may_cover(&self, declared: &Declared) -> bool {
        self.kind.matches(declared.kind.kind) && declared.name.is_none_or(|name| self.name.matches(name))
    }

    fn covers(&self, target: &TargetRef) -> bool {
        let namespace = target.namespace.as_deref().unwrap_or_default();
        self.kind.matches(&target.kind)
            && self.name.matches(&target.name)
            && self.namespace.as_ref().is_none_or(|pattern| pattern.matches(namespace))
    }
}
