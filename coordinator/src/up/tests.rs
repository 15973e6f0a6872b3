//! Complete starts in one process, over real QUIC on loopback.

use std::path::Path;
use std::time::Duration;

use parallax_core::delivery::{Delivery, DeliveryState, Recipient};
use parallax_core::role::Role;
use parallax_core::time::{DAY, HOUR, MINUTE};
use parallax_service::incidents::IncidentFilter;
use parallax_service::people::{BrowserInfo, PasswordSignIn};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use super::*;

/// Time limit for a start.
const START: Duration = Duration::from_secs(60);

/// A running `up`.
struct Started {
    ready: Value,
    stop: watch::Sender<bool>,
    running: JoinHandle<Result<(), UpError>>,
}

impl Started {
    async fn start(kind: UpMode, data: &Path) -> Self {
        // Normally done by the binary; the second test of a process finds it done.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = kind.defaults();
        config.data = data.to_owned();
        config.http.listen.set_port(0);
        config.mesh.listen = "127.0.0.1:0".parse().unwrap();
        let file = data.with_extension("ready");
        let _ = std::fs::remove_file(&file);
        let (stop, shutdown) = watch::channel(false);
        let running = tokio::spawn(run(kind, config, Some(file.clone()), shutdown));
        let mut ticks = interval(Duration::from_millis(20));
        let ready = timeout(START, async {
            loop {
                ticks.tick().await;
                assert!(!running.is_finished(), "it ended before it was ready");
                if let Ok(text) = std::fs::read(&file) {
                    return serde_json::from_slice(&text).unwrap();
                }
            }
        });
        let ready = ready.await.unwrap();
        Self { ready, stop, running }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.running.await.unwrap().unwrap();
    }
}

