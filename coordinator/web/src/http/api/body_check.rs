//! Compares request bodies with the current document: a read-only field that comes back unchanged is ignored, a
//! field that another route changes is refused with the name of that route, and a likely typo is reported as a
//! warning.

use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use serde::Serialize;
use serde_json::Value;
use strsim::osa_distance;

use crate::http::body_fields::RecordedFields;
use crate::http::json_body::JsonObject;

/// Warnings in one response at most.
pub(super) const MAX_WARNINGS: usize = 20;
/// Unknown names that are examined at most.
const MAX_UNKNOWN_FIELDS: usize = 100;
/// Characters of a name that a warning repeats.
const MAX_QUOTED: usize = 60;
/// Edit distance of a typo from a known name; half of it if one of the two is short.
const MAX_TYPO_DISTANCE: usize = 2;
/// Length from which a name isn't short.
const SHORT_NAME: usize = 4;
/// Two fields that are merged: if the second is sent, the first counts even if it is unchanged.
const MERGED_FIELDS: (&str, &str) = ("monitors", "monitorIds");
/// A field, and the field with the cause of its value. The first counts as unchanged only if the body has the second
/// unchanged too.
const ECHO_AND_CAUSE: (&str, &str) = ("paused", "pausedBy");
/// The value of a missing member.
static NULL: Value = Value::Null;
/// Fields that the service sets once and nobody sends.
const SET_ONCE: [&str; 3] = ["id", "pageId", "createdAt"];

/// Rule of a field that nobody sends.
pub(super) const SET_BY_SERVICE: &str = "can't be changed: the service sets it";

/// Validation rules of a body, in addition to the names that its reader requests.
#[derive(Debug)]
pub(super) struct BodyRules {
    /// Names of fields that are sent differently, each with a hint.
    pub(super) hints: &'static [(&'static str, &'static str)],
    /// Fields that this route does not change, each with the rule, which names the route that does.
    pub(super) other_routes: &'static [(&'static str, &'static str)],
    /// The rule for any other field of the document.
    pub(super) default_rule: &'static str,
    /// Fields whose format differs between request and response; the response format may be sent back.
    pub(super) echoes: &'static [&'static str],
    /// Fields that change on their own, so that an old value may be sent back; nested ones too.
    pub(super) volatile: &'static [&'static str],
}

/// A parsed request body.
#[derive(Debug)]
pub(super) struct ChangeBody<T> {
    /// Edit built by the body's reader.
    pub(super) edit: T,
    /// Fields that this route does not change.
    pub(super) errors: ValidationErrors,
    /// Warnings for the sender.
    pub(super) warnings: Vec<String>,
}

