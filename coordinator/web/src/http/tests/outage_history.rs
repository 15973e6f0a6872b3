//! Tests of the history of a page: outages, incidents before the page was created, and heartbeat events.

use parallax_core::event::{AlertKind, Event, EventKind, MonitorStatus, StatusChange};
use parallax_core::id::MonitorId;
use parallax_core::machine::MachineView;
use parallax_core::observation::Failure;
use parallax_core::time::MINUTE;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::test_world::START;

use super::*;

/// Makes a status change; `outage` is the start of its outage in minutes.
fn change(from: MonitorStatus, to: MonitorStatus, since: i64, outage: Option<i64>) -> StatusChange {
    StatusChange {
        from,
        to,
        alert: (from == to).then_some(AlertKind::StillDown),
        since: START + since * MINUTE,
        down_since: outage.map(|minute| START + minute * MINUTE),
        reason: (to == MonitorStatus::Down).then_some(Failure::UnexpectedStatus(503)),
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: Vec::new(),
        flapping: None,
    }
}

impl TestClient {
    async fn change_status(&self, monitor: MonitorId, change: StatusChange) {
        let at = change.since;
        self.world.clock.set(at);
        let event = EventKind::StatusChanged(change);
        self.world.happened(Event { at, page: Some(self.world.shop.id), monitor: Some(monitor), kind: event }).await;
    }

    async fn visit(&self, path: &str) -> TestResponse {
        self.send("GET", path, &[], "").await
    }

    /// Outages of a monitor: lines of the Markdown page, and numbers of all and ongoing ones in the HTML page.
    async fn outages(&self, monitor: MonitorId) -> (Vec<String>, (usize, usize)) {
        let notes = self.visit(&format!("/p/shop/monitors/{monitor}.md")).await.text;
        let lines = notes.split("## Outages").nth(1).unwrap().lines().filter(|line| line.starts_with("- "));
        let page = self.visit(&format!("/p/shop/monitors/{monitor}")).await.text;
        let table = page.split("id=\"outages\"").nth(1).unwrap().split("</section>").next().unwrap();
        let rows = (table.matches("<tr><td>").count(), table.matches(" so far").count());
        (lines.map(str::to_owned).collect(), rows)
    }
}

#[tokio::test]
async fn an_outage_is_listed_once_despite_repeats_and_absent_agents() {
    use MonitorStatus::{Down, Unknown, Up};

    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let id: MonitorId = created["id"].as_str().unwrap().parse().unwrap();
    for (from, to, since, outage) in [
        (Up, Down, 1, Some(1)),
        (Down, Down, 6, Some(1)),
        (Down, Down, 11, Some(1)),
        // No checks for a while, which does not end the outage.
        (Down, Unknown, 12, None),
        (Unknown, Down, 20, Some(1)),
        (Down, Down, 26, Some(1)),
        (Down, Up, 30, Some(1)),
        (Up, Down, 40, Some(40)),
        (Down, Down, 45, Some(40)),
    ] {
        client.change_status(id, change(from, to, since, outage)).await;
    }
    let first = "- 2026-11-27T12:47:00.000Z to 2026-11-27T13:16:00.000Z: unexpected status 503";
    let second = "- 2026-11-27T13:26:00.000Z to now: unexpected status 503";
    let both = vec![second.to_owned(), first.to_owned()];
    assert_eq!(client.outages(id).await, (both.clone(), (2, 1)));
    // No checks again; the state machine remembers the outage.
    let view = MachineView { outage_since: Some(START + 40 * MINUTE), ..MachineView::default() };
    client.world.views.lock().unwrap().insert(id, view);
    client.change_status(id, change(Down, Unknown, 50, None)).await;
    assert_eq!(client.outages(id).await, (both, (2, 1)));
    // The monitor is paused, which ends the outage.
    client.world.views.lock().unwrap().insert(id, MachineView::default());
    client.change_status(id, change(Unknown, Up, 55, None)).await;
    let ended = "- 2026-11-27T13:26:00.000Z to 2026-11-27T13:36:00.000Z: unexpected status 503";
    assert_eq!(client.outages(id).await, (vec![ended.to_owned(), first.to_owned()], (2, 0)));
}

#[tokio::test]
async fn an_outage_that_was_global_once_is_listed_as_global() {
    use MonitorStatus::{Down, Up};

    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let id: MonitorId = created["id"].as_str().unwrap().parse().unwrap();
    let asia = Some(RegionSet::only(Region::Asia));
    for (outage, later) in [(1, [None, asia]), (11, [asia, asia])] {
        client.change_status(id, StatusChange { down_from: asia, ..change(Up, Down, outage, Some(outage)) }).await;
        for scope in later {
            let event = EventKind::ScopeChanged(scope);
            let at = client.world.service.now();
            client.world.happened(Event { at, page: Some(client.world.shop.id), monitor: Some(id), kind: event }).await;
        }
        client.change_status(id, change(Down, Up, outage + 5, Some(outage))).await;
    }
    let (lines, rows) = client.outages(id).await;
    assert_eq!(rows, (2, 0));
    let names: Vec<bool> = lines.iter().map(|line| line.contains("Asia")).collect();
    assert_eq!(names, [true, false], "{lines:?}");
}

#[tokio::test]
async fn an_incident_from_before_the_page_is_found_in_its_month() {
    let client = TestClient::new().await;
    let months = ["/p/shop/history/2025-12", "/p/shop/history/2025-12.md"];
    for month in months {
        assert_eq!(client.visit(month).await.status, 404, "{month}");
    }
    let old = json!({ "title": "Christmas", "message": "Dark.", "startedAt": "2025-12-24T18:00:00Z" });
    let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), old).await;
    assert_eq!(created.status, 201, "{created:?}");
    for month in months {
        let response = client.visit(month).await;
        assert!(response.status == 200 && response.text.contains("Christmas"), "{month}: {response:?}");
    }
    assert_eq!(client.visit("/p/shop/history/2025-11").await.status, 404);
    assert_eq!(client.visit("/p/shop/history/2026-12").await.status, 404, "the month is in the future");
    // The links lead through every month in between, and end at the oldest.
    let between = client.visit("/p/shop/history/2026-01").await;
    assert!(between.text.contains("href=\"/p/shop/history/2025-12\""), "{}", between.text);
    let first = client.visit("/p/shop/history/2025-12").await;
    assert!(!first.text.contains("/history/2025-11"), "{}", first.text);
}

#[tokio::test]
async fn an_extended_deadline_is_an_event_of_its_heartbeat() {
    use parallax_core::heartbeat::DeadlineExtension;

    let client = TestClient::new().await;
    let body = json!({ "type": "heartbeat", "name": "Backup", "periodMinutes": 60 });
    let created = client.create_monitor(body).await;
    let id: MonitorId = created["id"].as_str().unwrap().parse().unwrap();
    let at = |minute: i64| START + minute * MINUTE;
    let extension = DeadlineExtension { away_from: at(50), away_until: at(70), before: at(65), deadline: at(100) };
    let event_kind = EventKind::DeadlineExtended(extension);
    let page = Some(client.world.shop.id);
    client.world.happened(Event { at: at(70), page, monitor: Some(id), kind: event_kind }).await;
    let path = client.shop_path(&format!("/monitors/{id}/events"));
    let reply = client.get(&path).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let event = &reply.body["events"][0];
    assert_eq!(event["kind"], "deadline-extended");
    assert_eq!(event["away"], json!({ "from": at(50).to_string(), "until": at(70).to_string() }));
    assert_eq!(event["deadlineBefore"], at(65).to_string());
    assert_eq!(event["deadline"], at(100).to_string());
}
