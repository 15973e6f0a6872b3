//! A page with every feature, rendered from values only.

mod documents;

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use parallax_core::check::edit::CheckEdit;
use parallax_core::deploy::Deploy;
use parallax_core::event::MonitorStatus;
use parallax_core::headline::Indicator;
use parallax_core::id::{AccountId, DeployId, IncidentId, MonitorId, PageId, UpdateId};
use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus, IncidentUpdate, MonitorImpact};
use parallax_core::machine::{LastCheck, MachineView};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, NewMonitor};
use parallax_core::observation::{CheckPhase, Failure, Measurements};
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_core::page_view::{
    HISTORY_DAYS, IncidentView, LatencyChart, MonitorHistory, MonitorView, PageView, TimeRange, UptimeDay, UptimeSlice,
};
use parallax_core::patch::PatchField;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::uptime::MonitoredTime;
use parallax_core::vantage::{Region, RegionSet};
use parallax_i18n::page_messages::{PageLocale, in_english};

use super::incident::{HistoryPage, IncidentPage};
use super::link_preview::PreviewLocation;
use super::monitor::MonitorPage;
use super::monitor_detail::MonitorDetailView;
use super::page::StatusPage;

/// Current time.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_783_560_000);

/// Canonical URL of the page.
pub(crate) const ADDRESS: &str = "https://status.northwind.example";
const LOCATION: PreviewLocation<'_> = PreviewLocation { url: ADDRESS, image_key: "0123456789ab" };

/// English texts in a given zone.
pub(crate) fn english_locale(zone: chrono_tz::Tz) -> PageLocale {
    PageLocale { zone, messages: in_english() }
}

pub(crate) fn page() -> Page {
    Page {
        name: "Northwind".to_owned(),
        description: Some("Shop, payments and the public API".to_owned()),
        support_url: Some("https://help.example/".to_owned()),
        timezone: chrono_tz::Tz::UTC,
        uptime_target: Some(99.9),
        show_deploys: true,
        show_locations: true,
        ..Page::blank(PageId::from_u128(1), AccountId::from_u128(1), "northwind".to_owned(), NOW - 400 * DAY)
    }
}

pub(crate) fn monitor(number: u32, name: &str, group: &str) -> Monitor {
    let mut edit = MonitorEdit { name: PatchField::Value(name.to_owned()), ..MonitorEdit::default() };
    edit.group = PatchField::Value(group.to_owned());
    edit.slow_threshold_ms = PatchField::Value(250);
    edit.check = CheckEdit { url: PatchField::Value("https://example.com".to_owned()), ..CheckEdit::default() };
    let new_monitor = NewMonitor {
        id: MonitorId::from_u128(u128::from(number)),
        page: PageId::from_u128(1),
        slot: number,
        position: number,
        now: NOW - 60 * DAY,
    };
    Monitor::new(new_monitor, edit.validate(None, "token").unwrap())
}

/// Deterministic pseudo-random numbers.
fn noise(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}

/// A past with data for a number of days.
fn history_with(number: u32, days_with_data: usize) -> MonitorHistory {
    let mut next = noise(number + 7);
    let first =
        NaiveDate::from_ymd_opt(2026, 11, 27).unwrap().checked_sub_days(Days::new(HISTORY_DAYS as u64 - 1)).unwrap();
    let mut days = Vec::new();
    for (at, date) in first.iter_days().take(HISTORY_DAYS).enumerate() {
        let mut counts = OutcomeCounts::default();
        if HISTORY_DAYS - at <= days_with_data {
            counts.passed = 8640;
            match next() % 40 {
                0 => counts.failed = 600,
                1 => counts.failed = 40,
                2 | 3 => counts.slow = 2000,
                4 => counts.failed = 1,
                5 => counts = OutcomeCounts { excluded: 8640, ..OutcomeCounts::default() },
                _ => {}
            }
        }
        let time = MonitoredTime::of_rounds(DAY.unsigned_abs(), counts.tally());
        days.push(UptimeDay { date, counts, uptime: counts.tally().percent(), time });
    }
    let mut region_counts = BTreeMap::new();
    let mut regions = BTreeMap::new();
    for region in Region::ALL {
        let base = 40 + 45 * region.index() as u32 + number * 3;
        let line = (0..48).map(|at| {
            let extra_ms = if (32..36).contains(&at) { 70 } else { 0 };
            (region != Region::Africa || !(10..14).contains(&at)).then(|| base + extra_ms + next() % 20)
        });
        regions.insert(region, line.collect());
        let mut region_days: BTreeMap<NaiveDate, OutcomeCounts> =
            days.iter().map(|day| (day.date, day.counts)).collect();
        if region == Region::Africa {
            region_days.retain(|date, _| date.format("%-d").to_string() != "12");
        }
        region_counts.insert(region, region_days);
    }
    let thresholds = BTreeMap::from([(Region::Europe, 250)]);
    let counted = RegionSet::only(Region::Europe);
    let chart = LatencyChart { from: NOW - DAY, to: NOW, counted, regions, thresholds, ..LatencyChart::default() };
    MonitorHistory { days, regions: region_counts, chart, ..MonitorHistory::default() }
}

