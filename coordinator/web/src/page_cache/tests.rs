//! Documents are rendered once, again after an event, and by one request at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::page::Page;
use parallax_service::test_world::{World, world};
use tokio::sync::Notify;

use super::*;

/// Requests a document and counts its renderings.
async fn request_document(
    world: &World,
    cache: &PageCache,
    render_count: &Arc<AtomicUsize>,
) -> Arc<CompressedDocument> {
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let render_count = Arc::clone(render_count);
    let render = move || async move {
        let number = render_count.fetch_add(1, Ordering::SeqCst);
        Ok(format!("drawing {number}").into_bytes())
    };
    cache.get_or_render(&page, DocumentKind::Other("test"), "text/plain", render).await.unwrap()
}

#[tokio::test]
async fn a_document_is_rendered_once_until_its_page_changes() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let render_count = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 0".as_bytes());
    }
    let mut changes = cache.watch(world.shop.id);
    world.happened(Event { page: Some(world.blog.id), ..edited(&world) }).await;
    assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 0".as_bytes());
    assert!(!changes.has_changed().unwrap());
    world.happened(edited(&world)).await;
    assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 1".as_bytes());
    assert!(changes.has_changed().unwrap());
    changes.borrow_and_update();
    assert!(cache.bytes() > 0);
}

#[tokio::test]
async fn badge_data_is_cached_until_its_page_changes() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let first = cache.badge_data(&page).await.unwrap();
    assert!(Arc::ptr_eq(&first, &cache.badge_data(&page).await.unwrap()));
    assert_eq!((cache.0.documents.bytes(), cache.bytes()), (0, first.memory_use()));
    world.happened(edited(&world)).await;
    assert!(!Arc::ptr_eq(&first, &cache.badge_data(&page).await.unwrap()));
    assert_eq!(cache.bytes(), first.memory_use(), "the old ones are released");
}

#[tokio::test]
async fn documents_with_a_preview_image_do_not_refresh_the_badge_data() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let first = cache.badge_data(&page).await.unwrap();
    let start = world.service.now();
    world.clock.set(start + 30 * SECOND);
    cache.get(&page, DocumentKind::Month(2026, 11)).await.unwrap();
    let key = DocumentKey { page: page.page().id, address: page.address(), kind: DocumentKind::BadgeData };
    let entry = cache.0.badge_data.get(&key, start).unwrap();
    assert!(entry.try_lock_for_render().is_some(), "nothing is being renewed");
    assert_eq!(entry.value().unwrap().rendered_at, start);
    // Badges are: requests get the stale data while new data is rendered.
    assert!(Arc::ptr_eq(&first, &cache.badge_data(&page).await.unwrap()));
    drop(entry.lock_for_render().await);
    assert_eq!(entry.value().unwrap().rendered_at, start + 30 * SECOND);
}

#[tokio::test]
async fn a_stale_document_is_served_while_a_new_one_is_rendered_and_an_expired_one_is_not() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let render_count = Arc::new(AtomicUsize::new(0));
    request_document(&world, &cache, &render_count).await;
    let start = world.service.now();
    world.clock.set(start + 61 * SECOND);
    assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 0".as_bytes());
    while render_count.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    world.clock.set(start + 3600 * SECOND);
    assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn get_cached_returns_a_stale_document_and_refreshes_it_in_the_background() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let kind = DocumentKind::Page(None);
    assert!(cache.get_cached(&page, &kind).is_none());
    let first = cache.get(&page, kind.clone()).await.unwrap();
    let start = world.service.now();
    world.clock.set(start + 11 * SECOND);
    let later = async {
        loop {
            let cached = cache.get_cached(&page, &kind).unwrap();
            if !Arc::ptr_eq(&cached, &first) {
                break cached;
            }
            tokio::task::yield_now().await;
        }
    };
    let later = tokio::time::timeout(Duration::from_secs(60), later).await.unwrap();
    assert!(Arc::ptr_eq(&later, &cache.get_cached(&page, &kind).unwrap()));
    world.clock.set(start + 80 * SECOND);
    assert!(cache.get_cached(&page, &kind).is_none(), "it is too old");
}

