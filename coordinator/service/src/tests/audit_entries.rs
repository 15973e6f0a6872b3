//! Entries of the audit log for what ends by itself, for switches between accounts, exports, and changes by the operator.

use parallax_core::alert_settings::AlertSettingsEdit;
use parallax_core::audit::{AuditAction, AuditActor, AuditField, AuditSubject};
use parallax_core::id::AccountId;
use parallax_core::person::AccountMember;
use parallax_core::role::Role;

use super::audit::{log, newest, person};
use super::*;
use crate::audit::AuditFilter;
use crate::people::NewSession;

async fn actions(world: &World, owner: &Caller) -> Vec<(AuditAction, AuditSubject)> {
    newest(world, owner).await.items.iter().map(|it| (it.action, it.subject)).collect()
}

#[tokio::test]
async fn an_invitation_that_expired_was_revoked_by_nobody() {
    let (sent, revoked) =
        ((AuditAction::Created, AuditSubject::Invitation), (AuditAction::Deleted, AuditSubject::Invitation));
    let world = world().await;
    let people = &world.service.people;
    // Each in a session that just began: the owner confirms.
    for (days, expected) in [(0, vec![sent]), (1, vec![revoked, sent]), (8, vec![sent])] {
        world.clock.set(world.service.now() + days * DAY);
        let session = world.signed_in(Role::Owner).await;
        let owner = people.authenticate(&session.token).unwrap().unwrap();
        people.invite(&owner, ("ann@example.com", Role::Viewer), None).await.unwrap();
        assert_eq!(actions(&world, &owner.caller()).await, expected, "{days}");
    }
}

#[tokio::test]
async fn a_switch_to_another_account_is_in_its_log_once_a_day() {
    let world = world().await;
    let people = &world.service.people;
    let there = Caller { account: world.foreign.account, ..person(&world, Role::Owner).await };
    let mut session = world.signed_in(Role::Editor).await;
    let member = AccountMember::new((there.account, session.session.person), Role::Viewer, world.service.now());
    let mut batch = Batch::new();
    batch.write(member);
    world.service.context.store().commit(batch).await.unwrap();
    let choose = async |session: &NewSession, account: AccountId| {
        let current = people.authenticate(&session.token).unwrap().unwrap();
        people.choose_account(&current, account).await.unwrap().session().unwrap()
    };
    let switches = async || {
        let filter = AuditFilter { action: Some(AuditAction::SignedIn), ..AuditFilter::default() };
        log(&world, &there, &filter).await
    };
    for _ in 0..5 {
        session = choose(&session, there.account).await;
        session = choose(&session, world.owner.id).await;
    }
    let logged = switches().await;
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(matches!(&logged[0].actor, AuditActor::Person { id, .. } if *id == session.session.person), "{logged:?}");
    assert_eq!(logged[0].items[0].subject, AuditSubject::SignIn);
    world.clock.set(world.service.now() + DAY);
    choose(&session, there.account).await;
    assert_eq!(switches().await.len(), 2);
}

#[tokio::test]
async fn an_export_is_logged_if_it_has_whole_addresses() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let exports = async || {
        let filter = AuditFilter { action: Some(AuditAction::Exported), ..AuditFilter::default() };
        log(&world, &owner, &filter).await.len()
    };
    let page = world.shop.id;
    let reader = world.caller(KeyAccess::Read).await;
    world.service.subscribers.export(&reader, page, None).await.unwrap();
    assert_eq!(exports().await, 0, "a read key gets masked addresses");
    let writer = world.caller(KeyAccess::Write).await;
    for (number, caller) in [(1, &writer), (2, &owner)] {
        world.service.subscribers.export(caller, page, None).await.unwrap();
        assert_eq!(exports().await, number);
        let entry = newest(&world, &owner).await;
        assert_eq!((entry.actor, entry.items[0].name.as_str()), (caller.audit_actor(), world.shop.name.as_str()));
    }
    let editor = person(&world, Role::Editor).await;
    assert!(world.service.subscribers.export(&editor, page, None).await.is_err());
    assert_eq!(exports().await, 2);
}

#[tokio::test]
async fn changes_by_the_operator_are_in_the_log_of_their_account() {
    let world = world().await;
    let owner = person(&world, Role::Owner).await;
    let field = |name: &str, old: &str, new: &str| {
        vec![AuditField { name: name.to_owned(), values: Some((old.to_owned(), new.to_owned())) }]
    };
    let edit = AlertSettingsEdit { automatic_incidents: PatchField::Value(false), ..AlertSettingsEdit::default() };
    world.service.alert_settings.edit_as_operator(world.shop.id, &edit).await.unwrap();
    let entry = newest(&world, &owner).await;
    assert_eq!((&entry.actor, entry.items[0].subject), (&AuditActor::Operator, AuditSubject::AlertSettings));
    assert_eq!(entry.items[0].fields, field("Automatic incidents", "yes", "no"));
    world.put_page(Page { custom_domain: Some("status.shop.example".to_owned()), ..world.shop.clone() }).await;
    world.service.domains.release("status.shop.example").await.unwrap();
    let entry = newest(&world, &owner).await;
    assert_eq!((&entry.actor, entry.items[0].subject), (&AuditActor::Operator, AuditSubject::Page));
    assert_eq!(entry.items[0].fields, field("Own domain", "status.shop.example", ""));
}

#[tokio::test]
async fn entries_are_found_by_the_id_of_their_actor() {
    let world = world().await;
    let (owner, editor) = (person(&world, Role::Owner).await, person(&world, Role::Editor).await);
    world.make(&editor, "Website").await.unwrap();
    world.make(&owner, "Shop").await.unwrap();
    let by_key = world.caller(KeyAccess::Write).await;
    world.make(&by_key, "Search").await.unwrap();
    for (caller, name) in [(&editor, "Website"), (&by_key, "Search")] {
        let text = match caller.audit_actor() {
            AuditActor::Person { id, .. } => id.to_string(),
            AuditActor::Key { id, .. } => id.to_string(),
            other => panic!("{other:?}"),
        };
        let of_monitors = Some(AuditSubject::Monitor);
        for text in [text.clone(), text.to_uppercase()] {
            let filter = AuditFilter { subject: of_monitors, text, ..AuditFilter::default() };
            let found = log(&world, &owner, &filter).await;
            let names: Vec<_> = found.iter().map(|it| it.items[0].name.as_str()).collect();
            assert_eq!(names, [name], "{filter:?}");
        }
    }
}

#[tokio::test]
async fn sessions_that_a_person_ends_are_logged_and_a_sign_out_is_not() {
    let world = world().await;
    let people = &world.service.people;
    let session = world.signed_in(Role::Owner).await;
    let owner = people.authenticate(&session.token).unwrap().unwrap();
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(people.test_session(world.owner.id, owner.person.id).await);
    }
    let logged = async || newest(&world, &owner.caller()).await.items.remove(0);
    people.sign_out(&others[0].token).await.unwrap();
    assert_eq!(logged().await.subject, AuditSubject::Member, "of their own arrival");
    for (ended, expected) in [(Some(&others[1]), "1"), (None, "2")] {
        match ended {
            Some(other) => people.end_session(&owner, &other.session.id.short()).await.unwrap(),
            None => assert_eq!(people.end_other_sessions(&owner).await.unwrap(), 2),
        }
        let item = logged().await;
        assert_eq!((item.action, item.subject), (AuditAction::Changed, AuditSubject::SignIn));
        let values = Some((String::new(), expected.to_owned()));
        assert_eq!(item.fields, [AuditField { name: "Sessions ended".to_owned(), values }]);
    }
}
