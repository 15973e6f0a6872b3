//! Bounds of a monitor's fields for every type: one below each edge, the edge, one above.

use super::*;
use crate::check::{Check, HttpCheck};
use crate::id::{MonitorId, PageId};
use crate::monitor::{Monitor, NewMonitor};
use crate::time::Timestamp;

fn given(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

fn long(length: usize) -> PatchField<String> {
    PatchField::Value("é".repeat(length))
}

/// The minimal edit that creates a monitor of the type.
fn least(kind: &str) -> MonitorEdit {
    let mut edit = MonitorEdit { kind: given(kind), ..MonitorEdit::default() };
    match kind {
        "http" => edit.check.url = given("https://example.com"),
        "tcp" => {
            edit.check.host = given("example.com");
            edit.check.port = PatchField::Value(443);
        }
        "heartbeat" => {
            edit.name = given("Backup");
            edit.check.period_minutes = PatchField::Value(60);
        }
        "component" => {
            edit.name = given("Vendor");
            edit.check.vendor_url = given("https://status.example.com");
        }
        _ => edit.check.host = given("example.com"),
    }
    edit
}

fn fits(kind: &str, change: impl FnOnce(&mut MonitorEdit)) -> bool {
    let mut edit = least(kind);
    change(&mut edit);
    edit.validate(None, "t").is_ok()
}

fn faults(edit: &MonitorEdit) -> Vec<String> {
    edit.validate(None, "t").unwrap_err().iter().map(|fault| fault.field.clone()).collect()
}

#[test]
fn a_minimal_monitor_gets_the_defaults() {
    for kind in CheckKind::ALL {
        let settings = least(kind.name()).validate(None, "token").unwrap();
        assert_eq!(settings.check.kind(), kind);
        match &settings.check {
            Check::Http(http) => {
                assert_eq!((http.method.name(), http.keyword_mode.name()), ("GET", "present"));
                assert_eq!(settings.name, "example.com");
            }
            Check::Tcp(tcp) => assert_eq!(tcp.port, 443),
            Check::Dns(dns) => assert_eq!(dns.record.name(), "A"),
            Check::Ping(_) => assert_eq!(settings.name, "example.com"),
            Check::Certificate(it) => assert_eq!((it.port, it.warn_days), (443, 14)),
            Check::Domain(it) => assert_eq!(it.warn_days, 30),
            Check::Heartbeat(it) => {
                assert_eq!((it.period_seconds, it.grace_seconds, it.token.as_str()), (3600, 0, "token"));
            }
            Check::Component(it) => assert_eq!(it.component, None),
        }
    }
    let mut untyped = least("http");
    untyped.kind = PatchField::Absent;
    assert_eq!(untyped.validate(None, "").unwrap().check.kind(), CheckKind::Http);
}

#[test]
fn all_missing_fields_of_a_type_are_reported_at_once() {
    let bare = |kind: &str| MonitorEdit { kind: given(kind), ..MonitorEdit::default() };
    for (kind, missing) in [
        ("http", vec!["url"]),
        ("tcp", vec!["host", "port"]),
        ("dns", vec!["host"]),
        ("ping", vec!["host"]),
        ("certificate", vec!["host"]),
        ("domain", vec!["host"]),
        ("heartbeat", vec!["periodMinutes", "name"]),
        ("component", vec!["vendorUrl", "name"]),
        ("smoke", vec!["type"]),
    ] {
        assert_eq!(faults(&bare(kind)), missing, "{kind}");
    }
    let mut edit = least("http");
    edit.name = long(81);
    edit.group = long(61);
    edit.check.expect_status = PatchField::Value(99);
    edit.pinned_region = given("mars");
    edit.slow_threshold_ms = PatchField::Invalid("must be a whole number".to_owned());
    assert_eq!(faults(&edit), ["groupName", "expectStatus", "name", "slowThresholdMs", "pinnedRegion"]);
}

#[test]
fn every_edge_of_a_number_holds() {
    type Set = fn(&mut MonitorEdit, i64);
    let table: [(&str, &str, i64, i64, Set); 8] = [
        ("tcp", "port", 1, 65_535, |e, n| e.check.port = PatchField::Value(n)),
        ("certificate", "port", 1, 65_535, |e, n| e.check.port = PatchField::Value(n)),
        ("certificate", "warnDays", 1, 365, |e, n| e.check.warn_days = PatchField::Value(n)),
        ("domain", "warnDays", 1, 365, |e, n| e.check.warn_days = PatchField::Value(n)),
        ("heartbeat", "periodMinutes", 1, 44_640, |e, n| e.check.period_minutes = PatchField::Value(n)),
        ("heartbeat", "graceMinutes", 0, 10_080, |e, n| e.check.grace_minutes = PatchField::Value(n)),
        ("http", "expectStatus", 100, 599, |e, n| e.check.expect_status = PatchField::Value(n)),
        ("ping", "slowThresholdMs", 1, 9999, |e, n| e.slow_threshold_ms = PatchField::Value(n)),
    ];
    for (kind, field, least, most, set) in table {
        for (value, is_good) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            assert_eq!(fits(kind, |edit| set(edit, value)), is_good, "{kind} {field} {value}");
        }
    }
}