/// A monitor with the slices of a range, of which only the last four have data.
pub(crate) fn monitor_view_over(range: TimeRange) -> MonitorView {
    let mut view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 4);
    let spans = range.slices(NOW, chrono_tz::Tz::UTC);
    let counts =
        |at: usize| OutcomeCounts { passed: u32::from(at + 4 >= spans.len()) * 60, ..OutcomeCounts::default() };
    let slice = |(at, span): (usize, &_)| UptimeSlice {
        span: *span,
        counts: counts(at),
        uptime: counts(at).tally().percent(),
        time: MonitoredTime::of_rounds(HOUR.unsigned_abs(), counts(at).tally()),
    };
    view.history.slices = spans.iter().enumerate().map(slice).collect();
    let slice_counts: Vec<OutcomeCounts> = (0..spans.len()).map(counts).collect();
    view.history.slice_regions = Region::ALL.into_iter().map(|region| (region, slice_counts.clone())).collect();
    view
}

pub(crate) fn monitor_view(
    number: u32,
    name: &str,
    group: &str,
    status: MonitorStatus,
    days_with_data: usize,
) -> MonitorView {
    let last_check = LastCheck { at: NOW - 9 * SECOND, ok: true, facts: Measurements::default(), error: None };
    MonitorView {
        monitor: monitor(number, name, group),
        state: MachineView {
            status,
            since: Some(NOW - 14 * MINUTE),
            last_check: Some(last_check),
            seen_up: RegionSet::ALL,
            ..MachineView::default()
        },
        uptime_24h: Some(99.982),
        latency_ms: Some(88 + number * 11),
        in_maintenance: false,
        history: history_with(number, days_with_data),
    }
}

pub(crate) fn incident(number: u128, title: &str) -> Incident {
    Incident {
        id: IncidentId::from_u128(number),
        page: PageId::from_u128(1),
        kind: IncidentKind::Incident,
        title: title.to_owned(),
        status: IncidentStatus::Identified,
        impact: Impact::Partial,
        started_at: NOW - 14 * MINUTE,
        ends_at: None,
        resolved_at: None,
        automatic: true,
        notify: true,
        remind: Vec::new(),
        series: None,
        postmortem: None,
        affected: vec![MonitorImpact { monitor: MonitorId::from_u128(3), impact: None }],
        updates: vec![
            update(1, "investigating", "Connection timed out, seen from two networks in Asia.", 14),
            update(
                2,
                "identified",
                "A transit provider in *Singapore* drops our traffic. We are moving to [another one](https://example.com/).",
                6,
            ),
        ],
        has_begun: false,
        reminded_until: NOW,
        created_at: NOW - 14 * MINUTE,
        edited_at: None,
        planned_at: None,
    }
}

fn update(number: u128, status: &str, body: &str, ago: i64) -> IncidentUpdate {
    IncidentUpdate {
        id: UpdateId::from_u128(number),
        status: status.to_owned(),
        body: body.to_owned(),
        created_at: NOW - ago * MINUTE,
    }
}

pub(crate) fn incident_view(incident: Incident) -> IncidentView {
    let monitors = vec![(MonitorId::from_u128(3), "Payments API".to_owned(), None)];
    IncidentView { incident, monitors, repeats: None, omitted_updates: 0 }
}

pub(crate) fn window() -> Incident {
    Incident {
        kind: IncidentKind::Maintenance,
        status: IncidentStatus::Scheduled,
        impact: Impact::None,
        started_at: NOW + 3 * DAY,
        ends_at: Some(NOW + 3 * DAY + 90 * MINUTE),
        automatic: false,
        updates: Vec::new(),
        ..incident(2, "Database upgrade")
    }
}

pub(crate) fn resolved() -> Incident {
    Incident {
        status: IncidentStatus::Resolved,
        started_at: NOW - 2 * DAY,
        resolved_at: Some(NOW - 2 * DAY + 22 * MINUTE),
        postmortem: Some("## What happened\n\nA *cache* was cold.\n\n- we warm it now".to_owned()),
        ..incident(3, "Checkout slow for some customers")
    }
}

/// A page with every feature.
pub(crate) fn page_view() -> PageView {
    let mut asia = monitor_view(3, "Payments API", "Payments", MonitorStatus::Down, 60);
    asia.state.down_from = Some(RegionSet::only(Region::Asia));
    asia.state.seen_down = RegionSet::only(Region::Asia);
    asia.state.outage_since = asia.state.since;
    let monitors = vec![
        monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 90),
        monitor_view(2, "Search", "Shop", MonitorStatus::Slow, 90),
        asia,
        monitor_view(4, "Nightly settlement", "Payments", MonitorStatus::Up, 40),
        monitor_view(5, "Card network (vendor)", "Payments", MonitorStatus::Unknown, 0),
    ];
    let deploy = |number: u128, version: &str, ago: i64| Deploy {
        id: DeployId::from_u128(number),
        page: PageId::from_u128(1),
        version: version.to_owned(),
        url: Some("https://example.com/r".to_owned()),
        note: None,
        monitors: None,
        at: NOW - ago * HOUR,
        created_at: NOW,
    };
    PageView {
        page: page(),
        now: NOW,
        range: TimeRange::Quarter,
        range_changes_at: None,
        is_range_chosen: false,
        indicator: Indicator::Partial,
        monitors,
        incidents: vec![incident_view(incident(1, "Payments API fails from Asia"))],
        maintenance: vec![incident_view(window())],
        later_maintenance: Vec::new(),
        past_incidents: vec![incident_view(resolved())],
        deploys: vec![deploy(2, "v4.12.1", 8), deploy(1, "v4.12.0", 17)],
        regions: RegionSet::ALL,
    }
}

