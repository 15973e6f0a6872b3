//! Tests of the overview.

use parallax_core::check::{Check, ComponentCheck};
use parallax_core::condition::Condition;
use parallax_core::destination::{Channel, DeliveryHealth, Destination, DisableReason};
use parallax_core::id::DestinationId;
use parallax_core::page::domain::DomainClaim;
use parallax_core::role::Role;
use parallax_core::time::{DAY, HOUR};
use parallax_core::vantage::Region;

use super::super::samples::{MonitorSample, sample, samples};
use super::super::tests::{HOSTILE, NOW, frame, keep};
use super::super::{Section, StateText, render};
use super::*;
use crate::views::tests::page;

const ROOT: &str = "/app/pages/p";

fn destination(name: &str, health: DeliveryHealth) -> Destination {
    Destination {
        id: DestinationId::from_u128(1),
        page: PageId::from_u128(1),
        name: name.to_owned(),
        channel: Channel::Slack { url: "https://hooks.example/1".to_owned() },
        events: None,
        monitors: None,
        enabled: true,
        health,
        created_at: NOW - DAY,
        evidence_link: false,
    }
}

fn attention(samples: &[MonitorSample], is_operator: bool) -> Vec<AttentionRow> {
    samples.iter().filter_map(|sample| AttentionRow::of_monitor(sample.status(NOW), ROOT, is_operator)).collect()
}

fn parts(name: &str) -> OverviewParts {
    let samples = samples(NOW);
    let mut rows = attention(&samples, true);
    let failing = DeliveryHealth { failing_since: Some(NOW - 2 * HOUR), ..DeliveryHealth::default() };
    rows.extend(AttentionRow::of_destination(&destination(name, failing), ROOT, NOW));
    rows.extend(AttentionRow::of_limit("hobby", (42, 50), ("/app/pages/pg_1/monitors".to_owned(), "Monitors")));
    let tile = |sample: &MonitorSample| {
        let state = StateText::of(sample.status(NOW));
        let icon = if state.class == "up" { "" } else { state.icon };
        let label = format!("{}: {}", sample.monitor.name, state.sentence());
        Tile { class: state.class, icon, href: format!("{ROOT}/monitors/{}", sample.monitor.id), label }
    };
    let change = |class, title: &str, text: &str| ChangeRow {
        class,
        at: words::time(NOW - HOUR, NOW),
        href: "/app".to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
    };
    OverviewParts {
        headline: Some(HeadlineText {
            class: "part",
            title: format!("{name} and 2 others are down"),
            text: format!("Newest: {name} from Asia for 14 min. Visitors of Northwind see this headline."),
            actions: vec![("/app".to_owned(), "Post update"), ("/app".to_owned(), "See why")],
        }),
        attention: rows,
        monitors: (42, 8),
        regions: 6,
        mesh: Some(MeshText::of(&[("Africa", 1), ("Asia", 2), ("Europe", 3)], &confirming(3))),
        alerts: AlertFigures::of(38, 1, vec![900, 20_000, 100], (6, 1)),
        maintenance: Some(NextMaintenance {
            href: "/app".to_owned(),
            title: name.to_owned(),
            text: "Tomorrow 02:00 to 04:00, 3 monitors.".to_owned(),
        }),
        pages: vec![PageRow {
            id: PageId::from_u128(1),
            name: name.to_owned(),
            facts: "status.northwind.example · public · 220 subscribers".to_owned(),
            tiles: samples.iter().map(tile).collect(),
        }],
        changes: vec![
            change("down", "Payments API went down", "From Asia. Connection timed out."),
            change("slow", "Search became slow", "702 ms."),
            change(
                "maint",
                "Nothing sent for Payments API",
                "One failed check from Africa, disputed by a second network.",
            ),
            change("up", "Image CDN recovered", "After 6 min."),
        ],
        next_steps: vec![
            NextStepRow { is_done: true, href: "/app".to_owned(), title: "Add a monitor", sentence: "A website." },
            NextStepRow {
                is_done: false,
                href: "/app".to_owned(),
                title: "Send a test alert",
                sentence: "Email is on.",
            },
        ],
    }
}

fn screen(parts: OverviewParts, role: Role) -> String {
    render(&OverviewScreen::new(frame(role, Section::Overview, "Northwind"), parts)).unwrap()
}

#[test]
fn each_thing_that_needs_attention_has_a_sentence_and_an_action() {
    let rows = attention(&samples(NOW), false);
    let said: Vec<_> =
        rows.iter().map(|row| (row.name.as_str(), row.state.as_str(), row.sentence.as_str(), row.action.1)).collect();
    assert_eq!(
        said,
        [
            (
                "Payments API",
                "Down from Asia for 2 h 5 min",
                "Timed out connecting. Four other regions reach it, so visitors there are fine.",
                "See why"
            ),
            (
                "Search",
                "Slow from Oceania for 2 h 42 min",
                "Responses from Oceania take longer than 250 ms.",
                "See why"
            ),
            (
                "Warehouse gateway",
                "Failing, not confirmed",
                "Fails from Africa, where no second network could check. Nothing was sent.",
                "See why"
            ),
            (
                "Search index",
                "Ping missing for 4 h 33 min",
                "Expected every 15 min, last ping 11:09 UTC. The run before took 2 min.",
                "See why"
            ),
            (
                "Nightly report",
                "No ping yet",
                "Created 2 days ago. The job has never requested its ping address.",
                "Set up"
            ),
            ("Map tiles", "No fresh result for 20 s", "It passed its last check.", "See why"),
        ]
    );
}

