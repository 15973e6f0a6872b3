//! Documents are drawn once, again when something happened, and by one at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use parallax_core::event::{Edited, Event, What};

use super::*;
use crate::service::tests::{World, world};

/// Asks for a document whose drawings are counted.
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
    let edited = |page| Event {
        at: world.service.now(),
        page: Some(page),
        monitor: None,
        what: What::PageEdited(Edited::Changed),
    };
    world.happened(edited(world.blog.id)).await;
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 0".as_bytes());
    assert!(!watching.has_changed().unwrap());
    world.happened(edited(world.shop.id)).await;
    assert_eq!(ask(&world, &boards, &drawn).await.plain(), "drawing 1".as_bytes());
    assert!(watching.has_changed().unwrap());
    watching.borrow_and_update();
    assert!(boards.bytes() > 0);
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
        let missing = boards.get(&page, Paper::Monitor(MonitorId::from_u128(number), Range::default())).await;
        assert_eq!(missing.unwrap_err(), Error::NotFound);
    }
    assert!(!boards.0.shelf.has(world.shop.id));
}
