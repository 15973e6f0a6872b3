//! Deletion of large pages: inaccessible at once, and cleared to the last record whatever happens in between.

use parallax_core::id::PageId;
use parallax_core::page::NO_ACCOUNT;
use parallax_store::samples;
use parallax_store::{Op, disk};

use super::*;
use crate::page_access::authorize::PageAddress;

/// More than one slice deletes.
const MONITORS: u128 = 4096 + 1500;

/// A page with very many monitors, stored directly, and some of everything else.
async fn create_large_page(world: &World) -> PageId {
    let page = samples::page(77, 0, "crowded");
    let page = Page { account: world.owner.id, ..page };
    let mut batch = Batch::new();
    batch.write(page.clone());
    for n in 0..MONITORS {
        batch.write(samples::monitor(n, 77, u32::try_from(n).unwrap()));
    }
    for n in 0..600 {
        batch.write(samples::incident(n, 77, 1, n % 2 == 0)).write(samples::deploy(n, 77, 1));
    }
    batch.write(samples::series(1, 77, None));
    batch.write(Op::PutHour(samples::rollup(5, 1, vec![1; 10])));
    world.service.context.store().commit(batch).await.unwrap();
    page.id
}

async fn assert_deleted(service: &Services, caller: &Caller, page: PageId) {
    assert_eq!(service.pages.get(caller, page).unwrap_err(), ServiceError::NotFound);
    assert_eq!(service.monitors.list(caller, page).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(service.monitors.get(caller, page, samples::monitor_id(5)).await.unwrap_err(), ServiceError::NotFound);
    assert_eq!(
        service.page_access.authorize_anonymous("crowded", PageAddress::BasePath).unwrap_err(),
        ServiceError::NotFound
    );
    assert_eq!(
        service.page_access.authorize_anonymous(&format!("!{page}"), PageAddress::BasePath).unwrap_err(),
        ServiceError::NotFound
    );
    assert!(service.pages.list(caller).await.unwrap().iter().all(|other| other.id != page));
}

#[tokio::test]
async fn a_large_page_is_hidden_at_once_and_cleared_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world_over(Store::on_disk(folder.path(), samples::small_options()).unwrap()).await;
    let page = create_large_page(&world).await;
    let before = world.service.context.store().reader().monitors().unwrap().len();
    let caller = world.caller(KeyAccess::Write).await;
    world.service.pages.delete(&caller, page, &each_time()).await.unwrap();
    assert_deleted(&world.service, &caller, page).await;
    assert!(world.service.pages.clear_slice().await.unwrap(), "a first slice");
    let remaining = world.service.context.store().reader().monitors_of(page).unwrap().len();
    assert!(0 < remaining && remaining < before, "{remaining} of {before}");

    // The process ends here; only the store remains.
    world.service.context.store().close().await;
    drop(std::mem::replace(&mut world, super::world().await));
    let store = reopened(|| Store::on_disk(folder.path(), samples::small_options())).await;
    let repeated = service_over(store.clone()).await;
    assert_deleted(&repeated, &caller, page).await;
    let free = Page { account: caller.account, ..samples::page(78, 0, "crowded") };
    let result = store.commit(Batch::new().write(free).clone()).await;
    assert!(result.is_ok(), "its slug is free before it is cleared: {result:?}");
    repeated.pages.clear_deleted().await.unwrap();
    let reader = store.reader();
    assert_eq!((reader.monitors().unwrap().len(), reader.page(page).unwrap()), (0, None));
    assert_eq!(reader.incidents_of(page, false, None, 9).unwrap(), []);
    assert_eq!(reader.deploys_of(page, 9).unwrap(), []);
    assert_eq!(reader.running_series().unwrap(), []);
    assert_eq!(reader.pages_of(NO_ACCOUNT).unwrap(), []);
    // A consumer of the journal sees each monitor's deletion once, and the page's.
    let is_deletion = |kind: &EventKind| matches!(kind, EventKind::MonitorEdited(EditKind::Deleted));
    let events = reader.events_after(0, usize::MAX).unwrap();
    let monitors: Vec<_> =
        events.iter().filter(|it| is_deletion(&it.event.kind)).filter_map(|it| it.event.monitor).collect();
    assert_eq!(monitors.len(), usize::try_from(MONITORS).unwrap());
    assert!(events.iter().any(|it| it.event.kind == EventKind::PageEdited(EditKind::Deleted)));
    store.close().await;
    drop((repeated, store));
    // The store deletes the history in slices of its own, and the rest is intact.
    let (reader, mut writer) = reopened(|| disk::open(folder.path(), samples::small_options())).await;
    while writer.clean_up().unwrap() {}
    assert!(reader.verify().is_ok());
}

/// Reopens the store: the tasks around a service release it once they have run.
async fn reopened<T>(open: impl Fn() -> parallax_store::Result<T>) -> T {
    loop {
        match open() {
            Ok(store) => return store,
            Err(error) => assert_eq!(error, parallax_store::StoreError::Locked),
        }
        tokio::task::yield_now().await;
    }
}

/// A service over an existing store, with no driver.
async fn service_over(store: Store) -> Arc<Services> {
    let settings = ServiceSettings {
        base_url: "https://status.example".to_owned(),
        root_domain: None,
        limits: PlanLimits::default(),
        allow_private: false,
        sends_mail: true,
        access_token_key: crate::page_access::AccessTokenKey::new(&[7; 32]),
    };
    let clock = Clock::manual(START + DAY);
    let pings = store_pings(store.clone());
    Services::new(ServiceParts { pings, ..ServiceParts::disconnected(store, clock, settings) })
}

#[tokio::test]
async fn deleting_a_page_of_ordinary_size_clears_it() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.make(&caller, "one").await.unwrap();
    world.service.pages.delete(&caller, world.shop.id, &each_time()).await.unwrap();
    assert_eq!(world.service.context.store().reader().monitors().unwrap(), []);
    assert!(!world.service.pages.clear_slice().await.unwrap());
}

#[tokio::test]
async fn a_deleted_key_leaves_the_key_index() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let cached_keys = || world.service.keys.key_index.lock().unwrap().as_ref().unwrap().len();
    let before = cached_keys();
    for _ in 0..3 {
        world.revoked_key().await;
    }
    assert_eq!(cached_keys(), before);
    world.key(KeyAccess::Read, Some(&world.blog)).await;
    assert_eq!(cached_keys(), before + 1);
    world.service.pages.delete(&caller, world.blog.id, &each_time()).await.unwrap();
    assert_eq!(cached_keys(), before);
    assert_eq!(world.service.keys.last_used.tracked(), 1, "the caller's own");
}
