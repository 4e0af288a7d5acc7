//! Plans of many items and of large ones.

use advisor_core::api::Operation;
use advisor_core::plan::status::cut_diffs;
use serde_json::json;

use super::world::{World, config_map, draft, widget};

/// Z2: a rewrite of a megabyte: the digest covers all of it, what is shown is cut and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z2_the_digest_covers_what_the_cut_hides() {
    let world = World::start(&[]).await;
    let text = |line: &str, last: &str| format!("{}{last}\n", format!("{line}\n").repeat(20_000));
    world.create(&widget(json!({"text": text("an old line of the object", "end")})), "somebody").await;
    let item = world.item(&widget(json!({"text": text("a new line of the object", "end")}))).await;
    assert_eq!(item.operation, Operation::Update);
    assert!(item.review.diff.len() > 1_000_000, "{}", item.review.diff.len());
    let (shown, truncated) = cut_diffs::one(&item.review.diff, 64 * 1024);
    let truncated = truncated.unwrap();
    assert!(cut_diffs::cost(&shown) <= 64 * 1024);
    assert_eq!((truncated.added, truncated.removed), (20_000, 20_000));
    let other = world.item(&widget(json!({"text": text("a new line of the object", "END")}))).await;
    assert_ne!(other.hash, item.hash, "the last line counts, cut or not");
    world.execute(&item).await;
}

/// Hundreds of items are planned in one go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_items_are_one_plan() {
    let world = World::start(&[]).await;
    let object = |index: usize| config_map(&format!("c{index}"), json!({"a": "b"}));
    let drafts: Vec<_> = (0..300).map(|index| draft(&format!("item-{index}"), &object(index))).collect();
    let plan = world.plan(&drafts).await;
    assert_eq!(plan.items.iter().filter(|item| item.operation == Operation::Create).count(), 300);
    assert!(plan.items.iter().zip(&drafts).all(|(item, draft)| item.name == draft.name), "in the order of the drafts");
}
