//! Reading a registry's answer about a domain (RFC 9083, section 5.3).

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde::Deserialize;

/// What a check needs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registration {
    /// When it ends, epoch ms; registries of some countries don't tell.
    pub(super) expires_ms: Option<i64>,
    /// Whether it has ended and waits to be redeemed or deleted (RFC 8056).
    pub(super) is_lapsed: bool,
}

#[derive(Deserialize)]
struct Domain {
    #[serde(default, rename = "objectClassName")]
    class: Option<String>,
    #[serde(default, rename = "ldhName")]
    name: Option<String>,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, rename = "eventAction")]
    action: Option<String>,
    #[serde(default, rename = "eventDate")]
    date: Option<String>,
}

/// Reads the answer about `domain`, which is lower case and has no trailing dot.
///
/// # Errors
/// Words for why it is no such answer.
pub(super) fn read(body: &[u8], domain: &str) -> Result<Registration, &'static str> {
    // The library would take an array for the object, too.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err("its answer can't be read");
    }
    let answer: Domain = serde_json::from_slice(body).map_err(|_| "its answer can't be read")?;
    if answer.class.is_some_and(|class| !class.eq_ignore_ascii_case("domain")) {
        return Err("its answer is not about a domain");
    }
    if answer.name.is_some_and(|name| !name.trim_end_matches('.').eq_ignore_ascii_case(domain)) {
        return Err("its answer is about another domain");
    }
    let ends = answer.events.iter().find(|event| {
        event.action.as_deref().is_some_and(|action| action.trim().eq_ignore_ascii_case("expiration"))
    });
    let expires_ms = match ends.and_then(|event| event.date.as_deref()) {
        Some(date) => Some(moment(date.trim()).ok_or("its date can't be read")?),
        None => None,
    };
    let is_lapsed = answer.status.iter().any(|word| {
        let word = word.to_ascii_lowercase().replace(['_', '-'], " ");
        word == "redemption period" || word == "pending delete"
    });
    Ok(Registration { expires_ms, is_lapsed })
}

/// Whether these bytes are a JSON object.
pub(super) fn is_json_object(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body).is_ok()
}

/// RFC 3339; registries that leave the zone or the time out mean UTC, and the day's begin.
pub(super) fn moment(text: &str) -> Option<i64> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(moment.timestamp_millis());
    }
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"))
        .or_else(|_| NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN)));
    local.ok().map(|moment| moment.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_in_every_form_registries_use() {
        for date in [
            "2027-08-13T04:00:00Z",
            "2027-08-13T06:00:00+02:00",
            "2027-08-13T04:00:00.000Z",
            "2027-08-13T04:00:00",
            "2027-08-13 04:00:00",
        ] {
            let body = format!(
                r#"{{"objectClassName":"domain","ldhName":"EXAMPLE.com.","status":["active"],
                "events":[{{"eventAction":"registration","eventDate":"1995-08-14T04:00:00Z"}},
                {{"eventAction":"expiration","eventDate":"{date}"}}],"entities":[{{"roles":["registrar"]}}]}}"#
            );
            let read = read(body.as_bytes(), "example.com").unwrap();
            assert_eq!(
                read,
                Registration { expires_ms: Some(1_818_129_600_000), is_lapsed: false },
                "{date}"
            );
        }
        assert_eq!(moment("2027-08-13"), Some(1_818_115_200_000));
    }

    #[test]
    fn a_lapsed_registration_is_told_by_its_status() {
        for word in ["redemption period", "pendingDelete", "pending delete", "Redemption-Period"] {
            let body = format!(r#"{{"status":["active","{word}"]}}"#);
            let lapsed = read(body.as_bytes(), "example.com").unwrap().is_lapsed;
            assert_eq!(lapsed, word != "pendingDelete", "the word of EPP is not that of RDAP: {word}");
        }
    }

    #[test]
    fn another_document_is_no_answer() {
        for body in [
            "",
            "<html></html>",
            "[]",
            r#"{"objectClassName":"entity"}"#,
            r#"{"ldhName":"other.com"}"#,
            r#"{"events":[{"eventAction":"expiration","eventDate":"soon"}]}"#,
        ] {
            assert!(read(body.as_bytes(), "example.com").is_err(), "{body}");
        }
        assert_eq!(read(b"{}", "example.com").unwrap().expires_ms, None);
        assert!(is_json_object(b"{\"errorCode\":404}") && !is_json_object(b"<html>"));
    }
}
