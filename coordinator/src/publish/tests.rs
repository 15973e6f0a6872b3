//! Documents are rendered once, again after an event, and by one request at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::event::{Edited, Event, What};
use parallax_core::page::Page;

use tokio::sync::Notify;

use super::*;
use crate::service::tests::{World, world};

/// Requests a document and counts its renderings.
async fn ask(world: &World, boards: &Boards, drawn: &Arc<AtomicUsize>) -> Arc<Document> {
    let page = world.service.admit("shop", Door::Shared).unwrap();
    let drawn = Arc::clone(drawn);
    let draw = move || async move {
        let turn = drawn.fetch_add(1, Ordering::SeqCst);
        Ok(format!("drawing {turn}").into_bytes())
    };
    boards.kept(&page, Paper::Other("test"), "text/plain", draw).await.unwrap()
}

#[tokio::test]
async fn a_document_is_drawn_once_until_something_happens_to_its_page() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 0".as_bytes());
    }
    let mut watching = boards.watch(world.shop.id);
    world.happened(Event { page: Some(world.blog.id), ..edited(&world) }).await;
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 0".as_bytes());
    assert!(!watching.has_changed().unwrap());
    world.happened(edited(&world)).await;
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 1".as_bytes());
    assert!(watching.has_changed().unwrap());
    watching.borrow_and_update();
    assert!(boards.bytes() > 0);
}

#[tokio::test]
async fn what_badges_tell_is_looked_up_until_something_happens_to_their_page() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let page = world.service.admit("shop", Door::Shared).unwrap();
    let first = boards.facts(&page).await.unwrap();
    assert!(Arc::ptr_eq(&first, &boards.facts(&page).await.unwrap()));
    assert_eq!((boards.0.documents.bytes(), boards.bytes()), (0, first.bytes()));
    world.happened(edited(&world)).await;
    assert!(!Arc::ptr_eq(&first, &boards.facts(&page).await.unwrap()));
    assert_eq!(boards.bytes(), first.bytes(), "the old ones are released");
}

#[tokio::test]
async fn documents_that_name_the_picture_do_not_renew_the_facts_of_badges() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let page = world.service.admit("shop", Door::Shared).unwrap();
    let first = boards.facts(&page).await.unwrap();
    let begin = world.service.now();
    world.clock.set(begin + 30 * SECOND);
    boards.get(&page, Paper::Month(2026, 11)).await.unwrap();
    let key = Key { page: page.page().id, door: page.door(), paper: Paper::Badges };
    let slot = boards.0.facts.known(&key, begin).unwrap();
    assert!(slot.try_turn().is_some(), "nothing is being renewed");
    assert_eq!(slot.held().unwrap().drawn, begin);
    // Badges are: requests get the stale data while new data is rendered.
    assert!(Arc::ptr_eq(&first, &boards.facts(&page).await.unwrap()));
    drop(slot.turn().await);
    assert_eq!(slot.held().unwrap().drawn, begin + 30 * SECOND);
}

#[tokio::test]
async fn one_that_has_only_aged_is_served_once_more_and_a_very_old_one_is_not() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    ask(&world, &boards, &drawn).await;
    let begin = world.service.now();
    world.clock.set(begin + 61 * SECOND);
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 0".as_bytes());
    while drawn.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    world.clock.set(begin + 3600 * SECOND);
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn one_at_hand_that_has_only_aged_is_handed_out_while_a_new_one_is_drawn() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let page = world.service.admit("shop", Door::Shared).unwrap();
    let paper = Paper::Page(None);
    assert!(boards.at_hand(&page, &paper).is_none());
    let first = boards.get(&page, paper.clone()).await.unwrap();
    let begin = world.service.now();
    world.clock.set(begin + 11 * SECOND);
    let later = async {
        loop {
            let held = boards.at_hand(&page, &paper).unwrap();
            if !Arc::ptr_eq(&held, &first) {
                break held;
            }
            tokio::task::yield_now().await;
        }
    };
    let later = tokio::time::timeout(Duration::from_secs(60), later).await.unwrap();
    assert!(Arc::ptr_eq(&later, &boards.at_hand(&page, &paper).unwrap()));
    world.clock.set(begin + 80 * SECOND);
    assert!(boards.at_hand(&page, &paper).is_none(), "it is too old");
}

