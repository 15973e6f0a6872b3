//! Screens of one monitor over HTTP: explanation, pause and deletion, roles, and what other accounts reach.

use parallax_core::event::{Event, EventKind, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::id::MonitorId;
use parallax_core::machine::MachineView;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::role::Role;
use parallax_core::time::{HOUR, SECOND};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use serde_json::json;

use super::signed_in_browser::location;
use super::*;

impl TestClient {
    pub(super) fn app_path(&self, rest: &str) -> String {
        self.screen(&format!("/monitors{rest}"))
    }

    /// Creates a monitor and returns its id.
    pub(super) async fn monitor(&self, name: &str) -> String {
        let body = json!({ "url": "https://shop.example/health", "name": name, "slowThresholdMs": 250 });
        self.create_monitor(body).await["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn stored(&self, id: &str) -> Value {
        self.get(&self.shop_path(&format!("/monitors/{id}"))).await.body["monitor"].clone()
    }

    /// Sets the state that the driver reports.
    pub(super) fn set_view(&self, id: &str, view: MachineView) {
        self.world.views.lock().unwrap().insert(id.parse::<MonitorId>().unwrap(), view);
    }
}

pub(super) fn down_view() -> MachineView {
    let since = parallax_service::test_world::START;
    MachineView {
        status: MonitorStatus::Down,
        since: Some(since),
        outage_since: Some(since),
        down_from: Some(RegionSet::only(Region::Asia)),
        down_reason: Some(Failure::Refused),
        seen_up: RegionSet::only(Region::Europe),
        seen_down: RegionSet::only(Region::Asia),
        ..MachineView::default()
    }
}

#[tokio::test]
async fn an_outage_is_explained_from_the_journal() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let (at, monitor) = (client.world.service.now(), Some(id.parse::<MonitorId>().unwrap()));
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::Refused);
    let report = |started| RoundReport {
        region: Region::Asia,
        reason: ProbeReason::Scheduled,
        round: Some(7),
        started,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(5),
        first_outcome: failed(),
        second: Some((VantageNo(7), failed())),
        third: None,
    };
    let change = StatusChange {
        from: MonitorStatus::Up,
        to: MonitorStatus::Down,
        alert: None,
        since: at,
        down_since: Some(at),
        reason: Some(Failure::Refused),
        down_from: Some(RegionSet::only(Region::Asia)),
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: vec![report(at), report(at + 5 * SECOND)],
        flapping: None,
    };
    let page = Some(client.world.shop.id);
    client.world.happened(Event { at, page, monitor, kind: EventKind::StatusChanged(change) }).await;
    client.set_view(&id, MachineView { since: Some(at), outage_since: Some(at), ..down_view() });
    let screen = client.open(&browser, &client.app_path(&format!("/{id}"))).await;
    assert_eq!(screen.status, 200);
    for words in [
        "Down from Asia for ",
        // The agents are not known any more, so neither are their regions.
        "Connection refused, seen by two networks. Europe reaches it, so visitors there are fine.",
        "First failure in Asia.",
        "Second failure in Asia.",
        "agent 5",
        "Why it is down",
    ] {
        assert!(screen.text.contains(words), "{words}: {}", screen.text);
    }
    for (rest, words) in [("events", "Evidence"), ("checks", "No round matches"), ("alerts", "No alert sent")] {
        let list = client.open(&browser, &client.app_path(&format!("/{id}/{rest}"))).await;
        assert!(list.status == 200 && list.text.contains(words), "{rest}: {}", list.text);
    }
}