#[test]
fn every_edge_of_a_text_holds() {
    type Set = fn(&mut MonitorEdit, usize);
    let table: [(&str, &str, usize, Set); 6] = [
        ("http", "name", 80, |e, n| e.name = long(n)),
        ("tcp", "groupName", 60, |e, n| e.group = long(n)),
        ("dns", "dnsExpect", 500, |e, n| e.check.dns_expect = long(n)),
        ("component", "vendorComponent", 200, |e, n| e.check.vendor_component = long(n)),
        ("http", "keyword", 200, |e, n| e.check.keyword = long(n)),
        ("http", "body", 10_000, |e, n| e.check.body = long(n)),
    ];
    for (kind, field, most, set) in table {
        for (length, is_good) in [(1, true), (most - 1, true), (most, true), (most + 1, false)] {
            assert_eq!(fits(kind, |edit| set(edit, length)), is_good, "{kind} {field} {length}");
        }
    }
    assert!(!fits("http", |edit| edit.name = given("  ")));
}

#[test]
fn thresholds_of_regions_are_bounded_and_errors_name_them() {
    let set = |name: &str, ms: i64| PatchField::Value(BTreeMap::from([(name.to_owned(), ms)]));
    for (name, ms, is_good) in
        [("asia", 0, false), ("asia", 1, true), ("asia", 9999, true), ("asia", 10_000, false), ("mars", 5, false)]
    {
        assert_eq!(fits("dns", |edit| edit.slow_thresholds = set(name, ms)), is_good, "{name} {ms}");
    }
    let empty = MonitorEdit { slow_thresholds: PatchField::Value(BTreeMap::new()), ..least("http") };
    assert_eq!(empty.validate(None, "").unwrap().slow_thresholds, None);
}

#[test]
fn only_fields_of_the_type_count() {
    let wrong = || PatchField::Invalid("must be a whole number".to_owned());
    assert!(fits("http", |edit| edit.check.port = wrong()));
    assert!(fits("tcp", |edit| edit.check.url = given("ftp://x")));
    assert!(fits("heartbeat", |edit| edit.pinned_region = given("mars")));
    assert!(fits("certificate", |edit| edit.slow_threshold_ms = wrong()));
    assert!(!fits("certificate", |edit| edit.pinned_region = given("mars")));
}

#[test]
fn an_empty_pinned_region_means_every_region() {
    let mut edit = least("domain");
    edit.pinned_region = given("asia");
    let pinned = edit.validate(None, "").unwrap();
    assert_eq!(pinned.pinned_region, Some(Region::Asia));
    for cleared in [given(""), PatchField::Null] {
        let edit = MonitorEdit { pinned_region: cleared, ..MonitorEdit::default() };
        assert_eq!(edit.validate(Some(&pinned), "").unwrap().pinned_region, None);
    }
}

