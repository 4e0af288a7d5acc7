//! What somebody changes of what was applied: by every route, and what it costs to see it.

use advisor_core::api::{Operation, Phase};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::stage::profile::{NAME, WITH_GADGETS, following, item, object};
use crate::stage::{Running, Stage};

async fn applied(items: &[Value]) -> (Stage, Running) {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", items).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.rest().await;
    (stage, running)
}

impl Stage {
    /// What the operator has asked since `mark`, in order, as `verb resource name`.
    fn asked(&self, mark: &controlplane::Mark) -> Vec<String> {
        let requests = self.requests(mark).into_iter().filter(|request| !request.is_watch());
        let told = requests.map(|request| {
            let dry_run = if request.dry_run { " (dry run)" } else { "" };
            let name = if request.resource == "events" { "" } else { request.name.as_str() };
            format!("{} {} {name}{dry_run}", request.verb, request.resource).trim_end().to_owned()
        });
        told.collect()
    }
}

/// One target's drift costs its read, one dry run, one status and one event, whatever else the plan
/// holds. What is none of our business costs one read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_costs_what_has_changed_and_nothing_else() {
    let items: Vec<_> = ["a", "b", "c"].iter().map(|name| item(name, 0, json!({"size": 1}))).collect();
    let (stage, running) = applied(&items).await;
    let mark = stage.mark();
    stage.edit("b", json!({"spec": {"size": 2}})).await;
    let drifted = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.rest().await;
    let expected =
        ["get widgets b", "patch widgets b (dry run)", &format!("update virtplatformconfigs {NAME}"), "create events"];
    assert_eq!(stage.asked(&mark), expected);
    let item = drifted.items.iter().find(|item| item.name == "b").unwrap();
    assert_eq!((item.conflicts[0].manager.as_str(), item.conflicts[0].path.as_str()), ("kubectl-edit", "/spec/size"));
    let text = drifted.summary.unwrap().text;
    assert!(text.contains("/spec/size is 2 instead of 1, changed by field manager kubectl-edit"), "{text}");
    for way in ["approve this plan", "change the option", "Ignore"] {
        assert!(text.contains(way), "{way}: {text}");
    }

    let mark = stage.mark();
    stage.edit("b", json!({"spec": {"size": 1}})).await;
    stage.wait_for(NAME, "taken back", Phase::Completed).await;
    stage.rest().await;
    assert_eq!(stage.asked(&mark), expected);

    let before = stage.status(NAME).await;
    let mark = stage.mark();
    stage.edit("b", json!({"metadata": {"labels": {"theirs": "1"}}, "spec": {"text": "theirs"}})).await;
    stage.rest().await;
    assert_eq!(stage.asked(&mark), ["get widgets b"]);
    assert_eq!(stage.status(NAME).await, before);
    // And what follows is seen all the same, and approved as what the server says.
    stage.edit("b", json!({"spec": {"size": 3}})).await;
    let plan = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.patch(NAME, json!({"approvedPlanHash": plan.plan_hash})).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    assert_eq!(
        stage.widgets().get("b").await.unwrap().data["spec"],
        json!({"mode": "Slow", "size": 1, "text": "theirs"})
    );
    stage.finish(running).await;
}