#[tokio::test]
async fn a_pause_that_ends_an_automatic_incident_asks_once() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let path = |rest: &str| client.app_path(&format!("/{id}/{rest}"));
    let paused = client.submit(&browser, &path("pause"), &[]).await;
    assert_eq!(paused.status, 303, "a monitor that is not down is paused at once: {}", paused.text);
    assert!(client.open(&browser, location(&paused)).await.text.contains("1 monitor paused"));
    assert_eq!(client.submit(&browser, &path("resume"), &[]).await.status, 303);
    assert_eq!(client.stored(&id).await["paused"], false);
    client.set_view(&id, down_view());
    assert_eq!(client.submit(&browser, &path("pause"), &[]).await.status, 303, "no incident ends");
    assert_eq!(client.stored(&id).await["paused"], true);
    assert_eq!(client.submit(&browser, &path("resume"), &[]).await.status, 303);
    client.set_view(&id, down_view());
    let back = client.open(&browser, &path("pause")).await;
    assert_eq!((back.status, location(&back)), (303, &*client.app_path(&format!("/{id}"))), "nothing to ask");
    let incident = json!({ "title": "Payments is down", "monitorIds": [id] });
    let incident = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let incident = incident.body["incident"]["id"].as_str().unwrap().parse().unwrap();
    client.world.open_automatically(client.world.shop.id, incident, &[id.parse().unwrap()]).await;
    // Nobody sees it now, and the outage still runs.
    client.set_view(&id, MachineView { status: MonitorStatus::Unknown, ..down_view() });
    assert_eq!(client.open(&browser, &path("pause")).await.status, 200);
    let many = client.submit(&browser, &client.app_path("/bulk"), &[("id", &id), ("do", "pause")]).await;
    assert!(many.status == 200 && many.text.contains("resolves 1 automatic incident"), "{}", many.text);
    assert!(many.text.contains("<b>Payments is down</b>"), "{}", many.text);
    let asked = client.submit(&browser, &path("pause"), &[]).await;
    assert_eq!(asked.status, 200);
    assert!(
        asked.text.contains("Start maintenance instead") && asked.text.contains("Pause Payments?"),
        "{}",
        asked.text
    );
    assert!(asked.text.contains("It is down.") && asked.text.contains("It can’t be undone."), "{}", asked.text);
    assert_eq!(client.stored(&id).await["paused"], false);
    let paused = client.submit(&browser, &path("pause"), &[("asked", "true")]).await;
    assert_eq!(paused.status, 303);
    assert!(!location(&paused).contains("undo="), "the incident stays resolved: {}", location(&paused));
    assert_eq!(client.stored(&id).await["paused"], true);
    let wrong = client.submit(&browser, &path("delete"), &[("name", "Payment")]).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("Must be the name of the monitor."), "{}", wrong.text);
    let deleted = client.submit(&browser, &path("delete"), &[("name", "Payments")]).await;
    assert_eq!(deleted.status, 303, "{}", deleted.text);
    assert_eq!(client.open(&browser, &client.app_path(&format!("/{id}"))).await.status, 404);
}

#[tokio::test]
async fn a_check_on_request_answers_with_the_screen() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let path = client.app_path(&format!("/{id}/check"));
    let checked = client.submit(&browser, &path, &[]).await;
    assert_eq!(checked.status, 200, "{}", checked.text);
    for words in ["Checked by you at", "This check does not change the state."] {
        assert!(checked.text.contains(words), "{words}: {}", checked.text);
    }
    let again = client.submit(&browser, &path, &[]).await;
    assert_eq!(again.status, 429);
    assert!(again.headers.contains_key("retry-after"), "{:?}", again.headers);
    assert!(again.text.contains("This monitor was just checked"), "{}", again.text);
}

#[tokio::test]
async fn a_check_for_the_script_answers_in_fragments_to_those_who_may_check() {
    let client = TestClient::new().await;
    let (editor, viewer) = (client.sign_in(Role::Editor).await, client.sign_in(Role::Viewer).await);
    let id = client.monitor("Payments").await;
    let fields = [("type", "http"), ("url", "https://shop.example")];
    for rest in [format!("/{id}/check"), "/new/test".to_owned(), format!("/{id}/edit/test")] {
        let path = client.app_path(&format!("{rest}?fragments=1"));
        let reply = client.submit(&editor, &path, &fields).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        assert_eq!(reply.headers["content-type"], "application/x-html-fragments", "{path}");
        assert_eq!(
            (&reply.headers["cache-control"], reply.text.as_str()),
            (&"no-store".parse().unwrap(), ""),
            "{path}"
        );
        assert_eq!(client.submit(&viewer, &path, &fields).await.status, 403, "{path}");
    }
    let refused =
        client.submit(&editor, &client.app_path("/new/test?fragments=1"), &[("type", "http"), ("url", "-")]).await;
    assert!(refused.status == 400 && refused.text.contains("id=\"url-fault\""), "{}", refused.text);
}

#[tokio::test]
async fn the_last_fragment_of_a_check_is_the_screen_with_its_result() {
    let client = TestClient::new().await;
    let editor = client.sign_in(Role::Editor).await;
    let id = client.monitor("Payments").await;
    let path = client.app_path(&format!("/{id}/check"));
    let fragments = client.fragments(&editor, &path, &[]).await;
    let (screen, progress) = fragments.split_last().unwrap();
    for words in ["<main", "Checked by you at", "data-verdict=\"Checked: passed in 1 of 2 regions.\""] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!progress.is_empty() && progress.iter().all(|it| !it.contains("<main") && it.contains("id=\"check\"")));
    let reports = client.world.round_reports(id.parse().unwrap());
    let regions: Vec<Region> = reports.iter().map(|it| it.region).collect();
    assert_eq!(regions, [Region::Europe], "one event for each region with an agent");
    let again = client.fragments(&editor, &path, &[]).await;
    let [screen] = &again[..] else { panic!("{again:?}") };
    assert!(screen.contains("data-verdict=\"This monitor was just checked"), "{screen}");
}

