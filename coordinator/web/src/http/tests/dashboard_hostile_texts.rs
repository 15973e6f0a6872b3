//! Texts from outside on every screen of the dashboard: names, messages, answers and words of vendors with markup in
//! them, and characters that change the direction of a text. None of them is drawn as anything but text.

use std::collections::BTreeSet;

use parallax_core::event::{Event, EventKind, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::id::{InvitationId, MonitorId};
use parallax_core::machine::MachineView;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::role::Role;
use parallax_core::time::{HOUR, SECOND};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_service::mesh::{MeshAgent, MeshState, OpenInvitation};
use parallax_service::people::NewPerson;
use parallax_service::test_world::START;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::dashboard_route_table::ROUTES;
use super::dashboard_routes::Things;
use super::{SignedInBrowser, TestClient, TestResponse, installation};

/// Markup that ends an attribute, a script and a text, short enough for every name.
const MARKUP: &str = "\"'></b><script>a(1)</script><img src=x onerror=a(2)>";
/// The same with characters that hide, turn or end a text: for texts that nobody validates.
const TURNED: &str = "\"'></pre><script>a(1)</script><img src=x onerror=a(2)>\u{202e}\u{2066}\u{7}\u{1b}[31m";

/// Everything that a person or a program from outside can name, with markup in its name.
async fn hostile_world() -> (TestClient, SignedInBrowser, Things) {
    let client = TestClient::new().await;
    let world = &client.world;
    world.receive_with(TURNED);
    world.members.set(MeshState {
        agents: vec![MeshAgent {
            software: Some(MARKUP.to_owned()),
            address: Some(MARKUP.to_owned()),
            contradicted: Some(MARKUP.to_owned()),
            is_quarantined: true,
            faults: vec![MARKUP.to_owned()],
            ..installation::agent(1, MARKUP, Region::Europe, MARKUP)
        }],
        invitations: vec![OpenInvitation {
            id: InvitationId::from_u128(1),
            name: MARKUP.to_owned(),
            region: Region::Africa,
            network: MARKUP.to_owned(),
            expires_at: START + HOUR,
        }],
        ..MeshState::default()
    });
    let people = &world.service.people;
    let (email, name) = ("eve@example.com".to_owned(), MARKUP.to_owned());
    let new = NewPerson { email, name, role: Role::Owner, password: None };
    let person = people.add_as_operator(world.owner.id, &new).await.unwrap();
    people.set_operator(&person.email, true).await.unwrap();
    let browser = SignedInBrowser::of(&client, &people.test_session(world.owner.id, person.id).await);
    let things = client.things(&client.write_key, &world.shop.id.to_string(), &browser).await;
    let write = async |method: &str, path: &str, body: Value| {
        let written = client.call(&client.write_key, method, &client.shop_path(path), body).await;
        assert!(matches!(written.status, 200..=202), "{path}: {written:?}");
        written.body
    };
    let path = |kind: &str, name: &str| format!("/{kind}/{}", things.0[name]);
    write("PATCH", "", json!({ "name": MARKUP, "description": MARKUP })).await;
    let monitor = json!({ "name": MARKUP, "groupName": MARKUP, "expectKeyword": MARKUP });
    write("PATCH", &path("monitors", "monitor"), monitor).await;
    write("PATCH", &path("destinations", "destination"), json!({ "name": MARKUP })).await;
    let incident = path("incidents", "incident");
    write("PATCH", &incident, json!({ "title": MARKUP })).await;
    write("POST", &format!("{incident}/updates"), json!({ "status": "resolved", "message": MARKUP })).await;
    write("PATCH", &incident, json!({ "postmortem": MARKUP })).await;
    write("POST", "/deploys", json!({ "version": MARKUP, "note": MARKUP })).await;
    let (start, end) = ((START + 2 * HOUR).to_string(), (START + 3 * HOUR).to_string());
    let window = json!({ "kind": "maintenance", "title": MARKUP, "message": MARKUP, "startsAt": start, "endsAt": end });
    write("POST", "/incidents", window).await;
    let job = json!({ "type": "heartbeat", "name": MARKUP, "periodMinutes": 60 });
    let job = write("POST", "/monitors", job).await["monitor"].take();
    let ping = job["heartbeat"]["pingUrl"].as_str().unwrap().strip_prefix("https://status.example").unwrap().to_owned();
    let agent = [("user-agent", "\"'><script>a(1)</script>")];
    assert_eq!(client.send("POST", &ping, &agent, TURNED).await.status, 200);
    fail(&client, things.0["monitor"].parse().unwrap()).await;
    (client, browser, things)
}

/// Turns a monitor down, with the words of a vendor in the evidence.
async fn fail(client: &TestClient, monitor: MonitorId) {
    let world = &client.world;
    let (at, failure) = (world.service.now(), Failure::VendorOutage(TURNED.to_owned()));
    let failed = || ProbeOutcome::Failed(Measurements::default(), failure.clone());
    let report = |started| RoundReport {
        region: Region::Europe,
        reason: ProbeReason::Scheduled,
        round: Some(7),
        started,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(0),
        first_outcome: failed(),
        second: Some((VantageNo(1), failed())),
        third: None,
    };
    let change = StatusChange {
        from: MonitorStatus::Up,
        to: MonitorStatus::Down,
        alert: None,
        since: at,
        down_since: Some(at),
        reason: Some(failure.clone()),
        down_from: Some(RegionSet::only(Region::Europe)),
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: vec![report(at), report(at + 5 * SECOND)],
        flapping: None,
    };
    let (page, monitor) = (Some(world.shop.id), Some(monitor));
    world.happened(Event { at, page, monitor, kind: EventKind::Round(report(at)) }).await;
    world.happened(Event { at, page, monitor, kind: EventKind::StatusChanged(change) }).await;
    let view = MachineView {
        status: MonitorStatus::Down,
        since: Some(at),
        outage_since: Some(at),
        down_from: Some(RegionSet::only(Region::Europe)),
        down_reason: Some(failure),
        seen_down: RegionSet::only(Region::Europe),
        ..MachineView::default()
    };
    world.views.lock().unwrap().extend(monitor.map(|monitor| (monitor, view)));
}

/// Panics if a text of ours is drawn as markup, or with a character that turns or hides the text around it.
#[track_caller]
fn assert_harmless(what: &str, answer: &TestResponse) {
    let text = &answer.text;
    for bad in ["<script>a(", "<img src=x", "\"'>", "</b><script", "\u{202e}", "\u{2066}", "\u{7}", "\u{1b}"] {
        let Some(at) = text.find(bad) else { continue };
        let start = text.floor_char_boundary(at.saturating_sub(200));
        let end = text.ceil_char_boundary(text.len().min(at + 100));
        panic!("{what} draws {bad:?}: …{}…", &text[start..end]);
    }
}

#[tokio::test]
async fn no_screen_draws_a_text_from_outside_as_markup() {
    let (client, browser, things) = hostile_world().await;
    let encoded: String = form_urlencoded::byte_serialize(MARKUP.as_bytes()).collect();
    let names = ["q", "state", "type", "group", "sort", "range", "done", "count", "kind", "from", "target", "theme"];
    let query: Vec<String> = names.iter().map(|name| format!("{name}={encoded}")).collect();
    let mut shown = 0;
    for (_, pattern, _) in ROUTES.iter().filter(|(method, ..)| *method == "GET") {
        // A file to save, never drawn.
        if pattern.ends_with(".csv") {
            continue;
        }
        client.world.clock.set(client.world.service.now() + 100);
        let path = things.path(pattern);
        let answer = client.open(&browser, &path).await;
        assert!(matches!(answer.status, 200 | 303), "{} {path}", answer.status);
        assert_harmless(&path, &answer);
        shown += usize::from(answer.text.contains("script&#62;a(1)") || answer.text.contains("script&gt;a(1)"));
        let asked = client.open(&browser, &format!("{path}?{}", query.join("&"))).await;
        assert!(asked.status < 500, "{} {path}", asked.status);
        assert_harmless(&path, &asked);
    }
    assert!(shown > 40, "the texts are on the screens: on {shown}");
}

#[tokio::test]
async fn no_refused_form_draws_what_was_typed_as_markup() {
    let (client, browser, things) = hostile_world().await;
    let mut fields = BTreeSet::new();
    for (_, pattern, _) in ROUTES.iter().filter(|(method, ..)| *method == "GET") {
        let screen = client.open(&browser, &things.path(pattern)).await.text;
        let names = screen.split(" name=\"").skip(1).filter_map(|rest| rest.split('"').next());
        fields.extend(names.filter(|name| !matches!(*name, "form_token" | "idempotency_key")).map(str::to_owned));
    }
    assert!(fields.len() > 60, "every field of every form: {fields:?}");
    // Unlike the name of anything, so that nothing is deleted by it.
    let typed = format!("{MARKUP}!");
    let form: Vec<(&str, &str)> = fields.iter().map(|name| (name.as_str(), typed.as_str())).collect();
    let mut drawn = 0;
    for (_, pattern, _) in ROUTES.iter().filter(|(method, path, _)| *method == "POST" && *path != "/sign-out") {
        client.world.clock.set(client.world.service.now() + 100);
        let path = things.path(pattern);
        let refused = client.submit(&browser, &path, &form).await;
        assert!(refused.status < 500, "{} {path}: {}", refused.status, refused.text);
        assert_harmless(&path, &refused);
        drawn += usize::from(refused.text.contains("script&#62;a(1)"));
    }
    assert!(drawn > 15, "the forms show what was typed: {drawn}");
}
