//! The service over a store in memory: fixed test accounts, and the rules that no interface may bypass.

mod account_limits;
mod audit;
mod audit_entries;
mod company_attacks;
mod company_members;
mod company_rules;
mod company_sign_in;
mod confirmation_limits;
mod dashboard;
mod domains;
mod downtime;
mod driver_sync;
mod incidents;
mod long_incidents;
mod mailbox_confirmation;
mod members;
mod notifications;
mod page_deletion;
mod page_events;
mod page_limits;
mod passkey_attacks;
mod passkeys;
mod people;
mod second_factor;
mod set_up;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::event::{EditKind, EventKind};
use parallax_core::id::MonitorId;
use parallax_core::key::KeyAccess;
use parallax_core::machine::MachineView;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::page::Page;
use parallax_core::page::edit::PageEdit;
use parallax_core::patch::PatchField;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::{DAY, MINUTE, Timestamp};
use parallax_engine::DriverQuery;
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Store};
use tokio::sync::mpsc;

use super::accounts::keys::NewKey;
use super::idempotency::{IdempotencyKey, IdempotentRequest, RequestOutcome};
use super::monitors::MonitorWithState;
use super::secret_text::ApiKeyText;
use super::*;
use crate::test_world::{START, World, each_time, http, store_pings, world, world_over};

fn component() -> MonitorEdit {
    let mut edit = MonitorEdit {
        kind: PatchField::Value("component".to_owned()),
        name: PatchField::Value("Vendor".to_owned()),
        ..MonitorEdit::default()
    };
    edit.check.vendor_url = PatchField::Value("https://status.example.org".to_owned());
    edit
}

/// Kinds of all events in the journal.
async fn events(world: &World) -> Vec<EventKind> {
    let events = world.service.context.store().read(|store| store.events_after(0, 1000)).await.unwrap();
    events.into_iter().map(|recorded| recorded.event.kind).collect()
}

#[tokio::test]
async fn the_first_account_is_pro_and_later_ones_are_free() {
    let world = world().await;
    let plans: BTreeMap<String, Plan> =
        world.service.accounts.list().await.unwrap().into_iter().map(|account| (account.email, account.plan)).collect();
    assert_eq!(plans["owner@example.com"], Plan::Pro);
    assert_eq!(plans["stranger@example.com"], Plan::Free);
    let duplicate = world.service.accounts.create("OWNER@example.com", None).await;
    assert_eq!(duplicate.unwrap_err().to_string(), "email is taken");
}

#[tokio::test]
async fn slugs_are_unique_and_reserved_ones_are_refused() {
    let world = world().await;
    for (slug, rule) in [("shop", "slug is taken"), ("www", "slug is reserved")] {
        let refusal = world.service.pages.create_as_operator(world.owner.id, "Page", slug).await;
        assert_eq!(refusal.unwrap_err().to_string(), rule);
    }
}

#[tokio::test]
async fn a_key_is_valid_until_revoked_and_its_last_use_is_recorded() {
    let world = world().await;
    let text = world.key(KeyAccess::Read, None).await;
    let caller = world.service.keys.authenticate(text.reveal()).unwrap();
    // The use is recorded in the background.
    let id = caller.key().unwrap().id;
    let last_used_at = async || {
        loop {
            let key = world.service.context.store().reader().key(id).unwrap().unwrap().value;
            if let Some(at) = key.last_used_at {
                break at;
            }
            tokio::task::yield_now().await;
        }
    };
    let at = tokio::time::timeout(std::time::Duration::from_secs(20), last_used_at()).await.unwrap();
    assert_eq!(at, world.service.now());
    world.service.keys.revoke(caller.key().unwrap().id).await.unwrap();
    assert_eq!(world.service.keys.authenticate(text.reveal()).unwrap_err(), ServiceError::Unauthenticated);
    let unknown = ApiKeyText::new([9; 32]);
    assert_eq!(world.service.keys.authenticate(unknown.reveal()).unwrap_err(), ServiceError::Unauthenticated);
    assert_eq!(world.service.keys.revoke(caller.key().unwrap().id).await, Err(ServiceError::NotFound));
}

