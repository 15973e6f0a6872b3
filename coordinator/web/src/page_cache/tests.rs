//! Documents are rendered once, again after an event, and by one request at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::page::Page;
use parallax_service::test_world::{World, world};
use tokio::sync::Notify;

use super::*;

/// Requests a document and counts its renderings.
async fn ask(world: &World, boards: &PageCache, drawn: &Arc<AtomicUsize>) -> Arc<CompressedDocument> {
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let drawn = Arc::clone(drawn);
    let draw = move || async move {
        let turn = drawn.fetch_add(1, Ordering::SeqCst);
        Ok(format!("drawing {turn}").into_bytes())
    };
    boards.get_or_render(&page, DocumentKind::Other("test"), "text/plain", draw).await.unwrap()
}

#[tokio::test]
async fn a_document_is_drawn_once_until_something_happens_to_its_page() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 0".as_bytes());
    }
    let mut watching = boards.watch(world.shop.id);
    world.happened(Event { page: Some(world.blog.id), ..edited(&world) }).await;
    assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 0".as_bytes());
    assert!(!watching.has_changed().unwrap());
    world.happened(edited(&world)).await;
    assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 1".as_bytes());
    assert!(watching.has_changed().unwrap());
    watching.borrow_and_update();
    assert!(boards.bytes() > 0);
}

#[tokio::test]
async fn what_badges_tell_is_looked_up_until_something_happens_to_their_page() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let first = boards.badge_data(&page).await.unwrap();
    assert!(Arc::ptr_eq(&first, &boards.badge_data(&page).await.unwrap()));
    assert_eq!((boards.0.documents.bytes(), boards.bytes()), (0, first.memory_use()));
    world.happened(edited(&world)).await;
    assert!(!Arc::ptr_eq(&first, &boards.badge_data(&page).await.unwrap()));
    assert_eq!(boards.bytes(), first.memory_use(), "the old ones are released");
}

#[tokio::test]
async fn documents_that_name_the_picture_do_not_renew_the_facts_of_badges() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let first = boards.badge_data(&page).await.unwrap();
    let begin = world.service.now();
    world.clock.set(begin + 30 * SECOND);
    boards.get(&page, DocumentKind::Month(2026, 11)).await.unwrap();
    let key = DocumentKey { page: page.page().id, address: page.address(), kind: DocumentKind::BadgeData };
    let slot = boards.0.badge_data.get(&key, begin).unwrap();
    assert!(slot.try_lock_for_render().is_some(), "nothing is being renewed");
    assert_eq!(slot.value().unwrap().rendered_at, begin);
    // Badges are: requests get the stale data while new data is rendered.
    assert!(Arc::ptr_eq(&first, &boards.badge_data(&page).await.unwrap()));
    drop(slot.lock_for_render().await);
    assert_eq!(slot.value().unwrap().rendered_at, begin + 30 * SECOND);
}

#[tokio::test]
async fn one_that_has_only_aged_is_served_once_more_and_a_very_old_one_is_not() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    ask(&world, &boards, &drawn).await;
    let begin = world.service.now();
    world.clock.set(begin + 61 * SECOND);
    assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 0".as_bytes());
    while drawn.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    world.clock.set(begin + 3600 * SECOND);
    assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn one_at_hand_that_has_only_aged_is_handed_out_while_a_new_one_is_drawn() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let paper = DocumentKind::Page(None);
    assert!(boards.get_cached(&page, &paper).is_none());
    let first = boards.get(&page, paper.clone()).await.unwrap();
    let begin = world.service.now();
    world.clock.set(begin + 11 * SECOND);
    let later = async {
        loop {
            let held = boards.get_cached(&page, &paper).unwrap();
            if !Arc::ptr_eq(&held, &first) {
                break held;
            }
            tokio::task::yield_now().await;
        }
    };
    let later = tokio::time::timeout(Duration::from_secs(60), later).await.unwrap();
    assert!(Arc::ptr_eq(&later, &boards.get_cached(&page, &paper).unwrap()));
    world.clock.set(begin + 80 * SECOND);
    assert!(boards.get_cached(&page, &paper).is_none(), "it is too old");
}

