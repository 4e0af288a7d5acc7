//! Starting, users, stopping and pausing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::binaries::Binaries;
use crate::{ControlPlane, Error, lease};

pub(super) fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

#[tokio::test]
async fn a_plane_serves_its_real_version_and_refuses_who_has_no_rights() {
    let before = Instant::now();
    let plane = ControlPlane::start().await.unwrap();
    println!("start: {:?}", before.elapsed());

    let version = plane.admin().apiserver_version().await.unwrap();
    assert!(version.git_version.starts_with("v1."), "{version:?}");
    assert_eq!(version.major, "1");

    let nobody = plane.client("nobody", &["some:group", "some:other-group"]).unwrap();
    let refused = Api::<Namespace>::all(nobody.clone()).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.is_forbidden()), "{refused}");
    let myself = k8s_openapi::api::authentication::v1::SelfSubjectReview::default();
    let myself = Api::all(nobody).create(&PostParams::default(), &myself).await.unwrap();
    let info = myself.status.unwrap().user_info.unwrap();
    assert_eq!(info.username.as_deref(), Some("nobody"));
    assert_eq!(info.groups.unwrap(), ["some:group", "some:other-group", "system:authenticated"]);
    let error = plane.client("nobody", &["a", "b", "c"]).err().unwrap();
    assert!(error.to_string().contains("too many groups"), "{error}");

    let kubeconfig = kube::config::Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    assert_eq!(kubeconfig.current_context.as_deref(), Some("virt-advisor-demo"));
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let admin = Client::try_from(config).unwrap();
    Api::<Namespace>::all(admin).get("default").await.unwrap();
    plane.shutdown().await;
}

#[tokio::test]
async fn a_stopped_server_comes_back_on_its_port_with_its_data() {
    let plane = lease().await;
    let url = plane.url();
    let api: Api<ConfigMap> = Api::default_namespaced(plane.admin());
    api.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    let mark = plane.audit().mark();

    plane.stop_server().await.unwrap();
    plane.stop_server().await.unwrap();
    let refused = api.get("kept").await.unwrap_err();
    assert!(!matches!(refused, kube::Error::Api(_)), "{refused}");
    assert!(matches!(plane.pause_server(), Err(Error::Stopped)));

    let before = Instant::now();
    plane.start_server().await.unwrap();
    println!("start again: {:?}", before.elapsed());
    assert_eq!(plane.url(), url);
    api.get("kept").await.unwrap();
    let requests = plane.audit().since(&mark);
    assert!(requests.iter().any(|request| request.name == "kept" && request.verb == "get"), "{requests:#?}");
}

#[tokio::test]
async fn a_paused_server_keeps_requests_waiting_until_it_is_resumed() {
    let plane = lease().await;
    let api: Api<Namespace> = Api::all(plane.admin());
    api.get("default").await.unwrap();
    plane.pause_server().unwrap();
    let mut waiting = Box::pin(api.get("default"));
    tokio::time::timeout(Duration::from_millis(500), &mut waiting).await.expect_err("a paused server answered");
    plane.resume_server().unwrap();
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("a resumed server answers").unwrap();
}

fn program(folder: &Path, name: &str, text: &str, mode: u32) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn missing_and_broken_programs_are_named_with_the_remedy() {
    let empty = tempfile::tempdir().unwrap();
    let error = Binaries::in_folder(empty.path()).unwrap_err().to_string();
    assert!(error.contains("etcd does not exist: unset KUBEBUILDER_ASSETS"), "{error}");

    let plain = tempfile::tempdir().unwrap();
    program(plain.path(), "etcd", "", 0o644);
    let error = Binaries::in_folder(plain.path()).unwrap_err().to_string();
    assert!(error.contains("etcd is not an executable file: unset KUBEBUILDER_ASSETS"), "{error}");

    let real = Binaries::find().unwrap();
    for (case, etcd, server, wanted) in [
        ("etcd is no program", Some("not a program"), None, "etcd ended by itself (exit status: 127)"),
        ("etcd ends at once", Some("#!/bin/sh\n"), None, "etcd ended by itself (exit status: 0)"),
        ("the server says why it ends", None, Some("#!/bin/sh\necho no luck >&2\nexit 3\n"), "no luck"),
        ("the server is another program", None, Some("#!/bin/sh\nexec ls \"$@\"\n"), "kube-apiserver ended by itself"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "etcd", etcd.unwrap_or_default(), 0o755);
        program(folder.path(), "kube-apiserver", server.unwrap_or_default(), 0o755);
        let mut binaries = Binaries::in_folder(folder.path()).unwrap();
        if etcd.is_none() {
            binaries.etcd = real.etcd.clone();
        }
        let error = ControlPlane::start_with(binaries).await.err().unwrap().to_string();
        println!("{case}: {error}");
        assert!(error.contains(wanted), "{case}: {error}");
        assert!(error.contains("change KUBEBUILDER_ASSETS"), "{case}: {error}");
    }
}
