//! Parsing of a registry's RDAP response about a domain (RFC 9083, section 5.3).

use parallax_dial::Host;
use serde_json::{Map, Value};

use super::{date, registrable::top_level, registration::Registration, vocabulary};

/// Parses the response about `domain`, which is lower case and has no trailing dot. Fields that a check does
/// not need may be missing, null or of another type.
///
/// # Errors
/// A message why it is not such a response.
pub(super) fn read(body: &[u8], domain: &str) -> Result<Registration, String> {
    let answer = object(body)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::trim);
    if text("objectClassName").is_some_and(|class| !class.eq_ignore_ascii_case("domain")) {
        return Err("its answer is not about a domain".to_owned());
    }
    if text("ldhName").or_else(|| text("unicodeName")).is_some_and(|name| !is_same(name, domain)) {
        return Err("its answer is about another domain".to_owned());
    }
    let top = top_level(domain);
    let mut ends: Vec<(u8, &str)> = Vec::new();
    let mut registration = Registration::default();
    for event in items(answer.get("events")) {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let (Some(action), Some(date)) = (text("eventAction"), text("eventDate")) else { continue };
        let action = vocabulary::normalized(action);
        match vocabulary::expiry_rank(&action, top) {
            // The registered value (RFC 9083, section 10.2.3) precedes any synonym.
            Some(_) if action == "expiration" => ends.push((0, date)),
            Some(rank) => ends.push((rank, date)),
            None if vocabulary::is_registration_date(&action) => registration.registered_ms = date::read(date, top),
            None => {}
        }
    }
    let registration = registration.with_expiry(&mut ends, top)?;
    let statuses = items(answer.get("status")).filter_map(Value::as_str);
    Ok(statuses.fold(registration, Registration::with_status))
}

/// Returns true if the bytes are a JSON object.
pub(super) fn is_json_object(body: &[u8]) -> bool {
    object(body).is_ok()
}

/// Parses the object, with or without a byte order mark before it.
fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    let text = encoding_rs::UTF_8.decode(body).0;
    match serde_json::from_str(&text) {
        Ok(Value::Object(answer)) => Ok(answer),
        Ok(_) => Err("its answer is not a JSON object".to_owned()),
        Err(_) if text.trim_start().starts_with('<') => Err("it answers with HTML instead of JSON".to_owned()),
        Err(_) => Err("its answer is not JSON".to_owned()),
    }
}

/// Returns the items of a list; a single value counts as a list of one.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => &[],
    }
    .iter()
}

