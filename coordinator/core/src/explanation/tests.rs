//! One sentence for each kind of state, the evidence by region, and the steps of an outage.

mod scene;

use chrono_tz::Tz;

use super::*;
use crate::event::MonitorStatus;
use crate::observation::{Failure, RoundOutcome};
use crate::time::{DAY, HOUR, MINUTE, SECOND};
use crate::vantage::{RegionSet, Vantage};
use crate::verdict::RegionStatus;

use scene::*;

#[test]
fn each_kind_has_its_sentence() {
    let scene = |kind: &str, set: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::new(kind);
        set(&mut scene);
        scene
    };
    let disputed = |scene: &mut Scene| {
        scene.region(Region::Africa).not_passed = Some(RoundOutcome::Disputed);
        scene.rounds = vec![report(Region::Africa, NOW, RoundOutcome::Disputed, (4, false), Some((8, true)))];
    };
    for (scene, kind, title, sentence) in [
        (scene("http", &|_| {}), ExplanationKind::Up, "Up", "Up for 1 hour."),
        (
            Scene::down(),
            ExplanationKind::Down,
            "Down from Asia for 14 minutes",
            "Timed out connecting, seen by two networks in Asia. The other five regions reach it, so visitors elsewhere \
             are fine.",
        ),
        (
            scene("http", &|it| {
                it.monitor.pinned_region = Some(Region::Africa);
                it.view.unconfirmed_from = RegionSet::only(Region::Africa);
            }),
            ExplanationKind::Unconfirmed,
            "Failing from Africa, not confirmed",
            "Failing, not confirmed: checked from Africa only, where one network is connected right now. Nothing was \
             sent.",
        ),
        (
            scene("http", &|it| it.view.unconfirmed_from = RegionSet::only(Region::Asia)),
            ExplanationKind::Unconfirmed,
            "Failing from Asia, not confirmed",
            "Failing, not confirmed: it fails from Asia, and no second network could check it. Nothing was sent.",
        ),
        (
            scene("http", &disputed),
            ExplanationKind::DisputedRound,
            "Up",
            "Disputed: jnb1 in Africa could not reach it, lhr1 in Europe could. Counted as passed, nothing sent.",
        ),
        (
            scene("http", &|it| {
                disputed(it);
                it.view.disputed_since = Some(NOW - 9 * MINUTE);
            }),
            ExplanationKind::Disputed,
            "Disputed for 9 min",
            "Disputed for 9 min: only Africa can't reach it, and Africa has one network, so it can't be confirmed.",
        ),
        (
            scene("http", &|it| {
                it.view.status = MonitorStatus::Slow;
                it.view.slow_from = Some(RegionSet::only(Region::Oceania));
                let change = change(MonitorStatus::Slow, NOW - HOUR, Vec::new());
                it.change = Some(StatusChange { latency_ms: Some(702), threshold_ms: Some(400), ..change });
            }),
            ExplanationKind::Slow,
            "Slow from Oceania for 1 hour",
            "Slow: 702 ms from Oceania, threshold 400 ms.",
        ),
        (
            scene("http", &|it| {
                it.view.status = MonitorStatus::Unknown;
                it.view.last_check = Some(last_check(NOW - 6 * MINUTE, None));
                it.monitor.pinned_region = Some(Region::Africa);
                it.mesh = Mesh::new([vantage(1, Region::Europe)]);
            }),
            ExplanationKind::NoFreshResult,
            "No fresh result for 6 min",
            "No fresh result for 6 min: no agent in its region is connected. It was up.",
        ),
        (
            scene("heartbeat", &|it| {
                down_as(it, Failure::PingMissed);
                it.view.last_ping_at = Some(NOW - 33 * HOUR - 42 * MINUTE);
                it.deadline = Some(NOW - 8 * HOUR - 46 * MINUTE);
            }),
            ExplanationKind::PingMissing,
            "Down for 14 minutes: ping missing",
            "No ping by 04:00 (last 03:04 yesterday, every day, 1 h grace).",
        ),
        (
            scene("heartbeat", &|it| down_as(it, Failure::JobFailed(Some(3)))),
            ExplanationKind::JobFailed,
            "Down for 14 minutes: the job failed",
            "The job reported a failure with exit code 3 at 12:32.",
        ),
        (
            scene("heartbeat", &|it| it.view = MachineView::default()),
            ExplanationKind::NoPingYet,
            "Waiting for the first ping",
            "It is watched from the first ping on.",
        ),
        (
            scene("component", &|it| {
                down_as(it, Failure::VendorOutage("API requests: partial outage".to_owned()));
                it.incident = true;
            }),
            ExplanationKind::VendorDown,
            "Down for 14 minutes",
            "API requests: partial outage. Incident: “Payments is down”.",
        ),
        (
            scene("component", &|it| it.view.status = MonitorStatus::Slow),
            ExplanationKind::VendorDegraded,
            "Degraded for 1 hour",
            "Slow: the vendor reports degraded performance.",
        ),
        (
            scene("http", &|it| it.view = MachineView::default()),
            ExplanationKind::NotYetChecked,
            "Not checked yet",
            "The first check starts within 5 s of an agent's schedule.",
        ),
        (
            scene("http", &|it| it.monitor.paused = true),
            ExplanationKind::Paused,
            "Paused",
            "It is not checked, and no alerts are sent.",
        ),
        (
            scene("http", &|it| {
                down_as(it, Failure::Refused);
                it.until = Some(NOW + 44 * MINUTE);
            }),
            ExplanationKind::Maintenance,
            "In maintenance until 13:30",
            "No alerts are sent, and rounds don't count toward uptime. It is down meanwhile.",
        ),
    ] {
        let explanation = scene.explain();
        assert_eq!((explanation.kind, explanation.title.as_str()), (kind, title), "{sentence}");
        assert_eq!(explanation.sentence(), sentence);
    }
}

