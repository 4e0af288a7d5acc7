//! Ignition configurations inside objects that run code on machines, and what is secret in them. By place and not by name: the
//! specification (<https://coreos.github.io/ignition/specs/>, versions 2 and 3) says where logins, keys and headers are.

use std::collections::BTreeSet;

use profile_sdk::is_powerful;
use serde_json::Value;

use super::pointer;
use crate::api::TargetRef;

/// What lets somebody in, or opens a disk.
const CREDENTIALS: [&str; 3] =
    ["/passwd/users/*/passwordHash", "/passwd/groups/*/passwordHash", "/storage/luks/*/keyFile"];
/// Where a further configuration comes from. One that is written out may hold all that this one may.
const CONFIGS: [&str; 3] = ["/ignition/config/merge/*", "/ignition/config/append/*", "/ignition/config/replace"];
/// Whatever else a machine fetches.
const FETCHED: [&str; 3] =
    ["/ignition/security/tls/certificateAuthorities/*", "/storage/files/*/contents", "/storage/files/*/append/*"];
const PROXIES: [&str; 2] = ["/ignition/proxy/httpProxy", "/ignition/proxy/httpsProxy"];
/// Members of a file that hold its contents.
const CONTENTS: [&str; 2] = ["contents", "append"];

/// Pointers to the Ignition configurations in `object`, if it is of a kind that runs code on machines.
pub(super) fn configs(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let target = TargetRef::of(object);
    if is_powerful(target.group(), &target.kind) {
        seek(object, &mut String::new(), &mut found);
    }
    found
}

fn seek(value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    let mut below = |name: &str, member: &Value| {
        pointer::push(path, name);
        seek(member, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(map) if map.get("ignition").is_some_and(|header| header.get("version").is_some()) => {
            found.push(path.clone());
        }
        Value::Object(map) => map.iter().for_each(|(name, member)| below(name, member)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, member)| below(&index.to_string(), member)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The paths of the files of the configuration at `config` that only their owner may read on the machine.
pub(super) fn private_files(object: &Value, config: &str) -> Vec<String> {
    let is_private = |file: &&Value| file.get("mode").and_then(Value::as_u64).is_some_and(|mode| mode & 0o077 == 0);
    files(object, config).filter(is_private).filter_map(path).map(str::to_owned).collect()
}

/// Pointers to what is secret in the configuration at `config`; `private` are the files whose contents are.
pub(super) fn secrets(object: &Value, config: &str, private: &BTreeSet<String>) -> Vec<String> {
    let below = |place: &str| pointer::expand(object, &format!("{config}{place}"));
    let mut found: Vec<_> = CREDENTIALS.into_iter().flat_map(below).collect();
    for (index, file) in files(object, config).enumerate() {
        if path(file).is_some_and(|path| private.contains(path)) {
            found.extend(CONTENTS.map(|member| format!("{config}/storage/files/{index}/{member}")));
        }
    }
    for place in CONFIGS.iter().chain(&FETCHED) {
        found.extend(below(&format!("{place}/httpHeaders/*/value")));
    }
    let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let sources =
        |places: [&'static str; 3]| places.into_iter().flat_map(move |place| below(&format!("{place}/source")));
    found.extend(sources(CONFIGS).filter(|place| text(place).starts_with("data:")));
    let addresses = sources(CONFIGS).chain(sources(FETCHED)).chain(PROXIES.into_iter().flat_map(below));
    found.extend(addresses.filter(|place| names_a_credential(text(place))));
    // What is absent or empty is no secret.
    found.retain(|place| object.pointer(place).is_some_and(|value| !value.is_null() && value.as_str() != Some("")));
    found
}

fn files<'a>(object: &'a Value, config: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let files = object.pointer(config).and_then(|config| config.pointer("/storage/files"));
    files.and_then(Value::as_array).into_iter().flatten()
}

fn path(file: &Value) -> Option<&str> {
    file.get("path").and_then(Value::as_str)
}

/// Whether an address holds a login, or a query, by which some storage lets in whoever knows it.
fn names_a_credential(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || rest.contains('?')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets_of(config: Value) -> Vec<String> {
        let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "spec": {"config": config}});
        let [place] = <[String; 1]>::try_from(configs(&object)).unwrap();
        let private = private_files(&object, &place).into_iter().collect();
        let mut found = secrets(&object, &place, &private);
        found.sort();
        found.iter().map(|pointer| pointer.strip_prefix("/spec/config/").unwrap().to_owned()).collect()
    }

    #[test]
    fn t11_what_the_specification_keeps_secret_is_found_and_nothing_else() {
        let headers = json!([{"name": "Authorization", "value": "canary"}]);
        let fetched = |source: &str| json!({"source": source, "httpHeaders": headers});
        let found = secrets_of(json!({
            "ignition": {
                "version": "3.5.0",
                "config": {"merge": [fetched("https://ann:canary@host/a"), {"source": "data:,canary"}], "replace": {"source": "https://host/?token=canary"}},
                "security": {"tls": {"certificateAuthorities": [fetched("data:,authority")]}},
                "proxy": {"httpProxy": "http://ann:canary@proxy", "httpsProxy": "https://proxy", "noProxy": ["x"]},
            },
            "passwd": {
                "users": [{"name": "core", "passwordHash": "canary", "sshAuthorizedKeys": ["public"]}, {"name": "other", "passwordHash": null}],
                "groups": [{"name": "wheel", "passwordHash": "canary"}, {"name": "open", "passwordHash": ""}],
            },
            "storage": {
                "luks": [{"name": "root", "device": "/dev/sda", "keyFile": {"source": "data:,canary"}, "clevis": {"tang": [{"url": "http://t", "thumbprint": "public"}]}}],
                "files": [
                    {"path": "/etc/private", "mode": 0o600, "contents": {"source": "data:,canary"}, "append": [{"source": "data:,canary"}]},
                    {"path": "/etc/public", "mode": 0o644, "contents": fetched("https://host/x"), "append": [fetched("data:,text")]},
                    {"path": "/etc/keyFile", "contents": {"source": "data:,password"}, "password": "no member of a file"},
                ],
            },
            "systemd": {"units": [{"name": "password.service", "contents": "[Service]"}]},
        }));
        assert_eq!(
            found,
            [
                "ignition/config/merge/0/httpHeaders/0/value",
                "ignition/config/merge/0/source",
                "ignition/config/merge/1/source",
                "ignition/config/replace/source",
                "ignition/proxy/httpProxy",
                "ignition/security/tls/certificateAuthorities/0/httpHeaders/0/value",
                "passwd/groups/0/passwordHash",
                "passwd/users/0/passwordHash",
                "storage/files/0/append",
                "storage/files/0/contents",
                "storage/files/1/append/0/httpHeaders/0/value",
                "storage/files/1/contents/httpHeaders/0/value",
                "storage/luks/0/keyFile",
            ]
        );
    }

    #[test]
    fn t11_only_kinds_that_run_code_on_machines_have_configurations() {
        let config = json!({"ignition": {"version": "3.4.0"}});
        let of =
            |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "data": {"a/b": [config]}});
        assert_eq!(configs(&of("machineconfiguration.openshift.io/v1", "MachineConfig")), ["/data/a~1b/0"]);
        assert!(
            configs(&of("v1", "ConfigMap")).is_empty() && configs(&of("example.dev/v1", "MachineConfig")).is_empty()
        );
        assert!(configs(&json!("no object")).is_empty());
    }
}