/// By whatever route; recovery is automatic. What equals what was applied, and the status of the
/// object, are silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c8_drift_is_seen_by_every_route_and_recovers() {
    let (stage, running) =
        applied(&[item("a", 0, json!({"size": 1, "memory": "1Gi"})), item("b", 0, json!({"size": 1}))]).await;
    let widgets = stage.widgets();
    let back = async |what: &str| {
        let plan = stage.wait_for(NAME, what, Phase::Drifted).await;
        stage.rest().await;
        let text = plan.summary.unwrap().text;
        assert!(text.contains("Widget default/a"), "{what}: {text}");
        assert!(!text.contains("Widget default/b:"), "{what}: {text}");
        stage.patch(NAME, json!({"approvedPlanHash": plan.plan_hash})).await;
        stage.wait_for(NAME, &format!("after {what}"), Phase::Completed).await;
        stage.rest().await;
    };
    stage.edit("a", json!({"spec": {"size": 2}})).await;
    back("an edit").await;

    let theirs = object("Widget", "a", json!({"size": 3}));
    widgets.patch("a", &PatchParams::apply("argocd-controller").force(), &Patch::Apply(&theirs)).await.unwrap();
    back("an apply by force").await;

    let mut whole = widgets.get("a").await.unwrap();
    whole.data["spec"] = json!({"text": "replaced"});
    widgets.replace("a", &PostParams::default(), &whole).await.unwrap();
    back("a replacement").await;

    widgets.delete("a", &DeleteParams::default()).await.unwrap();
    let gone = stage.wait_for(NAME, "a deletion", Phase::Drifted).await;
    assert_eq!(gone.items[0].operation, Operation::Create, "it would be created again");
    back("a deletion").await;

    widgets.delete("a", &DeleteParams::default()).await.unwrap();
    stage.create(&object("Widget", "a", json!({"size": 1, "memory": "1Gi"}))).await;
    // Everything is as wanted again, by somebody else's hand.
    stage.rest().await;
    assert_eq!(stage.status(NAME).await.phase, Some(Phase::Completed));

    let reports = |number: i64| {
        let (widgets, seen) = (widgets.clone(), Patch::Merge(json!({"status": {"anything": number}})));
        async move { widgets.patch_status("a", &PatchParams::default(), &seen).await.unwrap() }
    };
    let silent = stage.status(NAME).await;
    assert!(
        silent.items[0].message.ends_with("The operator that acts on it has not reported a status yet."),
        "{}",
        silent.items[0].message
    );
    reports(1).await;
    stage.rest().await;
    let before = stage.status(NAME).await;
    assert!(before.items[0].message.ends_with("In effect."), "{}", before.items[0].message);
    assert_eq!((before.phase, &before.plan_hash), (silent.phase, &silent.plan_hash));
    reports(2).await;
    stage.rest().await;
    assert_eq!(stage.status(NAME).await, before, "the status of an object is its controller's business");
    stage.finish(running).await;
}

/// Drift hides nothing else: a changed input and another version are said beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_hides_no_other_truth() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    stage.create(&object("Gadget", "source", json!({"size": 1}))).await;
    let running = Stage::run(stage.client());
    let mut follower = item("x", 0, json!({}));
    follower["from"] = json!("/spec/size");
    let options =
        json!({"items": [follower, item("y", 0, json!({"size": 1}))], "reads": [{"kind": "Gadget", "name": "source"}]});
    stage.configure_with(WITH_GADGETS, json!({"action": "Apply", "options": {WITH_GADGETS: options}})).await;
    stage.wait_for(WITH_GADGETS, "applied", Phase::Completed).await;
    stage.rest().await;
    // An input alone costs its own read; the others are as they were.
    let mark = stage.mark();
    let gadgets = stage.objects("Gadget");
    let resize = async |size: i64| {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        gadgets.patch("source", &PatchParams::default(), &patch).await.unwrap();
    };
    resize(2).await;
    stage.wait_for(WITH_GADGETS, "another input", Phase::ReviewRequired).await;
    stage.rest().await;
    let asked = stage.asked(&mark);
    assert_eq!(asked.first().map(String::as_str), Some("get gadgets source"), "{asked:?}");
    assert!(!asked.iter().any(|request| request.contains("widgets y")), "{asked:?}");

    stage.edit("y", json!({"spec": {"size": 7}})).await;
    let both = stage.wait_for(WITH_GADGETS, "drift", Phase::Drifted).await;
    let holds = |kind: &str| both.conditions.iter().any(|found| found.type_ == kind && found.status == "True");
    assert!(holds("Drifted") && holds("InputDependencyDrift"), "{:#?}", both.conditions);
    resize(1).await;
    let drifted = stage
        .wait(WITH_GADGETS, "the input back", |status| {
            status.conditions.iter().all(|found| found.type_ != "InputDependencyDrift" || found.status == "False")
        })
        .await;
    assert_eq!(drifted.phase, Some(Phase::Drifted));
    stage.edit("y", json!({"spec": {"size": 1}})).await;
    stage.wait_for(WITH_GADGETS, "all is well", Phase::Completed).await;
    stage.finish(running).await;
}

