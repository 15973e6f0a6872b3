//! Screens of a monitor in each state, rendered from values; and what must not get through as markup.

mod forms;
mod scene;

use std::collections::BTreeMap;

use parallax_core::event::{Event, EventKind, MonitorStatus, RoundReport, StatusChange};
use parallax_core::heartbeat::{PingKind, StoredPing};
use parallax_core::machine::MachineView;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::outage::Outage;
use parallax_core::role::Role;
use parallax_core::time::{DAY, HOUR, MINUTE};
use parallax_core::vantage::{Region, RegionSet, VantageNo};

use super::lists::MonitorChangeRow;
use super::waterfall::RegionResult;
use crate::views::dashboard::tests::{HOSTILE, frame, keep};
use crate::views::dashboard::{Section, render};
use crate::views::tests::NOW;

use scene::*;

#[test]
fn an_outage_is_explained_from_the_first_failure_to_the_alerts() {
    let scene = Scene::down();
    let screen = scene.render(&newest_rounds(), Some(check_result(&scene.labels)));
    keep("monitor", &screen);
    for words in [
        "Down from Asia for 14 minutes",
        "Timed out connecting, seen by two networks in Asia. The other five regions reach it",
        "Why it is down",
        "11 s from first failure to alert",
        "sin1 · AS64503",
        "not needed",
        "All other regions checked.",
        "3 alerts sent:",
        "Ops webhook: answers 500",
        "This check does not change the state.",
        "Counted as passed, nothing sent.",
        "GET https://example.com, every 60 s from 6 regions, slow above 250 ms",
        "Post update",
    ] {
        assert!(screen.contains(words), "{words} is missing");
    }
}

#[test]
fn a_screen_says_what_state_it_shows() {
    let scene = |set: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::up();
        set(&mut scene);
        scene
    };
    for (name, scene, words, missing) in [
        ("up", scene(&|_| {}), vec!["No outage yet", "Nothing has failed since it was created."], "id=\"headline\""),
        (
            "up-again",
            scene(&|it| {
                let (from, to) = (NOW - DAY, Some(NOW - DAY + 22 * MINUTE));
                it.outages = vec![Outage { from, to, reason: Some(Failure::Refused), regions: None }];
            }),
            vec!["Last outage", "22 min, 26 Nov, 12:46:00: connection refused"],
            "No outage yet",
        ),
        (
            "paused",
            scene(&|it| it.view.monitor.paused = true),
            vec!["Paused.", "/resume\"", "It is not checked, and no alerts are sent."],
            "Check now",
        ),
        (
            "not-yet-checked",
            scene(&|it| {
                it.view.state = MachineView::default();
                it.view.history = Default::default();
                (it.view.uptime_24h, it.view.latency_ms) = (None, None);
            }),
            vec!["Not checked yet.", "The first check starts within 5 s", "No rounds yet."],
            "<svg class=\"plot\"",
        ),
        (
            "unconfirmed",
            scene(&|it| {
                it.view.state.unconfirmed_from = RegionSet::only(Region::Africa);
                it.view.monitor.pinned_region = Some(Region::Africa);
            }),
            vec!["Failing from Africa, not confirmed", "where one network is connected right now. Nothing was sent."],
            "Nothing has failed",
        ),
        (
            "unconfirmable",
            scene(&|it| {
                it.view.state.unconfirmable = true;
                it.view.monitor.pinned_region = Some(Region::Africa);
            }),
            vec!["Checked from Africa only, and Africa has one network.", "be confirmed."],
            "id=\"headline\"",
        ),
        (
            "maintenance",
            scene(&|it| it.until = Some(NOW + 44 * MINUTE)),
            vec!["In maintenance until 13:30", "No alerts are sent"],
            "Why it is down",
        ),
        (
            "slow",
            scene(&|it| {
                it.view.state.status = MonitorStatus::Slow;
                it.view.state.slow_from = Some(RegionSet::only(Region::Oceania));
                let slow = change(MonitorStatus::Slow, NOW - HOUR);
                it.change = Some(StatusChange { latency_ms: Some(702), threshold_ms: Some(400), ..slow });
            }),
            vec!["Slow from Oceania for 14 minutes", "702 ms from Oceania, threshold 400 ms.", "Why it is slow"],
            "Why it is down",
        ),
    ] {
        let screen = scene.render(&[], None);
        keep(&format!("monitor-{name}"), &screen);
        for words in words {
            assert!(screen.contains(words), "{name}: {words} is missing");
        }
        assert!(!screen.contains(missing), "{name}: {missing}");
    }
}

