//! Complete starts in one process, over real QUIC on loopback.

use std::path::Path;
use std::time::Duration;

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