/// P20: a check that fails half-way is made again, and says nothing before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p20_a_check_that_fails_is_made_again() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let stage = Stage::set().await;
    let left = Arc::new(AtomicUsize::new(0));
    let count = left.clone();
    let rule: controlplane::faults::Rule = Arc::new(move |request| {
        let hit = request.method() == http::Method::GET && request.uri().path().ends_with("/widgets/b");
        let fails = hit && count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        fails.then(|| controlplane::faults::status(503, "ServiceUnavailable", "a fault of the test"))
    });
    let running = Stage::run(controlplane::faults::ruled(stage.client(), rule));
    stage.configure(NAME, "Apply", &[item("a", 0, json!({"size": 1})), item("b", 0, json!({"size": 1}))]).await;
    let done = stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.rest().await;
    left.store(2, Ordering::SeqCst);
    stage.edit("b", json!({"spec": {"size": 2}})).await;
    while left.load(Ordering::SeqCst) > 0 {
        assert_eq!(stage.status(NAME).await, done, "no verdict without a reading");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.edit("b", json!({"spec": {"size": 1}})).await;
    let done = stage.wait_for(NAME, "taken back", Phase::Completed).await;
    stage.rest().await;

    // It goes on failing: that is said, beside what was known, in one write, and is over with the
    // first reading.
    left.store(usize::MAX, Ordering::SeqCst);
    let mark = stage.mark();
    stage.edit("b", json!({"spec": {"size": 3}})).await;
    let unknown = stage.reading_failed(NAME, "True").await;
    assert_eq!(unknown.reason, "Unavailable");
    assert!(unknown.message.starts_with("Widget default/b can't be read"), "{}", unknown.message);
    assert!(!unknown.message.contains("fault of the test"), "what a server says may quote the object");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut meanwhile = stage.status(NAME).await;
    meanwhile.conditions.retain(|condition| condition.type_ != "ReadingFailed");
    assert_eq!(meanwhile, done, "no verdict without a reading");
    let writes = stage.asked(&mark).into_iter().filter(|request| request.starts_with("update")).count();
    assert_eq!(writes, 1);
    left.store(0, Ordering::SeqCst);
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.reading_failed(NAME, "False").await;
    stage.finish(running).await;
}

/// A hundred targets that change in one second cost a read and a dry run each, and the status is
/// written once a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_targets_at_once_are_one_status_a_second() {
    const MANY: usize = 100;
    let items: Vec<_> = (0..MANY).map(|number| item(&format!("w{number}"), 0, json!({"size": 1}))).collect();
    let (stage, running) = applied(&items).await;
    let mark = stage.mark();
    let began = std::time::Instant::now();
    let edits = (0..MANY).map(|number| {
        let stage = &stage;
        async move { stage.edit(&format!("w{number}"), json!({"spec": {"size": 2}})).await }
    });
    futures::future::join_all(edits).await;
    stage
        .wait(NAME, "all of them", |status| {
            status.items.iter().filter(|item| item.operation == Operation::Update).count() == MANY
        })
        .await;
    let seconds = began.elapsed().as_secs() as usize;
    stage.rest().await;
    let asked = stage.asked(&mark);
    let count = |what: &str| asked.iter().filter(|request| request.starts_with(what)).count();
    assert!(
        count("update virtplatformconfigs") <= seconds + 2,
        "{} in {seconds} s",
        count("update virtplatformconfigs")
    );
    assert_eq!((count("get widgets"), count("patch widgets")), (MANY, MANY));
    stage.finish(running).await;
}

/// A target that is changed again and again is no status each time, and the last value is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_does_not_hold_still_is_one_status_a_second() {
    const TIMES: usize = 20;
    let (stage, running) = applied(&[item("a", 0, json!({"size": 1}))]).await;
    let mark = stage.mark();
    let began = std::time::Instant::now();
    for size in 2..2 + TIMES {
        stage.edit("a", json!({"spec": {"size": size}})).await;
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    }
    let last = format!("/spec/size is {} instead of 1", 1 + TIMES);
    stage
        .wait(NAME, "the last value", |status| {
            status.summary.as_ref().is_some_and(|summary| summary.text.contains(&last))
        })
        .await;
    let seconds = began.elapsed().as_secs() as usize;
    stage.rest().await;
    let writes = stage.asked(&mark).iter().filter(|request| request.starts_with("update")).count();
    assert!(writes <= seconds + 2, "{writes} in {seconds} s");
    stage.finish(running).await;
}

