//! Real tools that check what we ship: promtool and helm, from `make tools`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixture::root;

/// The tool of that name; without tools the test says so, and how to have them.
pub fn tool(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ADVISOR_TEST_TOOLS").map(PathBuf::from);
    let found = folder.map(|folder| folder.join(name)).filter(|path| path.is_file());
    if found.is_none() {
        controlplane::left_out(&format!("{name}: set ADVISOR_TEST_TOOLS to what `make tools` prints"));
    }
    found
}

/// Runs it, and returns what it printed; it must be content.
pub fn check(name: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut run = Command::new(tool(name)?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name} {arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

/// The alerts fire when they should and not before, and each has its runbook: ours, and those of
/// the platform baseline.
#[test]
fn alerts_fire_as_promised_and_have_runbooks() {
    let features = "profiles/virt-platform-baseline/src/features";
    for (rules, tests) in [
        ("config/prometheus/rules.yaml", "tests/alerts/alerts.yaml"),
        ("config/machines/prometheus/rules.yaml", "tests/alerts/machines.yaml"),
        (&format!("{features}/observability/alerts.yaml"), &format!("{features}/observability/alerts_test.yaml")),
        (&format!("{features}/metrics_exporter/alerts.yaml"), &format!("{features}/metrics_exporter/alerts_test.yaml")),
    ] {
        alerts_are_tested_and_have_runbooks(rules, tests);
    }
}

fn alerts_are_tested_and_have_runbooks(rules: &str, tests: &str) {
    let rules = yaml(rules);
    let tests = std::fs::read_to_string(root().join(tests)).unwrap();
    let groups = rules.pointer("/spec/groups").and_then(Value::as_array).unwrap().iter();
    let rules_of = |group: &Value| group["rules"].as_array().unwrap().clone();
    for alert in groups.flat_map(rules_of).filter(|rule| rule.get("record").is_none()) {
        let name = alert["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} is not tested");
        let url = alert.pointer("/annotations/runbook_url").and_then(Value::as_str).unwrap();
        let (place, section) = url.split("/main/").nth(1).unwrap().split_once('#').unzip();
        let runbook = root().join(place.unwrap_or_else(|| url.split("/main/").nth(1).unwrap()));
        let text = std::fs::read_to_string(&runbook).unwrap_or_else(|_| panic!("{} is missing", runbook.display()));
        let own = [format!("# {name}"), "## What it means".into(), "## How to look".into(), "## What to do".into()];
        // Those that share a page have a section of it.
        let headings = if section.is_some() { vec![format!("## {name}\n")] } else { own.to_vec() };
        for heading in headings {
            assert!(text.contains(&heading), "{}: {heading}", runbook.display());
        }
        // Every metric of ours that is asked for exists.
        let known = |word: &str| virt_advisor::telemetry::definitions::ALL.iter().any(|metric| metric.name == word);
        let expression = alert["expr"].as_str().unwrap();
        for word in expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_metric = word.starts_with("kubevirt_advisor_") || word.starts_with("controller_runtime_");
            assert!(!is_metric || known(word), "{name} asks for {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    // The tests name the rules as rules.yaml, or as the file beside them.
    for name in ["rules.yaml", "alerts.yaml"] {
        std::fs::write(place(name), rules["spec"].to_string()).unwrap();
    }
    std::fs::write(place("tests.yaml"), &tests).unwrap();
    check("promtool", &["test", "rules", place("tests.yaml").to_str().unwrap()], "");
}

/// What the dashboards ask for exists.
#[test]
fn dashboards_ask_for_metrics_that_exist() {
    for path in ["config/dashboards/grafana.json", "config/dashboards/perses.yaml"] {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let mut asked = 0;
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if word.starts_with("kubevirt_advisor_") {
                let base = word.strip_suffix("_bucket").unwrap_or(word);
                let known = virt_advisor::telemetry::definitions::ALL.iter().any(|metric| metric.name == base);
                assert!(known, "{path} asks for {word}");
                asked += 1;
            }
        }
        assert_eq!(asked, 10, "{path}");
    }
}

/// The chart holds what config/ holds, refuses nonsense, and takes no configuration away.
#[test]
fn the_chart_is_well_formed_and_refuses_nonsense() {
    let chart = root().join("charts/virt-advisor");
    let chart = chart.to_str().unwrap();
    check("helm", &["lint", "--strict", chart], "");
    let all = "approvalPolicy.enabled=true,approvalByHash.enabled=true,readOnly.enabled=true,prometheus.enabled=true,networkPolicy.enabled=true,\
               exampleProfile.enabled=true,metrics.certificateSecret=certificate,logLevel=debug";
    let render = |values: &str| {
        let arguments = ["template", "x", chart, "--namespace", "elsewhere", "--kube-version", "1.33", "--set", values];
        check("helm", &arguments, "")
    };
    let Some(text) = render(all) else { return };
    let objects = documents(&text);
    for object in &objects {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        assert!(namespace.is_none_or(|namespace| ["elsewhere", "openshift-cnv"].contains(&namespace)), "{object}");
        assert_ne!(object["kind"], "Namespace");
    }
    let of_kind = |objects: &[Value], kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
    let crd = objects.iter().find(|object| object["kind"] == "CustomResourceDefinition").unwrap();
    assert_eq!(crd.pointer("/metadata/annotations/helm.sh~1resource-policy"), Some(&Value::from("keep")));
    assert_eq!(crd["spec"], yaml("crds/advisor.kubevirt.io_virtplatformconfigs.yaml")["spec"], "K3: the same CRD");
    assert_eq!(of_kind(&objects, "ValidatingAdmissionPolicy"), 3);
    // Without values: what dist/install.yaml has, elsewhere, and the CRD.
    let plain = documents(&render("replicas=2").unwrap());
    let installed = documents(&std::fs::read_to_string(root().join("dist/install.yaml")).unwrap());
    assert_eq!(plain.len(), installed.len() + 1);
    for object in &installed {
        assert_eq!(
            of_kind(&plain, object["kind"].as_str().unwrap()),
            of_kind(&installed, object["kind"].as_str().unwrap())
        );
    }
    for wrong in
        ["replicas=0", "logLevel=loud", "image.digest=sha256:1", "aproval.enabled=true", "approvalPolicy.enabled=yes"]
    {
        let output = Command::new(tool("helm").unwrap())
            .args(["template", "x", chart, "--kube-version", "1.33", "--set", wrong])
            .output()
            .unwrap();
        assert!(!output.status.success(), "{wrong} is accepted");
    }
}

/// The documents of a file in YAML.
pub fn documents(text: &str) -> Vec<Value> {
    let limits = serde_saphyr::options! { budget: None };
    let all: Vec<Value> = serde_saphyr::from_multiple_with_options(text, limits).unwrap();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

/// K3: chart and bundle hold the CRD that the types make; and what OLM needs to know is in the
/// bundle.
#[test]
fn k3_the_bundle_is_complete() {
    let crd = yaml("crds/advisor.kubevirt.io_virtplatformconfigs.yaml");
    assert_eq!(yaml("bundle/manifests/virtplatformconfigs.advisor.kubevirt.io.yaml"), crd);
    let version = yaml("bundle/manifests/virt-advisor-operator.clusterserviceversion.yaml");
    let at = |pointer: &str| version.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing")).clone();
    let owned = at("/spec/customresourcedefinitions/owned/0");
    assert_eq!((&owned["name"], &owned["version"]), (&crd["metadata"]["name"], &crd["spec"]["versions"][0]["name"]));
    assert_eq!(at("/metadata/name"), format!("virt-advisor-operator.v{}", env!("CARGO_PKG_VERSION")));
    let examples: Vec<Value> =
        serde_json::from_str(at("/metadata/annotations/alm-examples").as_str().unwrap()).unwrap();
    assert_eq!(examples[0]["spec"]["action"], "DryRun");
    let install = documents(&std::fs::read_to_string(root().join("dist/install.yaml")).unwrap());
    let of = |kind: &str, name: &str| {
        let found = install.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name}")).clone()
    };
    let deployment = of("Deployment", "virt-advisor-operator-controller-manager");
    assert_eq!(at("/spec/install/spec/deployments/0/spec"), deployment["spec"]);
    let granted = at("/spec/install/spec/clusterPermissions/0/rules");
    for role in ["virt-advisor-operator-manager-role", "virt-advisor-operator-metrics-auth-role"] {
        for rule in of("ClusterRole", role)["rules"].as_array().unwrap() {
            assert!(granted.as_array().unwrap().contains(rule), "{rule}");
        }
    }
    let container = std::fs::read_to_string(root().join("bundle/Containerfile")).unwrap();
    for (name, value) in yaml("bundle/metadata/annotations.yaml")["annotations"].as_object().unwrap() {
        assert!(container.contains(&format!("LABEL {name}={}\n", value.as_str().unwrap())), "{name}");
    }
}

/// What can be told of the image without building it.
#[test]
fn the_image_is_small_and_unprivileged() {
    let text = std::fs::read_to_string(root().join("Containerfile")).unwrap();
    let last = text.rsplit("\nFROM ").next().unwrap();
    assert!(last.starts_with("scratch\n"), "nothing but the program: {last}");
    for line in [
        "USER 65532:65532",
        "ENTRYPOINT [\"/virt-advisor\"]",
        "CMD [\"run\"]",
        "COPY --from=build /src/LICENSE",
        "COPY --from=build /out/sbom",
    ] {
        assert!(last.lines().any(|found| found.starts_with(line)), "{line}");
    }
    assert!(last.contains(&format!("image.version=\"v{}\"", env!("CARGO_PKG_VERSION"))));
    assert!(text.contains("cargo build --locked --release") && !text.contains("\nADD "));
    let deployment = std::fs::read_to_string(root().join("config/manager/deployment.yaml")).unwrap();
    assert!(deployment.contains(&format!(":v{}\n", env!("CARGO_PKG_VERSION"))));
}
