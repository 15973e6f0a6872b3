//! Tests of the evidence page: states, what the networks saw, and what it must not show.

use std::collections::BTreeMap;

use parallax_core::acknowledgement::{Acknowledgement, ActorName};
use parallax_core::event::ProbeReason;
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Failure, Measurements};
use parallax_core::time::{DAY, SECOND};
use parallax_core::vantage::RegionSet;

use super::*;
use crate::views::tests::{NOW, monitor, page};

fn evidence(progress: OutageProgress) -> OutageEvidence {
    let failed = || ProbeOutcome::Failed(Measurements::default(), Failure::UnexpectedStatus(503));
    let round = |region, reason, after: i64| RoundReport {
        region,
        reason,
        round: None,
        started: NOW - 10 * MINUTE + after,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(3),
        first_outcome: failed(),
        second: Some((VantageNo(8), failed())),
        third: None,
    };
    let passed = ProbeOutcome::Passed(Measurements { latency_ms: Some(88), ..Measurements::default() });
    let sweep = RoundReport {
        round_outcome: RoundOutcome::Passed,
        first_vantage: VantageNo(9),
        first_outcome: passed,
        second: None,
        ..round(Region::Europe, ProbeReason::Sweep, SECOND)
    };
    OutageEvidence {
        page: page(),
        monitor: monitor(1, "Checkout", ""),
        started_at: NOW - 10 * MINUTE,
        reason: Some(Failure::UnexpectedStatus(503)),
        down_from: Some(RegionSet::only(Region::Asia)),
        rounds: vec![
            round(Region::Asia, ProbeReason::Second, 5 * SECOND),
            sweep,
            round(Region::Asia, ProbeReason::Scheduled, 0),
        ],
        networks: BTreeMap::from([(VantageNo(3), "AS64500".to_owned()), (VantageNo(8), "AS64501".to_owned())]),
        progress,
        now: NOW,
        expires_at: NOW + 7 * DAY,
    }
}

fn html(evidence: &OutageEvidence) -> String {
    EvidencePage::new(evidence, "/status").html()
}

#[test]
fn the_page_shows_what_both_networks_saw_in_each_region() {
    let page = EvidencePage::new(&evidence(OutageProgress::Lasting), "");
    let [asia, europe] = page.regions.as_slice() else { panic!("{:?}", page.regions) };
    assert_eq!((asia.name, asia.verdict, europe.name, europe.verdict), ("Asia", "Failed", "Europe", "Up"));
    let both = ["AS64500 (agent 3): unexpected status 503", "AS64501 (agent 8): unexpected status 503"];
    assert_eq!(asia.first.networks, both);
    assert_eq!(asia.second.as_ref().map(|check| check.networks.clone()), Some(both.map(str::to_owned).to_vec()));
    assert_ne!(Some(&asia.first.at), asia.second.as_ref().map(|check| &check.at));
    assert_eq!(europe.first.networks, ["former agent (agent 9): passed in 88 ms"]);
    assert_eq!(europe.second, None);
}

#[test]
fn the_page_shows_the_network_that_decided() {
    let mut shown = evidence(OutageProgress::Lasting);
    let passed = ProbeOutcome::Passed(Measurements::default());
    for round in shown.rounds.iter_mut().filter(|round| round.region == Region::Asia) {
        let second = round.second.replace((VantageNo(11), passed.clone()));
        round.third = second.map(Box::new);
    }
    let page = EvidencePage::new(&shown, "");
    assert_eq!(
        page.regions[0].first.networks,
        [
            "AS64500 (agent 3): unexpected status 503",
            "former agent (agent 11): passed",
            "AS64501 (agent 8): unexpected status 503",
        ]
    );
    assert!(page.is_confirmed_elsewhere, "by the third network");
}

#[test]
fn the_page_claims_a_second_network_only_if_one_saw_each_failure() {
    const CLAIM: &str = "Each failure was checked again from another network before it counted.";
    let claims = |change: &dyn Fn(&mut OutageEvidence)| {
        let mut shown = evidence(OutageProgress::Lasting);
        change(&mut shown);
        html(&shown).contains(CLAIM)
    };
    assert!(claims(&|_| {}));
    assert!(!claims(&|it| it.rounds[0].second = None), "not repeated");
    assert!(!claims(&|it| it.rounds[2].second.as_mut().unwrap().0 = VantageNo(3)), "repeated from the same network");
    assert!(!claims(&|it| drop(it.networks.remove(&VantageNo(8)))), "unknown network");
    assert!(!claims(&|it| it.rounds.retain(|round| round.round_outcome != RoundOutcome::Failed)), "nothing failed");
}

#[test]
fn the_page_says_whether_the_outage_is_over() {
    let over = OutageProgress::Over(Some(NOW - 4 * MINUTE));
    for (progress, state, lead, duration) in [
        (OutageProgress::Lasting, "Down from Asia", "The outage isn't over.", Some("10 min")),
        (over, "Over", "The outage is over.", Some("6 min")),
        (OutageProgress::Over(None), "Over", "The outage is over.", None),
        (OutageProgress::Unknown, "Unknown", "The monitor's state can't be read at the moment. Reload the page.", None),
    ] {
        let page = EvidencePage::new(&evidence(progress), "");
        assert_eq!((page.state.text.as_str(), page.lead), (state, lead));
        let shown = page.facts.iter().find(|(label, _)| *label == "Duration").map(|(_, value)| value.as_str());
        assert_eq!(shown, duration, "{progress:?}");
    }
    let everywhere = OutageEvidence { down_from: None, ..evidence(OutageProgress::Lasting) };
    assert_eq!(EvidencePage::new(&everywhere, "").state.text, "Down");
}

#[test]
fn the_page_shows_the_acknowledgement_of_this_outage_alone() {
    let acknowledged = |outage: Timestamp| {
        let (by, note) = (ActorName::new("On-call phone"), Some("On it".to_owned()));
        let acknowledgement = Acknowledgement { outage, by, at: NOW - 5 * MINUTE, note };
        let shown = evidence(OutageProgress::Lasting);
        let monitor = Monitor { acknowledgement: Some(Box::new(acknowledgement)), ..shown.monitor.clone() };
        EvidencePage::new(&OutageEvidence { monitor, ..shown }, "").facts.pop().map(|(_, value)| value).unwrap()
    };
    let this = acknowledged(NOW - 10 * MINUTE);
    assert!(this.starts_with("By On-call phone, ") && this.ends_with(": On it"), "{this}");
    assert_eq!(acknowledged(NOW - DAY), "No");
}

#[test]
fn credentials_in_the_target_are_not_shown_and_texts_are_escaped() {
    let mut shown = evidence(OutageProgress::Lasting);
    let Check::Http(http) = &mut shown.monitor.check else { panic!() };
    http.url = "https://ann:hush@shop.example/health?token=hush#hush".to_owned();
    shown.monitor.name = "<script>alert(1)</script>".to_owned();
    shown.reason = Some(Failure::Other("<img src=x>".to_owned()));
    let html = html(&shown);
    assert!(html.contains("https://shop.example/health<") && !html.contains("hush") && !html.contains("ann"), "{html}");
    assert!(!html.contains("<script>alert") && !html.contains("<img"), "{html}");
    assert!(html.contains("noindex") && html.contains("/status/assets/"), "{html}");
}

#[test]
fn an_outage_without_stored_rounds_has_a_page_too() {
    let html = html(&OutageEvidence { rounds: Vec::new(), ..evidence(OutageProgress::Lasting) });
    assert!(html.contains("There are no checks for this outage") && !html.contains("<table"), "{html}");
}
