//! The audit log: an entry with each change, in its own batch, with its author and without secrets.

use parallax_core::acknowledgement::ActorName;
use parallax_core::audit::{AuditAction, AuditActor, AuditEntry, AuditField, AuditSubject};
use parallax_core::destination::edit::DestinationEdit;
use parallax_core::monitor::bulk_edit::MonitorBulkEdit;
use parallax_core::role::Role;
use parallax_core::subscriber::request::SubscriptionRequest;

use super::*;
use crate::audit::{AUDIT_PART, AuditFilter};
use crate::people::{BrowserInfo, CurrentSession, NewPerson, PasswordSignIn};
use crate::undo_offer::UndoOffer;

pub(super) async fn person(world: &World, role: Role) -> Caller {
    let session = world.signed_in(role).await;
    let caller = world.service.people.authenticate(&session.token).unwrap().unwrap().caller();
    caller.at(Some("192.0.2.7".parse().unwrap()))
}

fn text(value: &str) -> PatchField<String> {
    PatchField::Value(value.to_owned())
}

pub(super) async fn log(world: &World, owner: &Caller, filter: &AuditFilter) -> Vec<AuditEntry> {
    let part = world.service.audit.list(owner, filter, None).await.unwrap();
    part.entries.into_iter().map(|it| it.entry).collect()
}

impl World {
    /// Author of the newest entry.
    pub(super) fn last_actor(&self) -> AuditActor {
        let entries = self.service.context.store().reader().audit_entries(self.owner.id, None, 1).unwrap();
        entries.into_iter().next().unwrap().entry.actor
    }
}

pub(super) async fn newest(world: &World, owner: &Caller) -> AuditEntry {
    log(world, owner, &AuditFilter::default()).await.swap_remove(0)
}

#[tokio::test]
async fn a_change_is_logged_with_its_author_and_its_values() {
    let world = world().await;
    let (owner, editor) = (person(&world, Role::Owner).await, person(&world, Role::Editor).await);
    let id = world.make(&editor, "Website").await.unwrap().monitor.id;
    let made = newest(&world, &owner).await;
    assert_eq!((made.actor.clone(), made.network.as_deref()), (editor.audit_actor(), Some("192.0.2.0/24")));
    assert_eq!((made.items[0].action, made.items[0].subject), (AuditAction::Created, AuditSubject::Monitor));
    assert_eq!((made.items[0].id.clone(), made.items[0].page), (id.to_string(), Some(world.shop.id)));
    let mut edit = MonitorEdit { name: text("Shop"), ..MonitorEdit::default() };
    edit.check.url = text("https://example.com/?token=secret");
    world.service.monitors.edit(&editor, world.shop.id, id, &edit, &each_time()).await.unwrap();
    let changed = newest(&world, &owner).await;
    let field = |name: &str, values: Option<(&str, &str)>| AuditField {
        name: name.to_owned(),
        values: values.map(|(old, new)| (old.to_owned(), new.to_owned())),
    };
    assert_eq!(changed.items[0].fields[0], field("Name", Some(("Website", "Shop"))));
    assert!(changed.items[0].fields.contains(&field("URL", None)), "{changed:?}");
    assert!(!format!("{changed:?}").contains("secret"));
    // An edit that changes nothing, and one that is refused, leave no entry.
    let count = log(&world, &owner, &AuditFilter::default()).await.len();
    world.service.monitors.edit(&editor, world.shop.id, id, &edit, &each_time()).await.unwrap();
    let wrong = MonitorEdit { name: text(""), ..MonitorEdit::default() };
    assert!(world.service.monitors.edit(&editor, world.shop.id, id, &wrong, &each_time()).await.is_err());
    assert_eq!(log(&world, &owner, &AuditFilter::default()).await.len(), count);
}

