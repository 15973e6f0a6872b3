//! Filters of tool results for models: only monitors with some statuses, and a short form.

use parallax_core::event::MonitorStatus;
use serde_json::{Map, Value, json};

use crate::http::api::monitors::parse_statuses;
use crate::http::legacy;

/// Fields of a monitor in the short form.
const MONITOR_FIELDS: [&str; 10] =
    ["id", "name", "type", "target", "status", "since", "downFrom", "downReason", "uptime24h", "latencyMs24h"];
/// Fields of an incident or maintenance window in the short form, besides the newest update.
const INCIDENT_FIELDS: [&str; 9] =
    ["id", "kind", "title", "status", "impact", "startedAt", "endsAt", "resolvedAt", "monitors"];
/// Fields of a page in the short form of its status document.
const PAGE_FIELDS: [&str; 4] = ["id", "name", "url", "timezone"];

/// The part of a result that a call requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResponseFilter {
    /// Return the short form.
    brief: bool,
    /// Return only monitors with these statuses; `None` for all.
    statuses: Option<Vec<MonitorStatus>>,
}

/// Schemas of the filter arguments: `brief`, and `status` if the tool lists monitors.
pub(super) fn filter_arguments(has_status: bool) -> Map<String, Value> {
    let mut arguments = Map::new();
    let about = "Return only the most important fields.";
    arguments.insert("brief".to_owned(), json!({ "type": "boolean", "description": about }));
    if has_status {
        let about = "Only monitors with this status: up, slow, down or unknown; separate several by commas.";
        arguments.insert("status".to_owned(), json!({ "type": "string", "description": about }));
    }
    arguments
}

impl ResponseFilter {
    /// Removes the filter arguments from the arguments of a call and parses them.
    ///
    /// # Errors
    /// Message on the first invalid argument.
    pub(super) fn from_arguments(arguments: &mut Map<String, Value>, has_status: bool) -> Result<Self, String> {
        let brief = match arguments.shift_remove("brief") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(brief)) => brief,
            Some(_) => return Err("brief must be true or false".to_owned()),
        };
        let statuses = match has_status.then(|| arguments.shift_remove("status")).flatten() {
            None | Some(Value::Null) => None,
            Some(Value::String(names)) => Some(parse_statuses(&names).ok_or(STATUS_RULE)?),
            Some(_) => return Err(STATUS_RULE.to_owned()),
        };
        Ok(Self { brief, statuses })
    }

    /// Filters a result.
    pub(super) fn apply(&self, mut document: Value) -> Value {
        if let Some(statuses) = &self.statuses {
            for name in ["monitors", legacy::OLD_MONITORS] {
                if let Some(Value::Array(monitors)) = document.get_mut(name) {
                    monitors.retain(|monitor| {
                        statuses.iter().any(|status| monitor.get("status").is_some_and(|it| it == status.name()))
                    });
                }
            }
        }
        if self.brief {
            legacy::drop_old_names(&mut document);
            shorten(&mut document);
        }
        document
    }
}

const STATUS_RULE: &str = "status must be one or more of up, slow, down, unknown, separated by commas";

/// Reduces known lists and the page to the fields of the short form.
fn shorten(document: &mut Value) {
    let Value::Object(document) = document else { return };
    for (name, value) in document.iter_mut() {
        let fields: &[&str] = match name.as_str() {
            "monitors" => &MONITOR_FIELDS,
            "incidents" | "maintenance" => &INCIDENT_FIELDS,
            "page" => &PAGE_FIELDS,
            _ => continue,
        };
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| retain_fields(item, fields)),
            one => retain_fields(one, fields),
        }
    }
}

/// Keeps the given fields of an object if they are not null, and the newest update, which is the first.
fn retain_fields(item: &mut Value, fields: &[&str]) {
    let Value::Object(item) = item else { return };
    let latest = item.get("updates").and_then(|updates| updates.get(0)).cloned();
    item.retain(|name, value| fields.contains(&name.as_str()) && !value.is_null());
    if let Some(latest) = latest {
        item.insert("latestUpdate".to_owned(), latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_from(arguments: Value) -> Result<ResponseFilter, String> {
        ResponseFilter::from_arguments(&mut arguments.as_object().cloned().unwrap(), true)
    }

    #[test]
    fn monitors_are_filtered_and_shortened() {
        let monitors = json!([
            { "id": 1, "status": "down", "downReason": "refused", "downFrom": null, "headers": {} },
            { "id": 2, "status": "up" },
        ]);
        let document = json!({ "monitors": monitors, legacy::OLD_MONITORS: monitors, "stale": false });
        let filtered = filter_from(json!({ "status": "down, slow" })).unwrap().apply(document.clone());
        assert_eq!(filtered["monitors"].as_array().unwrap().len(), 1);
        assert_eq!(filtered["monitors"], filtered[legacy::OLD_MONITORS]);
        let filtered = filter_from(json!({ "status": "down", "brief": true })).unwrap().apply(document.clone());
        let down = json!({ "id": 1, "status": "down", "downReason": "refused" });
        assert_eq!(filtered, json!({ "monitors": [down], "stale": false }));
        assert_eq!(filter_from(json!({ "brief": null })).unwrap().apply(document.clone()), document);
        for invalid in [json!({ "brief": 1 }), json!({ "status": "broken" }), json!({ "status": [] })] {
            assert!(filter_from(invalid).is_err());
        }
    }

    #[test]
    fn a_brief_incident_has_its_newest_update() {
        let incident = json!({
            "id": 1, "title": "x", "endsAt": null, "updates": [{ "body": "new" }, { "body": "old" }],
            "monitors": [{ "id": 5, "name": "a" }], "remind": null,
        });
        let filtered = filter_from(json!({ "brief": true })).unwrap().apply(json!({ "incidents": [incident] }));
        let expected = json!({
            "id": 1, "title": "x", "monitors": [{ "id": 5, "name": "a" }], "latestUpdate": { "body": "new" },
        });
        assert_eq!(filtered, json!({ "incidents": [expected] }));
    }
}
