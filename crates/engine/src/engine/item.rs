//! One item: previews a draft, and makes the item from the answer and its effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use profile_sdk::{Access, Body, Declared, Document, Draft, Rival, is_powerful};
use serde_json::{Value, json};

use super::remedy::{self, RefusedRequest};
use super::{Engine, EngineError, Task, manager, order};
use advisor_cluster::{ApplyMode, ClusterError, LookUpError, Precondition, Previewed, Served, SilentGroup};
use advisor_core::api::{FIELD_MANAGER, Item, ItemState, Operation, TargetRef};
use advisor_core::plan::check_drafts;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::document::{self, into_document, remains};
use advisor_core::plan::items::from_preview::compose;
use advisor_core::plan::items::health;
use advisor_core::plan::items::message::capitalised;
use advisor_core::plan::items::redact;
use advisor_core::plan::items::{Effect, PlanItem, Preview};
use advisor_core::plan::overrides::{Adjusted, Overrides, dependants};
use advisor_core::plan::remedy::Remedy;
use advisor_core::plan::target;
use advisor_core::plan::target::target;
use object::fields::{FieldPath, Paths};
use object::quantity::keep_spelling;
use object::{diff, fields};

/// How many times a preview is repeated because its object changed between two requests.
const RACES: usize = 3;

/// Why there is no preview: the item is blocked, or the whole plan must be made again.
enum Obstacle {
    /// Only this item. `passing` says that the cause may disappear without a person.
    Blocks {
        remedy: Remedy,
        passing: bool,
    },
    Fails(EngineError),
}

impl Obstacle {
    /// A cause that only a person can remove.
    fn blocks(remedy: impl Into<Remedy>) -> Self {
        Self::Blocks { remedy: remedy.into(), passing: false }
    }

    /// The group does not answer, so the item can't be previewed for now. Others can.
    fn silent(group: &SilentGroup) -> Self {
        Self::Blocks { remedy: group.to_string().into(), passing: true }
    }

    /// Adds the overrides of the object, which may be what the server refuses.
    fn after(self, overrides: &[String]) -> Self {
        match self {
            Self::Blocks { remedy, passing } if !overrides.is_empty() => {
                let overrides = overrides.join("; ");
                let remedy = format!("{remedy}. It was previewed with these overrides: {overrides}").into();
                Self::Blocks { remedy, passing }
            }
            other => other,
        }
    }
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        Self::Fails(error)
    }
}

/// A draft, its object, and how that is served.
struct ItemOnCluster<'a> {
    draft: &'a Draft,
    target: TargetRef,
    kind: Served,
    manager: String,
    remembered: Option<&'a Item>,
    /// The document in the object that others keep too.
    document: Option<&'static Document>,
}

impl ItemOnCluster<'_> {
    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }
}

