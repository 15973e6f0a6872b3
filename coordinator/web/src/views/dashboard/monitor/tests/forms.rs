//! Forms of a monitor: the fields of each type, faults, secrets, limits, the test, and the questions.

use parallax_core::check::CheckKind;

use super::super::confirm::MonitorQuestion;
use super::super::edit_form::{MonitorForm, TestView};
use super::*;
use crate::views::dashboard::form::{FieldFault, FormView};

fn form(kind: CheckKind, values: &[(&str, &str)]) -> MonitorForm {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    MonitorForm {
        frame: frame(Role::Editor, Section::Monitors, "Northwind"),
        list: "/app/pages/x/monitors".to_owned(),
        action: "/app/pages/x/monitors/new".to_owned(),
        cancel: "/app/pages/x/monitors".to_owned(),
        name: None,
        kind,
        form: FormView::new("token".to_owned(), "once".to_owned(), String::new(), values),
        groups: vec!["Shop".to_owned(), "Delivery".to_owned()],
        stored: String::new(),
        limit: "39 of 500 monitors. First check within 5 s.".to_owned(),
        full: String::new(),
        has_components: true,
        uses_regions: true,
        test: None,
    }
}

fn text(form: &MonitorForm) -> String {
    render(form).unwrap()
}

fn names(screen: &str) -> Vec<&str> {
    let names = screen.split(" name=\"").skip(1).filter_map(|rest| rest.split('"').next());
    names
        .filter(|name| !["viewport", "robots", "color-scheme", "form_token", "idempotency_key"].contains(name))
        .collect()
}

#[test]
fn each_type_asks_for_its_own_fields() {
    for (kind, own) in [
        (CheckKind::Http, vec!["url", "slowThresholdMs", "pinnedRegion", "method", "headers.key", "keyword"]),
        (CheckKind::Tcp, vec!["host", "port", "slowThresholdMs", "pinnedRegion"]),
        (CheckKind::Dns, vec!["host", "dnsType", "dnsExpect", "latencyLocations"]),
        (CheckKind::Ping, vec!["host", "slowThresholds[asia]"]),
        (CheckKind::Certificate, vec!["host", "port", "warnDays", "pinnedRegion"]),
        (CheckKind::Domain, vec!["host", "warnDays"]),
        (CheckKind::Heartbeat, vec!["period", "periodUnit", "grace", "graceUnit"]),
        (CheckKind::Component, vec!["vendorUrl", "vendorComponent"]),
    ] {
        let screen = text(&form(kind, &[]));
        let names = names(&screen);
        assert!(own.iter().all(|name| names.contains(name)), "{kind}: {names:?}");
        let all = ["url", "port", "dnsType", "warnDays", "period", "vendorUrl", "slowThresholdMs", "pinnedRegion"];
        for other in all.iter().filter(|name| !own.contains(name)) {
            let has_regions = *other == "pinnedRegion" && !matches!(kind, CheckKind::Heartbeat | CheckKind::Component);
            let has_latency = *other == "slowThresholdMs" && kind.has_latency();
            assert!(!names.contains(other) || has_regions || has_latency, "{kind} has {other}");
        }
        assert_eq!(screen.matches("aria-pressed=\"true\"").count(), 1, "{kind}");
    }
}

