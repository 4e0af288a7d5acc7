//! Ignition configurations inside objects that run code on machines, and the secrets in them.
//! Secrets are found by their place and not by a name: the specification
//! (<https://coreos.github.io/ignition/specs/>, versions 2 and 3) says where logins, keys and
//! headers are.
//!
//! Names of members match in any case: Ignition and the machine-config operator read a
//! configuration with Go's encoding/json, which accepts `Mode` and `MODE` for `mode`
//! (<https://pkg.go.dev/encoding/json#Unmarshal>). A value that can't be understood is treated as
//! secret.

use std::collections::BTreeSet;

use profile_sdk::is_powerful;
use serde_json::Value;

use crate::api::TargetRef;
use object::pointer;

/// Values that grant a login or unlock a disk.
const CREDENTIALS: [&str; 3] =
    ["/passwd/users/*/passwordHash", "/passwd/groups/*/passwordHash", "/storage/luks/*/keyFile"];
/// References to further configurations. One that is embedded may hold everything that this one
/// may.
const CONFIGS: [&str; 3] = ["/ignition/config/merge/*", "/ignition/config/append/*", "/ignition/config/replace"];
/// References to everything else that a machine fetches.
const FETCHED: [&str; 3] =
    ["/ignition/security/tls/certificateAuthorities/*", "/storage/files/*/contents", "/storage/files/*/append/*"];
const PROXIES: [&str; 2] = ["/ignition/proxy/httpProxy", "/ignition/proxy/httpsProxy"];
/// Members of a file that describe its location, owner and mode. All others hold its contents, or
/// are unknown.
const ABOUT_A_FILE: [&str; 6] = ["filesystem", "group", "mode", "overwrite", "path", "user"];

/// Pointers to the Ignition configurations in `object`, if it is of a kind that runs code on
/// machines.
pub(in crate::plan) fn configs(object: &Value) -> Vec<String> {
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
        Value::Object(map) if map.keys().any(|key| is_named(key, "ignition")) => found.push(path.clone()),
        Value::Object(map) => map.iter().for_each(|(name, member)| below(name, member)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, member)| below(&index.to_string(), member)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The paths of the files, in the configuration at `config`, that only their owner may read on the
/// machine.
pub(in crate::plan) fn private_files(object: &Value, config: &str) -> Vec<String> {
    files(object, config)
        .filter(|(_, file)| is_private(file))
        .flat_map(|(_, file)| paths(file))
        .map(str::to_owned)
        .collect()
}

/// Whether only the owner may read the file. Without a mode everybody may. A mode that is not a
/// number counts as private: no Ignition would set it.
fn is_private(file: &Value) -> bool {
    let private = |mode: &Value| !mode.is_null() && mode.as_u64().is_none_or(|mode| mode & 0o077 == 0);
    below(file, "/mode").iter().any(|(_, mode)| private(mode))
}

/// Pointers to the secrets in the configuration at `config`; the contents of files at the paths
/// `private` are secret.
pub(in crate::plan) fn secrets(object: &Value, config: &str, private: &BTreeSet<String>) -> Vec<String> {
    let Some(within) = object.pointer(config) else { return Vec::new() };
    let at = |places: &[&str]| places.iter().flat_map(|place| below(within, place)).collect::<Vec<_>>();
    let sources =
        |places: &[&str]| places.iter().flat_map(|place| below(within, &format!("{place}/source"))).collect::<Vec<_>>();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = at(&CREDENTIALS);
    for (pointer, file) in files(object, config) {
        if is_private(file) || paths(file).any(|path| private.contains(path)) {
            let members = file.as_object().into_iter().flatten();
            let contents = members.filter(|(name, _)| !ABOUT_A_FILE.iter().any(|about| is_named(name, about)));
            found.extend(contents.map(|(name, value)| (joined(&pointer, name), value)));
        }
    }
    for place in CONFIGS.iter().chain(&FETCHED) {
        found.extend(below(within, &format!("{place}/httpHeaders/*/value")));
    }
    found.extend(sources(&CONFIGS).into_iter().filter(|(_, source)| is_written_out(&text(source))));
    let addresses = sources(&CONFIGS).into_iter().chain(sources(&FETCHED)).chain(at(&PROXIES));
    found.extend(addresses.filter(|(_, address)| names_a_credential(&text(address))));
    // An absent or empty value is not a secret.
    found.retain(|(_, value)| !value.is_null() && value.as_str() != Some(""));
    found.into_iter().map(|(pointer, _)| format!("{config}{pointer}")).collect()
}

/// The files of the configuration at `config`, each with its pointer within the configuration.
fn files<'a>(object: &'a Value, config: &str) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    object.pointer(config).into_iter().flat_map(|within| below(within, "/storage/files/*"))
}

