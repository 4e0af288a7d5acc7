//! The bundle for the Operator Lifecycle Manager: the objects of config/ in the form that OLM
//! installs from.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::source::{Files, GENERATED, Source, text, yaml};

const PACKAGE: &str = "virt-advisor-operator";
const ACCOUNT: &str = "virt-advisor-operator-controller-manager";
/// Roles that the operator has, which OLM binds. The others are for people.
const OF_THE_OPERATOR: [&str; 2] = ["virt-advisor-operator-manager-role", "virt-advisor-operator-metrics-auth-role"];

pub(crate) fn files(source: &Source<'_>) -> Result<Files, String> {
    let mut files = Files::new();
    let mut add = |name: String, object: &Value| {
        let text = format!("{GENERATED}{}", yaml(object)?);
        files.insert(PathBuf::from("bundle").join(name), text);
        Ok::<(), String>(())
    };
    let objects = source.objects("default")?;
    add(format!("manifests/{PACKAGE}.clusterserviceversion.yaml"), &service_version(&objects))?;
    for crd in source.objects("crd")? {
        add(format!("manifests/{}.yaml", text(&crd, "/metadata/name")), &crd)?;
    }
    let monitoring = source.objects("prometheus")?;
    for mut object in objects.into_iter().filter(is_beside).chain(monitoring) {
        // OLM installs into the namespace of the subscription.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        let (kind, name) = (text(&object, "/kind").to_lowercase(), text(&object, "/metadata/name").to_owned());
        add(format!("manifests/{name}_{kind}.yaml"), &object)?;
    }
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": PACKAGE,
        "operators.operatorframework.io.bundle.channels.v1": "alpha",
        "operators.operatorframework.io.bundle.channel.default.v1": "alpha",
    }});
    add("metadata/annotations.yaml".to_owned(), &annotations)?;
    let labels = annotations["annotations"].as_object().into_iter().flatten();
    let labels = labels.map(|(name, value)| format!("LABEL {name}={}\n", value.as_str().unwrap_or_default()));
    let container = format!(
        "{GENERATED}FROM scratch\n{}COPY manifests /manifests/\nCOPY metadata /metadata/\n",
        labels.collect::<String>()
    );
    files.insert("bundle/Containerfile".into(), container);
    Ok(files)
}

/// Whether OLM takes the object as it is: what is not the operator itself.
fn is_beside(object: &Value) -> bool {
    let name = text(object, "/metadata/name");
    match text(object, "/kind") {
        "ClusterRole" => !OF_THE_OPERATOR.contains(&name),
        "Service" | "PodDisruptionBudget" => true,
        _ => false,
    }
}

fn service_version(objects: &[Value]) -> Value {
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| text(object, "/kind") == kind);
    let rules = |kind: &'static str, fits: &dyn Fn(&str) -> bool| -> Vec<Value> {
        let roles = of_kind(kind).filter(|role| fits(text(role, "/metadata/name")));
        roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let deployments: Vec<_> = of_kind("Deployment")
        .map(|object| {
            json!({
                "name": object["metadata"]["name"], "label": object["metadata"]["labels"], "spec": object["spec"],
            })
        })
        .collect();
    let image = text(&deployments[0], "/spec/template/spec/containers/0/image").to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let example = json!([{
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": "load-aware-rebalancing"},
        "spec": {"profile": "load-aware-rebalancing", "action": "DryRun"},
    }]);
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{PACKAGE}.v{version}"),
            "annotations": {
                "alm-examples": example.to_string(),
                "capabilities": "Deep Insights",
                "categories": "Virtualization",
                "containerImage": image,
                "description": "Tunes KubeVirt and OpenShift Virtualization clusters with plans that are reviewed and approved",
                "repository": "https://github.com/kubevirt/virt-advisor",
                "operatorframework.io/suggested-namespace": "openshift-cnv",
                "features.operators.openshift.io/disconnected": "true",
                "features.operators.openshift.io/fips-compliant": "false",
                "features.operators.openshift.io/proxy-aware": "false",
            },
        },
        "spec": {
            "displayName": "virt-advisor",
            "description": "Plans changes to the components of a virtualization cluster, shows the exact change of each object as the API server computed it, and carries out the plans that are approved. Profiles: load-aware rebalancing, higher density, platform baseline.",
            "version": version,
            "maturity": "alpha",
            "minKubeVersion": "1.25.0",
            "provider": {"name": "KubeVirt"},
            "keywords": ["virtualization", "kubevirt", "descheduler", "density", "plan"],
            "links": [{"name": "Source", "url": "https://github.com/kubevirt/virt-advisor"}],
            "installModes": [
                {"type": "OwnNamespace", "supported": true},
                {"type": "SingleNamespace", "supported": true},
                {"type": "MultiNamespace", "supported": false},
                {"type": "AllNamespaces", "supported": true},
            ],
            "customresourcedefinitions": {"owned": [{
                "name": "virtplatformconfigs.advisor.kubevirt.io", "kind": "VirtPlatformConfig", "version": "v1alpha1",
                "displayName": "Platform configuration",
                "description": "A profile for this cluster, with the plan of its changes and the progress of that plan",
            }]},
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": rules("ClusterRole", &|name| OF_THE_OPERATOR.contains(&name))}],
                "permissions": [{"serviceAccountName": ACCOUNT, "rules": rules("Role", &|_| true)}],
                "deployments": deployments,
            }},
        },
    })
}
