//! Values that must never be shown, sought in everything that the engine says.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use advisor_core::api::Operation;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::world::{World, draft, widget};

const CANARY: &str = "hunter2-canary";

fn secret(data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<_, _> = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), serde_json::to_value(ByteString(value.as_bytes().to_vec())).unwrap()))
        .collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": data})
}

/// Everything that is logged at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// X3, X5: a changed value is visible as changed, a new and a gone key by its name, and what is
/// sent is the real thing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x3_a_changed_secret_is_visible_as_changed_without_its_value() {
    let world = World::start(&[]).await;
    world.create(&secret(&[("same", "equal"), ("changed", CANARY)]), "somebody").await;
    let ours = secret(&[("same", "equal"), ("changed", "hunter2-canary-new"), ("added", "hunter2-canary-too")]);
    let item = world.item(&ours).await;
    assert_eq!(item.operation, Operation::Update);
    for shown in ["-  changed: (hidden ", "+  changed: (hidden ", "+  added: (hidden ", "   same: (hidden "] {
        assert!(item.review.diff.contains(shown), "{shown}: {}", item.review.diff);
    }
    let said = format!(
        "{} {} {} {:?} {:?}",
        item.review.diff, item.review.message, item.review.shown, item.review.conflicts, item.review.lost
    );
    for value in [CANARY, "aHVudGVyMi1jYW5hcnk"] {
        assert!(!said.contains(value), "{said}");
    }
    // X5: placeholders never travel.
    assert!(!item.review.desired.to_string().contains("hidden"));
    let written = world.execute(&item).await;
    assert_eq!(written["data"], ours["data"]);
    let again = world.item(&ours).await;
    assert_eq!((again.operation, again.review.diff.as_str()), (Operation::NoChange, ""));
}

/// X1, X7: the server's own words quote the object, and clients log what they get. Nothing of it
/// comes out.
#[test]
fn x1_x7_no_secret_comes_out_of_errors_or_logs_of_any_level() {
    // One thread, so that everything is logged to the same place.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let log = Log::default();
    let filter = operator_kit::logs::filter("virt_advisor", Some("trace"), "info");
    let lines = tracing_subscriber::fmt::layer().with_writer(log.clone());
    let lines = tracing_subscriber::registry().with(filter).with(lines);
    tracing::subscriber::with_default(lines, || {
        runtime.block_on(async {
            let world = World::start(&[]).await;
            let mut broken = secret(&[("ok", CANARY)]);
            broken["data"]["password"] = json!({"nested": CANARY});
            let mut unencoded = secret(&[("ok", CANARY)]);
            unencoded["data"]["password"] = json!(format!("{CANARY} is not base64"));
            let mut typed = secret(&[("ok", CANARY)]);
            typed["type"] = json!("kubernetes.io/tls");
            let mut invalid = draft("invalid", &widget(json!({"password": format!("{CANARY}{}", "x".repeat(60))})));
            invalid.sensitive = vec!["/spec/password".into()];
            let mut wrong = draft("wrong", &widget(json!({"password": {"is": CANARY}})));
            wrong.sensitive = vec!["/spec/password".into()];
            let mut fine = draft("fine", &widget(json!({"password": CANARY})));
            fine.sensitive = vec!["/spec/password".into()];
            for wanted in [draft("a", &broken), draft("b", &unencoded), draft("c", &typed), invalid, wrong, fine] {
                let name = wanted.name.clone();
                let item = world.item_of(wanted).await;
                assert_eq!(item.operation == Operation::Blocked, name != "fine", "{name}: {}", item.review.message);
                let said = format!(
                    "{} {} {} {:?}",
                    item.review.diff, item.review.message, item.review.shown, item.review.conflicts
                );
                assert!(!said.contains(CANARY), "{name}: {said}");
            }
            // Nor out of errors that are only logged.
            let kind = world.cluster.resolve_object(&broken).await.unwrap().unwrap();
            let none = advisor_cluster::Precondition::None;
            let mode = advisor_cluster::ApplyMode::Real;
            let error = world.cluster.apply(&kind, &broken, "us", mode, &none).await.unwrap_err();
            assert!(!error.to_string().contains(CANARY), "{error}");
        });
    });
    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(logged.lines().count() > 20, "something is logged at trace: {logged}");
    assert!(!logged.contains(CANARY), "{}", logged.lines().find(|line| line.contains(CANARY)).unwrap_or_default());
    assert!(!logged.to_lowercase().contains("authorization: bearer"));
}
