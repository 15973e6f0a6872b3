//! Heartbeat monitors as a job sees them: acknowledged pings are durable, whatever happens next.

use std::net::SocketAddr;
use std::time::Duration;

use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every};
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use reqwest::Method;
use serde_json::{Value, json};

/// Longest wait for the effect of a ping: it is complete with the response, and visible at the next read.
const SOON: Duration = Duration::from_secs(20);

/// A coordinator without agents: heartbeats need none.
struct Scene {
    coordinator: CoordinatorProcess,
    account: TestAccount,
}

impl Scene {
    async fn set() -> Self {
        let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), "").await;
        let account = coordinator.create_account("pro");
        Self { coordinator, account }
    }

    /// Creates a heartbeat monitor, and returns it with the path of its pings.
    async fn heartbeat(&self, name: &str) -> (Value, String) {
        let body = json!({"type": "heartbeat", "name": name, "periodMinutes": 1, "graceMinutes": 1});
        let monitor = self.account.client.create_monitor(&self.account.page, &body).await;
        let url = monitor["heartbeat"]["pingUrl"].as_str().expect("a write key sees it").to_owned();
        let path = url.strip_prefix(self.coordinator.ready.base_url.as_str()).expect("it is ours").to_owned();
        (monitor, path)
    }

    async fn ping(&self, method: Method, path: &str, body: Option<String>) -> u16 {
        self.coordinator.api().send(method, path, body).await.status
    }

    async fn look(&self, monitor: &Value) -> Value {
        self.account.client.monitor(&self.account.page, monitor).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reports_fails_and_recovers() {
    let scene = Scene::set().await;
    let (monitor, path) = scene.heartbeat("Backup").await;
    assert_eq!((&monitor["status"], &monitor["heartbeat"]["lastPingAt"]), (&json!("unknown"), &Value::Null));

    // The first ping follows the response with its URL at once.
    assert_eq!(scene.ping(Method::GET, &format!("{path}/start"), None).await, 200);
    assert_eq!(scene.look(&monitor).await["status"], "unknown", "a start is no success");
    let answer = scene.coordinator.api().send(Method::POST, &path, Some("42 files".to_owned())).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "OK"));
    let up = scene.look(&monitor).await;
    assert_eq!((&up["status"], &up["lastCheck"]["ok"]), (&json!("up"), &json!(true)));
    assert!(up["heartbeat"]["lastPingAt"].is_string() && up["heartbeat"]["lastRunMs"].is_number(), "{up}");

    assert_eq!(scene.ping(Method::HEAD, &format!("{path}/3"), None).await, 200);
    let down = scene.look(&monitor).await;
    assert_eq!((&down["status"], &down["downFrom"]), (&json!("down"), &Value::Null));
    assert!(down["lastCheck"]["error"].as_str().is_some_and(|error| error.contains('3')), "{down}");
    assert_eq!(scene.ping(Method::GET, &format!("{path}/log"), None).await, 200);
    assert_eq!(scene.look(&monitor).await["status"], "down", "a note changes nothing");
    assert_eq!(scene.ping(Method::GET, &format!("{path}/0"), None).await, 200);
    assert_eq!(scene.look(&monitor).await["status"], "up");

    let id = monitor["id"].as_str().expect("it has an id");
    let kept = scene.account.client.get(&format!("/pages/{}/monitors/{id}/pings", scene.account.page)).await;
    let kept = kept.expect_status(200);
    assert_eq!(kept["pings"].as_array().map(Vec::len), Some(5));
    assert_eq!(kept["pings"][3]["body"], "42 files");
    let log = scene.coordinator.process.log();
    let token = path.rsplit('/').next().expect("a path has an end");
    assert!(!log.contains(token), "a token is a secret: {log}");

    let gone = scene.account.client.delete(&format!("/pages/{}/monitors/{id}", scene.account.page)).await;
    gone.expect_status(204);
    eventually("its address is forgotten", SOON, async || {
        (scene.ping(Method::GET, &path, None).await == 404).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_share_of_time_not_down_is_kept_over_a_kill() {
    let mut scene = Scene::set().await;
    let ((job, path), (silent, _)) = (scene.heartbeat("Backup").await, scene.heartbeat("silent").await);
    assert_eq!(scene.ping(Method::GET, &path, None).await, 200);
    assert_eq!(scene.look(&job).await["uptime24h"], 100.0);
    assert_eq!(scene.ping(Method::GET, &format!("{path}/1"), None).await, 200);
    let less = async |scene: &Scene, than: f64| {
        eventually("time down counts", SOON, async || {
            scene.look(&job).await["uptime24h"].as_f64().filter(|share| *share < than)
        })
        .await
    };
    let share = less(&scene, 99.0).await;
    scene.coordinator.process.kill();
    scene.coordinator.restart().await;
    let share = less(&scene, share).await;
    assert_eq!(scene.ping(Method::GET, &path, None).await, 200);
    // Seconds of downtime out of a little more: the figure is far from its bounds, however long polling takes.
    let after = scene.look(&job).await["uptime24h"].as_f64();
    // The daily figures agree: yesterday and today hold all its history.
    let days = async |monitor: &Value| {
        let id = monitor["id"].as_str().expect("it has an id");
        let path = format!("/pages/{}/monitors/{id}/uptime", scene.account.page);
        scene.account.client.get(&path).await.expect_status(200)["days"].take()
    };
    let told: Vec<f64> =
        days(&job).await.as_array().expect("days").iter().filter_map(|day| day["uptime"].as_f64()).collect();
    assert!(matches!(told.len(), 1 | 2) && told.iter().any(|share| *share > 0.0 && *share < 100.0), "{told:?}");
    let unknown = days(&silent).await;
    assert!(unknown.as_array().is_some_and(|days| days.iter().all(|day| day["uptime"].is_null())), "{unknown}");
    assert!(after.is_some_and(|after| after > 0.0 && after < 90.0), "{share} {after:?}");
    assert_eq!(scene.look(&silent).await["uptime24h"], Value::Null, "nothing is known of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_told_at_save_what_nobody_can_confirm() {
    let scene = Scene::set().await;
    let (heartbeat, _) = scene.heartbeat("Backup").await;
    assert_eq!(heartbeat["confirmable"], true, "a missing ping needs no second network");
    let path = format!("/pages/{}/monitors", scene.account.page);
    let made = scene.account.client.post(&path, &json!({"url": "https://example.com/"})).await.expect_status(201);
    assert_eq!(made["monitor"]["confirmable"], false);
    assert!(made["warnings"][0].as_str().is_some_and(|words| words.contains("different networks")), "{made}");
    let path = format!("{path}/{}", made["monitor"]["id"].as_str().expect("it has an id"));
    let changed = scene.account.client.patch(&path, &json!({"name": "Shop"})).await.expect_status(200);
    assert_eq!(changed["warnings"].as_array().map(Vec::len), Some(1));
    assert_eq!(scene.look(&made["monitor"]).await["confirmable"], false);

    // Two agents on two networks, so that there is nothing to warn of. Agents report their hosts' fitness at their own
    // pace.
    let _agents = agent_pair::join(&scene.coordinator).await;
    eventually_every(API_PERIOD, "two networks can confirm", Duration::from_secs(60), async || {
        (scene.look(&made["monitor"]).await["confirmable"] == true).then_some(())
    })
    .await;
    let changed = scene.account.client.patch(&path, &json!({"name": "Store"})).await.expect_status(200);
    assert_eq!((&changed["monitor"]["confirmable"], changed.get("warnings")), (&json!(true), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answered_ping_is_lost_in_a_kill() {
    let mut scene = Scene::set().await;
    let mut jobs = Vec::new();
    for number in 0..12 {
        jobs.push(scene.heartbeat(&format!("job {number}")).await);
    }
    for turn in 0..3 {
        // Pings as fast as possible until the kill, each job separately.
        let pings = jobs.iter().map(|(_, path)| {
            let (api, path) = (scene.coordinator.api(), path.clone());
            tokio::spawn(async move {
                let body = format!("turn {turn}");
                api.send(Method::POST, &path, Some(body)).await.status
            })
        });
        for ping in pings.collect::<Vec<_>>() {
            assert_eq!(ping.await.expect("a ping is answered"), 200);
        }
        // Right after the last response.
        scene.coordinator.process.kill();
        scene.coordinator.restart().await;
        for (monitor, _) in &jobs {
            assert_eq!(scene.look(monitor).await["status"], "up", "no outage of ours is theirs");
            let id = monitor["id"].as_str().expect("it has an id");
            let path = format!("/pages/{}/monitors/{id}/pings", scene.account.page);
            let kept = scene.account.client.get(&path).await.expect_status(200);
            assert_eq!(kept["pings"][0]["number"], turn + 1, "{kept}");
            assert_eq!(kept["pings"][0]["body"], format!("turn {turn}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_one_token_and_guesses_hold_up_nobody_else() {
    let scene = Scene::set().await;
    let ((flooded, loud), (_, calm)) = (scene.heartbeat("loud").await, scene.heartbeat("calm").await);
    let store = scene.coordinator.data().join("store");
    let before = bytes(&store);
    let flood = (0..400).map(|number| {
        let (api, path) = (scene.coordinator.api(), loud.clone());
        let guess = format!("/ping/{number:022}");
        tokio::spawn(async move {
            let ping = api.send(Method::GET, &path, None).await.status;
            (ping, api.send(Method::GET, &guess, None).await.status)
        })
    });
    let flood: Vec<_> = flood.collect();
    assert_eq!(scene.ping(Method::GET, &calm, None).await, 200);
    let mut taken = 0;
    for sent in flood {
        let (ping, guess) = sent.await.expect("everything is answered");
        assert!((ping == 200 || ping == 429) && guess == 404, "{ping} {guess}");
        taken += u64::from(ping == 200);
    }
    assert!(taken >= 100, "{taken}");
    let id = flooded["id"].as_str().expect("it has an id");
    let kept = scene.account.client.get(&format!("/pages/{}/monitors/{id}/pings", scene.account.page)).await;
    let kept = kept.expect_status(200);
    assert_eq!(kept["pings"][0]["number"], taken, "what was answered is counted, and nothing else");
    assert!(kept["pings"].as_array().is_some_and(|pings| pings.len() <= 10));

    // Each takes up to 2 KiB in the store's log.
    assert!(bytes(&store) <= before + (1 << 20) + taken * 2048, "a flood overwrites: {before} {}", bytes(&store));

    // A body is read up to the stored length.
    tokio::time::timeout(SOON, async {
        while scene.ping(Method::POST, &loud, Some("x".repeat(9_000))).await == 429 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the next second takes pings again");
}

/// Returns the size of the files below a folder, in bytes.
fn bytes(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes(&entry.path()),
        Ok(about) => about.len(),
        // The file was deleted meanwhile.
        Err(_) => 0,
    });
    sizes.sum()
}