#[tokio::test]
async fn a_crowd_at_an_empty_shelf_has_one_drawing_made() {
    let world = Arc::new(world().await);
    let boards = Boards::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    let crowd = (0..50).map(|_| ask(&world, &boards, &drawn));
    let seen = futures_util::future::join_all(crowd).await;
    assert!(seen.iter().all(|document| document.plain() == "drawing 0".as_bytes()));
    assert_eq!(drawn.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_is_not_there_takes_no_room() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let page = world.service.admit("shop", Door::Shared).unwrap();
    for number in 0..20 {
        let missing = boards.get(&page, Paper::Monitor(MonitorId::from_u128(number), None)).await;
        assert_eq!(missing.unwrap_err(), Error::NotFound);
    }
    assert!(boards.0.documents.pages().is_empty());
}

/// Starts a request for a document; the first channel signals that rendering began, the second ends it.
fn asking(
    boards: &Boards,
    page: &Admitted,
    drawn: &Arc<AtomicUsize>,
    gates: &Arc<[Notify; 2]>,
) -> tokio::task::JoinHandle<Arc<Document>> {
    let (boards, page, drawn, gates) = (boards.clone(), page.clone(), Arc::clone(drawn), Arc::clone(gates));
    tokio::spawn(async move {
        let draw = move || async move {
            let turn = drawn.fetch_add(1, Ordering::SeqCst);
            gates[0].notify_one();
            gates[1].notified().await;
            Ok(format!("drawing {turn}").into_bytes())
        };
        boards.kept(&page, Paper::Other("test"), "text/plain", draw).await.unwrap()
    })
}

fn edited(world: &World) -> Event {
    let what = What::PageEdited(Edited::Changed);
    Event { at: world.service.now(), page: Some(world.shop.id), monitor: None, what }
}

#[tokio::test]
async fn a_crowd_that_comes_bit_by_bit_to_a_changed_page_has_one_drawing_made() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let page = world.service.admit("shop", Door::Shared).unwrap();
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
        assert_eq!(one.await.unwrap().plain(), "drawing 1".as_bytes());
    }
    assert_eq!(drawn.load(Ordering::SeqCst), 2);
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 2".as_bytes());
}

#[tokio::test]
async fn what_is_drawn_of_a_page_as_it_was_is_not_kept() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let old = world.service.admit("shop", Door::Shared).unwrap();
    world.put_page(Page { name: "New".to_owned(), ..world.shop.clone() }).await;
    let draw = |text: &'static str| move || async move { Ok(text.as_bytes().to_vec()) };
    let paper = || Paper::Other("test");
    let seen = boards.kept(&old, paper(), "text/plain", draw("old")).await.unwrap();
    assert_eq!(seen.plain(), "old".as_bytes());
    let new = world.service.admit("shop", Door::Shared).unwrap();
    assert!(boards.at_hand(&new, &paper()).is_none());
    let seen = boards.kept(&new, paper(), "text/plain", draw("new")).await.unwrap();
    assert_eq!(seen.plain(), "new".as_bytes());
    assert!(boards.at_hand(&new, &paper()).is_some());
}

#[tokio::test]
async fn a_clock_that_is_put_back_freezes_no_document() {
    let world = world().await;
    let boards = Boards::new(world.service.clone());
    let drawn = Arc::new(AtomicUsize::new(0));
    ask(&world, &boards, &drawn).await;
    let begin = world.service.now();
    world.clock.set(begin + -3600 * SECOND);
    let page = world.service.admit("shop", Door::Shared).unwrap();
    assert!(boards.at_hand(&page, &Paper::Other("test")).is_none());
    for _ in 0..2 {
        assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 1".as_bytes());
    }
}

#[test]
fn the_bytes_on_the_shelf_are_those_of_what_lies_there() {
    let shelf = Shelf::new(DOCUMENTS);
    let now = Timestamp::from_millis(0);
    let key = |id| Key { page: PageId::from_u128(id), door: Door::Shared, paper: Paper::Status };
    let put = |id, text: &str, now| {
        let document = Arc::new(Document::press("text/plain", text.as_bytes()));
        let bytes = document.bytes();
        let _slot = shelf.slot(&key(id), now);
        shelf.put(&key(id), Held { thing: document, drawn: now, upto: 0 });
        bytes
    };
    let _ = put(1, "one", now);
    let (one, two) = (put(1, "one that is longer", now), put(2, "two", now + 600 * SECOND));
    assert_eq!(shelf.bytes(), one + two);
    shelf.tidy(now + 601 * SECOND);
    assert_eq!((shelf.bytes(), shelf.pages().len()), (two, 1));
    shelf.forget(&key(2));
    assert_eq!((shelf.bytes(), shelf.pages().len()), (0, 0));
}