#[tokio::test]
async fn a_key_for_a_page_of_another_account_is_refused() {
    let world = world().await;
    let new = NewKey {
        account: world.owner.id,
        name: "Robot".to_owned(),
        access: KeyAccess::Read,
        page: Some(world.foreign.id),
    };
    assert_eq!(world.service.keys.create(new).await.unwrap_err(), ServiceError::NotFound);
}

#[tokio::test]
async fn concurrently_created_monitors_get_distinct_slots_and_positions() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let names: Vec<String> = (0..20).map(|n| format!("M{n}")).collect();
    let created = futures_util::future::join_all(names.iter().map(|name| world.make(&caller, name))).await;
    let mut slots_and_positions: Vec<_> =
        created.into_iter().map(|created| created.unwrap().monitor).map(|it| (it.slot, it.position)).collect();
    slots_and_positions.sort_unstable();
    assert_eq!(slots_and_positions, (0..20).map(|n| (n, n)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_plan_refuses_monitors_but_components_do_not_count() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.service.accounts.set_plan(world.owner.id, Plan::Hobby).await.unwrap();
    let refusal = world.service.monitors.create(&caller, world.shop.id, &component(), &each_time()).await;
    assert!(matches!(refusal, Err(ServiceError::PlanLimit(PlanLimitError::ComponentsNeedPro { .. }))));
    world.service.accounts.set_plan(world.owner.id, Plan::Pro).await.unwrap();
    world.service.monitors.create(&caller, world.blog.id, &component(), &each_time()).await.unwrap();
    world.service.accounts.set_plan(world.owner.id, Plan::Free).await.unwrap();
    world.make(&caller, "A").await.unwrap();
    world.make(&caller, "B").await.unwrap();
    let refusal = world.make(&caller, "C").await.unwrap_err();
    assert_eq!(refusal, ServiceError::PlanLimit(PlanLimitError::MonitorsFull { plan: Plan::Free, limit: 2 }));
    // Errors in the body come before the plan's limit.
    assert!(matches!(world.make(&caller, "").await, Err(ServiceError::Invalid(_))));
}

#[tokio::test]
async fn every_change_is_an_event_but_an_unchanged_edit_is_not() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let monitor = world.make(&caller, "A").await.unwrap().monitor;
    let before = events(&world).await.len();
    for name in ["A", "B"] {
        let edit = http(name);
        world.service.monitors.edit(&caller, world.shop.id, monitor.id, &edit, &each_time()).await.unwrap();
    }
    let renamed = PageEdit { name: PatchField::Value("Store".to_owned()), ..PageEdit::default() };
    world.service.pages.edit(&caller, world.shop.id, &renamed, &each_time()).await.unwrap();
    world.service.pages.edit(&caller, world.shop.id, &renamed, &each_time()).await.unwrap();
    world.service.monitors.delete(&caller, world.shop.id, monitor.id, false, &each_time()).await.unwrap();
    let events = events(&world).await.split_off(before);
    assert_eq!(
        events,
        [
            EventKind::MonitorEdited(EditKind::Changed),
            EventKind::PageEdited(EditKind::Changed),
            EventKind::MonitorEdited(EditKind::Deleted),
        ]
    );
}

#[tokio::test]
async fn concurrent_edits_of_one_monitor_all_succeed() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let monitor = world.make(&caller, "A").await.unwrap().monitor;
    let edits: Vec<MonitorEdit> = (0..40).map(|at| http(&format!("A{at}"))).collect();
    let once = each_time();
    let created = edits.iter().map(|edit| world.service.monitors.edit(&caller, world.shop.id, monitor.id, edit, &once));
    for created in futures_util::future::join_all(created).await {
        assert!(created.is_ok(), "{created:?}");
    }
}

