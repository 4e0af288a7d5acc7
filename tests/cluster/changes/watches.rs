//! How watches are opened, kept and told of, where the server makes it hard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::api::{Operation, Phase, VirtPlatformConfigStatus};
use http::{Method, Request, Uri};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::BoxError;
use virt_advisor::controller::{Health, Settings, WatchHealth, WatchState};

use crate::fixture::{PATIENCE, VERSION, root};
use crate::stage::Stage;
use crate::stage::profile::{NAME, WITH_GADGETS, following, item, object};

/// A client whose server knows no streaming lists: it ignores the wish for one, as servers before
/// Kubernetes 1.27 do.
fn without_streaming_lists(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        async move {
            let uri = request.uri().to_string();
            let plain = uri.replace("&sendInitialEvents=true", "").replace("&resourceVersionMatch=NotOlderThan", "");
            *request.uri_mut() = plain.parse::<Uri>()?;
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

fn settings() -> (Settings, Health) {
    let settings = Settings::new(VERSION);
    let health = settings.health.clone();
    (settings, health)
}

async fn until(health: &Health, what: &str, fits: impl Fn(&[WatchHealth]) -> bool) -> Vec<WatchHealth> {
    let until = Instant::now() + PATIENCE;
    loop {
        let watches = health.watches();
        if fits(&watches) {
            return watches;
        }
        assert!(Instant::now() < until, "{what}: {watches:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn kinds(watches: &[WatchHealth]) -> Vec<&str> {
    let mut kinds: Vec<_> = watches.iter().map(|watch| watch.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds
}

/// C7: a streamed list that never says that it is complete is replaced by a list in pages, and the
/// work goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c7_a_streamed_list_without_an_end_is_replaced_by_pages() {
    let stage = Stage::set().await;
    let running = Stage::run(without_streaming_lists(stage.client()));
    let mark = stage.mark();
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.rest().await;
    let lists = stage.requests(&mark).into_iter().filter(|request| request.verb == "list").count();
    assert!(lists > 0, "the lists were streamed: this test shows nothing");
    stage.edit("x", json!({"spec": {"size": 2}})).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.widgets().delete("x", &DeleteParams::default()).await.unwrap();
    stage.wait(NAME, "a deletion", |status| status.items[0].operation == Operation::Create).await;
    stage.finish(running).await;
}

/// A client whose lists and watches of Widgets begin as soon as `gate` is open.
fn held(client: Client, gate: tokio::sync::watch::Receiver<bool>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, mut gate) = (client.clone(), gate.clone());
        async move {
            if request.method() == Method::GET && request.uri().path().ends_with("/widgets") {
                gate.wait_for(|open| *open).await?;
            }
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

/// Planning waits only so long for a first list. What has gone by the time it comes is in no event,
/// and missed all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_before_a_first_list_that_comes_late_is_missed() {
    let stage = Stage::set().await;
    let (open, gate) = tokio::sync::watch::channel(false);
    let running = Stage::run(held(stage.client(), gate));
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    let applied = stage.wait_for(NAME, "applied without a watch", Phase::Completed).await;
    stage.rest().await;
    stage.widgets().delete("x", &DeleteParams::default()).await.unwrap();
    stage.rest().await;
    assert_eq!(stage.status(NAME).await, applied, "the end was seen without a watch: this test shows nothing");
    open.send_replace(true);
    stage.wait(NAME, "a deletion", |status| status.items[0].operation == Operation::Create).await;
    stage.finish(running).await;
}

/// Which watches are open, and whether events arrive through them, is known at any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_of_every_watch_is_known() {
    let stage = Stage::set().await;
    let (settings, health) = settings();
    let refuse = Arc::new(AtomicBool::new(false));
    let refusing = refuse.clone();
    let client = controlplane::faults::ruled(
        stage.client(),
        Arc::new(move |request| {
            let is_it =
                request.uri().path().contains("/widgets") && request.uri().query().is_some_and(|q| q.contains("watch"));
            let down = || controlplane::faults::status(503, "ServiceUnavailable", "down");
            (is_it && refusing.load(Ordering::SeqCst)).then(down)
        }),
    );
    assert_eq!(health.watches(), []);
    refuse.store(true, Ordering::SeqCst);
    let running = Stage::run_with(client, settings);
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    let failing = until(&health, "a watch that fails", |watches| {
        watches.iter().any(|watch| watch.kind == "Widget" && watch.state == WatchState::Failing && watch.failures > 1)
    });
    assert_eq!(kinds(&failing.await), ["CustomResourceDefinition", "VirtPlatformConfig", "Widget"]);
    refuse.store(false, Ordering::SeqCst);
    let open = until(&health, "open", |watches| watches.iter().all(|watch| watch.state == WatchState::Open)).await;
    let widget = open.iter().find(|watch| watch.kind == "Widget").unwrap();
    assert_eq!((widget.group.as_str(), widget.version.as_str(), widget.opened), ("example.dev", "v1", 1));
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.patch(NAME, json!({"action": "Ignore"})).await;
    let left = until(&health, "closed", |watches| watches.len() == 2).await;
    assert_eq!(kinds(&left), ["CustomResourceDefinition", "VirtPlatformConfig"]);
    stage.finish(running).await;
    until(&health, "ended", <[_]>::is_empty).await;
}

/// A CRD whose names another one has taken is there and not served: it is no prerequisite, until it
/// is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crd_that_is_not_established_is_waited_for() {
    let stage = Stage::set().await;
    let widget = std::fs::read_to_string(root().join("tests/cluster/plans/widget.yaml")).unwrap();
    let named = |plural: &str| {
        let crd = widget.replace("widgets", plural).replace("Widget", "Gadget");
        let singular = plural.trim_end_matches('s');
        crd.replace("singular: widget", &format!("singular: {singular}"))
    };
    let crds: Api<CustomResourceDefinition> = Api::all(stage.admin.clone());
    let create = async |plural: &str| {
        let crd = serde_saphyr::from_str(&named(plural)).unwrap();
        crds.create(&PostParams::default(), &crd).await.unwrap();
    };
    create("others").await;
    let accepted = async |name: &str, wanted: &str| {
        let until = Instant::now() + PATIENCE;
        loop {
            let crd = crds.get(name).await.unwrap();
            let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
            if conditions.iter().any(|condition| condition.type_ == "NamesAccepted" && condition.status == wanted) {
                return;
            }
            assert!(Instant::now() < until, "{name}: NamesAccepted={wanted} does not come");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    accepted("others.example.dev", "True").await;
    create("gadgets").await;
    accepted("gadgets.example.dev", "False").await;

    let running = Stage::run(stage.client());
    stage.configure(WITH_GADGETS, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    let missing = stage.wait_for(WITH_GADGETS, "what is missing", Phase::PrerequisiteFailed).await;
    let text = missing.summary.unwrap().text;
    assert!(text.contains("gadgets.example.dev"), "{text}");
    stage.rest().await;
    crds.delete("others.example.dev", &DeleteParams::default()).await.unwrap();
    stage.wait_for(WITH_GADGETS, "a plan", Phase::ReviewRequired).await;
    stage.rest_of_kinds().await;
    stage.finish(running).await;
}

/// C2: discovery does not know of a kind for longer than usual: it is asked again, without any
/// other event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c2_discovery_that_lags_for_seconds_is_asked_again() {
    let stage = Stage::set().await;
    let lagging = Arc::new(AtomicBool::new(true));
    let lags = lagging.clone();
    let rule: controlplane::faults::Rule = Arc::new(move |request| {
        let discovery = request.uri().path() == "/apis/example.dev/v1";
        (discovery && lags.load(Ordering::SeqCst)).then(|| (404, json!("404 page not found")))
    });
    let running = Stage::run(controlplane::faults::ruled(stage.client(), rule));
    stage.configure(WITH_GADGETS, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(WITH_GADGETS, "nothing yet", Phase::PrerequisiteFailed).await;
    stage.install("Gadget").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(stage.status(WITH_GADGETS).await.phase, Some(Phase::PrerequisiteFailed));
    lagging.store(false, Ordering::SeqCst);
    stage.wait_for(WITH_GADGETS, "a plan", Phase::ReviewRequired).await;
    stage.rest().await;
    stage.finish(running).await;
}

/// Objects that the server can't convert can be neither listed nor read: that is said, nothing is
/// taken for absent, and it is over when they can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_fails_is_waited_for() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    stage.create(&object("Gadget", "source", json!({"size": 1}))).await;
    let crds: Api<CustomResourceDefinition> = Api::all(stage.admin.clone());
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let nowhere = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let spec = json!({"conversion": nowhere, "versions": [version("v1", false, true), version("v2", true, false)]});
    crds.patch("gadgets.example.dev", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();

    let (settings, health) = settings();
    let running = Stage::run_with(stage.client(), settings);
    let mark = stage.mark();
    let options = following("x", "Gadget", &[]);
    stage.configure_with(WITH_GADGETS, json!({"action": "Apply", "options": {WITH_GADGETS: options}})).await;
    until(&health, "a watch that fails", |watches| {
        watches.iter().any(|watch| watch.kind == "Gadget" && watch.state == WatchState::Failing && watch.failures > 2)
    })
    .await;
    let failing = stage.reading_failed(WITH_GADGETS, "True").await;
    assert_eq!(failing.reason, "WebhookUnavailable");
    assert!(
        failing.message.contains("Gadget default/source")
            && failing.message.contains("conversion webhook for example.dev"),
        "{failing:?}"
    );
    let waiting = stage.status(WITH_GADGETS).await;
    assert!(waiting.items.is_empty() && waiting.phase.is_none(), "{waiting:#?}");
    assert!(stage.widgets().get_opt("x").await.unwrap().is_none());
    let asked = stage.requests(&mark).len();
    assert!(asked < 120, "{asked} requests while a conversion fails");
    // Fault R14: that a list begins is no success, and the pauses grow.
    let (mark, seconds) = (stage.mark(), 8);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let lists = stage
        .requests(&mark)
        .into_iter()
        .filter(|request| request.resource == "gadgets" && request.name.is_empty())
        .count();
    assert!(lists <= 3, "{lists} lists in {seconds} s while a conversion fails");

    let well = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    crds.patch("gadgets.example.dev", &PatchParams::default(), &Patch::Merge(well)).await.unwrap();
    stage.wait_for(WITH_GADGETS, "applied", Phase::Completed).await;
    stage.reading_failed(WITH_GADGETS, "False").await;
    assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["size"], 1);
    stage.rest_of_kinds().await;
    stage.finish(running).await;
}

/// Cases W-6 and W-10: a right that is missing holds up the item that needs it, names the rule, and
/// is noticed when it comes. What nothing is drafted of is not asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_10_a_kind_that_may_not_be_watched_blocks_its_items_alone() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    let refuse = Arc::new(AtomicBool::new(true));
    let refusing = refuse.clone();
    let client = controlplane::faults::ruled(
        stage.client(),
        Arc::new(move |request| {
            let refused = refusing.load(Ordering::SeqCst) && request.uri().path().ends_with("/v1/gadgets");
            refused
                .then(|| controlplane::faults::status(403, "Forbidden", "User \"us\" cannot list resource \"gadgets\""))
        }),
    );
    let mark = stage.mark();
    let running = Stage::run(client);
    let widget = item("w", 0, json!({"size": 1}));
    stage.configure(WITH_GADGETS, "DryRun", std::slice::from_ref(&widget)).await;
    stage.wait_for(WITH_GADGETS, "a plan without gadgets", Phase::ReviewRequired).await;
    assert_eq!(stage.requests(&mark).iter().filter(|request| request.resource == "gadgets").count(), 0);

    let gadget = json!({"name": "g", "object": object("Gadget", "g", json!({"size": 1}))});
    stage.patch(WITH_GADGETS, json!({"options": {"gadgets": {"items": [widget, gadget]}}})).await;
    let planned = |operations: [Operation; 2]| {
        move |status: &VirtPlatformConfigStatus| {
            status.items.iter().map(|item| item.operation).collect::<Vec<_>>() == operations
        }
    };
    let status = stage.wait(WITH_GADGETS, "blocked", planned([Operation::Create, Operation::Blocked])).await;
    let why = &status.items[1].message;
    let rule = r#"{apiGroups: ["example.dev"], resources: ["gadgets"], verbs: ["list", "watch"]}"#;
    assert!(why.contains("may not watch this kind") && why.contains(rule), "{why}");

    refuse.store(false, Ordering::SeqCst);
    stage.wait(WITH_GADGETS, "the right has come", planned([Operation::Create, Operation::Create])).await;
    stage.finish(running).await;
}

/// A client whose watches of gadgets end after a second, as all do after some minutes.
fn with_short_watches(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        async move {
            let uri = request.uri().to_string();
            if uri.contains("/v1/gadgets?") && uri.contains("watch=true") {
                let (before, after) = uri.split_once("timeoutSeconds=").expect("watches have an end");
                let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
                *request.uri_mut() = format!("{before}timeoutSeconds=1{after}").parse::<Uri>()?;
            }
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

/// A client behind a proxy that answers each watch with success and ends it at once, as long as it
/// `cuts`, and that counts requests.
fn cut_off(client: Client, cuts: Arc<AtomicBool>, count: Arc<AtomicUsize>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, cuts, count) = (client.clone(), cuts.clone(), count.clone());
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if is_watch && cuts.load(Ordering::SeqCst) {
                return Ok(http::Response::new(Body::empty()));
            }
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

/// A proxy that ends every watch at once, without an error: it is asked a few times, that is told,
/// and when it is mended, events arrive again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t17_watches_that_end_at_once_are_opened_with_pauses_until_they_last() {
    let stage = Stage::set().await;
    let (cuts, count) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (settings, health) = settings();
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    let running = Stage::run_with(cut_off(stage.client(), cuts.clone(), count.clone()), settings);
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let is = |kind: &'static str, state: WatchState| {
        move |watches: &[WatchHealth]| {
            watches.iter().any(|watch| watch.kind == kind && watch.state == state && watch.opened > 3)
        }
    };
    for kind in ["VirtPlatformConfig", "CustomResourceDefinition", "Widget"] {
        until(&health, "told", is(kind, WatchState::Failing)).await;
    }
    let before = count.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = count.load(Ordering::SeqCst) - before;
    assert!(asked <= 6, "{asked} requests of three watches in three seconds");
    assert!(before < 100, "{before} requests at the start");

    cuts.store(false, Ordering::SeqCst);
    stage.patch(NAME, json!({"action": "Apply"})).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.edit("x", json!({"spec": {"size": 2}})).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.edit("x", json!({"spec": {"size": 1}})).await;
    stage.wait_for(NAME, "all is well", Phase::Completed).await;
    until(&health, "open again", is("Widget", WatchState::Open)).await;
    stage.patch(NAME, json!({"action": "Ignore"})).await;
    stage.wait_for(NAME, "an edit", Phase::Ignored).await;
    stage.finish(running).await;
}

/// A right that is taken away from a watch that has listed, and comes back: kube goes on without
/// another list, and it is noticed all the same. One refusal, as of a server that starts, is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_10_a_right_may_go_and_come_back_under_an_open_watch() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = refusals.clone();
    let client = controlplane::faults::ruled(
        with_short_watches(stage.client()),
        Arc::new(move |request| {
            let is_it = request.uri().path().ends_with("/v1/gadgets");
            let refused =
                is_it && left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            refused.then(|| {
                controlplane::faults::status(403, "Forbidden", "User \"us\" cannot watch resource \"gadgets\"")
            })
        }),
    );
    let running = Stage::run(client);
    let gadget = json!({"name": "g", "object": object("Gadget", "g", json!({"size": 1}))});
    stage.configure(WITH_GADGETS, "Apply", &[gadget]).await;
    let done = stage.wait_for(WITH_GADGETS, "applied", Phase::Completed).await;

    refusals.store(1, Ordering::SeqCst);
    let until = Instant::now() + PATIENCE;
    while refusals.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < until, "no watch has ended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stage.status(WITH_GADGETS).await.items, done.items, "one refusal says nothing");

    refusals.store(usize::MAX, Ordering::SeqCst);
    let is = |operation: Operation| move |status: &VirtPlatformConfigStatus| status.items[0].operation == operation;
    stage.wait(WITH_GADGETS, "it is gone", is(Operation::Blocked)).await;
    refusals.store(0, Ordering::SeqCst);
    stage.wait(WITH_GADGETS, "it is back", is(Operation::NoChange)).await;
    let edit = kube::api::Patch::Merge(json!({"spec": {"size": 2}}));
    stage.objects("Gadget").patch("g", &PatchParams::default(), &edit).await.unwrap();
    stage.wait(WITH_GADGETS, "drift", is(Operation::Update)).await;
    drop(running);
    stage.clear().await;
}