#[tokio::test]
async fn the_change_and_its_entry_are_one_commit_and_a_repetition_has_none() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let key = || Some(IdempotencyKey::new(owner.limit_id(), "once", &[b"a"]));
    let answer = |_: &crate::monitors::MonitorWithState| b"done".to_vec();
    let revision = world.revision().await;
    for _ in 0..2 {
        let once = IdempotentRequest::new(key(), &answer);
        world.service.monitors.create(&owner, world.shop.id, &http("Website"), &once).await.unwrap();
    }
    assert_eq!(world.revision().await, revision + 2);
    assert_eq!(log(&world, &owner, &AuditFilter::default()).await[0].items.len(), 1);
    let of_monitors = AuditFilter { subject: Some(AuditSubject::Monitor), ..AuditFilter::default() };
    assert_eq!(log(&world, &owner, &of_monitors).await.len(), 1);
}

#[tokio::test]
async fn a_change_of_many_is_one_entry_and_so_is_its_undo() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let mut ids = Vec::new();
    for name in ["Website", "Payments", "Search"] {
        ids.push(world.make(&owner, name).await.unwrap().monitor.id.to_string());
    }
    let set = MonitorEdit { paused: PatchField::Value(true), ..MonitorEdit::default() };
    let edit = MonitorBulkEdit {
        monitor_ids: PatchField::Value(ids),
        set: PatchField::Value(set),
        ..MonitorBulkEdit::default()
    };
    let offer = UndoOffer::default();
    let once = each_time().undoable(&offer);
    world.service.monitors.change_many(&owner, world.shop.id, &edit, &once).await.unwrap();
    let paused = |entry: &AuditEntry| {
        let values = |it: &parallax_core::audit::AuditItem| it.fields[0].values.clone().unwrap();
        entry.items.iter().map(values).collect::<Vec<_>>()
    };
    let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
    assert_eq!(paused(&newest(&world, &owner).await), vec![pair("no", "yes"); 3]);
    world.service.undo.undo(&owner, offer.token().unwrap(), &each_time()).await.unwrap();
    assert_eq!(paused(&newest(&world, &owner).await), vec![pair("yes", "no"); 3]);
}

#[tokio::test]
async fn secrets_of_destinations_and_keys_are_never_in_the_log() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let slack = |path: &str| DestinationEdit {
        kind: text("slack"),
        name: text("On-call"),
        url: text(&format!("https://hooks.slack.com/services/{path}")),
        ..DestinationEdit::default()
    };
    let page = world.shop.id;
    let made = world.service.destinations.create(&owner, page, &slack("T0/B0/first"), &each_time()).await.unwrap();
    let RequestOutcome::Fresh(destination) = made else { panic!("nothing was sent twice") };
    let changed = DestinationEdit { kind: PatchField::Absent, ..slack("T0/B0/second") };
    world.service.destinations.edit(&owner, page, destination.id, &changed, &each_time()).await.unwrap();
    let new = NewKey { account: owner.account, name: "deploys".to_owned(), access: KeyAccess::Write, page: None };
    let (key, secret) = world.service.keys.create_as_member(&owner, new, None).await.unwrap().unwrap();
    let by_key = world.service.keys.authenticate(secret.reveal()).unwrap();
    world.make(&by_key, "Website").await.unwrap();
    world.service.keys.revoke_as_member(&owner, key.id, &each_time()).await.unwrap();
    let entries = log(&world, &owner, &AuditFilter::default()).await;
    let whole = format!("{entries:?}");
    for secret in ["first", "second", secret.reveal(), &hex::encode(key.hash)] {
        assert!(!whole.contains(secret), "{whole}");
    }
    let actions: Vec<_> = entries.iter().take(5).map(|it| (it.items[0].action, it.items[0].subject)).collect();
    assert_eq!(
        actions,
        [
            (AuditAction::Deleted, AuditSubject::Key),
            (AuditAction::Created, AuditSubject::Monitor),
            (AuditAction::Created, AuditSubject::Key),
            (AuditAction::Changed, AuditSubject::Destination),
            (AuditAction::Created, AuditSubject::Destination),
        ]
    );
    assert!(matches!(&entries[1].actor, AuditActor::Key { name, .. } if name.to_string() == "deploys"));
}

