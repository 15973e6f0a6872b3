//! Between the monitor form and the API's body: a record as a form, and a form as it is read.

use parallax_core::check::edit::CheckEdit;
use parallax_core::check::{Check, CheckKind, HttpCheck};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, MonitorSettings};
use parallax_core::patch::PatchField;
use parallax_core::time::{DAY, HOUR, MINUTE, SECOND};
use parallax_core::vantage::{Region, RegionSet};
use serde_json::{Value, json};

use super::super::forms::{self, Form, LOADED};
use crate::http::json_body::JsonObject;

/// Value that stands for secrets, which the form never has.
const STORED: &str = "stored";
/// Fields of a request's secrets.
pub(super) const SECRETS: [&str; 4] = ["headers", "headers.key", "headers.value", "body"];
/// Lengths of the form: its field, and the API's field in minutes.
const LENGTHS: [(&str, &str); 2] = [("period", "periodMinutes"), ("grace", "graceMinutes")];

/// Values of a monitor under the names of the API's body.
pub(super) fn values(monitor: &Monitor) -> JsonObject {
    let regions = |set: RegionSet| json!(set.iter().map(Region::name).collect::<Vec<_>>());
    let thresholds = monitor.slow_thresholds.as_ref().map(|own| {
        let pairs = own.iter().map(|(region, ms)| (region.name().to_owned(), json!(ms)));
        Value::Object(pairs.collect())
    });
    let common = json!({
        "name": monitor.name,
        "groupName": monitor.group,
        "slowThresholdMs": monitor.slow_threshold_ms,
        "slowThresholds": thresholds,
        "latencyLocations": monitor.latency_regions.map(regions),
        "pinnedRegion": monitor.pinned_region.map(Region::name),
    });
    let own = match &monitor.check {
        Check::Http(check) => http_values(check),
        Check::Tcp(check) => json!({ "host": check.host, "port": check.port }),
        Check::Dns(check) => {
            json!({ "host": check.host, "dnsType": check.record.name(), "dnsExpect": check.expect })
        }
        Check::Ping(check) => json!({ "host": check.host }),
        Check::Certificate(check) => {
            json!({ "host": check.host, "port": check.port, "warnDays": check.warn_days })
        }
        Check::Domain(check) => json!({ "host": check.host, "warnDays": check.warn_days }),
        Check::Heartbeat(check) => json!({
            "periodMinutes": i64::from(check.period_seconds) * SECOND / MINUTE,
            "graceMinutes": i64::from(check.grace_seconds) * SECOND / MINUTE,
        }),
        Check::Component(check) => json!({ "vendorUrl": check.url, "vendorComponent": check.component }),
    };
    let mut values = JsonObject::new();
    for part in [common, own] {
        if let Value::Object(part) = part {
            values.extend(part);
        }
    }
    values
}

fn http_values(check: &HttpCheck) -> Value {
    // A marker in place of secrets: taking them away is a change, and leaving them alone is none.
    let marker = |is_stored: bool| is_stored.then_some(STORED);
    json!({
        "url": check.url,
        "method": check.method.name(),
        "expectStatus": check.expect_status,
        "keyword": check.keyword,
        "keywordMode": check.keyword_mode.name(),
        "headers": marker(!check.headers.is_empty()),
        "body": marker(check.body.is_some()),
    })
}