#[tokio::test]
async fn a_crowd_at_an_empty_shelf_has_one_drawing_made() {
    let world = Arc::new(world().await);
    let boards = PageCache::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    let crowd = (0..50).map(|_| ask(&world, &boards, &drawn));
    let seen = futures_util::future::join_all(crowd).await;
    assert!(seen.iter().all(|document| document.decompressed() == "drawing 0".as_bytes()));
    assert_eq!(drawn.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_is_not_there_takes_no_room() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    for number in 0..20 {
        let missing = boards.get(&page, DocumentKind::Monitor(MonitorId::from_u128(number), None)).await;
        assert_eq!(missing.unwrap_err(), ServiceError::NotFound);
    }
    assert!(boards.0.documents.pages().is_empty());
}

/// Starts a request for a document; the first channel signals that rendering began, the second ends it.
fn asking(
    boards: &PageCache,
    page: &AuthorizedPage,
    drawn: &Arc<AtomicUsize>,
    gates: &Arc<[Notify; 2]>,
) -> tokio::task::JoinHandle<Arc<CompressedDocument>> {
    let (boards, page, drawn, gates) = (boards.clone(), page.clone(), Arc::clone(drawn), Arc::clone(gates));
    tokio::spawn(async move {
        let draw = move || async move {
            let turn = drawn.fetch_add(1, Ordering::SeqCst);
            gates[0].notify_one();
            gates[1].notified().await;
            Ok(format!("drawing {turn}").into_bytes())
        };
        boards.get_or_render(&page, DocumentKind::Other("test"), "text/plain", draw).await.unwrap()
    })
}

fn edited(world: &World) -> Event {
    let what = EventKind::PageEdited(EditKind::Changed);
    Event { at: world.service.now(), page: Some(world.shop.id), monitor: None, kind: what }
}

#[tokio::test]
async fn a_crowd_that_comes_bit_by_bit_to_a_changed_page_has_one_drawing_made() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let (drawn, gates) = (Arc::new(AtomicUsize::new(0)), Arc::<[Notify; 2]>::default());
    ask(&world, &boards, &drawn).await;
    world.happened(edited(&world)).await;
    let mut crowd = vec![asking(&boards, &page, &drawn, &gates)];
    gates[0].notified().await;
    for _ in 0..20 {
        world.clock.set(world.service.now() + 10);
        crowd.push(asking(&boards, &page, &drawn, &gates));
        tokio::task::yield_now().await;
    }
    // Events during rendering concern later requests.
    world.happened(edited(&world)).await;
    boards.catch_up().await.unwrap();
    gates[1].notify_one();
    for one in crowd {
        assert_eq!(one.await.unwrap().decompressed(), "drawing 1".as_bytes());
    }
    assert_eq!(drawn.load(Ordering::SeqCst), 2);
    assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn what_is_drawn_of_a_page_as_it_was_is_not_kept() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let old = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
    let draw = |text: &'static str| move || async move { Ok(text.as_bytes().to_vec()) };
    let paper = || DocumentKind::Other("test");
    let seen = boards.get_or_render(&old, paper(), "text/plain", draw("old")).await.unwrap();
    assert_eq!(seen.decompressed(), "old".as_bytes());
    let new = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    assert!(boards.get_cached(&new, &paper()).is_none());
    let seen = boards.get_or_render(&new, paper(), "text/plain", draw("new")).await.unwrap();
    assert_eq!(seen.decompressed(), "new".as_bytes());
    assert!(boards.get_cached(&new, &paper()).is_some());
}

#[tokio::test]
async fn a_clock_that_is_put_back_freezes_no_document() {
    let world = world().await;
    let boards = PageCache::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    ask(&world, &boards, &drawn).await;
    let begin = world.service.now();
    world.clock.set(begin + -3600 * SECOND);
    let page = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    assert!(boards.get_cached(&page, &DocumentKind::Other("test")).is_none());
    for _ in 0..2 {
        assert_eq!(ask(&world, &boards, &drawn).await.decompressed(), "drawing 1".as_bytes());
    }
}

#[test]
fn the_bytes_on_the_shelf_are_those_of_what_lies_there() {
    let shelf = BoundedCache::new(DOCUMENT_BYTES);
    let now = Timestamp::from_millis(0);
    let key =
        |id| DocumentKey { page: PageId::from_u128(id), address: PageAddress::BasePath, kind: DocumentKind::Status };
    let put = |id, text: &str, now| {
        let document = Arc::new(CompressedDocument::compress("text/plain", text.as_bytes()));
        let bytes = document.bytes();
        let _slot = shelf.entry(&key(id), now);
        shelf.insert(&key(id), CachedValue { value: document, rendered_at: now, up_to_event: 0 });
        bytes
    };
    let _ = put(1, "one", now);
    let (one, two) = (put(1, "one that is longer", now), put(2, "two", now + 600 * SECOND));
    assert_eq!(shelf.bytes(), one + two);
    shelf.evict_unused(now + 601 * SECOND);
    assert_eq!((shelf.bytes(), shelf.pages().len()), (two, 1));
    shelf.remove(&key(2));
    assert_eq!((shelf.bytes(), shelf.pages().len()), (0, 0));
}