#[tokio::test]
async fn a_period_of_the_chart_has_an_address_and_a_way_back() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Viewer).await;
    let id = client.monitor("Payments").await;
    let now = client.world.service.now();
    let (from, to) = (now - 2 * HOUR, now - HOUR);
    let open = async |query: &str| client.open(&browser, &client.app_path(&format!("/{id}?{query}"))).await;
    let zoomed = open(&format!("range=7d&from={from}&to={to}")).await;
    assert_eq!(zoomed.status, 200);
    let back = format!("/monitors/{id}?range=7d\">Back to 7 d</a>");
    for words in ["data-chart=\"/app/pages/", &back, &format!("datetime=\"{from}\"")] {
        assert!(zoomed.text.contains(words), "{words}: {}", zoomed.text);
    }
    assert!(!open("range=7d").await.text.contains("Back to"));
    let refused = open("from=yesterday&to=now").await;
    assert!(refused.status == 400 && refused.text.contains("From must be a time such as"), "{}", refused.text);
}

#[tokio::test]
async fn a_viewer_looks_at_everything_but_secrets_and_changes_nothing() {
    let client = TestClient::new().await;
    let (editor, viewer) = (client.sign_in(Role::Editor).await, client.sign_in(Role::Viewer).await);
    let id = client.monitor("Payments").await;
    let body = json!({ "type": "heartbeat", "name": "Backup", "periodMinutes": 60 });
    let job = client.create_monitor(body).await;
    let url = job["heartbeat"]["pingUrl"].as_str().unwrap();
    let job_path = client.app_path(&format!("/{}", job["id"].as_str().unwrap()));
    assert!(client.open(&editor, &job_path).await.text.contains(url));
    let seen = client.open(&viewer, &job_path).await;
    assert!(seen.status == 200 && !seen.text.contains("/ping/"), "{}", seen.text);
    for rest in ["", "/checks", "/events", "/alerts"] {
        let screen = client.open(&viewer, &client.app_path(&format!("/{id}{rest}"))).await;
        assert!(screen.status == 200 && !screen.text.contains("Check now"), "{rest}: {}", screen.text);
    }
    for rest in ["/edit", "/pause", "/delete"] {
        assert_eq!(client.open(&viewer, &client.app_path(&format!("/{id}{rest}"))).await.status, 403, "{rest}");
    }
    assert_eq!(client.open(&viewer, &client.app_path("/new")).await.status, 403);
    for rest in ["/new", "/new/type", "/new/test"] {
        let fields = [("type", "http"), ("url", "https://shop.example")];
        assert_eq!(client.submit(&viewer, &client.app_path(rest), &fields).await.status, 403, "{rest}");
    }
    for rest in ["/check", "/edit", "/edit/type", "/edit/test", "/pause", "/resume", "/delete"] {
        let path = client.app_path(&format!("/{id}{rest}"));
        let refused = client.submit(&viewer, &path, &[("name", "Payments"), ("asked", "true")]).await;
        assert_eq!(refused.status, 403, "{rest}: {}", refused.text);
    }
    assert_eq!(client.stored(&id).await["paused"], false);
}

#[tokio::test]
async fn another_accounts_monitors_are_not_found() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let foreign = client.world.foreign.id.to_string();
    let path = format!("/api/v1/pages/{foreign}/monitors");
    let made = client.call(&client.foreign_key, "POST", &path, json!({ "url": "https://other.example" })).await;
    let stranger = made.body["monitor"]["id"].as_str().unwrap().to_owned();
    let own = client.monitor("Payments").await;
    let shop = client.world.shop.id.to_string();
    for (page, monitor) in [(&foreign, &stranger), (&shop, &stranger), (&foreign, &own)] {
        let base = format!("/app/pages/{page}/monitors/{monitor}");
        for rest in ["", "/checks", "/events", "/alerts", "/edit", "/pause", "/delete"] {
            assert_eq!(client.open(&browser, &format!("{base}{rest}")).await.status, 404, "{base}{rest}");
        }
        for rest in ["/check", "/edit", "/edit/type", "/edit/test", "/pause", "/resume", "/delete"] {
            let sent = client.submit(&browser, &format!("{base}{rest}"), &[("name", "other.example")]).await;
            assert_eq!(sent.status, 404, "{base}{rest}");
        }
    }
    for rest in ["/new", "/new/type", "/new/test"] {
        let path = format!("/app/pages/{foreign}/monitors{rest}");
        let sent = client.submit(&browser, &path, &[("type", "http"), ("url", "https://a.example")]).await;
        assert_eq!(sent.status, 404, "{path}");
    }
    let from = client.open(&browser, &client.app_path(&format!("/new?from={stranger}"))).await;
    assert_eq!(from.status, 404);
    let signed_out = client.send("GET", &client.app_path(&format!("/{own}")), &[], "").await;
    assert_eq!(signed_out.status, 303);
}
