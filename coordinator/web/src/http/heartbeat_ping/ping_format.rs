//! The format of pings: the path and `rid` of Healthchecks, and the query of Uptime Kuma's push URLs.
//!
//! An unknown signal is refused, so that a reported failure never passes for a success.

use std::borrow::Cow;

use parallax_core::heartbeat::PingKind;
use parallax_core::validation::ValidationErrors;

/// The report in a ping's query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PingQuery {
    /// Reported event, with the parameter that names it.
    pub(super) report: Option<(&'static str, PingKind)>,
    /// The run named by `rid`.
    pub(super) run_id: Option<u128>,
    /// Text for the owner, used as the body if there is none.
    pub(super) message: String,
    /// Duration of the run, in milliseconds.
    pub(super) run_ms: Option<u64>,
}

/// Splits the path below `/ping/` into the token and the signal in its last part. Trailing and double slashes are
/// ignored, because clients join URLs from parts.
pub(super) fn path(address: &str) -> Option<(&str, Option<PingKind>)> {
    let mut parts = address.split('/').filter(|part| !part.is_empty());
    let token = parts.next()?;
    let kind = match parts.next() {
        Some(signal) => Some(parse_signal(signal)?),
        None => None,
    };
    parts.next().is_none().then_some((token, kind))
}

/// Reads a ping's query. Unknown parameters and invalid durations are ignored.
pub(super) fn query(query: &str) -> Result<PingQuery, ValidationErrors> {
    let mut read = PingQuery::default();
    let mut is_named = false;
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            // The first one counts, as in Healthchecks.
            "rid" if !is_named => {
                is_named = true;
                read.run_id = Some(uuid(&value).ok_or_else(|| ValidationErrors::single("rid", "must be a UUID"))?);
            }
            "status" => set_report(&mut read, "status", status(&value))?,
            "state" => set_report(&mut read, "state", state(&value))?,
            "msg" => read.message = value.into_owned(),
            "ping" => read.run_ms = milliseconds(&value),
            _ => {}
        }
    }
    Ok(read)
}

/// Combines the reports of a ping's path and query: two different ones are refused, and none means success.
pub(super) fn combine_reports(
    path: Option<PingKind>,
    query: Option<(&'static str, PingKind)>,
) -> Result<PingKind, ValidationErrors> {
    match (path, query) {
        (Some(path), Some((field, query))) if !is_same_report(path, query) => {
            Err(ValidationErrors::single(field, "must not contradict the address, which ends in another signal"))
        }
        (Some(kind), _) | (None, Some((_, kind))) => Ok(kind),
        (None, None) => Ok(PingKind::Succeeded),
    }
}

/// Reads the signal in the last part of a ping's path.
fn parse_signal(signal: &str) -> Option<PingKind> {
    match signal {
        "start" => Some(PingKind::Started),
        "fail" => Some(PingKind::Failed(None)),
        "log" => Some(PingKind::Log),
        code if code.bytes().all(|digit| digit.is_ascii_digit()) => match code.parse().ok()? {
            0 => Some(PingKind::Succeeded),
            code => Some(PingKind::Failed(Some(code))),
        },
        _ => None,
    }
}

fn status(value: &str) -> Result<PingKind, &'static str> {
    match lower(value).as_ref() {
        "up" | "1" | "ok" => Ok(PingKind::Succeeded),
        "down" | "0" | "fail" => Ok(PingKind::Failed(None)),
        _ => Err("must be up, 1 or ok, or down, 0 or fail"),
    }
}

fn state(value: &str) -> Result<PingKind, &'static str> {
    match lower(value).as_ref() {
        "run" => Ok(PingKind::Started),
        "complete" => Ok(PingKind::Succeeded),
        "fail" => Ok(PingKind::Failed(None)),
        _ => Err("must be run, complete or fail"),
    }
}

fn lower(value: &str) -> Cow<'_, str> {
    if value.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(value.to_ascii_lowercase())
    } else {
        Cow::Borrowed(value)
    }
}

/// Stores the report of a parameter, which must not contradict an earlier one.
fn set_report(
    read: &mut PingQuery,
    field: &'static str,
    kind: Result<PingKind, &'static str>,
) -> Result<(), ValidationErrors> {
    let kind = kind.map_err(|rule| ValidationErrors::single(field, rule))?;
    match read.report {
        Some((_, before)) if !is_same_report(before, kind) => {
            Err(ValidationErrors::single(field, "must not contradict an earlier parameter of the query"))
        }
        Some(_) => Ok(()),
        None => {
            read.report = Some((field, kind));
            Ok(())
        }
    }
}

/// Returns true if two reports are the same except for an exit code.
const fn is_same_report(one: PingKind, other: PingKind) -> bool {
    matches!(
        (one, other),
        (PingKind::Succeeded, PingKind::Succeeded)
            | (PingKind::Started, PingKind::Started)
            | (PingKind::Log, PingKind::Log)
            | (PingKind::Failed(_), PingKind::Failed(_))
    )
}