#[tokio::test]
async fn sign_ins_and_members_are_logged() {
    let world = world().await;
    let (owner, people) = (person(&world, Role::Owner).await, &world.service.people);
    let new = NewPerson {
        email: "ann@example.com".to_owned(),
        name: "Ann".to_owned(),
        role: Role::Viewer,
        password: Some("correct horse".to_owned()),
    };
    let ann = people.add_as_operator(world.owner.id, &new).await.unwrap();
    let added = newest(&world, &owner).await;
    assert_eq!((added.actor, added.items[0].action), (AuditActor::Operator, AuditAction::Created));
    assert_eq!((added.items[0].subject, added.items[0].name.as_str()), (AuditSubject::Member, "Ann"));
    let browser = BrowserInfo::new(Some("192.0.2.7".parse().unwrap()), "", None);
    let ask =
        |password: &str| PasswordSignIn { email: new.email.clone(), password: password.to_owned(), is_kept: false };
    assert!(people.sign_in(&ask("wrong horse"), &browser).await.is_err());
    people.sign_in(&ask("correct horse"), &browser).await.unwrap();
    let of_ann = AuditFilter { subject: Some(AuditSubject::SignIn), text: "ann".to_owned(), ..AuditFilter::default() };
    // A failed one is logged in the background.
    while log(&world, &owner, &of_ann).await.len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut tries: Vec<_> = log(&world, &owner, &of_ann).await;
    tries.sort_by_key(|entry| entry.items[0].action);
    let person = AuditActor::Person { id: ann.id, name: ActorName::new("Ann") };
    let seen = tries.iter().map(|it| (it.items[0].action, it.actor.clone(), it.network.as_deref()));
    let network = Some("192.0.2.0/24");
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [(AuditAction::SignedIn, person, network), (AuditAction::SignInFailed, AuditActor::Visitor, network)]
    );
    assert!(tries.iter().all(|it| !format!("{it:?}").contains("horse")));
    assert_eq!(added.items[0].fields[0].values, Some((String::new(), "viewer".to_owned())), "what was granted");
    let session = world.signed_in(Role::Owner).await;
    let current = people.authenticate(&session.token).unwrap().unwrap();
    let current = CurrentSession { address: "203.0.113.9".parse().ok(), ..current };
    people.change_role(&current, ann.id, Role::Editor).await.unwrap();
    let changed = newest(&world, &owner).await;
    assert_eq!(changed.network.as_deref(), Some("203.0.113.0/24"), "of the request, not of the sign-in");
    let values = changed.items[0].fields[0].values.clone();
    assert_eq!(values, Some(("viewer".to_owned(), "editor".to_owned())), "{changed:?}");
}

#[tokio::test]
async fn an_owner_stops_hearing_of_failed_sign_ins_before_they_fill_the_log() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let account = world.service.context.store().reader().members_of(owner.account).unwrap();
    let ann = world.service.context.store().reader().person(account[0].value.person).unwrap().unwrap().value;
    for _ in 0..30 {
        world.service.people.log_failed_try(&ann, &BrowserInfo::default()).unwrap();
    }
    let failed = AuditFilter { action: Some(AuditAction::SignInFailed), ..AuditFilter::default() };
    while log(&world, &owner, &failed).await.len() < 20 {
        tokio::task::yield_now().await;
    }
    world.service.context.store().commit(Batch::new()).await.unwrap();
    assert_eq!(log(&world, &owner, &failed).await.len(), 20);
}

