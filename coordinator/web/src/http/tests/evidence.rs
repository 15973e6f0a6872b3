//! Tests of evidence links: what they show, to whom, and for how long.

use parallax_core::event::{AlertKind, Event, EventKind, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::evidence_link::EVIDENCE_LIFE;
use parallax_core::id::MonitorId;
use parallax_core::machine::MachineView;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::time::MINUTE;
use parallax_core::vantage::{Region, VantageNo};
use parallax_service::test_world::START;

use super::*;

/// Change of the outage that began one minute after the start.
fn change(alert: AlertKind, since: i64) -> StatusChange {
    let to = match alert {
        AlertKind::WentDown | AlertKind::StillDown => MonitorStatus::Down,
        AlertKind::WentSlow => MonitorStatus::Slow,
        AlertKind::Recovered | AlertKind::BackToNormal => MonitorStatus::Up,
    };
    let report = RoundReport {
        region: Region::Asia,
        reason: ProbeReason::Scheduled,
        round: Some(1),
        started: START + MINUTE,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(900),
        first_outcome: ProbeOutcome::Failed(Measurements::default(), Failure::UnexpectedStatus(503)),
        second: Some((VantageNo(901), ProbeOutcome::Failed(Measurements::default(), Failure::Refused))),
        third: None,
    };
    StatusChange {
        from: match alert {
            AlertKind::WentDown | AlertKind::WentSlow => MonitorStatus::Up,
            AlertKind::StillDown | AlertKind::Recovered => MonitorStatus::Down,
            AlertKind::BackToNormal => MonitorStatus::Slow,
        },
        to,
        alert: Some(alert),
        since: START + since * MINUTE,
        down_since: (alert != AlertKind::WentSlow).then_some(START + MINUTE),
        reason: Some(Failure::UnexpectedStatus(503)),
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: if alert == AlertKind::WentDown { vec![report] } else { Vec::new() },
        flapping: None,
    }
}

impl TestClient {
    /// Creates a monitor with a target that has credentials.
    async fn monitor_with_secrets(&self) -> MonitorId {
        let created = self.create_monitor(json!({ "url": "https://a.example/x?token=hush", "name": "Front" })).await;
        created["id"].as_str().unwrap().parse().unwrap()
    }

    /// Records a change of the monitor, and returns the path of the evidence link in its alert.
    async fn alert_path(&self, id: MonitorId, change: StatusChange) -> String {
        let service = &self.world.service;
        self.world.clock.set(service.now().max(change.since));
        let (at, kind) = (service.now(), EventKind::StatusChanged(change));
        self.world.happened(Event { at, page: Some(self.world.shop.id), monitor: Some(id), kind }).await;
        let url = service.evidence.url(id, *service.watch_events().borrow(), at);
        url.strip_prefix(service.base_url()).unwrap().to_owned()
    }

    fn set_outage(&self, id: MonitorId, outage: Option<i64>) {
        let outage_since = outage.map(|minute| START + minute * MINUTE);
        let view = MachineView { since: Some(START), outage_since, ..MachineView::default() };
        self.world.views.lock().unwrap().insert(id, view);
    }

    async fn open_evidence(&self, path: &str) -> TestResponse {
        self.send("GET", path, &[("accept", "text/html")], "").await
    }
}

#[tokio::test]
async fn a_link_shows_the_outage_of_its_alert_without_sign_in() {
    let client = TestClient::new().await;
    let id = client.monitor_with_secrets().await;
    client.set_outage(id, Some(1));
    let went_down = client.alert_path(id, change(AlertKind::WentDown, 1)).await;
    let still_down = client.alert_path(id, change(AlertKind::StillDown, 6)).await;
    let private = client.call(&client.write_key, "PATCH", &client.shop_path(""), json!({ "private": true })).await;
    assert_eq!(private.status, 200, "{private:?}");
    for path in [&went_down, &still_down] {
        let shown = client.open_evidence(path).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        for text in ["Front", "isn&#39;t over", "unexpected status 503", "agent 900", "connection refused", "Asia"] {
            assert!(shown.text.contains(text), "{text}: {}", shown.text);
        }
        assert!(shown.text.contains("https://a.example/x<") && !shown.text.contains("hush"), "{}", shown.text);
        for (name, value) in
            [("cache-control", "no-store"), ("x-robots-tag", "noindex"), ("referrer-policy", "no-referrer")]
        {
            assert!(shown.headers[name].to_str().unwrap().contains(value), "{name}: {shown:?}");
        }
    }
    let acknowledge = client.shop_path(&format!("/monitors/{id}/acknowledge"));
    client.call(&client.write_key, "POST", &acknowledge, json!({ "note": "On it" })).await;
    client.set_outage(id, None);
    let recovered = client.alert_path(id, change(AlertKind::Recovered, 9)).await;
    for path in [went_down, still_down, recovered] {
        let shown = client.open_evidence(&path).await;
        for text in ["outage is over", "agent 900", "On it"] {
            assert!(shown.text.contains(text), "{text}: {}", shown.text);
        }
    }
}

#[tokio::test]
async fn a_forged_or_expired_link_and_one_of_a_deleted_monitor_are_not_found() {
    let client = TestClient::new().await;
    let (id, other) = (client.monitor_with_secrets().await, client.monitor_with_secrets().await);
    let path = client.alert_path(id, change(AlertKind::WentDown, 1)).await;
    let slow = client.alert_path(id, change(AlertKind::WentSlow, 20)).await;
    let sent_at = client.world.service.now();
    let elsewhere = path.replace(&id.to_string()[4..], &other.to_string()[4..]);
    let forged = format!("{}{}", &path[..path.len() - 1], if path.ends_with('0') { '1' } else { '0' });
    assert_ne!(elsewhere, path);
    let refused = async |path: &str| {
        let page = client.open_evidence(path).await;
        assert_eq!(page.status, 404, "{path} {page:?}");
        assert!(page.text.contains("<h1>") && !page.text.contains("Front"), "{}", page.text);
        assert!(page.headers["cache-control"].to_str().unwrap().contains("no-store"), "{page:?}");
        assert_eq!(client.get(path).await.status, 404, "{path}");
    };
    for path in [&forged, &elsewhere, &slow, &format!("{path}0"), &path[..path.len() - 1].to_owned()] {
        refused(path).await;
    }
    assert_eq!(client.open_evidence(&path).await.status, 200);
    client.world.clock.set(sent_at + EVIDENCE_LIFE);
    refused(&path).await;
    client.world.clock.set(sent_at);
    let monitor = client.shop_path(&format!("/monitors/{id}"));
    assert_eq!(client.call(&client.write_key, "DELETE", &monitor, Value::Null).await.status, 204);
    refused(&path).await;
}

#[tokio::test]
async fn a_destination_has_the_link_switched_off_by_default() {
    let client = TestClient::new().await;
    client.world.receive();
    let hook = json!({ "type": "webhook", "name": "Team", "url": "https://hooks.example.com/x" });
    let created = client.call(&client.write_key, "POST", &client.shop_path("/destinations"), hook).await;
    assert_eq!(created.body["destination"]["evidenceLink"], false, "{created:?}");
    let path = client.shop_path(&format!("/destinations/{}", created.body["destination"]["id"].as_str().unwrap()));
    for (sent, stored) in [(json!(true), true), (Value::Null, false)] {
        let edited = client.call(&client.write_key, "PATCH", &path, json!({ "evidenceLink": sent })).await;
        assert_eq!(edited.body["destination"]["evidenceLink"], stored, "{edited:?}");
        assert_eq!(client.get(&path).await.body["destination"]["evidenceLink"], stored);
    }
}

#[tokio::test]
async fn views_of_evidence_links_are_limited_per_address() {
    let mut client = TestClient::new().await;
    let id = client.monitor_with_secrets().await;
    let path = client.alert_path(id, change(AlertKind::WentDown, 1)).await;
    for _ in 0..30 {
        assert_eq!(client.open_evidence(&path).await.status, 200);
    }
    let refused = client.open_evidence(&path).await;
    assert_eq!((refused.status, refused.headers["retry-after"].to_str().unwrap()), (429, "60"));
    client.peer = "192.0.2.2";
    assert_eq!(client.open_evidence(&path).await.status, 200, "another visitor");
}