/// Reads a duration in milliseconds, which clients send with decimals, or empty if unknown.
fn milliseconds(value: &str) -> Option<u64> {
    let value: f64 = value.trim().parse().ok()?;
    // The cast saturates; the heartbeat stores no run longer than days.
    (value.is_finite() && value >= 0.0).then(|| value.round() as u64)
}

/// Reads a UUID as RFC 9562 writes it.
fn uuid(text: &str) -> Option<u128> {
    let hyphens = [8, 13, 18, 23];
    let is_one = text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if hyphens.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() });
    is_one.then(|| u128::from_str_radix(&text.replace('-', ""), 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Option<PingKind> = Some(PingKind::Failed(None));

    #[test]
    fn the_last_segment_is_a_report_or_an_exit_code() {
        for (address, expected) in [
            ("t", None),
            ("t/start", Some(PingKind::Started)),
            ("t/fail", FAILED),
            ("t/log", Some(PingKind::Log)),
            ("t/0", Some(PingKind::Succeeded)),
            ("t/000", Some(PingKind::Succeeded)),
            ("t/1", Some(PingKind::Failed(Some(1)))),
            ("t/255", Some(PingKind::Failed(Some(255)))),
        ] {
            for slashes in ["", "/", "//"] {
                assert_eq!(path(&format!("{address}{slashes}")), Some(("t", expected)), "{address}{slashes}");
            }
        }
        assert_eq!(path("t//fail"), Some(("t", FAILED)));
        for other in ["", "/", "t/256", "t/-1", "t/+1", "t/Start", "t/1.0", "t/ok", "t/start/1"] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn a_run_is_named_by_a_uuid() {
        let run = |text: &str| query(text).map(|query| query.run_id);
        let named = "create=1&rid=0123abcd-0000-4000-8000-0000000000ff";
        assert_eq!(run(named), Ok(Some(0x0123_abcd_0000_4000_8000_0000_0000_00ff)));
        assert_eq!((run(""), run("create=1")), (Ok(None), Ok(None)));
        for invalid in ["rid=", "rid=7", "rid=0123abcd-0000-4000-8000-0000000000fg", "rid=é"] {
            assert_eq!(run(invalid).unwrap_err().to_string(), "rid must be a UUID", "{invalid}");
        }
    }

    #[test]
    fn the_query_of_a_push_has_its_report() {
        for (text, expected) in [
            ("", None),
            ("token=x&verbose", None),
            ("status=up&msg=OK&ping=", Some(PingKind::Succeeded)),
            ("status=1", Some(PingKind::Succeeded)),
            ("status=OK", Some(PingKind::Succeeded)),
            ("status=down", FAILED),
            ("status=0", FAILED),
            ("status=fail", FAILED),
            ("msg=disk&status=Down", FAILED),
            ("state=fail", FAILED),
            ("state=complete", Some(PingKind::Succeeded)),
            ("state=run", Some(PingKind::Started)),
            ("status=down&state=fail", FAILED),
        ] {
            assert_eq!(query(text).unwrap().report.map(|(_, kind)| kind), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_report_is_no_success() {
        for (text, rule) in [
            ("status=", "status must be up, 1 or ok, or down, 0 or fail"),
            ("status=warn", "status must be up, 1 or ok, or down, 0 or fail"),
            ("status=complete", "status must be up, 1 or ok, or down, 0 or fail"),
            ("state=", "state must be run, complete or fail"),
            ("state=down", "state must be run, complete or fail"),
            ("status=up&status=down", "status must not contradict an earlier parameter of the query"),
            ("status=down&state=complete", "state must not contradict an earlier parameter of the query"),
        ] {
            assert_eq!(query(text).unwrap_err().to_string(), rule, "{text}");
        }
    }

    #[test]
    fn path_and_query_must_not_contradict() {
        let of = |address: &str, text: &str| {
            combine_reports(path(address).unwrap().1, query(text).unwrap().report).map_err(|fault| fault.to_string())
        };
        assert_eq!(of("t", ""), Ok(PingKind::Succeeded));
        assert_eq!(of("t", "status=down"), Ok(PingKind::Failed(None)));
        assert_eq!(of("t/3", "status=down"), Ok(PingKind::Failed(Some(3))));
        assert_eq!(of("t/start", "state=run"), Ok(PingKind::Started));
        for (address, text, field) in
            [("t/0", "status=down", "status"), ("t/fail", "status=up", "status"), ("t/log", "state=run", "state")]
        {
            let fault = of(address, text).unwrap_err();
            assert!(fault.starts_with(&format!("{field} must not contradict the address")), "{fault}");
        }
    }

    #[test]
    fn a_push_has_a_message_and_a_duration() {
        let read = query("status=down&msg=disk+is%20full%21&ping=1250.6").unwrap();
        assert_eq!((read.message.as_str(), read.run_ms), ("disk is full!", Some(1251)));
        for none in ["ping=", "ping=-1", "ping=NaN", "ping=inf", "ping=soon"] {
            assert_eq!(query(none).unwrap().run_ms, None, "{none}");
        }
        assert_eq!(query("ping=1e300").unwrap().run_ms, Some(u64::MAX));
    }
}