#[test]
fn an_edit_keeps_what_is_left_out_and_null_clears() {
    let mut full = least("http");
    full.group = given("Web");
    full.check.keyword = given("ok");
    full.check.headers = PatchField::Value(vec![("X-A".to_owned(), "1".to_owned())]);
    full.check.body = given("{}");
    full.check.method = given("POST");
    full.slow_threshold_ms = PatchField::Value(800);
    let before = full.validate(None, "").unwrap();
    assert_eq!(MonitorEdit::default().validate(Some(&before), "").unwrap(), before);
    let mut edit =
        MonitorEdit { group: PatchField::Null, slow_threshold_ms: PatchField::Null, ..MonitorEdit::default() };
    edit.check.keyword = PatchField::Null;
    edit.check.headers = PatchField::Null;
    edit.check.method = PatchField::Null;
    let after = edit.validate(Some(&before), "").unwrap();
    assert_eq!((after.group, after.slow_threshold_ms), (None, None));
    let Check::Http(HttpCheck { keyword, headers, body, method, .. }) = after.check else { panic!() };
    assert_eq!((keyword, headers.len(), body.as_deref(), method.name()), (None, 0, Some("{}"), "GET"));
}

#[test]
fn required_fields_cannot_be_cleared_and_the_type_cannot_change() {
    let before = least("tcp").validate(None, "").unwrap();
    let mut edit = MonitorEdit { kind: given("http"), name: PatchField::Null, ..MonitorEdit::default() };
    edit.check.host = PatchField::Null;
    edit.check.port = PatchField::Null;
    let fields: Vec<_> =
        edit.validate(Some(&before), "").unwrap_err().iter().map(|fault| fault.field.clone()).collect();
    assert_eq!(fields, ["type", "host", "port", "name"]);
}

#[test]
fn a_heartbeat_keeps_its_token_over_edits() {
    let before = least("heartbeat").validate(None, "first").unwrap();
    let mut edit = MonitorEdit::default();
    edit.check.grace_minutes = PatchField::Value(5);
    let Check::Heartbeat(after) = edit.validate(Some(&before), "second").unwrap().check else { panic!() };
    assert_eq!((after.token.as_str(), after.grace_seconds), ("first", 300));
}

#[test]
fn the_revision_grows_only_with_what_is_checked() {
    let seat = NewMonitor {
        id: MonitorId::from_u128(1),
        page: PageId::from_u128(1),
        slot: 7,
        position: 0,
        now: Timestamp::from_millis(5),
    };
    let monitor = Monitor::new(seat, least("http").validate(None, "").unwrap());
    let renamed =
        MonitorEdit { name: given("Other"), slow_threshold_ms: PatchField::Value(5), ..MonitorEdit::default() };
    let renamed = monitor.with_settings(renamed.validate(Some(&monitor.settings()), "").unwrap());
    assert_eq!((renamed.revision, renamed.name.as_str(), renamed.slot), (0, "Other", 7));
    let pinned = MonitorEdit { pinned_region: given("asia"), ..MonitorEdit::default() };
    let pinned = renamed.with_settings(pinned.validate(Some(&renamed.settings()), "").unwrap());
    assert_eq!(pinned.revision, 1);
    let mut moved = MonitorEdit::default();
    moved.check.url = given("https://example.org");
    assert_eq!(pinned.with_settings(moved.validate(Some(&pinned.settings()), "").unwrap()).revision, 2);
}

#[test]
fn a_long_host_makes_a_name_of_eighty_characters() {
    let host = "abcdefghi.".repeat(12) + "example";
    let edit = MonitorEdit { kind: given("ping"), ..MonitorEdit::default() };
    let edit = MonitorEdit { check: CheckEdit { host: given(&host), ..CheckEdit::default() }, ..edit };
    assert_eq!(edit.validate(None, "").unwrap().name.len(), 80);
}