#[test]
fn a_sentence_claims_only_what_was_seen() {
    let detail = |set: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::down();
        set(&mut scene);
        scene.explain().sentence()
    };
    let evidence = |scene: &mut Scene, add: Vec<RoundReport>| scene.change.as_mut().unwrap().evidence = add;
    // The rounds of another region are no witnesses of this one.
    let of_others = |scene: &mut Scene| {
        let asia = report(Region::Asia, NOW, RoundOutcome::Failed, (5, false), None);
        evidence(scene, vec![asia, report(Region::Africa, NOW, RoundOutcome::Failed, (4, false), Some((8, false)))]);
    };
    assert!(detail(&of_others).starts_with("Timed out connecting. The other five"), "{}", detail(&of_others));
    // The second network is in Europe: two networks, but not in Asia.
    let from_afar = |scene: &mut Scene| {
        evidence(scene, vec![report(Region::Asia, NOW, RoundOutcome::Failed, (5, false), Some((8, false)))]);
    };
    assert!(detail(&from_afar).starts_with("Timed out connecting, seen by two networks. The other five"));
    let few = |scene: &mut Scene| scene.view.seen_up = [Region::Europe, Region::Africa].into_iter().collect();
    assert!(detail(&few).ends_with(" Two other regions reach it, so visitors there are fine."), "{}", detail(&few));
    let unknown = |scene: &mut Scene, passed: bool| {
        let last = last_check(NOW - 6 * MINUTE, (!passed).then_some(Failure::Refused));
        scene.view = MachineView { status: MonitorStatus::Unknown, last_check: Some(last), ..MachineView::default() };
        scene.change = None;
    };
    let never = detail(&|scene| unknown(scene, false));
    assert!(never.ends_with(" Its last check failed; no outage was confirmed."), "{never}");
    let open = detail(&|scene| {
        unknown(scene, true);
        scene.view.outage_since = Some(NOW - HOUR);
    });
    assert!(open.ends_with(" It was down."), "{open}");
}

#[test]
fn an_outage_without_a_region_that_reaches_it_says_so_only_where_that_is_known() {
    let sentence = |set: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::down();
        scene.view.seen_up = RegionSet::NONE;
        set(&mut scene);
        scene.explain().sentence()
    };
    let everywhere = |scene: &mut Scene| {
        scene.view.down_from = None;
        scene.view.seen_down = RegionSet::ALL;
    };
    assert!(sentence(&everywhere).ends_with(" No region reaches it."), "{}", sentence(&everywhere));
    let silent_others = sentence(&|_| {});
    assert!(!silent_others.contains("reaches it"), "the others have no recent round: {silent_others}");
    let pinned = sentence(&|scene| {
        scene.view.down_from = None;
        scene.view.seen_down = RegionSet::only(Region::Asia);
        scene.monitor.pinned_region = Some(Region::Asia);
    });
    assert!(pinned.ends_with(" It is checked from Asia only."), "{pinned}");
}

