//! The `get_time` tool: models do not know the current time, but need it to plan windows and to read timestamps.

use chrono::{DateTime, Datelike, Weekday};
use chrono_tz::Tz;
use parallax_core::time::Timestamp;
use serde_json::{Map, Value, json};

/// Name of the tool.
pub(super) const NAME: &str = "get_time";

/// Tool definition, as listed to clients; with a page argument if there may be several pages.
pub(super) fn tool_definition(has_pages: bool) -> Value {
    let mut properties = Map::new();
    if has_pages {
        let about = "Page id: use the timezone of this page.";
        properties.insert("pageId".to_owned(), json!({ "type": "string", "description": about }));
    }
    let about = "IANA timezone, such as Europe/Berlin.";
    properties.insert("timezone".to_owned(), json!({ "type": "string", "description": about }));
    let zone = if has_pages { "the timezone of a page or any other" } else { "the page's timezone or any other" };
    json!({
        "name": NAME,
        "description": format!("Get the current time in UTC, and as local time in {zone}."),
        "inputSchema": { "type": "object", "properties": properties, "additionalProperties": false },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// Removes the timezone from the arguments of a call; defaults to `zone`.
///
/// # Errors
/// Message on the invalid argument.
pub(super) fn take_timezone(arguments: &mut Map<String, Value>, zone: Tz) -> Result<Tz, String> {
    let argument = arguments.shift_remove("timezone");
    if let Some(name) = arguments.keys().next() {
        return Err(format!("there is no argument {name}"));
    }
    match argument {
        None | Some(Value::Null) => Ok(zone),
        Some(argument) => argument
            .as_str()
            .and_then(|name| name.trim().parse().ok())
            .ok_or_else(|| "timezone must be an IANA time zone".to_owned()),
    }
}

/// Builds the result: the current time in UTC and in the timezone.
pub(super) fn current_time(now: Timestamp, zone: Tz) -> Value {
    let local = now.to_utc().map(|utc| utc.with_timezone(&zone));
    json!({
        "now": now.to_string(),
        "epochMs": now.as_millis(),
        "timezone": zone.name(),
        "local": local.as_ref().map(DateTime::to_rfc3339),
        "weekday": local.map(|utc| weekday(utc.weekday())),
    })
}

const fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Mon => "Monday",
        Weekday::Tue => "Tuesday",
        Weekday::Wed => "Wednesday",
        Weekday::Thu => "Thursday",
        Weekday::Fri => "Friday",
        Weekday::Sat => "Saturday",
        Weekday::Sun => "Sunday",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_in_utc_and_in_a_zone() {
        let now = Timestamp::parse_iso("2026-11-29T23:30:00Z").unwrap();
        let expected = json!({
            "now": "2026-11-29T23:30:00.000Z", "epochMs": 1_795_995_000_000_i64, "timezone": "Europe/Berlin",
            "local": "2026-11-30T00:30:00+01:00", "weekday": "Monday",
        });
        assert_eq!(current_time(now, chrono_tz::Europe::Berlin), expected);
        let zone_of = |arguments: Value| take_timezone(&mut arguments.as_object().cloned().unwrap(), chrono_tz::UTC);
        assert_eq!(zone_of(json!({})), Ok(chrono_tz::UTC));
        assert_eq!(zone_of(json!({ "timezone": "Asia/Tokyo" })), Ok(chrono_tz::Asia::Tokyo));
        for invalid in [json!({ "timezone": "Mars/Base" }), json!({ "timezone": 5 }), json!({ "zone": "UTC" })] {
            assert!(zone_of(invalid).is_err());
        }
    }
}
