//! Answers a profile's questions about nodes: lists them in pages, and keeps only the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use profile_sdk::{Kind, NodeQuestion};
use serde_json::Value;

use super::{Engine, EngineError};

const NODE: Kind = Kind { group: "", versions: &["v1"], kind: "Node", plural: "nodes" };

impl Engine<'_> {
    /// The names of the questions whose answer is yes. Without questions there is no request.
    ///
    /// # Errors
    ///
    /// If the server does not answer, or forbids listing nodes: that never counts as a no.
    pub(super) async fn ask_nodes(&self, questions: &[NodeQuestion]) -> Result<BTreeSet<&'static str>, EngineError> {
        if questions.is_empty() {
            return Ok(BTreeSet::new());
        }
        let failed = |source| EngineError::Kind { kind: NODE.kind, source };
        let Some(nodes) = self.cluster.resolve(&NODE).await.map_err(failed)? else { return Ok(BTreeSet::new()) };
        let mut yes = BTreeSet::new();
        if questions.iter().all(|question| question.selector.is_some()) {
            for question in questions {
                if question.only_after.is_some_and(|before| !yes.contains(before)) {
                    continue;
                }
                let mut is_so = false;
                let see = |node: &Value| {
                    is_so |= answers(std::slice::from_ref(question), node).next().is_some();
                    if is_so { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                self.cluster.visit_metadata(&nodes, question.selector, see).await.map_err(failed)?;
                yes.extend(is_so.then_some(question.name));
            }
            return Ok(yes);
        }
        let see = |node: &Value| {
            yes.extend(answers(questions, node));
            if yes.len() == questions.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.cluster.visit_metadata(&nodes, None, see).await.map_err(failed)?;
        Ok(yes)
    }
}

/// The names of the questions whose answer is yes for `node`.
pub fn answers<'a>(questions: &'a [NodeQuestion], node: &Value) -> impl Iterator<Item = &'static str> + 'a {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let labels: BTreeMap<_, _> = labels.filter_map(text).collect();
    questions.iter().filter(move |question| (question.is_so)(&labels)).map(|question| question.name)
}