#[test]
fn networks_that_cannot_confirm_are_not_counted() {
    let mut scene = Scene::new("http");
    scene.monitor.pinned_region = Some(Region::Africa);
    scene.view.unconfirmed_from = RegionSet::only(Region::Africa);
    let mut set = |unfit: [bool; 2]| {
        let africa = (1..).zip(unfit).map(|(no, unfit)| Vantage { unfit, ..vantage(no, Region::Africa) });
        scene.mesh = Mesh::new(africa.chain([vantage(9, Region::Europe)]));
        scene.explain().sentence()
    };
    assert!(set([false, false]).contains("two networks are connected right now"));
    assert!(set([false, true]).contains("one network is able to confirm right now"));
    assert!(set([true, true]).contains("no networks are able to confirm right now"));
}

#[test]
fn an_outage_that_began_in_maintenance_is_explained_from_its_start() {
    let silent = |kind: &str, reason: Failure| {
        let mut scene = Scene::new(kind);
        down_as(&mut scene, reason.clone());
        let start = NOW - 14 * MINUTE;
        let change = change(MonitorStatus::Down, start, Vec::new());
        scene.change = Some(StatusChange { alert: None, down_since: Some(start), reason: Some(reason), ..change });
        assert!(scene.change.as_ref().unwrap().begins_silent_outage());
        scene
    };
    let mut scene = silent("heartbeat", Failure::PingMissed);
    scene.until = Some(NOW + HOUR);
    let explanation = scene.explain();
    assert_eq!(explanation.kind, ExplanationKind::Maintenance);
    assert_eq!(
        explanation.steps.iter().map(|step| step.title.as_str()).collect::<Vec<_>>(),
        ["No ping by the deadline."]
    );
    // After the window: announced ten minutes later, at its end.
    scene.until = None;
    scene.announced_at = Some(NOW - 4 * MINUTE);
    let at = NOW - 4 * MINUTE + 900;
    scene.alerts = vec![AlertResult { destination: "on-call".to_owned(), at, fault: None }];
    let explanation = scene.explain();
    let steps: Vec<(&str, &str)> =
        explanation.steps.iter().map(|step| (step.title.as_str(), step.text.as_str())).collect();
    assert_eq!(
        steps,
        [
            ("No ping by the deadline.", ""),
            ("Maintenance ended.", "It had begun in maintenance, without alerts, and was still down."),
            ("1 alert sent:", "on-call within 0.9 s."),
        ]
    );
    assert_eq!(explanation.alerted_after_ms, None, "not the length of the maintenance");
    // A component that is down again after an unknown period begins no outage.
    let mut resumed = silent("component", Failure::VendorOutage("down".to_owned())).change.unwrap();
    resumed.from = MonitorStatus::Unknown;
    assert!(!resumed.begins_outage());
}

#[test]
fn slow_is_explained_by_the_threshold_that_was_crossed() {
    let mut scene = Scene::new("http");
    scene.view.status = MonitorStatus::Slow;
    scene.view.slow_from = Some(RegionSet::only(Region::Oceania));
    scene.view.unconfirmed_from = RegionSet::only(Region::Africa);
    scene.monitor.slow_threshold_ms = Some(250);
    let sentence = |scene: &Scene| Explanation::brief(&scene.monitor, &scene.view, Tz::UTC, NOW).sentence();
    assert_eq!(sentence(&scene), "Slow: responses from Oceania take longer than 250 ms.");
    // Its region has another threshold, if the plan has thresholds of regions.
    scene.monitor.slow_thresholds = Some([(Region::Oceania, 400)].into_iter().collect());
    assert_eq!(sentence(&scene), "Slow: responses from Oceania take longer than the threshold.");
    assert_eq!(scene.explain().kind, ExplanationKind::Slow, "as its condition, not what fails unconfirmed");
}

#[test]
fn a_resumed_heartbeat_waits_for_the_next_ping() {
    let mut scene = Scene::new("heartbeat");
    scene.view = MachineView { last_ping_at: Some(NOW - HOUR), ..MachineView::default() };
    let explanation = scene.explain();
    assert_eq!(
        (explanation.kind, explanation.title.as_str()),
        (ExplanationKind::NoPingYet, "Waiting for the next ping")
    );
    assert_eq!(explanation.sentence(), "It goes down unless the next ping arrives.");
    scene.deadline = Some(NOW + 14 * MINUTE);
    assert_eq!(scene.explain().sentence(), "It goes down unless the next ping arrives by 13:00.");
}