/// Compares a name with the domain, in any script.
fn is_same(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case(domain) || matches!(Host::parse(name), Ok(Host::Name(name)) if name.as_str() == domain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 1 May 2027.
    const END: i64 = 1_809_129_600_000;
    /// 15 January 2027.
    const NOW: i64 = 1_800_000_000_000;

    fn end_of(answer: &Value) -> Result<i64, String> {
        read(answer.to_string().as_bytes(), "example.com")?.plausible_expiry(NOW)
    }

    fn with_end(action: &str, date: &str) -> Value {
        json!({
            "objectClassName": "domain", "ldhName": "EXAMPLE.com.", "status": ["active"],
            "events": [
                {"eventAction": "registration", "eventDate": "1995-08-14T04:00:00Z"},
                {"eventAction": "registrar expiration", "eventDate": "2031-01-01T00:00:00Z"},
                {"eventAction": action, "eventDate": date},
                {"eventAction": "last update of RDAP database", "eventDate": "2027-01-01T00:00:00Z"},
            ],
            "entities": [{"roles": ["registrar"]}],
        })
    }

    #[test]
    fn the_expiry_is_read_from_events_by_their_meaning() {
        for (action, date) in [
            ("expiration", "2027-05-01T00:00:00Z"),
            ("Expiration", "2027-05-01T02:00:00+02:00"),
            ("Record expires", "2027-05-01T00:00Z"),
            ("record expires", "2027-05-01T00:00"),
            ("expiry", "2027-05-01"),
            ("expiration date", "Sat May  1 00:00:00 2027"),
            ("valid until", "20270501"),
            ("paid-till", "2027-05-01T00:00:00.000Z"),
            ("renewal", "2027-05-01 00:00:00"),
        ] {
            assert_eq!(end_of(&with_end(action, date)), Ok(END), "{action} {date}");
        }
        for action in ["registrar expiration", "enum validation expiration", "last changed"] {
            let without = with_end(action, "2027-05-01T00:00:00Z");
            assert_eq!(end_of(&without), Err("its answer has no expiry date".to_owned()), "{action}");
        }
        let both = json!({"events": [
            {"eventAction": "soft expiration", "eventDate": "2026-05-01"},
            {"eventAction": "expiration", "eventDate": "2027-05-01"},
        ]});
        assert_eq!(end_of(&both), Ok(END), "the registered value is the clearest");
    }

    #[test]
    fn irrelevant_fields_may_have_any_value() {
        let whole = with_end("expiration", "2027-05-01T00:00:00Z");
        for field in ["objectClassName", "ldhName", "status", "entities"] {
            for value in [json!(null), json!(7), json!({}), json!([null, 1, {}]), json!(true)] {
                let mut answer = whole.clone();
                answer[field] = value.clone();
                assert_eq!(end_of(&answer), Ok(END), "{field}: {value}");
            }
        }
        for value in
            [json!(null), json!({}), json!({"eventAction": null}), json!({"eventAction": "expiration"}), json!(3)]
        {
            let mut answer = whole.clone();
            answer["events"].as_array_mut().unwrap().insert(0, value.clone());
            assert_eq!(end_of(&answer), Ok(END), "{value}");
        }
        let single = json!({"status": "active", "events": {"eventAction": "expiration", "eventDate": "2027-05-01"}});
        assert_eq!(end_of(&single), Ok(END));
        for none in [json!(null), json!([]), json!("x")] {
            assert_eq!(end_of(&json!({ "events": none })), Err("its answer has no expiry date".to_owned()));
        }
        let marked = [b"\xef\xbb\xbf \n", whole.to_string().as_bytes()].concat();
        assert_eq!(read(&marked, "example.com").unwrap().plausible_expiry(NOW), Ok(END));
        let latin = [&b"{\"port43\":\"\xe9\","[..], &whole.to_string().as_bytes()[1..]].concat();
        assert_eq!(read(&latin, "example.com").unwrap().plausible_expiry(NOW), Ok(END));
        let native = json!({"ldhName": "bücher.example", "events": whole["events"]});
        assert!(read(native.to_string().as_bytes(), "xn--bcher-kva.example").is_ok());
    }

    #[test]
    fn implausible_expiry_dates_are_errors() {
        for (date, why) in [
            ("0001-01-01T00:00:00Z", "its expiry date 0001-01-01 is not plausible"),
            ("1970-01-01T00:00:00Z", "its expiry date 1970-01-01 is not plausible"),
            ("1995-08-14T04:00:00Z", "its expiry date 1995-08-14 is before the registration"),
            ("2020-05-01T00:00:00Z", "its expiry date 2020-05-01 is years in the past, but the domain is active"),
            ("soon", "its expiry date \"soon\" can't be read"),
        ] {
            assert_eq!(end_of(&with_end("expiration", date)), Err(why.to_owned()));
        }
        // A date with an ambiguous label is not an expiry while the domain is active.
        for action in ["renewal", "validity"] {
            let mut past = with_end(action, "2027-01-14");
            let why = "its expiry date 2027-01-14 is in the past, but the domain is active";
            assert_eq!(end_of(&past), Err(why.to_owned()), "{action}");
            past["status"] = json!(["client hold"]);
            assert!(end_of(&past).is_ok_and(|end| end < NOW), "{action}");
        }
        // A date a month in the past is an expiry, and one years in the past is if the domain is inactive.
        let lately = with_end("expiration", "2026-12-15");
        assert!(end_of(&lately).is_ok_and(|end| end < NOW));
        let mut held = with_end("expiration", "2020-05-01T00:00:00Z");
        held["status"] = json!(["server hold"]);
        assert!(end_of(&held).is_ok_and(|end| end < NOW));
    }

    #[test]
    fn a_lapsed_registration_is_known_by_its_status() {
        for status in [json!(["active", "redemption period"]), json!("pending delete"), json!([null, "pendingDelete"])]
        {
            let answer = json!({ "status": status });
            assert!(read(answer.to_string().as_bytes(), "example.com").unwrap().is_lapsed, "{status}");
        }
    }

    #[test]
    fn other_documents_are_rejected() {
        for (body, why) in [
            ("", "its answer is not JSON"),
            (" <html></html>", "it answers with HTML instead of JSON"),
            ("[]", "its answer is not a JSON object"),
            (r#"{"objectClassName":"entity"}"#, "its answer is not about a domain"),
            (r#"{"ldhName":"other.com"}"#, "its answer is about another domain"),
        ] {
            assert_eq!(read(body.as_bytes(), "example.com"), Err(why.to_owned()), "{body}");
        }
        assert_eq!(read(b"{}", "example.com").unwrap().expires_ms, None);
        assert!(is_json_object(b"\xef\xbb\xbf{\"errorCode\":404}") && !is_json_object(b"<html>"));
    }
}