/// A drifted target that somebody edits all the time: the first edit is told at once, those that
/// follow are seen together, and the last value is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t19_a_target_that_is_edited_all_the_time_costs_few_requests_and_events() {
    const TIMES: usize = 100;
    let (stage, running) = applied(&[item("a", 0, json!({"size": 1}))]).await;
    let mark = stage.mark();
    for size in 2..2 + TIMES {
        stage.edit("a", json!({"spec": {"size": size}})).await;
    }
    let last = format!("/spec/size is {} instead of 1", 1 + TIMES);
    stage
        .wait(NAME, "the last value", |status| {
            status.summary.as_ref().is_some_and(|summary| summary.text.contains(&last))
        })
        .await;
    stage.rest().await;
    let asked = stage.asked(&mark);
    let count = |what: &str| asked.iter().filter(|request| request.starts_with(what)).count();
    assert!(asked.len() <= 50, "{} requests for {TIMES} edits: {asked:#?}", asked.len());
    assert!(count("create events") <= 10, "{} events for {TIMES} edits", count("create events"));
    stage.edit("a", json!({"spec": {"size": 1}})).await;
    stage.wait_for(NAME, "taken back", Phase::Completed).await;
    stage.finish(running).await;
}

/// A target that moves between its reading and its preview makes the look fail; the events of those
/// moves do not cut the pauses short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t19_a_target_that_moves_at_every_preview_is_previewed_with_pauses() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use http::{Method, Request};
    use kube::Client;
    use kube::client::Body;
    use tower::BoxError;

    let stage = Stage::set().await;
    let (moves, previews) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (client, widgets, moving, count) = (stage.client(), stage.widgets(), moves.clone(), previews.clone());
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, widgets, moves, previews) = (client.clone(), widgets.clone(), moving.clone(), count.clone());
        async move {
            let is_preview = request.method() == Method::PATCH && request.uri().path().ends_with("/widgets/a");
            if is_preview && moves.load(Ordering::SeqCst) {
                let number = previews.fetch_add(1, Ordering::SeqCst);
                let edit = Patch::Merge(json!({"spec": {"size": 100 + number}}));
                widgets.patch("a", &PatchParams::default(), &edit).await?;
            }
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    let running = Stage::run(Client::new(service, namespace));
    stage.configure(NAME, "Apply", &[item("a", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.rest().await;
    moves.store(true, Ordering::SeqCst);
    stage.edit("a", json!({"spec": {"size": 2}})).await;
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    moves.store(false, Ordering::SeqCst);
    let previews = previews.load(Ordering::SeqCst);
    // Each look tries four times, and asks twice where somebody else holds the field.
    assert!((8..=56).contains(&previews), "{previews} dry runs in eight seconds");
    stage.edit("a", json!({"spec": {"size": 7}})).await;
    let told = |status: &advisor_core::api::VirtPlatformConfigStatus| {
        status.summary.as_ref().is_some_and(|summary| summary.text.contains("/spec/size is 7 instead of 1"))
    };
    stage.wait(NAME, "the last value", told).await;
    stage.finish(running).await;
}

/// What a profile makes of a value depends on its options: with others nothing is taken from
/// memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_options_make_something_else_of_an_unchanged_input() {
    let stage = Stage::set().await;
    stage.create(&object("Widget", "source", json!({"size": 1}))).await;
    let running = Stage::run(stage.client());
    let mut options = following("x", "Widget", &[]);
    options["plus"] = json!(10);
    stage.configure_with(NAME, json!({"action": "DryRun", "options": {NAME: options}})).await;
    stage
        .wait(NAME, "the first", |status| status.items.first().is_some_and(|item| item.diff.contains("size: 11")))
        .await;
    stage.patch(NAME, json!({"options": {NAME: {"plus": 20}}})).await;
    let plan = stage.wait_for(NAME, "another", Phase::ReviewRequired).await;
    assert!(plan.items[0].diff.contains("size: 21"), "{}", plan.items[0].diff);
    assert_eq!(plan.inputs[0].value, Some(json!(21)));
    stage.finish(running).await;
}