/// Every document of that page by name.
pub(crate) fn documents() -> Vec<(&'static str, String)> {
    let page_view = page_view();
    let stale = PageView { regions: RegionSet::NONE, ..page_view.clone() };
    let healthy = PageView {
        incidents: Vec::new(),
        maintenance: Vec::new(),
        indicator: Indicator::Operational,
        monitors: (1..=20)
            .map(|number| {
                let group = ["Shop", "Payments", "Infrastructure"][number as usize % 3];
                monitor_view(number, &format!("Service number {number}"), group, MonitorStatus::Up, 90)
            })
            .collect(),
        ..page_view.clone()
    };
    let root = "/p/northwind";
    let detail = MonitorDetailView {
        page: &page_view.page,
        root,
        now: NOW,
        is_stale: false,
        view: &page_view.monitors[2],
        range: TimeRange::Quarter,
        open: &[incident_view(incident(1, "Payments API fails from Asia")), incident_view(window())],
        incidents: &[incident_view(incident(1, "Payments API fails from Asia")), incident_view(resolved())],
        outages: &[
            Outage {
                from: NOW - 14 * MINUTE,
                to: None,
                reason: Some(Failure::Timeout(CheckPhase::Connect)),
                regions: Some(RegionSet::only(Region::Asia)),
            },
            Outage { from: NOW - 9 * DAY, to: Some(NOW - 9 * DAY + HOUR), reason: None, regions: None },
        ],
        deploys: &page_view.deploys,
    };
    let incident_views = [incident_view(incident(1, "Payments API fails from Asia")), incident_view(resolved())];
    let months = ((2025, 10), (2026, 11));
    let day = PageView {
        range: TimeRange::Day,
        monitors: vec![monitor_view_over(TimeRange::Day), monitor_view(2, "Search", "Shop", MonitorStatus::Up, 0)],
        ..page_view.clone()
    };
    let render = |template: &dyn askama::DynTemplate| template.dyn_render().unwrap();
    vec![
        ("page", render(&StatusPage::new(&page_view, root, ADDRESS))),
        ("day", render(&StatusPage::new(&day, root, ADDRESS))),
        ("stale", render(&StatusPage::new(&stale, root, ADDRESS))),
        ("twenty", render(&StatusPage::new(&healthy, "", ADDRESS))),
        ("monitor", render(&MonitorPage::new(&detail, LOCATION))),
        ("incident", render(&IncidentPage::new((&page_view.page, root), &incident_views[1], LOCATION, NOW))),
        (
            "history",
            render(&HistoryPage::new((&page_view.page, root), (2026, 11), months, &incident_views, LOCATION, NOW)),
        ),
    ]
}

#[test]
fn every_document_is_rendered() {
    for (name, document) in documents() {
        assert!(document.starts_with("<!doctype html>") && document.ends_with("</html>"), "{name}");
        // Set PARALLAX_SPECIMENS to a folder to write them to files.
        if let Some(folder) = std::env::var_os("PARALLAX_SPECIMENS") {
            let document = document.replace("/assets/", "assets/");
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.html")), document).unwrap();
        }
    }
}

#[test]
fn a_page_is_in_the_language_that_its_owner_chose() {
    let english = parallax_i18n::page_messages::messages(Language::En);
    for language in Language::ALL.into_iter().skip(1) {
        let messages = parallax_i18n::page_messages::messages(language);
        let page_view = PageView { page: Page { language, ..page() }, ..page_view() };
        let document =
            String::from_utf8(super::render(&StatusPage::new(&page_view, "/p/northwind", ADDRESS)).unwrap()).unwrap();
        assert!(document.starts_with(&format!("<!doctype html><html lang=\"{}\"", language.tag())));
        for (translated, english_text) in [
            (messages.past, english.past),
            (messages.get_updates, english.get_updates),
            (messages.state_up, english.state_up),
            (
                messages.locale().status(IncidentStatus::Investigating),
                english.locale().status(IncidentStatus::Investigating),
            ),
            (messages.ago_quarter, english.ago_quarter),
            (messages.mail_hint, english.mail_hint),
        ] {
            let is_shown = |text: &str| document.contains(&format!(">{text}<"));
            assert!(is_shown(translated) || document.contains(translated), "{language:?}: {translated}");
            assert!(!is_shown(english_text), "{language:?}: {english_text}");
        }
        assert!(
            document.contains(&messages.locale().day(NaiveDate::from_ymd_opt(2026, 11, 27).unwrap())),
            "{language:?}"
        );
    }
}
