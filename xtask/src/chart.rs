//! The Helm chart: the objects of config/ with the places filled in where installations differ.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::source::{Files, GENERATED, NAMESPACE, Source, text, yaml};

const CHART: &str = "charts/virt-advisor";
/// What stands around an expression of the template in a value, until the object is written as
/// text.
const MARK: &str = "@@";
/// Folders that are installed only if a value says so.
const OPTIONAL: [(&str, &str); 6] = [
    ("approval", "approvalPolicy.enabled"),
    ("approval-by-hash", "approvalByHash.enabled"),
    ("read-only", "readOnly.enabled"),
    ("prometheus", "prometheus.enabled"),
    ("network-policy", "networkPolicy.enabled"),
    ("rbac-namespaces", "exampleProfile.enabled"),
];

pub(crate) fn files(source: &Source<'_>) -> Result<Files, String> {
    let mut files = Files::new();
    let mut add = |name: &str, text: String| files.insert(PathBuf::from(CHART).join(name), text);
    let version = env!("CARGO_PKG_VERSION");
    add(
        "Chart.yaml",
        format!(
            "{GENERATED}apiVersion: v2\nname: virt-advisor\ndescription: Plans changes to the components of KubeVirt and OpenShift \
             Virtualization clusters, and applies them once they are approved\ntype: application\nversion: {version}\nappVersion: v{version}\nkubeVersion: \
             '>=1.25.0-0'\nhome: https://github.com/kubevirt/virt-advisor\nsources:\n- https://github.com/kubevirt/virt-advisor\n"
        ),
    );
    add("templates/operator.yaml", template(source.objects("default")?)?);
    let mut crds = source.objects("crd")?;
    for crd in &mut crds {
        // Taking the chart away takes no configuration of anybody with it.
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    }
    add("templates/crd.yaml", wrapped("crds.install", &template(crds)?));
    for (folder, value) in OPTIONAL {
        add(&format!("templates/{folder}.yaml"), wrapped(value, &template(source.objects(folder)?)?));
    }
    Ok(files)
}

fn wrapped(value: &str, text: &str) -> String {
    format!("{{{{- if .Values.{value} }}}}\n{text}{{{{- end }}}}\n")
}

fn template(objects: Vec<Value>) -> Result<String, String> {
    let mut all = GENERATED.to_owned();
    for mut object in objects {
        place(&mut object);
        if text(&object, "/kind") == "Deployment" {
            deployment(&mut object);
        }
        all.push_str("---\n");
        all.push_str(&filled(&escaped(&yaml(&object)?)));
    }
    Ok(all)
}

/// What looks like a template in the text itself, as in alerts, stays as it is.
fn escaped(text: &str) -> String {
    text.replace("{{", "\u{1}").replace("}}", "\u{2}").replace('\u{1}', "{{ \"{{\" }}").replace('\u{2}', "{{ \"}}\" }}")
}

/// The namespace is that of the release.
fn place(object: &mut Value) {
    let release = json!(format!("{MARK}.Release.Namespace{MARK}"));
    if text(object, "/metadata/namespace") == NAMESPACE {
        object["metadata"]["namespace"] = release.clone();
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if text(subject, "/namespace") == NAMESPACE {
            subject["namespace"] = release.clone();
        }
    }
}

fn deployment(object: &mut Value) {
    let fill = |expression: &str| json!(format!("{MARK}{expression}{MARK}"));
    object["spec"]["replicas"] = fill(".Values.replicas");
    let pod = &mut object["spec"]["template"]["spec"];
    pod["priorityClassName"] = fill(".Values.priorityClassName | quote");
    for (field, value) in
        [("nodeSelector", "nodeSelector"), ("tolerations", "tolerations"), ("imagePullSecrets", "imagePullSecrets")]
    {
        pod[field] = fill(&format!("toYaml .Values.{value} | nindent 8"));
    }
    pod["volumes"] = fill("include \"virt-advisor.volumes\" . | nindent 8");
    let container = &mut pod["containers"][0];
    container["image"] = fill("include \"virt-advisor.image\" . | quote");
    container["imagePullPolicy"] = fill(".Values.image.pullPolicy");
    container["resources"] = fill("toYaml .Values.resources | nindent 10");
    container["volumeMounts"] = fill("include \"virt-advisor.volumeMounts\" . | nindent 10");
    container["args"] = fill("include \"virt-advisor.args\" . | nindent 8");
}

/// Expressions, where their marks are. A value that fills whole lines begins on the next one.
fn filled(text: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    for (number, part) in text.split(MARK).enumerate() {
        if number % 2 == 0 {
            filled.push_str(part);
            continue;
        }
        // Quotes of the writer around the whole value are not wanted; those inside are escaped in
        // it.
        let expression = part.replace("\\\"", "\"");
        let quoted = filled.ends_with(['"', '\'']);
        if quoted {
            filled.pop();
        }
        let dash = if expression.contains("nindent") { "-" } else { "" };
        filled.push_str(&format!("{{{{{dash} {expression} }}}}"));
        if quoted {
            filled.push('\u{3}');
        }
    }
    filled.replace("\u{3}\"", "").replace("\u{3}'", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in_and_texts_stay() {
        let mut object = json!({"kind": "Deployment", "metadata": {"namespace": NAMESPACE}, "subjects": [{"namespace": "other"}],
            "note": "{{ $labels.name }}"});
        place(&mut object);
        let text = filled(&escaped(&yaml(&object).unwrap()));
        assert!(text.contains("namespace: {{ .Release.Namespace }}\n") && text.contains("namespace: other"), "{text}");
        assert!(text.contains("{{ \"{{\" }} $labels.name {{ \"}}\" }}"), "{text}");
        let value = json!({"a": format!("{MARK}include \"x\" . | nindent 8{MARK}")});
        assert_eq!(filled(&yaml(&value).unwrap()).trim(), "a: {{- include \"x\" . | nindent 8 }}");
    }
}