async fn names_on(data: &Path, page: &Value) -> Vec<String> {
    let config = CoordinatorConfig { data: data.to_owned(), ..CoordinatorConfig::default() };
    let opened = app::open(&config).await.unwrap();
    let first = FirstStart::find_or_create(&opened.service, &UpMode::Demo).await.unwrap();
    assert_eq!(Value::from(first.page.id.to_string()), *page);
    let monitors = opened.service.monitors.list(&first.caller(&opened.service), first.page.id).await.unwrap();
    let names = monitors.into_iter().map(|it| it.monitor.name).collect();
    opened.close().await;
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_of_the_demo_creates_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let demo = Started::start(UpMode::Demo, &data).await;
    assert!(demo.ready["apiKey"].as_str().is_some_and(|key| key.starts_with("plx_")));
    let page = demo.ready["pageId"].clone();
    demo.stop().await;
    let names = names_on(&data, &page).await;
    let remembered = std::fs::read_to_string(data.join("demo.json")).unwrap();

    let demo = Started::start(UpMode::Demo, &data).await;
    assert_eq!((&demo.ready["apiKey"], &demo.ready["pageId"]), (&Value::Null, &page));
    demo.stop().await;
    assert_eq!(names_on(&data, &page).await, names);
    assert_eq!(std::fs::read_to_string(data.join("demo.json")).unwrap(), remembered, "targets keep their ports");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_starts_with_a_past_of_which_nobody_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let demo = Started::start(UpMode::Demo, &data).await;
    demo.stop().await;
    let opened = app::open(&CoordinatorConfig { data: data.clone(), ..CoordinatorConfig::default() }).await.unwrap();
    let first = FirstStart::find_or_create(&opened.service, &UpMode::Demo).await.unwrap();
    let (caller, page) = (first.caller(&opened.service), first.page.id);

    let filter = IncidentFilter { open: false, kind: None, monitor: None, before: None, limit: 50 };
    let incidents = opened.service.incidents.list(&caller, page, filter).await.unwrap().incidents;
    let titles: Vec<&str> = incidents.iter().map(|detail| detail.incident.title.as_str()).collect();
    assert!(titles.contains(&"Checkout fails") && titles.contains(&"Move of the database to new hosts"), "{titles:?}");
    let people = opened.service.subscribers.list(&caller, page, None, 1000).await.unwrap().subscribers;
    assert!(people.iter().filter(|it| it.confirmed_at.is_some()).count() >= 220);

    let read = opened.store().reader();
    let monitors = read.monitors_of(page).unwrap();
    let checkout = monitors.iter().find(|it| it.value.name == "Checkout").unwrap().value.clone();
    assert_eq!(read.days(checkout.id, 0..i64::MAX / HOUR).unwrap().len(), 91);
    // Alerts of the past are in the log, and each was delivered when it was due: none was sent now.
    let now = opened.service.now();
    let is_for_subscriber = |it: &Delivery| matches!(it.to, Recipient::Subscriber(_));
    let deliveries: Vec<Delivery> =
        read.deliveries_of(Some(page), None, 1000).unwrap().into_iter().map(|it| it.value).collect();
    let past: Vec<_> = deliveries.iter().filter(|it| now.since(it.created_at) > DAY).collect();
    assert!(past.iter().any(|it| it.event == "went-down" && it.monitor == Some(checkout.id)));
    for delivery in past {
        let DeliveryState::Delivered(at) = delivery.state else { panic!("{delivery:?}") };
        assert!(at.since(delivery.created_at) < MINUTE && !is_for_subscriber(delivery), "{delivery:?}");
    }
    let is_notified = |it: &&Delivery| is_for_subscriber(it) && it.event.starts_with("incident");
    assert_eq!(deliveries.iter().find(is_notified), None, "no subscriber hears of the past");
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_first_start_of_the_demo_is_completed_without_a_second_past() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let config = CoordinatorConfig { data: folder.path().join("data"), ..UpMode::Demo.defaults() };
    let mut pasts = Vec::new();
    for _ in 0..2 {
        // As if the process had ended before it wrote the file.
        let _ = std::fs::remove_file(config.data.join("demo.json"));
        demo::write_first_records(&config).await.unwrap();
        let opened = app::open(&config).await.unwrap();
        let (_, page) = FirstStart::find_or_create_page(&opened.service, &UpMode::Demo).await.unwrap();
        let read = opened.store().reader();
        let monitors = read.monitors_of(page.id).unwrap();
        let deliveries = read.deliveries_of(Some(page.id), None, 1000).unwrap().len();
        pasts.push((monitors.len(), deliveries, read.subscribers_count(page.id).unwrap(), page.created_at));
        assert!(monitors.iter().filter(|it| it.value.created_at == page.created_at).count() == monitors.len() - 1);
        opened.close().await;
    }
    assert_eq!(pasts[0], pasts[1]);
    assert!(config.data.join("demo.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_agent_keeps_its_identity_and_only_the_first_start_prints_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let kind = UpMode::Single { region: Region::Asia, network: "AS64500".to_owned() };
    let up = Started::start(kind.clone(), &data).await;
    assert!(up.ready["apiKey"].is_string() && up.ready["pageUrl"].is_string());
    up.stop().await;
    let up = Started::start(kind, &data).await;
    assert!(up.ready["apiKey"].is_null());
    up.stop().await;
    let opened = app::open(&CoordinatorConfig { data, ..CoordinatorConfig::default() }).await.unwrap();
    let agents = opened.members.agents().await.unwrap();
    let names: Vec<_> = agents.iter().map(|agent| (agent.name.as_str(), agent.region)).collect();
    assert_eq!(names, [("local-asia", Region::Asia)]);
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_has_a_viewer_whose_password_is_shown_once() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let config = CoordinatorConfig { data: folder.path().join("data"), ..UpMode::Demo.defaults() };
    let opened = app::open(&config).await.unwrap();
    let service = &opened.service;
    let first = FirstStart::find_or_create(service, &UpMode::Demo).await.unwrap();
    assert!(first.set_up_url.is_some(), "the account still gets its owner");
    let viewer = first.viewer.unwrap();
    let ask = PasswordSignIn { email: viewer.email.to_owned(), password: viewer.password, is_kept: false };
    let session = service.people.sign_in(&ask, &BrowserInfo::default()).await.unwrap().session().unwrap();
    let current = service.people.authenticate(&session.token).unwrap().unwrap();
    assert_eq!((current.role, current.person.is_operator), (Role::Viewer, false));
    let again = FirstStart::find_or_create(service, &UpMode::Demo).await.unwrap();
    assert!(again.viewer.is_none() && again.set_up_url.is_some());
    opened.close().await;
}