#[test]
fn a_slow_monitor_is_explained_by_its_own_region_or_its_vendor() {
    let mut slow = sample(4, "Search", "Shop", Condition::Slow, NOW);
    // The newest check is that of a fast region.
    slow.view.last_check.as_mut().unwrap().facts.latency_ms = Some(41);
    slow.view.slow_from = Some([Region::Oceania, Region::Asia].into_iter().collect());
    slow.monitor.slow_thresholds = Some([(Region::Oceania, 400), (Region::Asia, 500)].into_iter().collect());
    let sentence = |sample: &MonitorSample| attention(std::slice::from_ref(sample), false).remove(0).sentence;
    assert_eq!(sentence(&slow), "Responses from Asia and Oceania take longer than the threshold.");
    slow.monitor.check =
        Check::Component(ComponentCheck { url: "https://status.vendor.example".to_owned(), component: None });
    assert_eq!(sentence(&slow), "The vendor reports degraded performance.");
}

#[test]
fn destinations_domains_and_limits_are_named() {
    let off = |reason| DeliveryHealth { disabled: Some((NOW - HOUR, reason)), ..DeliveryHealth::default() };
    let state = |health| AttentionRow::of_destination(&destination("Ops", health), ROOT, NOW).map(|row| row.state);
    assert_eq!(state(DeliveryHealth::default()), None);
    assert_eq!(state(off(DisableReason::Gone)).unwrap(), "Switched off since 10:58 UTC");
    assert_eq!(state(off(DisableReason::Unconfirmed)).unwrap(), "Waiting for confirmation since 10:58 UTC");
    let mut claimed = page();
    assert_eq!(AttentionRow::of_domain(&claimed, ROOT), None);
    let claim = DomainClaim::new("status.shop.example".to_owned(), "t".to_owned(), NOW);
    claimed.domain_claim = Some(DomainClaim { problem: Some("the record was not found".to_owned()), ..claim });
    assert_eq!(AttentionRow::of_domain(&claimed, ROOT).unwrap().sentence, "The record was not found.");
    assert_eq!(AttentionRow::of_limit("pro", (399, 500), (String::new(), "")), None);
    assert_eq!(AttentionRow::of_limit("hobby", (50, 50), (String::new(), "")).unwrap().state, "Plan full");
}

fn confirming(total: usize) -> ConfirmingNetworks {
    ConfirmingNetworks { total, ..ConfirmingNetworks::default() }
}

#[test]
fn the_mesh_is_described_in_words() {
    let repeat = |total| ConfirmingNetworks { policy: ConfirmationPolicy::Repeat, ..confirming(total) };
    for (regions, confirming, title, text) in [
        (vec![], confirming(0), "No working agent is connected.", "Nothing is checked until one connects."),
        (vec![("Europe", 2)], confirming(2), "1 of 1 region can confirm outages.", ""),
        (vec![("Europe", 1)], confirming(1), "Outages can't be confirmed.", "Only one network works. No monitor is"),
        (vec![("Asia", 1), ("Europe", 1)], confirming(1), "Outages can't be confirmed.", "Only one network works."),
        (
            vec![("Europe", 1)],
            repeat(1),
            "Only one network has working agents.",
            "A failed check is repeated from the same network until a second one connects.",
        ),
        (
            vec![("Africa", 1), ("Europe", 2)],
            repeat(2),
            "1 of 2 regions can confirm",
            "Africa has one network. Outages",
        ),
        (
            vec![("Asia", 0), ("Europe", 2)],
            confirming(2),
            "1 of 2 regions can",
            "Asia has no network that can confirm.",
        ),
        (
            vec![("Africa", 1), ("Asia", 1)],
            confirming(2),
            "0 of 2 regions can",
            "Africa, Asia have at most one network",
        ),
    ] {
        let shown = MeshText::of(&regions, &confirming);
        assert!(shown.title.starts_with(title) && shown.text.starts_with(text), "{regions:?}: {shown:?}");
        assert_eq!(text.is_empty(), shown.text.is_empty(), "{shown:?}");
    }
}

#[test]
fn an_overview_shows_everything_and_escapes_it() {
    let shown = screen(parts("Payments API"), Role::Owner);
    keep("overview", &shown);
    for part in ["Needs attention", "Post update", "2 of 3 regions can confirm", "900 ms (median)", "1 destination"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!screen(parts(HOSTILE), Role::Owner).contains("<script>alert"));
}

#[test]
fn an_empty_account_has_one_thing_to_do() {
    let shown = |role| screen(OverviewParts::default(), role);
    keep("overview-empty", &shown(Role::Owner));
    assert!(shown(Role::Owner).contains("name=\"target\""));
    assert!(!shown(Role::Viewer).contains("name=\"target\""));
}

#[test]
fn a_page_with_many_monitors_folds_those_that_are_up() {
    let tile = |no: usize| Tile {
        class: if no == 7 { "down" } else { "up" },
        icon: "",
        href: String::new(),
        label: format!("Monitor {no}"),
    };
    let row = PageRow {
        id: PageId::from_u128(1),
        name: "Many".to_owned(),
        facts: String::new(),
        tiles: (0..500).map(tile).collect(),
    };
    assert_eq!((row.shown().len(), row.folded()), (1, 499));
}