#[test]
fn buttons_are_drawn_for_those_who_may_press_them() {
    let screen = |role| Scene { role, ..Scene::down() }.render(&newest_rounds(), None);
    for words in ["Check now", "/edit\"", "/delete\"", "/pause\"", "Post update", "kind=maintenance"] {
        assert!(screen(Role::Editor).contains(words), "{words}");
    }
    let viewer = screen(Role::Viewer);
    for words in ["Check now", "/edit\"", "/delete\"", "/pause\"", "Post update", "<button class=\"btn main-act\""] {
        assert!(!viewer.contains(words), "{words}");
    }
}

#[test]
fn text_from_outside_is_shown_as_text() {
    let mut scene = Scene::down();
    scene.view.monitor.name = HOSTILE.to_owned();
    scene.view.monitor.group = Some(HOSTILE.to_owned());
    scene.labels.values_mut().for_each(|label| {
        (label.name, label.network) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    });
    scene.view.state.down_reason = Some(Failure::Other(HOSTILE.to_owned()));
    scene.alerts.iter_mut().for_each(|alert| alert.destination = HOSTILE.to_owned());
    let failed = ProbeOutcome::Failed(Measurements::default(), Failure::NotHttp(HOSTILE.to_owned()));
    let round = report(Region::Asia, NOW, RoundOutcome::Failed, (5, failed), None);
    let rounds = [(reading(Region::Asia, 5, 0, RoundOutcome::Failed, None), Some(round))];
    let screen = scene.render(&rounds, Some(check_result(&scene.labels)));
    assert!(!screen.contains("<script>alert") && !screen.contains("</title></textarea>"), "{screen}");
    assert!(screen.matches("alert(1)").count() > 10, "the text is in many places");
}

#[test]
fn a_heartbeat_shows_its_address_and_its_pings() {
    let url = "https://status.northwind.example/ping/8Kq2vN7xTn4cWb6YpRzd";
    let scene = heartbeat_scene();
    let waiting = heartbeat_screen(&scene, Some(url), &[]);
    keep("heartbeat", &waiting);
    for words in ["Waiting for the first ping.", url, "No ping yet", "Every day with 1 h grace", "U=https://"] {
        assert!(waiting.contains(words), "{words}");
    }
    let ping = |kind, body: &str| StoredPing {
        number: 1,
        at: NOW - HOUR,
        kind,
        run: None,
        run_ms: Some(42_300),
        method: "POST".to_owned(),
        client_ip: Some("192.0.2.7".parse().unwrap()),
        user_agent: "curl/8.9".to_owned(),
        body: body.as_bytes().to_vec(),
    };
    let pings = [ping(PingKind::Failed(Some(3)), HOSTILE), ping(PingKind::Succeeded, "")];
    let viewer = Scene { role: Role::Viewer, ..heartbeat_scene() };
    let with_pings = heartbeat_screen(&viewer, None, &pings);
    keep("heartbeat-pings", &with_pings);
    for words in ["exit code 3", "ran 42.3 s", "192.0.2.7", "Your role may not see the address."] {
        assert!(with_pings.contains(words), "{words}");
    }
    assert!(!with_pings.contains(url) && !with_pings.contains("<script>alert"), "{with_pings}");
}

#[test]
fn an_explanation_has_a_place_for_every_region() {
    let counts: BTreeMap<&str, usize> = ["sin1 · AS64503", "tyo2 · AS64504", "fra1 · AS64496"]
        .into_iter()
        .map(|agent| (agent, Scene::down().render(&[], None).matches(agent).count()))
        .collect();
    // Both checks of Asia, of which the second is drawn for wide and for narrow screens; one of Europe.
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [1, 3, 3]);
}

#[test]
fn a_change_lists_every_network_that_decided_it() {
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::UnexpectedStatus(503));
    let second = Some((8, passed(88)));
    let round = report(Region::Asia, NOW - MINUTE, RoundOutcome::Failed, (3, failed()), second);
    let round = RoundReport { third: Some(Box::new((VantageNo(11), failed()))), ..round };
    let change = StatusChange { evidence: vec![round], ..change(MonitorStatus::Down, NOW) };
    let event = Event { at: NOW, page: None, monitor: None, kind: EventKind::StatusChanged(change) };
    let row = MonitorChangeRow::of(&event, &BTreeMap::new(), (NOW, chrono_tz::Tz::UTC)).unwrap();
    let seen: Vec<_> = row.evidence[0].2.iter().map(|words| (words.agent.as_str(), words.class)).collect();
    assert_eq!(seen, [("agent 3", "down"), ("agent 8", "up"), ("agent 11", "down")]);
}