impl Engine<'_> {
    /// Previews one draft; `known` are the items that were planned before it.
    pub(super) async fn preview(
        &self,
        task: Task<'_>,
        draft: &Draft,
        known: &BTreeMap<String, PlanItem>,
    ) -> Result<Preview, EngineError> {
        match self.previewed(task, draft, known).await {
            Ok(preview) => Ok(preview),
            Err(Obstacle::Blocks { remedy, passing }) => Ok(Preview::Refused { remedy, passing }),
            Err(Obstacle::Fails(error)) => Err(error),
        }
    }

    /// The item of `draft`, from its preview and its effect.
    pub(super) fn item(&self, task: Task<'_>, draft: &Draft, (preview, mut effect): (Preview, Effect)) -> PlanItem {
        effect.notes.extend(rivals(task, &preview).map(|rival| format!("{}.", capitalised(rival.remedy))));
        let remembered = remembered(task, draft);
        let document = document::declared_for(task.kinds, &target(draft));
        let followed = self.followed(draft, &preview);
        let live = match &preview {
            Preview::Known { live, .. } => live.clone(),
            _ => None,
        };
        let target = target(draft);
        let mut item = compose(draft, document, &manager(task.profile), preview, effect, remembered);
        item.live.has_status =
            self.cluster.has_status(&target.api_version, &target.kind) && !self.rollouts.is_tracked(&target);
        if let Some(live) = live.filter(|_| item.live.has_status) {
            item.live.rollout = health::as_reported(item.live.rollout, &live);
        }
        item.live.followed = followed.and_then(|object| self.rollouts.snapshot(&object));
        item
    }

    async fn previewed(
        &self,
        task: Task<'_>,
        draft: &Draft,
        known: &BTreeMap<String, PlanItem>,
    ) -> Result<Preview, Obstacle> {
        let blocked = |remedy: Remedy| Err(Obstacle::blocks(remedy));
        match task.choices.set_aside(draft) {
            Ok(None) => {}
            Ok(Some(why)) => return Ok(set_aside(task, draft, why, None)),
            Err(problem) => return blocked(problem),
        }
        if let Body::Blocked { remedy, .. } = &draft.body {
            return blocked(remedy.clone().into());
        }
        if let Some(problem) = check_drafts::one(draft, task.drafts) {
            return blocked(problem.into());
        }
        let target = target(draft);
        let is_to_come = |needed: &order::BroughtKind<'_>| {
            let provider = known.get(&needed.draft.name);
            provider.is_some_and(|item| matches!(item.operation, Operation::Create | Operation::Deferred))
        };
        if let Body::Ensure(desired) = &draft.body
            && let Some(needed) = order::needed(draft, task.drafts).into_iter().find(is_to_come)
        {
            if !needed.is_earlier {
                return blocked(
                    format!(
                        "{} is created only by the later item {}. Report this to the profile's owners",
                        needed.what, needed.draft.name
                    )
                    .into(),
                );
            }
            return Ok(Preview::Deferred { desired: desired.clone(), after: needed.draft.name.clone() });
        }
        let described = target.to_string();
        let (kind, target) = match self.served_as(task, draft, target).await {
            Ok((Some(kind), target)) => (kind, target),
            // Its objects were deleted with the kind.
            Ok((None, target))
                if matches!(draft.body, Body::Remove(_)) && target::declared(task.kinds, &target).is_some() =>
            {
                return Ok(Preview::removal_done(None));
            }
            Ok((None, target)) => return blocked(remedy::not_served(&target).into()),
            Err(LookUpError::Group(silent)) => return Err(Obstacle::silent(&silent)),
            Err(LookUpError::Cluster(source)) => return Err(EngineError::Preview { object: described, source }.into()),
        };
        if kind.namespaced != target.namespace.is_some() {
            return blocked(remedy::wrong_scope(&target, kind.namespaced).into());
        }
        if let Some(remedy) = task.unwatched.get(&draft.name) {
            // So that a later permission to watch it is noticed.
            (self.seen)(kind.subject(target.namespace.as_deref(), &target.name), None);
            return blocked(remedy.clone().into());
        }
        let remembered = remembered(task, draft);
        let document = document::declared_for(task.kinds, &target);
        let subject = ItemOnCluster { draft, target, kind, manager: manager(task.profile), remembered, document };
        match &draft.body {
            Body::Remove(_) => self.removal(task, &subject).await,
            Body::Ensure(desired) => self.application(task, &subject, desired).await,
            Body::Blocked { remedy, .. } => Ok(Preview::refused(remedy.clone())),
        }
    }

    /// How the object is served. An object that is to be removed may have been written in a version
    /// that is no longer served.
    async fn served_as(
        &self,
        task: Task<'_>,
        draft: &Draft,
        mut target: TargetRef,
    ) -> Result<(Option<Served>, TargetRef), LookUpError> {
        let found = match (&draft.body, target::declared(task.kinds, &target)) {
            (Body::Remove(_), Some(declared)) => {
                let (_, version) = target.api_version.rsplit_once('/').unwrap_or(("", &target.api_version));
                match self.cluster.look_up_in(&declared.kind, version).await? {
                    Some(found) => Some(found),
                    None => self.cluster.look_up(&declared.kind).await?,
                }
            }
            _ => {
                let named = json!({"apiVersion": target.api_version, "kind": target.kind});
                self.cluster.look_up_object(&named).await?
            }
        };
        if let Some(found) = &found {
            target.api_version.clone_from(&found.resource.api_version);
        }
        Ok((found, target))
    }

    /// Previews applying `desired`.
    async fn application(
        &self,
        task: Task<'_>,
        subject: &ItemOnCluster<'_>,
        desired: &Value,
    ) -> Result<Preview, Obstacle> {
        let blocked = |remedy: Remedy| Err(Obstacle::blocks(remedy));
        let target = &subject.target;
        let mut races = 0;
        loop {
            let live = self.live(subject).await?;
            match &live {
                Some(live) if live.pointer("/metadata/deletionTimestamp").is_some() => {
                    return blocked(remedy::being_deleted(target, live).into());
                }
                None if !may_create(task, target) => {
                    return blocked(format!(
                        "{target} does not exist, and the profile does not create it, because that would install something: create it first"
                    ).into());
                }
                Some(_) | None => {}
            }
            let overrides = match overrides(task, subject, live.as_deref()) {
                Ok(overrides) => overrides,
                Err(problem) => return blocked(problem),
            };
            if let Some(why) = overrides.unmanaged {
                return Ok(set_aside(task, subject.draft, why, live));
            }
            let named = overrides.pointers();
            if let Some(problem) = subject.document.and_then(|document| document::touched_by(document, &named)) {
                return blocked(format!("{target}: {problem}.").into());
            }
            let merged = match subject.document.filter(|found| !overrides.leave(found.field)) {
                Some(document) => {
                    let ours = live.as_deref().is_some_and(|live| has_document(subject, document, live));
                    match into_document(document, desired, live.as_deref(), ours) {
                        Ok(merged) => Some(merged),
                        Err(problem) => return blocked(problem),
                    }
                }
                None => None,
            };
            let desired = merged.as_ref().unwrap_or(desired);
            let powerful = is_powerful(target.group(), &target.kind);
            let adjusted = match overrides.adjust(desired, live.as_deref(), &subject.manager, powerful) {
                Ok(adjusted) => adjusted,
                Err(problem) => return blocked(format!("{target}: {problem}.").into()),
            };
            if let Some(problem) = check_drafts::overridden(&adjusted.desired) {
                return blocked(format!("{target}: with its overrides, {problem}.").into());
            }
            let nothing = Value::Null;
            let desired =
                keep_spelling(&adjusted.desired, live.as_deref().unwrap_or(&nothing), &subject.draft.quantities);
            let adjusted = Adjusted { desired: desired.clone(), ..adjusted };
            let rival = !task.exact && subject.remembered.is_some_and(|item| item.applied.is_some());
            let rival = rival
                && live.as_deref().is_some_and(|live| {
                    !fields::has_other_versions(live) && fields::is_contested(live, &desired, &subject.manager)
                });
            let attempt = match rival {
                true => self.cluster.preview_by_force(&subject.kind, &desired, live.as_deref(), &subject.manager).await,
                false => self.cluster.preview(&subject.kind, &desired, live.as_deref(), &subject.manager).await,
            };
            let Previewed { result, conflicts } = match attempt {
                Ok(previewed) => previewed,
                Err(ClusterError::Moved) if races < RACES => {
                    races += 1;
                    self.forget(&subject.kind, subject.namespace(), &target.name);
                    continue;
                }
                Err(error) => {
                    return Err(self.obstacle(subject, error, !adjusted.notes.is_empty()).await.after(&adjusted.notes));
                }
            };
            let size = result.to_string().len();
            if size > check_drafts::OBJECT_LIMIT {
                return blocked(check_drafts::too_large(size).into());
            }
            if let Some(remedy) = remedy::other_configuration(&conflicts, &subject.manager, &result) {
                return blocked(remedy.into());
            }
            if let Some(remedy) = contested(task, subject, &desired, live.as_deref(), &result) {
                return blocked(remedy.into());
            }
            return Ok(Preview::Known { adjusted, live, result, conflicts });
        }
    }

    /// Previews the removal of our fields. The object is deleted if nobody else owns fields of it.
    async fn removal(&self, task: Task<'_>, subject: &ItemOnCluster<'_>) -> Result<Preview, Obstacle> {
        let Some(live) = self.live(subject).await? else {
            return Ok(Preview::removal_done(None));
        };
        if live.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(Preview::removal_done(Some(live)));
        }
        match overrides(task, subject, Some(&live)) {
            Ok(Overrides { unmanaged: Some(why), .. }) => return Ok(set_aside(task, subject.draft, why, Some(live))),
            Ok(_) => {}
            Err(problem) => return Err(Obstacle::blocks(problem)),
        }
        let mut others: Vec<String> = fields::sharers(&live, &subject.manager).into_iter().map(str::to_owned).collect();
        if others == [FIELD_MANAGER] {
            // This is the Go program, whose fields are ours.
            others.clear();
        }
        let leaves = match subject.document {
            Some(document) => {
                let field = FieldPath::of_pointer(document.field);
                let alone =
                    fields::owned_alone_by(&live, &subject.manager).into_iter().collect::<Paths>().touches(&field);
                Some(remains(&subject.target, document, &live, alone).map_err(Obstacle::blocks)?)
            }
            None => None,
        };
        // Editing a document makes the editor its owner, including our settings in it.
        let ours = leaves.is_some()
            || [subject.manager.as_str(), FIELD_MANAGER].iter().any(|name| !fields::applied_by(&live, name).is_empty());
        if !ours {
            // If it was ours once, it is left alone. If it never was, the draft is faulty.
            let taken_back = |item: &Item| matches!(item.operation, Operation::Remove | Operation::NoChange);
            let begun = |item: &Item| item.state == ItemState::InProgress;
            let ours_once =
                subject.remembered.is_some_and(|item| item.applied.is_some() || taken_back(item) || begun(item));
            if ours_once {
                let result = Some(Value::clone(&live));
                return Ok(Preview::Removal { live: Some(live), result, leaves: None, stays_for: others });
            }
            let owners = if others.is_empty() { "somebody else".to_owned() } else { others.join(", ") };
            let remedy = format!(
                "{} can't be removed by this configuration: all of it belongs to {owners}. Report this to the profile's owners",
                subject.target
            );
            return Err(Obstacle::blocks(remedy));
        }
        // A profile never deletes what it never creates: somebody has installed it.
        let goes = others.is_empty() && may_delete(task, &subject.target);
        let alone = fields::owned_alone_by(&live, &subject.manager);
        let claims = task.claims.iter().filter(|claim| claim.wanted && claim.target.is_same_object(&subject.target));
        // If only our fields are removed, others lose those that they rely on and have not applied
        // themselves.
        if let Some(claim) = claims.into_iter().find(|claim| goes || claim.wants_any_of(&alone)) {
            return Err(Obstacle::blocks(format!(
                "configuration {} also wants {}: restore the option, or set spec.action of that configuration to Ignore first",
                claim.config, subject.target
            )));
        }
        let text = |key: &str| live.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default();
        let (uid, version) = (text("uid").to_owned(), text("resourceVersion").to_owned());
        let attempt = if goes {
            let place = (subject.namespace(), subject.target.name.as_str());
            self.cluster.remove(&subject.kind, place, &uid, &version, true).await.map(|()| None)
        } else {
            let precondition = Precondition::Exactly { uid, resource_version: version };
            let nothing = subject.target.empty();
            let (left, mode) = (leaves.as_ref().unwrap_or(&nothing), ApplyMode::ForcedDryRun);
            self.cluster.apply(&subject.kind, left, &subject.manager, mode, &precondition).await.map(Some)
        };
        match attempt {
            Ok(result) => Ok(Preview::Removal { live: Some(live), result, leaves, stays_for: others }),
            Err(error) => Err(self.obstacle(subject, error, false).await),
        }
    }

    /// The object as it is. If it can't be read, only its item is blocked.
    async fn live(&self, subject: &ItemOnCluster<'_>) -> Result<Option<Arc<Value>>, Obstacle> {
        match self.get(&subject.kind, subject.namespace(), &subject.target.name).await {
            Ok(live) => Ok(live),
            Err(source @ ClusterError::Transient { .. }) => match self.cluster.silence_of(&subject.kind).await {
                Some(silent) => Err(Obstacle::silent(&silent)),
                None => Err(EngineError::Object { object: subject.target.to_string(), source }.into()),
            },
            Err(error) => Err(self.obstacle(subject, error, false).await),
        }
    }

    /// The object whose rollout is followed, if its kind has rollouts.
    fn followed(&self, draft: &Draft, preview: &Preview) -> Option<Arc<Value>> {
        if !self.rollouts.has_effects(&target(draft)) {
            return None;
        }
        match (preview, &draft.body) {
            (Preview::Known { live: Some(live), .. } | Preview::Removal { live: Some(live), .. }, _) => {
                Some(Arc::clone(live))
            }
            (Preview::Known { live: None, result, .. }, _) => Some(Arc::new(result.clone())),
            // A change that is refused because of the pools may be allowed when they change.
            (_, Body::Ensure(desired)) => Some(Arc::new(desired.clone())),
            (_, Body::Remove(_) | Body::Blocked { .. }) => None,
        }
    }

    /// Whether the server's message may quote something that must not be shown: the draft or the
    /// live object hides something, or others keep a document in it.
    fn is_secretive(&self, subject: &ItemOnCluster<'_>) -> bool {
        let live = self.object_read(&subject.kind.subject(subject.namespace(), &subject.target.name));
        let desired = match &subject.draft.body {
            Body::Ensure(desired) => Some(desired),
            Body::Remove(_) | Body::Blocked { .. } => None,
        };
        let keeps = subject.document.is_some() || !subject.draft.sensitive.is_empty();
        keeps || desired.into_iter().chain(live.as_deref()).any(redact::hides_something)
    }

    /// The obstacle that an error of the server means for the item.
    async fn obstacle(&self, subject: &ItemOnCluster<'_>, error: ClusterError, overridden: bool) -> Obstacle {
        let ItemOnCluster { target, kind, .. } = subject;
        let refused = |remedy: String| Obstacle::blocks(remedy);
        match error {
            ClusterError::NotServed => refused(remedy::not_served(target)),
            error @ (ClusterError::TooDeep | ClusterError::TooMany) => refused(format!("{target}: {error}")),
            ClusterError::NotFound { namespace_missing: true, .. } => refused(remedy::no_namespace(target)),
            ClusterError::NotFound { message, .. } => refused(message),
            ClusterError::Webhook { message } => {
                Obstacle::Blocks { remedy: remedy::webhook(&message).into(), passing: true }
            }
            ClusterError::Refused(refusal) if refusal.is_missing_right() => {
                let exists = self.object_read(&kind.subject(subject.namespace(), &target.name)).is_some();
                let verbs: &[&str] = match &subject.draft.body {
                    Body::Remove(_) => &["get", "patch", "delete"],
                    Body::Ensure(_) | Body::Blocked { .. } if exists => &["get", "patch"],
                    Body::Ensure(_) | Body::Blocked { .. } => &["get", "create", "patch"],
                };
                let name = target.name.as_str();
                let mut missing = Vec::new();
                for verb in verbs.iter().copied() {
                    if let Ok(false) = self.cluster.is_allowed(kind, subject.namespace(), name, verb).await {
                        missing.push(verb);
                    }
                }
                refused(remedy::missing_right(target, kind, &missing, &refusal))
            }
            ClusterError::Refused(refusal) => {
                let secretive = self.is_secretive(subject);
                refused(remedy::from_refusal(&refusal, &RefusedRequest { target, secretive, overridden }))
            }
            source @ (ClusterError::Transient { .. } | ClusterError::Conflicts(_) | ClusterError::Moved) => {
                if let ClusterError::Transient { .. } = &source
                    && let Some(silent) = self.cluster.silence_of(kind).await
                {
                    return Obstacle::silent(&silent);
                }
                Obstacle::Fails(EngineError::Preview { object: target.to_string(), source })
            }
        }
    }
}