#[test]
fn evidence_shows_both_rounds_and_every_other_region() {
    let explanation = Scene::down().explain();
    let verdicts: Vec<_> = explanation.evidence.iter().map(|row| (row.region, row.verdict)).collect();
    let expected = Region::ALL
        .map(|region| (region, if region == Region::Asia { EvidenceVerdict::Down } else { EvidenceVerdict::Up }));
    assert_eq!(verdicts, expected);
    for row in &explanation.evidence {
        let counts = [&row.first, &row.second].map(|round| round.as_ref().map_or(0, |round| round.seen.len()));
        assert_eq!(counts, if row.region == Region::Asia { [2, 2] } else { [1, 0] }, "{:?}", row.region);
    }
    // Once it is up again, the table still shows how the outage was decided.
    let mut over = Scene::down();
    over.view = Scene::new("http").view;
    over.region(Region::Asia).status = RegionStatus::Up;
    let row = over.explain().evidence.into_iter().find(|row| row.region == Region::Asia).unwrap();
    assert_eq!(row.verdict, EvidenceVerdict::Down);
    assert!(Scene::new("heartbeat").explain().evidence.is_empty());
}

#[test]
fn the_steps_of_an_outage_are_in_order() {
    let mut scene = Scene::down();
    let start = NOW - 14 * MINUTE;
    let alert = |destination: &str, after: i64, fault: Option<&str>| AlertResult {
        destination: destination.to_owned(),
        at: start + after,
        fault: fault.map(str::to_owned),
    };
    scene.alerts = vec![
        alert("on-call", 11 * SECOND, None),
        alert("Slack", 11 * SECOND + 600, None),
        alert("Ops webhook", 12 * SECOND, Some("answers 500")),
    ];
    let explanation = scene.explain();
    let steps: Vec<(&str, &str)> =
        explanation.steps.iter().map(|step| (step.title.as_str(), step.text.as_str())).collect();
    assert_eq!(
        steps,
        [
            ("First failure in Asia.", "A second network in Asia checked at once and failed too."),
            ("All other regions checked.", "Five passed."),
            ("Second failure in Asia.", "Again on two networks. Two in a row: down from Asia."),
            ("2 alerts sent:", "on-call and Slack within 6.6 s; Ops webhook: answers 500."),
            ("", "Newest check from Asia: timed out connecting."),
        ]
    );
    assert_eq!(explanation.alerted_after_ms, Some(11 * SECOND));
    assert_eq!(Scene::new("http").explain().steps, []);
}

#[test]
fn an_unconfirmed_failure_is_not_explained_by_the_last_outage() {
    let mut scene = Scene::down();
    scene.view = Scene::new("http").view;
    scene.region(Region::Asia).status = RegionStatus::Up;
    scene.region(Region::Africa).not_passed = Some(RoundOutcome::Unconfirmed);
    scene.view.unconfirmed_from = RegionSet::only(Region::Africa);
    let recent = report(Region::Africa, NOW - MINUTE, RoundOutcome::Unconfirmed, (4, false), None);
    let old = report(Region::Asia, NOW - HOUR, RoundOutcome::Disputed, (5, false), Some((8, true)));
    scene.rounds = vec![recent, old];
    let explanation = scene.explain();
    assert_eq!((explanation.kind, explanation.steps.len()), (ExplanationKind::Unconfirmed, 0));
    let seen: Vec<_> = explanation.evidence.iter().filter(|row| row.first.is_some()).collect();
    assert_eq!(seen.len(), 1, "an old round says nothing about now");
    assert_eq!((seen[0].region, seen[0].verdict), (Region::Africa, EvidenceVerdict::Unconfirmed));
}

#[test]
fn lengths_and_times_are_short() {
    for (millis, text) in [
        (45 * SECOND, "45 s"),
        (9 * MINUTE, "9 min"),
        (HOUR, "1 h"),
        (2 * HOUR + 5 * MINUTE, "2 h 5 min"),
        (DAY, "1 day"),
        (3 * DAY + 2 * HOUR, "3 days 2 h"),
        (-5, "0 s"),
    ] {
        assert_eq!(short_duration(millis), text);
    }
    assert_eq!([60, 3_600, 86_400, 21_600].map(period_text), ["every minute", "every hour", "every day", "every 6 h"]);
    assert_eq!(clock(NOW - 3 * DAY, Tz::UTC, NOW), "12:46 on 24 Nov");
}