/// Reads the body of a new resource, and warnings for the sender.
pub(super) fn read_new<T>(
    object: &JsonObject,
    rules: &BodyRules,
    read: impl FnOnce(&mut RecordedFields<'_>) -> T,
) -> (T, Vec<String>) {
    let mut fields = RecordedFields::new(object);
    let edit = read(&mut fields);
    let mut warnings = Vec::new();
    for (name, _) in unknown_fields(object, fields.names()).filter(|(_, value)| !value.is_null()) {
        let other_route = find(rules.other_routes, name).map(|rule| format!("it {rule}"));
        let hint = find(rules.hints, name).map(str::to_owned).or(other_route);
        if !rules.volatile.contains(&name) {
            warnings.extend(warning(name, hint, fields.names()));
        }
    }
    warnings.truncate(MAX_WARNINGS);
    (edit, warnings)
}

/// Reads the body of a change to a resource with that document; none if the resource was deleted. Fields that equal the
/// document are removed from the body.
pub(super) fn read_change<T>(
    object: &mut JsonObject,
    current: Option<&Value>,
    rules: &BodyRules,
    read: impl FnOnce(&mut RecordedFields<'_>) -> T,
) -> ChangeBody<T> {
    let (first, second) = MERGED_FIELDS;
    let is_merged = object.contains_key(second);
    let current = current.and_then(Value::as_object);
    let comes_back = |name: &str, value: &Value| {
        current.and_then(|current| current.get(name)).is_some_and(|it| is_same(value, it, rules))
    };
    let (echoed, cause) = ECHO_AND_CAUSE;
    let is_beside = object.get(cause).is_some_and(|value| comes_back(cause, value));
    object.retain(|name, value| {
        let is_ignored =
            rules.echoes.contains(&name.as_str()) && !(is_merged && name == first) && (is_beside || name != echoed);
        !(is_ignored && comes_back(name, value))
    });
    let mut fields = RecordedFields::new(object);
    let edit = read(&mut fields);
    let (mut field_errors, mut warnings) = (ValidationErrors::new(), Vec::new());
    for (name, value) in unknown_fields(object, fields.names()) {
        let is_known = current.is_some_and(|current| current.contains_key(name));
        if rules.volatile.contains(&name) || comes_back(name, value) {
            continue;
        }
        if let Some(hint) = find(rules.hints, name) {
            warnings.extend(warning(name, Some(hint.to_owned()), &[]));
        } else if let Some(rule) = find(rules.other_routes, name) {
            field_errors.add(name, rule);
        } else if is_known {
            field_errors.add(name, if SET_ONCE.contains(&name) { SET_BY_SERVICE } else { rules.default_rule });
        } else {
            warnings.extend(warning(name, None, fields.names()));
        }
    }
    warnings.truncate(MAX_WARNINGS);
    ChangeBody { edit, errors: field_errors, warnings }
}

/// Converts a document to the form that bodies are compared with.
pub(super) fn to_value(document: &impl Serialize) -> Option<Value> {
    serde_json::to_value(document).ok()
}

fn unknown_fields<'a>(object: &'a JsonObject, known_names: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let sent = object.iter().map(|(name, value)| (name.as_str(), value));
    sent.filter(|(name, _)| !known_names.contains(name)).take(MAX_UNKNOWN_FIELDS)
}

fn find(list: &'static [(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
}

/// Builds the warning about an unknown name: how it is sent, or the known name that was probably meant.
fn warning(name: &str, hint: Option<String>, known_names: &[&str]) -> Option<String> {
    let text = hint.or_else(|| closest_name(name, known_names).map(|known| format!("did you mean {known}?")))?;
    Some(format!("{name:.MAX_QUOTED$} was ignored: {text}"))
}

/// Returns the known name that was probably meant: equal except for case and punctuation, or within two edits, or
/// within one if it is short.
fn closest_name<'a>(name: &str, known_names: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_QUOTED {
        return None;
    }
    let plain = |name: &str| {
        name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    let plain_name = plain(name);
    if let Some(exact) = known_names.iter().find(|known| plain(known) == plain_name) {
        return Some(exact);
    }
    let max_distance = |known: &str| {
        if known.len().min(name.len()) < SHORT_NAME { MAX_TYPO_DISTANCE / 2 } else { MAX_TYPO_DISTANCE }
    };
    let distances = known_names.iter().map(|known| (osa_distance(name, known), *known));
    distances
        .filter(|(distance, known)| *distance <= max_distance(known))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

/// Compares a value that was sent with the current one: numbers and times match in any notation, and members that
/// change on their own are ignored.
fn is_same(sent: &Value, current: &Value, rules: &BodyRules) -> bool {
    match (sent, current) {
        (Value::Number(sent), Value::Number(current)) => sent == current || sent.as_f64() == current.as_f64(),
        (Value::String(sent), Value::String(current)) => sent == current || is_same_time(sent, current),
        (Value::Array(sent), Value::Array(current)) => {
            sent.len() == current.len() && sent.iter().zip(current).all(|(sent, current)| is_same(sent, current, rules))
        }
        (Value::Object(sent), Value::Object(current)) => {
            let mut names = sent.keys().chain(current.keys()).filter(|name| !rules.volatile.contains(&name.as_str()));
            names.all(|name| is_same(sent.get(name).unwrap_or(&NULL), current.get(name).unwrap_or(&NULL), rules))
        }
        (sent, current) => sent == current,
    }
}

fn is_same_time(sent: &str, current: &str) -> bool {
    let parsed = |text: &str| text.starts_with(|sign: char| sign.is_ascii_digit()).then(|| Timestamp::parse_iso(text));
    matches!((parsed(sent).flatten(), parsed(current).flatten()), (Some(sent), Some(current)) if sent == current)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::body_fields::{BodyFields, field};

    const RULES: BodyRules = BodyRules {
        hints: &[("group", "send it as groupName")],
        other_routes: &[("slug", "can't be changed here")],
        default_rule: "can't be changed",
        echoes: &["keyword", "monitors", "paused"],
        volatile: &["since", "lastPingAt", "pausedBy"],
    };

    fn object(value: Value) -> JsonObject {
        value.as_object().cloned().unwrap_or_default()
    }

    fn read(body: &mut RecordedFields<'_>) -> usize {
        ["groupName", "keyword", "url", "monitors", "monitorIds", "name", "host", "paused"]
            .map(|name| body.text(field(name, "")))
            .iter()
            .filter(|field| **field != parallax_core::patch::PatchField::Absent)
            .count()
    }

    fn read_destination_change(sent: Value) -> (usize, String, Vec<String>) {
        let current = json!({
            "id": "mon_1", "group": "A", "keyword": "ok", "url": null, "slug": "shop", "position": 0,
            "createdAt": "2026-03-01T09:30:00.000Z", "since": "2026-03-01T09:30:00.000Z",
            "heartbeat": { "periodSeconds": 60, "lastPingAt": null }, "monitors": [{ "id": "a", "name": "A" }], "paused": true, "pausedBy": "plan",
        });
        let ChangeBody { edit, errors: field_errors, warnings } =
            read_change(&mut object(sent), Some(&current), &RULES, read);
        (edit, field_errors.to_string(), warnings)
    }

    #[test]
    fn an_unchanged_document_changes_nothing() {
        let echo = json!({
            "id": "mon_1", "group": "A", "keyword": "ok", "url": null, "slug": "shop", "position": 0.0,
            "createdAt": "2026-03-01T10:30:00+01:00", "since": "2020-01-01T00:00:00Z",
            "heartbeat": { "periodSeconds": 60, "lastPingAt": "2026-03-01T09:30:00.000Z" },
            "monitors": [{ "id": "a", "name": "A" }],
        });
        assert_eq!(
            read_destination_change(echo.clone()),
            (1, String::new(), vec![]),
            "null may do something: it is read"
        );
        let mut merged = object(echo);
        merged.insert("monitorIds".to_owned(), json!(["b"]));
        assert_eq!(read_destination_change(Value::Object(merged)).0, 3, "both count where one is sent");
    }

    #[test]
    fn a_pause_is_ignored_only_next_to_its_reason() {
        for (sent, read) in [
            (json!({ "paused": true, "pausedBy": "plan" }), 0),
            (json!({ "paused": true }), 1),
            (json!({ "paused": true, "pausedBy": "owner" }), 1),
            (json!({ "paused": true, "pausedBy": null }), 1),
            (json!({ "paused": false, "pausedBy": "plan" }), 1),
        ] {
            assert_eq!(read_destination_change(sent.clone()), (read, String::new(), vec![]), "{sent}");
        }
    }

    #[test]
    fn fields_of_other_routes_are_refused_and_misnamed_fields_get_a_warning() {
        for (sent, field_errors, warned) in [
            (json!({ "slug": "other" }), "slug can't be changed here", ""),
            (json!({ "slug": null }), "slug can't be changed here", ""),
            (json!({ "id": "mon_2" }), "id can't be changed: the service sets it", ""),
            (json!({ "position": 1 }), "position can't be changed", ""),
            (json!({ "group": "B" }), "", "group was ignored: send it as groupName"),
            (json!({ "groupname": "B" }), "", "groupname was ignored: did you mean groupName?"),
            (json!({ "group_name": "B" }), "", "group_name was ignored: did you mean groupName?"),
            (json!({ "keywrods": "B" }), "", "keywrods was ignored: did you mean keyword?"),
            (json!({ "uri": "B" }), "", "uri was ignored: did you mean url?"),
            (json!({ "mane": "B" }), "", "mane was ignored: did you mean name?"),
            (json!({ "nmea": "B" }), "", "nmea was ignored: did you mean name?"),
            (json!({ "hots1": "B" }), "", "hots1 was ignored: did you mean host?"),
            (json!({ "ulrs": "B" }), "", ""),
            (json!({ "since": "2020", "unheard": 1, "u": 2, "x".repeat(5000): 3 }), "", ""),
        ] {
            let (_, refusal, warnings) = read_destination_change(sent.clone());
            assert_eq!((refusal.as_str(), warnings.join("; ").as_str()), (field_errors, warned), "{sent}");
        }
    }

    #[test]
    fn a_new_resource_warns_of_typos_and_not_of_copied_fields() {
        let sent = object(json!({ "id": "mon_1", "slug": "shop", "group": "A", "urll": "x", "since": "x", "x": 1 }));
        let (_, warnings) = read_new(&sent, &RULES, read);
        assert_eq!(
            warnings,
            [
                "slug was ignored: it can't be changed here",
                "group was ignored: send it as groupName",
                "urll was ignored: did you mean url?",
            ]
        );
        let many = (0..99).map(|n| (format!("keyword{n}"), json!(1))).collect();
        assert_eq!(read_new(&many, &RULES, read).1.len(), MAX_WARNINGS);
    }
}