fn paths(file: &Value) -> impl Iterator<Item = &str> {
    below(file, "/path").into_iter().filter_map(|(_, path)| path.as_str())
}

/// The values at `place` in `within`, with their pointers. There may be several, whose names differ
/// in case. A segment `*` stands for every member.
fn below<'a>(within: &'a Value, place: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), within)];
    for segment in place.split('/').skip(1) {
        found = found.into_iter().flat_map(|(pointer, value)| members(&pointer, value, segment)).collect();
    }
    found
}

fn members<'a>(pointer: &str, value: &'a Value, segment: &str) -> Vec<(String, &'a Value)> {
    match value {
        Value::Object(map) => {
            let named = map.iter().filter(|(name, _)| segment == "*" || is_named(name, segment));
            named.map(|(name, value)| (joined(pointer, name), value)).collect()
        }
        Value::Array(list) if segment == "*" => {
            list.iter().enumerate().map(|(index, value)| (joined(pointer, &index.to_string()), value)).collect()
        }
        _ => Vec::new(),
    }
}

fn joined(pointer: &str, name: &str) -> String {
    let mut pointer = pointer.to_owned();
    pointer::push(&mut pointer, name);
    pointer
}

/// Whether Go decodes the member `key` as `name`, which is ASCII: regardless of case, with the two
/// letters beyond ASCII that fold into it (`foldName` in encoding/json/fold.go of Go 1.21 and
/// later).
fn is_named(key: &str, name: &str) -> bool {
    let folded = key.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// Whether an address is a data URL, which is the data itself.
fn is_written_out(address: &str) -> bool {
    address.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Whether an address holds a login, or a query or fragment, which for some storage is a
/// credential. The address may lack its scheme, as a proxy's often does.
fn names_a_credential(address: &str) -> bool {
    let rest = address.split_once("//").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !is_written_out(address) && (authority.contains('@') || address.contains(['?', '#']))
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

    /// Members that Go's decoder recognizes although they are spelled differently, and values that
    /// it can't decode.
    #[test]
    fn t11_no_spelling_of_a_configuration_shows_a_secret() {
        let file = |member: &str, mode: Value| json!({"path": "/f", member: {"source": "data:,canary"}, "mode": mode});
        for (config, secret) in [
            (
                json!({"Ignition": {"Version": "3.4.0"}, "PASSWD": {"Users": [{"passwordhash": "canary"}]}}),
                "PASSWD/Users/0/passwordhash",
            ),
            (
                json!({"ignition": {}, "pa\u{17f}\u{17f}wd": {"u\u{17f}ers": [{"passwordHash": "canary"}]}}),
                "pa\u{17f}\u{17f}wd/u\u{17f}ers/0/passwordHash",
            ),
            (
                json!({"ignition": {}, "storage": {"files": [{"Path": "/f", "Mode": 0o600, "Contents": {"source": "data:,canary"}}]}}),
                "storage/files/0/Contents",
            ),
            (
                json!({"ignition": {}, "storage": {"files": [{"path": "/f", "mode": 0o644, "MODE": 0o400, "append": ["canary"]}]}}),
                "storage/files/0/append",
            ),
            (
                json!({"ignition": {}, "storage": {"files": [file("contents", json!("0600"))]}}),
                "storage/files/0/contents",
            ),
            (
                json!({"ignition": {}, "storage": {"files": [file("contents", json!(384.0))]}}),
                "storage/files/0/contents",
            ),
            (json!({"ignition": {}, "storage": {"files": [file("contents", json!(-1))]}}), "storage/files/0/contents"),
            (json!({"ignition": {}, "storage": {"files": [file("content", json!(0o600))]}}), "storage/files/0/content"),
            (json!({"ignition": {"proxy": {"httpProxy": "ann:canary@proxy:3128"}}}), "ignition/proxy/httpProxy"),
            (json!({"ignition": {"proxy": {"httpsProxy": "//ann:canary@proxy"}}}), "ignition/proxy/httpsProxy"),
            (
                json!({"ignition": {"config": {"replace": {"source": "DATA:,canary"}}}}),
                "ignition/config/replace/source",
            ),
            (
                json!({"ignition": {"config": {"replace": {"source": "https://host/x#canary"}}}}),
                "ignition/config/replace/source",
            ),
        ] {
            assert_eq!(secrets_of(config.clone()), [secret], "{config}");
        }
        for open in [
            json!({"ignition": {}, "storage": {"files": [{"path": "/f", "contents": {"source": "data:,a@b?c#d"}}]}}),
            json!({"ignition": {}, "storage": {"files": [{"path": "/f", "mode": null, "contents": {"source": "https://host/a@b"}}]}}),
            json!({"ignition": {"proxy": {"httpProxy": "proxy:3128"}}}),
        ] {
            assert!(secrets_of(open.clone()).is_empty(), "{open}");
        }
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