#[tokio::test]
async fn a_change_of_alerts_and_an_added_subscriber_are_logged() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let page = world.shop.id;
    let edit = |event: &str| DestinationEdit {
        events: PatchField::Value(vec![event.to_owned()]),
        ..DestinationEdit::default()
    };
    let mail =
        DestinationEdit { kind: text("email"), name: text("On-call"), to: text("a@example.com"), ..edit("went-down") };
    let made = world.service.destinations.create(&owner, page, &mail, &each_time()).await.unwrap();
    let RequestOutcome::Fresh(made) = made else { panic!("nothing was sent twice") };
    world.service.destinations.edit(&owner, page, made.id, &edit("recovered"), &each_time()).await.unwrap();
    let changed = newest(&world, &owner).await;
    assert_eq!(changed.items[0].fields[0].name, "Events chosen", "as many, but others: {changed:?}");
    let ask = SubscriptionRequest { email: Some("reader@example.com".to_owned()), ..SubscriptionRequest::default() };
    world.service.subscribers.add(&owner, page, &ask, &each_time()).await.unwrap();
    let added = newest(&world, &owner).await;
    assert_eq!((added.items[0].action, added.items[0].subject), (AuditAction::Created, AuditSubject::Subscriber));
    assert_eq!(added.items[0].name, "r***@example.com");
    let by_visitor =
        SubscriptionRequest { email: Some("visitor@example.com".to_owned()), ..SubscriptionRequest::default() };
    world.service.subscribers.subscribe(&world.shop, &by_visitor).await.unwrap();
    assert_eq!(newest(&world, &owner).await, added, "a visitor's own subscription is no change of the account");
}

#[tokio::test]
async fn only_owners_read_the_log_and_only_their_own() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    world.make(&owner, "Website").await.unwrap();
    for role in [Role::Editor, Role::Viewer] {
        let caller = person(&world, role).await;
        let refused = world.service.audit.list(&caller, &AuditFilter::default(), None).await;
        assert!(matches!(refused, Err(ServiceError::RoleForbids { .. })), "{role:?}");
    }
    let key = world.caller(KeyAccess::Write).await;
    assert!(world.service.audit.list(&key, &AuditFilter::default(), None).await.is_err());
    let stranger = Caller { account: world.foreign.account, ..owner.clone() };
    let foreign = log(&world, &stranger, &AuditFilter::default()).await;
    assert!(foreign.iter().all(|it| it.account == world.foreign.account), "{foreign:?}");
}

#[tokio::test]
async fn a_long_log_is_read_in_parts_and_filtered() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let mut batch = Batch::new();
    for number in 0..AUDIT_PART * 2 + 10 {
        let item = parallax_core::audit::AuditItem {
            action: if number % 10 == 0 { AuditAction::Deleted } else { AuditAction::Created },
            subject: AuditSubject::Deploy,
            id: format!("dep_{number}"),
            name: format!("v{number}"),
            page: None,
            fields: Vec::new(),
        };
        batch.write(world.service.context.audit_entry(&owner, vec![item]));
    }
    world.service.context.store().commit(batch).await.unwrap();
    let deploys = AuditFilter { subject: Some(AuditSubject::Deploy), ..AuditFilter::default() };
    let (mut names, mut before, mut parts) = (Vec::new(), None, 0);
    loop {
        let part = world.service.audit.list(&owner, &deploys, before).await.unwrap();
        assert!(part.entries.len() <= AUDIT_PART);
        names.extend(part.entries.into_iter().map(|it| it.entry.items[0].name.clone()));
        parts += 1;
        before = part.next;
        if before.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..AUDIT_PART * 2 + 10).rev().map(|number| format!("v{number}")).collect();
    assert_eq!((names, parts), (expected, 3));
    let deleted = AuditFilter { action: Some(AuditAction::Deleted), ..deploys.clone() };
    assert_eq!(log(&world, &owner, &deleted).await.len(), 11);
    let named = AuditFilter { text: "V77".to_owned(), ..AuditFilter::default() };
    assert_eq!(log(&world, &owner, &named).await.len(), 1);
    world.clock.set(START + 1000 + parallax_core::audit::AUDIT_RETENTION);
    assert_eq!(log(&world, &owner, &AuditFilter::default()).await, []);
}