#[tokio::test]
async fn a_read_only_key_can_change_nothing() {
    let world = world().await;
    let (reader, page) = (world.caller(KeyAccess::Read).await, world.shop.id);
    let id = world.make(&world.caller(KeyAccess::Write).await, "A").await.unwrap().monitor.id;
    let service = &world.service;
    assert_eq!(world.make(&reader, "B").await.unwrap_err(), ServiceError::ReadOnly);
    let edited = service.monitors.edit(&reader, page, id, &http("B"), &each_time()).await;
    assert_eq!(edited.unwrap_err(), ServiceError::ReadOnly);
    assert_eq!(
        service.monitors.delete(&reader, page, id, false, &each_time()).await.unwrap_err(),
        ServiceError::ReadOnly
    );
    let edited = service.pages.edit(&reader, page, &PageEdit::default(), &each_time()).await;
    assert_eq!(edited.unwrap_err(), ServiceError::ReadOnly);
}

#[tokio::test]
async fn a_repeated_request_is_executed_once_within_a_day() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let idempotency_key =
        |value: &str, body: &str| Some(IdempotencyKey::new(caller.limit_id(), value, &[body.as_bytes()]));
    let answer = |view: &MonitorWithState| view.monitor.id.to_string().into_bytes();
    let send = async |value: &str, body: &str| {
        let once = IdempotentRequest::new(idempotency_key(value, body), &answer);
        world.service.monitors.create(&caller, world.shop.id, &http("A"), &once).await
    };
    let RequestOutcome::Fresh(first) = send("k", "a").await.unwrap() else { panic!() };
    let RequestOutcome::Replayed(repeated) = send("k", "a").await.unwrap() else { panic!() };
    assert_eq!(repeated, answer(&first));
    let other = send("k", "b").await.unwrap_err();
    assert_eq!(other.to_string(), "this Idempotency-Key was already used for another request");
    assert!(matches!(send("l", "a").await, Ok(RequestOutcome::Fresh(_))));
    let (one, two) = tokio::join!(send("m", "a"), send("m", "a"));
    let is_fresh: Vec<bool> =
        [one, two].into_iter().map(|it| matches!(it.unwrap(), RequestOutcome::Fresh(_))).collect();
    assert_eq!(is_fresh.iter().filter(|now| **now).count(), 1);
    world.clock.set(world.service.now() + DAY);
    assert!(matches!(send("k", "b").await, Ok(RequestOutcome::Fresh(_))));
}

#[tokio::test]
async fn without_a_reply_of_the_driver_monitors_are_unknown_and_the_answer_is_in_time() {
    let clock = Clock::manual(START);
    let (queries, mut driver_queries) = mpsc::channel::<DriverQuery>(1);
    let settings = ServiceSettings {
        base_url: "https://status.example".to_owned(),
        root_domain: Some("pages.example".to_owned()),
        limits: PlanLimits::default(),
        allow_private: false,
        sends_mail: true,
        access_token_key: page_access::AccessTokenKey::new(&[7; 32]),
    };
    let store = Store::in_memory().unwrap();
    let pings = store_pings(store.clone());
    let service =
        Services::new(ServiceParts { queries, pings, ..ServiceParts::disconnected(store, clock.clone(), settings) });
    let driver = tokio::spawn(async move {
        let query = driver_queries.recv().await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        drop(query);
    });
    let views = service.context.monitor_views(vec![MonitorId::from_u128(1)]).await;
    assert_eq!(views, [MachineView::default()]);
    driver.abort();
    clock.set(START + MINUTE);
    let account = service.accounts.create("a@example.com", None).await.unwrap();
    let page = service.pages.create_as_operator(account.id, "Shop", "shop").await.unwrap();
    assert_eq!(service.pages.url(&page), "https://shop.pages.example");
    let custom = Page { custom_domain: Some("status.shop.example".to_owned()), ..page };
    assert_eq!(service.pages.url(&custom), "https://status.shop.example");
}
