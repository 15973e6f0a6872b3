//! Automatic incidents, with the real binaries: announced once across kills, suppressed in maintenance, and opened at
//! a window's end if an outage remains.

use std::time::Duration;

use parallax_core::event::EventKind;
use parallax_core::incident::{IncidentChange, IncidentEvent};
use parallax_core::time::Timestamp;
use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually_every, wall_clock};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess, TestAccount};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::test_target::{TargetMode, TestTarget};
use serde_json::{Value, json};

/// Interval of ten seconds, so that a test sees several rounds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Longest wait for the effects of a change of the target: two rounds and their consequences.
const SOON: Duration = Duration::from_secs(60);

/// A page with one monitor, checked from two networks.
struct Site {
    coordinator: CoordinatorProcess,
    _agents: [AgentProcess; 2],
    account: TestAccount,
    target: TestTarget,
    monitor: Value,
}

impl Site {
    async fn start() -> Self {
        let (coordinator, agents, account) = agent_pair::start(CONFIG).await;
        let target = TestTarget::start().await;
        let monitor = json!({"name": "Checkout", "url": target.url()});
        let monitor = account.client.create_monitor(&account.page, &monitor).await;
        let site = Self { coordinator, _agents: agents, account, target, monitor };
        site.is("up").await;
        site
    }

    async fn is(&self, status: &str) {
        let what = format!("the monitor is {status}");
        eventually_every(API_PERIOD, &what, SOON, async || {
            let now = self.account.client.monitor(&self.account.page, &self.monitor).await;
            (now["status"] == status).then_some(())
        })
        .await;
    }

    fn path(&self, rest: &str) -> String {
        format!("/pages/{}/{rest}", self.account.page)
    }

    /// Returns the page's incidents of kind incident, newest first.
    async fn incidents(&self) -> Vec<Value> {
        let all = self.account.client.get(&self.path("incidents")).await.expect_status(200)["incidents"].take();
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|one| one["kind"] == "incident").collect()
    }

    /// Waits until there are `count` incidents and the newest has `status`; returns that.
    async fn incident(&self, count: usize, status: &str) -> Value {
        let what = format!("incident {count} is {status}");
        eventually_every(API_PERIOD, &what, SOON, async || {
            let mut all = self.incidents().await;
            (all.len() == count && all[0]["status"] == status).then(|| all.swap_remove(0))
        })
        .await
    }

    async fn indicator(&self) -> Value {
        let document = self.account.client.get(&self.path("status")).await.expect_status(200);
        document["status"]["indicator"].clone()
    }
}

/// Returns the journal's events of an incident.
async fn told(coordinator: &mut CoordinatorProcess, incident: &Value) -> Vec<IncidentEvent> {
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    let told = |what: &EventKind| match what {
        EventKind::Incident(told) if json!(told.incident.to_string()) == incident["id"] => Some(*told),
        _ => None,
    };
    journal.events.iter().filter_map(|recorded| told(&recorded.event.kind)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_opens_an_incident_which_its_end_resolves_told_once_over_kills() {
    let mut site = Site::start().await;
    site.target.set(TargetMode::Status(503)).await;
    let open = site.incident(1, "investigating").await;
    assert_eq!((&open["automatic"], &open["impact"]), (&json!(true), &json!("major")), "{open}");
    assert_eq!(open["title"], "Checkout is down");
    assert_eq!(open["monitors"][0]["id"], site.monitor["id"]);
    let words = open["updates"][0]["body"].as_str().unwrap_or_default();
    assert!(words.contains("unexpected status 503") && words.contains("every region"), "{open}");
    assert_eq!(site.indicator().await, "major");

    site.coordinator.process.kill();
    site.target.set(TargetMode::Pass).await;
    site.coordinator.restart().await;
    let over = site.incident(1, "resolved").await;
    assert_eq!((&over["id"], &over["automatic"]), (&open["id"], &json!(true)), "{over}");
    assert_eq!(over["title"], "Checkout was down");
    assert!(over["resolvedAt"].is_string(), "{over}");
    site.is("up").await;
    assert_eq!(site.indicator().await, "operational");
    let told = told(&mut site.coordinator, &open).await;
    let said: Vec<_> = told.iter().map(|told| (told.change, told.notify, told.update.is_some())).collect();
    assert_eq!(said, [(IncidentChange::Opened, true, true), (IncidentChange::Resolved, true, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_is_silent_and_its_end_opens_what_is_down_then() {
    let mut site = Site::start().await;
    let client = &site.account.client;
    let now = wall_clock();
    let moment = |at: Timestamp| Value::from(at.to_string());
    let window = json!({"kind": "maintenance", "title": "Patches", "startsAt": moment(now + 500),
        "endsAt": moment(now + 3_600_000)});
    let window = client.post(&site.path("incidents"), &window).await.expect_status(201)["incident"].take();
    eventually_every(API_PERIOD, "the window covers the page", SOON, async || {
        (site.indicator().await == "maintenance").then_some(())
    })
    .await;
    site.target.set(TargetMode::Status(500)).await;
    site.is("down").await;
    let fell = client.monitor(&site.account.page, &site.monitor).await["since"].clone();
    assert!(site.incidents().await.is_empty(), "nothing opens under maintenance");

    let window = site.path(&format!("incidents/{}", window["id"].as_str().unwrap()));
    client.patch(&window, &json!({"endsAt": moment(wall_clock() + 500)})).await.expect_status(200);
    let open = site.incident(1, "investigating").await;
    assert_eq!((&open["automatic"], &open["startedAt"]), (&json!(true), &fell), "since it fell: {open}");

    // A person takes it over: it no longer resolves automatically.
    let update = json!({"status": "identified", "message": "A disk is full."});
    let updates = site.path(&format!("incidents/{}/updates", open["id"].as_str().unwrap()));
    client.post(&updates, &update).await.expect_status(201);
    site.target.set(TargetMode::Pass).await;
    site.is("up").await;
    let taken = site.incident(1, "identified").await;
    assert_eq!(taken["automatic"], json!(false));
    let told = told(&mut site.coordinator, &open).await;
    assert_eq!(
        told.iter().map(|told| told.change).collect::<Vec<_>>(),
        [IncidentChange::Opened, IncidentChange::Updated]
    );
}