/// Whether the document of `live` is ours, or was. Editing the document makes the editor its owner,
/// including our part, so the record counts too.
fn has_document(subject: &ItemOnCluster<'_>, document: &Document, live: &Value) -> bool {
    let applied = subject.remembered.and_then(|item| item.applied.as_ref());
    if applied.is_some_and(|applied| applied.paths_hash.is_some()) {
        // Its fields are too many, or too secret, to be recorded by name.
        return true;
    }
    let remembered = applied.into_iter().flat_map(|applied| &applied.paths).map(|path| FieldPath::parse(path));
    let known: Paths = fields::applied_by(live, &subject.manager).into_iter().chain(remembered).collect();
    known.touches(&FieldPath::of_pointer(document.field))
}

/// Other programs that manage the object as well, if it changes: recognized by their label or their
/// field manager.
fn rivals<'a>(task: Task<'a>, preview: &Preview) -> impl Iterator<Item = &'a Rival> {
    let live = match preview {
        Preview::Known { live: Some(live), result, .. } => {
            (diff::without_noise(live) != diff::without_noise(result)).then_some(live)
        }
        Preview::Removal { live, .. } => live.as_ref(),
        Preview::Known { live: None, .. }
        | Preview::Approximate { .. }
        | Preview::SetAside { .. }
        | Preview::Deferred { .. }
        | Preview::Refused { .. } => None,
    };
    task.rivals.iter().filter(move |rival| {
        let (label, value) = rival.label;
        live.is_some_and(|live| {
            live["metadata"]["labels"][label] == value || fields::sharers(live, "").contains(&rival.manager)
        })
    })
}