/// Form of a monitor, without its secrets.
pub(super) fn of_monitor(monitor: &Monitor) -> Form {
    let current = values(monitor);
    let mut form = Form::default();
    for (name, value) in &current {
        match value {
            _ if SECRETS.contains(&name.as_str()) => {}
            Value::String(text) => form.add(name, text.as_str()),
            Value::Number(number) => form.add(name, number.to_string()),
            Value::Array(items) => {
                items.iter().filter_map(Value::as_str).for_each(|item| form.add(name, item));
            }
            Value::Object(items) => {
                items.iter().for_each(|(key, item)| form.add(&format!("{name}[{key}]"), item.to_string()));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
    for (field, minutes) in LENGTHS {
        if let Some(length) = current.get(minutes).and_then(Value::as_i64) {
            let (number, unit) = in_largest_unit(length);
            form.set(field, number.to_string());
            form.set(&format!("{field}Unit"), unit.to_string());
        }
    }
    form.set(LOADED, forms::loaded(&current));
    form
}

/// Form of a new monitor of an address as pasted: a URL, a host with a port, or a host or URL without a scheme.
pub(super) fn of_target(text: &str) -> Form {
    let text = text.trim();
    if text.contains("://") {
        return Form::of([("type", CheckKind::Http.name()), ("url", text)]);
    }
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    let bare = |host: &str| host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).map(str::to_owned);
    match text.rsplit_once(':').filter(|(host, port)| !host.is_empty() && is_port(port)) {
        Some((host, port)) if bare(host).is_some() || !host.contains([':', '/']) => {
            let host = bare(host).unwrap_or_else(|| host.to_owned());
            Form::of([("type", CheckKind::Tcp.name()), ("host", host.as_str()), ("port", port)])
        }
        _ => Form::of([("type", CheckKind::Http.name().to_owned()), ("url", format!("https://{text}"))]),
    }
}

/// Splits minutes into a number and the minutes of its unit.
fn in_largest_unit(minutes: i64) -> (i64, i64) {
    let units = [DAY / MINUTE, HOUR / MINUTE];
    let unit = units.into_iter().find(|unit| minutes > 0 && minutes % unit == 0).unwrap_or(1);
    (minutes / unit, unit)
}

/// Form as it is read: with lengths in minutes, and without secrets that stay.
pub(super) fn as_body(form: &Form, has_secrets: bool) -> Form {
    let mut body = form.clone();
    for (field, minutes) in LENGTHS {
        if form.has(field) {
            let typed = form.text(field).trim();
            let unit = form.text(&format!("{field}Unit")).parse::<i64>().unwrap_or(1);
            let length = typed.parse::<i64>().ok().and_then(|number| number.checked_mul(unit));
            body.set(minutes, length.map_or_else(|| typed.to_owned(), |length| length.to_string()));
        }
    }
    match form.text("secrets") {
        "remove" => {
            SECRETS.into_iter().for_each(|name| body.remove(name));
            body.set("headers", "");
            body.set("body", "");
        }
        "replace" => {}
        // Someone else stored secrets since this form was drawn without any: what is typed is a conflict.
        "" if SECRETS.iter().any(|name| form.all(name).next().is_some()) => {}
        _ if has_secrets => SECRETS.into_iter().for_each(|name| body.remove(name)),
        _ => {}
    }
    body
}

/// True if a monitor has secrets that its form doesn't show.
pub(super) const fn has_secrets(monitor: &Monitor) -> bool {
    match &monitor.check {
        Check::Http(check) => !check.headers.is_empty() || check.body.is_some() || check.credentials.is_some(),
        _ => false,
    }
}

/// Settings as the edit of a new monitor, so that a change can be tested before it is saved. Secrets are in it.
pub(super) fn as_new(settings: &MonitorSettings) -> MonitorEdit {
    let number = |number: u32| PatchField::Value(i64::from(number));
    let text = |text: &str| PatchField::Value(text.to_owned());
    let optional = |value: &Option<String>| value.clone().map_or(PatchField::Absent, PatchField::Value);
    let check = match &settings.check {
        Check::Http(check) => CheckEdit {
            url: text(&check.url),
            method: text(check.method.name()),
            headers: PatchField::Value(check.sent_headers()),
            body: optional(&check.body),
            expect_status: check.expect_status.map_or(PatchField::Absent, |it| number(it.into())),
            keyword: optional(&check.keyword),
            keyword_mode: text(check.keyword_mode.name()),
            ..CheckEdit::default()
        },
        Check::Tcp(check) => {
            CheckEdit { host: text(&check.host), port: number(check.port.into()), ..CheckEdit::default() }
        }
        Check::Dns(check) => CheckEdit {
            host: text(&check.host),
            dns_type: text(check.record.name()),
            dns_expect: optional(&check.expect),
            ..CheckEdit::default()
        },
        Check::Ping(check) => CheckEdit { host: text(&check.host), ..CheckEdit::default() },
        Check::Certificate(check) => CheckEdit {
            host: text(&check.host),
            port: number(check.port.into()),
            warn_days: number(check.warn_days.into()),
            ..CheckEdit::default()
        },
        Check::Domain(check) => {
            CheckEdit { host: text(&check.host), warn_days: number(check.warn_days.into()), ..CheckEdit::default() }
        }
        Check::Heartbeat(check) => {
            CheckEdit { period_minutes: number(check.period_seconds / 60), ..CheckEdit::default() }
        }
        Check::Component(check) => CheckEdit {
            vendor_url: text(&check.url),
            vendor_component: optional(&check.component),
            ..CheckEdit::default()
        },
    };
    MonitorEdit {
        kind: text(settings.check.kind().name()),
        name: text(&settings.name),
        pinned_region: settings.pinned_region.map_or(PatchField::Absent, |region| text(region.name())),
        check,
        ..MonitorEdit::default()
    }
}

/// Type named in a form or query; HTTP if it names none.
pub(super) fn kind_of(name: &str) -> CheckKind {
    CheckKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(CheckKind::Http)
}

#[cfg(test)]
mod tests {
    use parallax_core::validation::ValidationErrors;
    use parallax_store::samples::{at, monitor};

    use super::super::super::forms::FormBody;
    use super::*;
    use crate::http::api::monitors::body;

    fn of(kind: &str, check: CheckEdit) -> Monitor {
        let text = |text: &str| PatchField::Value(text.to_owned());
        let edit = MonitorEdit { kind: text(kind), name: text("Shop"), check, ..MonitorEdit::default() };
        let settings = edit.validate(None, "token").unwrap();
        Monitor { created_at: at(0), ..monitor(1, 1, 0) }.with_settings(settings)
    }

    fn samples() -> Vec<Monitor> {
        let text = |text: &str| PatchField::Value(text.to_owned());
        let host = || CheckEdit { host: text("shop.example"), ..CheckEdit::default() };
        vec![
            of(
                "http",
                CheckEdit {
                    url: text("https://shop.example/health"),
                    headers: PatchField::Value(vec![("Accept".to_owned(), "text/html".to_owned())]),
                    keyword: text("ok"),
                    ..CheckEdit::default()
                },
            ),
            of("tcp", CheckEdit { port: PatchField::Value(22), ..host() }),
            of("dns", CheckEdit { dns_expect: text("192.0.2.1"), ..host() }),
            of("ping", host()),
            of("certificate", host()),
            of("domain", host()),
            of("heartbeat", CheckEdit { period_minutes: PatchField::Value(1440), ..CheckEdit::default() }),
            of("component", CheckEdit { vendor_url: text("https://vendor.example"), ..CheckEdit::default() }),
        ]
    }

    fn change(form: &Form, monitor: &Monitor) -> Result<MonitorSettings, ValidationErrors> {
        let (current, read) = (values(monitor), as_body(form, has_secrets(monitor)));
        let mut body = FormBody::change(&read, &current);
        let edit = body::read_change(&mut body);
        assert!(body.into_conflicts().is_empty());
        edit.validate(Some(&monitor.settings()), "")
    }

    #[test]
    fn a_form_that_nobody_touched_changes_nothing() {
        for monitor in samples() {
            let form = of_monitor(&monitor);
            assert_eq!(change(&form, &monitor).unwrap(), monitor.settings(), "{}", monitor.check.kind());
        }
    }

    #[test]
    fn a_pasted_address_fills_the_form() {
        for (pasted, expected) in [
            ("https://shop.example/health", ["http", "https://shop.example/health", "", ""]),
            ("http://shop.example:8080", ["http", "http://shop.example:8080", "", ""]),
            (" db.example:5432 ", ["tcp", "", "db.example", "5432"]),
            ("[2001:db8::1]:22", ["tcp", "", "2001:db8::1", "22"]),
            ("shop.example", ["http", "https://shop.example", "", ""]),
            ("shop.example:8080/health", ["http", "https://shop.example:8080/health", "", ""]),
            ("shop.example/a:1", ["http", "https://shop.example/a:1", "", ""]),
        ] {
            let form = of_target(pasted);
            assert_eq!(["type", "url", "host", "port"].map(|name| form.text(name)), expected, "{pasted}");
        }
    }

    #[test]
    fn secrets_stay_until_they_are_replaced_or_removed() {
        let monitor = &samples()[0];
        let headers = |form: &Form| match change(form, monitor).unwrap().check {
            Check::Http(check) => check.headers,
            other => panic!("{other:?}"),
        };
        let mut form = of_monitor(monitor);
        assert!(!form.has("headers") && !form.has("headers.value"), "secrets are not in the form");
        form.add("headers.key", "X-New");
        form.add("headers.value", "1");
        form.set("secrets", "keep");
        assert_eq!(headers(&form)[0].0, "Accept");
        form.set("secrets", "replace");
        assert_eq!(headers(&form), [("X-New".to_owned(), "1".to_owned())]);
        form.set("secrets", "remove");
        assert_eq!(headers(&form), []);
    }

    #[test]
    fn secrets_that_two_persons_store_are_a_conflict() {
        let now = &samples()[0];
        let check = match &now.check {
            Check::Http(check) => HttpCheck { headers: Vec::new(), ..check.clone() },
            other => panic!("{other:?}"),
        };
        let mut form = of_monitor(&Monitor { check: Check::Http(check), ..now.clone() });
        let conflicts = |form: &Form| {
            let (current, read) = (values(now), as_body(form, has_secrets(now)));
            let mut body = FormBody::change(&read, &current);
            let _ = body::read_change(&mut body);
            body.into_conflicts().into_iter().map(|fault| fault.field).collect::<Vec<_>>()
        };
        // The empty row of the form.
        form.add("headers.key", "");
        form.add("headers.value", "");
        assert_eq!(conflicts(&form), [""; 0], "theirs stay");
        form.set("headers.key", "X-New");
        form.set("headers.value", "1");
        assert_eq!(conflicts(&form), ["headers"]);
    }

    #[test]
    fn lengths_are_read_in_their_unit() {
        let heartbeat = &samples()[6];
        let mut form = of_monitor(heartbeat);
        assert_eq!((form.text("period"), form.text("periodUnit")), ("1", "1440"));
        form.set("period", "6");
        form.set("periodUnit", "60");
        form.set("grace", "10");
        form.set("graceUnit", "1");
        let Check::Heartbeat(check) = change(&form, heartbeat).unwrap().check else { panic!("a heartbeat") };
        assert_eq!((check.period_seconds, check.grace_seconds), (6 * 3600, 600));
        form.set("period", "soon");
        let faults = change(&form, heartbeat).unwrap_err();
        assert_eq!(faults.to_string(), "periodMinutes must be a whole number");
    }

    #[test]
    fn settings_are_tested_as_they_would_be_saved() {
        for monitor in samples() {
            let settings = monitor.settings();
            let tested = as_new(&settings).validate(None, "").unwrap();
            let kind = monitor.check.kind();
            if kind != CheckKind::Heartbeat {
                assert_eq!(tested.check, settings.check, "{kind}");
            }
            assert_eq!(tested.pinned_region, settings.pinned_region, "{kind}");
        }
    }
}