#[tokio::test]
async fn concurrent_requests_for_a_missing_document_render_it_once() {
    let world = Arc::new(world().await);
    let cache = PageCache::new(world.service.clone());
    let render_count = Arc::new(AtomicUsize::new(0));
    let requests = (0..50).map(|_| request_document(&world, &cache, &render_count));
    let documents = futures_util::future::join_all(requests).await;
    assert!(documents.iter().all(|document| document.decompressed() == "drawing 0".as_bytes()));
    assert_eq!(render_count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn missing_objects_are_not_cached() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    for number in 0..20 {
        let missing = cache.get(&page, DocumentKind::Monitor(MonitorId::from_u128(number), None)).await;
        assert_eq!(missing.unwrap_err(), ServiceError::NotFound);
    }
    assert!(cache.0.documents.pages().is_empty());
}

/// Starts a request for a document; the first channel signals that rendering began, the second ends it.
fn spawn_request(
    cache: &PageCache,
    page: &AuthorizedPage,
    render_count: &Arc<AtomicUsize>,
    signals: &Arc<[Notify; 2]>,
) -> tokio::task::JoinHandle<Arc<CompressedDocument>> {
    let (cache, page, render_count, signals) =
        (cache.clone(), page.clone(), Arc::clone(render_count), Arc::clone(signals));
    tokio::spawn(async move {
        let render = move || async move {
            let number = render_count.fetch_add(1, Ordering::SeqCst);
            signals[0].notify_one();
            signals[1].notified().await;
            Ok(format!("drawing {number}").into_bytes())
        };
        cache.get_or_render(&page, DocumentKind::Other("test"), "text/plain", render).await.unwrap()
    })
}

fn edited(world: &World) -> Event {
    let kind = EventKind::PageEdited(EditKind::Changed);
    Event { at: world.service.now(), page: Some(world.shop.id), monitor: None, kind }
}

#[tokio::test]
async fn requests_that_arrive_during_a_rendering_share_it() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let (render_count, signals) = (Arc::new(AtomicUsize::new(0)), Arc::<[Notify; 2]>::default());
    request_document(&world, &cache, &render_count).await;
    world.happened(edited(&world)).await;
    let mut requests = vec![spawn_request(&cache, &page, &render_count, &signals)];
    signals[0].notified().await;
    for _ in 0..20 {
        world.clock.set(world.service.now() + 10);
        requests.push(spawn_request(&cache, &page, &render_count, &signals));
        tokio::task::yield_now().await;
    }
    // Events during rendering concern later requests.
    world.happened(edited(&world)).await;
    cache.catch_up().await.unwrap();
    signals[1].notify_one();
    for request in requests {
        assert_eq!(request.await.unwrap().decompressed(), "drawing 1".as_bytes());
    }
    assert_eq!(render_count.load(Ordering::SeqCst), 2);
    assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn a_rendering_of_a_page_from_before_an_edit_is_not_cached() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let old = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
    let render = |text: &'static str| move || async move { Ok(text.as_bytes().to_vec()) };
    let kind = || DocumentKind::Other("test");
    let document = cache.get_or_render(&old, kind(), "text/plain", render("old")).await.unwrap();
    assert_eq!(document.decompressed(), "old".as_bytes());
    let new = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    assert!(cache.get_cached(&new, &kind()).is_none());
    let document = cache.get_or_render(&new, kind(), "text/plain", render("new")).await.unwrap();
    assert_eq!(document.decompressed(), "new".as_bytes());
    assert!(cache.get_cached(&new, &kind()).is_some());
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_a_document_fresh() {
    let world = world().await;
    let cache = PageCache::new(world.service.clone());
    let render_count = Arc::new(AtomicUsize::new(0));
    request_document(&world, &cache, &render_count).await;
    let start = world.service.now();
    world.clock.set(start + -3600 * SECOND);
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    assert!(cache.get_cached(&page, &DocumentKind::Other("test")).is_none());
    for _ in 0..2 {
        assert_eq!(request_document(&world, &cache, &render_count).await.decompressed(), "drawing 1".as_bytes());
    }
}

#[test]
fn the_cache_counts_the_bytes_of_its_entries() {
    let cache = BoundedCache::new(DOCUMENT_BYTES);
    let now = Timestamp::from_millis(0);
    let key =
        |id| DocumentKey { page: PageId::from_u128(id), address: PageAddress::BasePath, kind: DocumentKind::Status };
    let put = |id, text: &str, now| {
        let document = Arc::new(CompressedDocument::compress("text/plain", text.as_bytes()));
        let bytes = document.bytes();
        let _entry = cache.entry(&key(id), now);
        cache.insert(&key(id), CachedValue { value: document, rendered_at: now, up_to_event: 0 });
        bytes
    };
    let _ = put(1, "one", now);
    let (one, two) = (put(1, "one that is longer", now), put(2, "two", now + 600 * SECOND));
    assert_eq!(cache.bytes(), one + two);
    cache.evict_unused(now + 601 * SECOND);
    assert_eq!((cache.bytes(), cache.pages().len()), (two, 1));
    cache.remove(&key(2));
    assert_eq!((cache.bytes(), cache.pages().len()), (0, 0));
}