/// The overrides of the object.
fn overrides(task: Task<'_>, subject: &ItemOnCluster<'_>, live: Option<&Value>) -> Result<Overrides, Remedy> {
    let target = &subject.target;
    Overrides::of(live, &task.choices.of(target)).map_err(|problem| format!("{target}: {problem}.").into())
}

fn set_aside(task: Task<'_>, draft: &Draft, why: String, live: Option<Arc<Value>>) -> Preview {
    let needed_by = dependants(draft, task.drafts).into_iter().map(str::to_owned).collect();
    Preview::SetAside { live, why, needed_by }
}

/// The remedy if another configuration wants a different value of a field. Fields that we already
/// own do not count: the other configuration will get the conflict.
fn contested(
    task: Task<'_>,
    subject: &ItemOnCluster<'_>,
    desired: &Value,
    live: Option<&Value>,
    result: &Value,
) -> Option<String> {
    let mut claims = task.claims.iter().filter(|claim| claim.target.is_same_object(&subject.target)).peekable();
    claims.peek()?;
    let changes = live.map(diff::without_noise) != Some(diff::without_noise(result));
    if !changes {
        // Nothing changes here; the other configuration gets the conflict.
        return None;
    }
    let owned = fields::applied_by(result, &subject.manager);
    let mut held = live.map(|live| fields::applied_by(live, &subject.manager)).unwrap_or_default();
    // Applied fields are ours to restore, even if somebody changed them.
    let applied = subject.remembered.and_then(|item| item.applied.as_ref());
    held.extend(applied.into_iter().flat_map(|applied| &applied.paths).map(|path| FieldPath::parse(path)));
    let against = |claim: &Claim| claim.against(desired, &subject.draft.quantities, &owned, &held).cloned();
    claims.find_map(|claim| Some(remedy::contested(&claim.config, &against(claim)?, result)))
}

/// Whether the profile creates objects of this kind, rather than only changing existing ones.
fn may_create(task: Task<'_>, target: &TargetRef) -> bool {
    let creates = |declared: &Declared| !matches!(declared.access, Access::Ask | Access::Read | Access::Update);
    target::declared(task.kinds, target).is_none_or(creates)
}

/// Whether the profile deletes objects of this kind that it created.
fn may_delete(task: Task<'_>, target: &TargetRef) -> bool {
    target::declared(task.kinds, target).is_none_or(|declared| declared.access == Access::Write)
}

/// The item of the previous plan for the draft's object. A removal may have a new name, if its old
/// item has another object now.
fn remembered<'a>(task: Task<'a>, draft: &Draft) -> Option<&'a Item> {
    let (target, removes) = (target(draft), matches!(draft.body, Body::Remove(_)));
    let mut same = task.remembered.iter().filter(|item| item.target_ref.is_same_object(&target));
    same.find(|item| removes || item.name == draft.name)
}