#[test]
fn faults_stand_under_their_fields_and_nothing_typed_is_lost() {
    let mut form = form(
        CheckKind::Http,
        &[
            ("url", "https://api.northwind.example/health"),
            ("groupName", "Shop"),
            ("slowThresholdMs", "250"),
            ("latencyLocations", "europe"),
            ("latencyLocations", "oceania"),
            ("slowThresholds[oceania]", "12000"),
            ("headers.key", "X-Key"),
            ("headers.value", HOSTILE),
            ("name", HOSTILE),
        ],
    );
    let fault = |field: &str, text: &str| FieldFault { field: field.to_owned(), text: text.to_owned() };
    form.form.faults = vec![
        fault("slowThresholds", "Must have milliseconds as values: each must be a whole number from 1 to 9999."),
        fault("name", "Must be 1 to 80 characters."),
    ];
    let (europe, north, asia, oceania) = (passed(84), passed(97), passed(87), passed(261));
    let failed = ProbeOutcome::Failed(
        Measurements { status_code: Some(403), latency_ms: Some(87), ..Measurements::default() },
        Failure::UnexpectedStatus(403),
    );
    let result = |region, no, seen| RegionResult {
        region,
        seen: Some((VantageNo(no), seen)),
        missing: None,
        threshold_ms: Some(250),
    };
    let results = [
        result(Region::Europe, 1, &europe),
        result(Region::NorthAmerica, 2, &north),
        result(Region::SouthAmerica, 3, &asia),
        result(Region::Asia, 5, &failed),
        result(Region::Oceania, 6, &oceania),
    ];
    form.test = Some(TestView::new(&results, &Scene::up().labels, |_| true));
    let screen = text(&form);
    keep("monitor-new", &screen);
    for words in [
        "2 fields need a change:",
        "href=\"#slowThresholds\"",
        "Must be 1 to 80 characters.",
        "each must be a whole number from 1 to 9999.",
        "value=\"12000\"",
        "value=\"X-Key\"",
        "4 of 5 regions would be up",
        "Use 400 ms",
        "Create anyway",
        "39 of 500 monitors. First check within 5 s.",
        "Oceania 12000 ms",
        "<details class=\"more\" open>",
        "Nothing is saved and no one is notified.",
    ] {
        assert!(screen.contains(words), "{words} is missing");
    }
    assert!(!screen.contains("<script>alert"), "{screen}");
    assert_eq!(screen.matches("checked>").count(), 2, "both regions stay chosen");
}

#[test]
fn an_edit_shows_no_secret_and_keeps_its_type() {
    let mut form = form(CheckKind::Http, &[("url", "https://api.northwind.example/health"), ("name", "Payments")]);
    form.name = Some("Payments".to_owned());
    form.stored = "2 headers, a body".to_owned();
    let screen = text(&form);
    keep("monitor-edit", &screen);
    for words in ["2 headers, a body stored, never shown", "can't be changed", "Save changes", "GET, 2 headers, a body"]
    {
        assert!(screen.contains(words), "{words} is missing");
    }
    assert!(!screen.contains("class=\"kind\""), "{screen}");
}

#[test]
fn limits_are_said_before_they_are_met() {
    let mut form = form(CheckKind::Component, &[]);
    (form.has_components, form.uses_regions) = (false, false);
    form.full = "Component monitors need the pro plan; this account is on the free plan.".to_owned();
    let screen = text(&form);
    assert!(screen.contains("need the pro plan") && screen.contains("Pro</span>"), "{screen}");
    form.kind = CheckKind::Http;
    assert!(text(&form).contains("take effect from the Hobby plan on"));
}

#[test]
fn a_question_says_what_follows() {
    let question = |asks_name: bool, notify: Option<&str>| MonitorQuestion {
        frame: frame(Role::Editor, Section::Monitors, "Northwind"),
        name: HOSTILE.to_owned(),
        path: "/app/pages/x/monitors/y".to_owned(),
        action: "/app/pages/x/monitors/y/delete".to_owned(),
        title: "Delete Payments API?".to_owned(),
        text: "Its history, its figures and its badge are deleted.".to_owned(),
        maintenance: notify.map(|_| "/app/pages/x/incidents/new?kind=maintenance".to_owned()),
        notify: notify.map(str::to_owned),
        asks_name,
        button: "Delete monitor",
        form: FormView::default(),
    };
    let screen = |question: &MonitorQuestion| render(question).unwrap();
    let full = screen(&question(true, Some("Notify subscribers that “Payments API is down” is resolved")));
    keep("monitor-delete", &full);
    for words in ["Type the name of the monitor", "Notify subscribers", "Start maintenance instead", "Delete monitor"] {
        assert!(full.contains(words), "{words}");
    }
    let short = screen(&question(false, None));
    assert!(!short.contains("Type the name") && !short.contains("name=\"notify\""), "{short}");
    assert!(!full.contains("<script>alert"), "{full}");
}
