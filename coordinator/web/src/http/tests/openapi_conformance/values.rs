//! Generates valid and invalid values from the schema of a field: the last valid and first invalid of each bound.

use super::*;

/// Schema of a field.
pub(super) struct Rules<'a>(pub(super) &'a Value);

impl Rules<'_> {
    /// Type, without null.
    pub(super) fn kind(&self) -> &str {
        let kind = &self.0["type"];
        kind.as_str().or_else(|| kind[0].as_str()).unwrap_or_else(|| panic!("{} has no type", self.0))
    }

    /// Returns true if null is allowed.
    pub(super) fn is_nullable(&self) -> bool {
        self.0["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")))
    }

    /// Allowed values; `None` if they are not enumerated.
    pub(super) fn enum_values(&self) -> Option<Vec<Value>> {
        let enum_values = self.0["enum"].as_array()?;
        Some(enum_values.iter().filter(|value| !value.is_null()).cloned().collect())
    }

    fn length(&self, bound: &str) -> Option<usize> {
        self.0[bound].as_u64().and_then(|length| usize::try_from(length).ok())
    }
}

impl ConformanceFixture {
    /// Valid values of a field of an operation.
    pub(super) fn accepted_values(&self, operation: &ApiOperation, field: &str, rules: &Rules<'_>) -> Vec<Value> {
        // These can't be changed, so only the current value is accepted.
        match (operation.id, field) {
            ("updateMonitor", "type") => return vec![json!("http")],
            ("updateDestination", "type") => return vec![json!("webhook")],
            ("updateMonitorOrder", "monitorIds") => return vec![json!([self.ids["monitorId"]])],
            ("updateIncident", "repeat") => return vec![json!("weekly")],
            _ => {}
        }
        if let Some(enum_values) = rules.enum_values() {
            return enum_values;
        }
        match rules.kind() {
            "boolean" => vec![json!(true), json!(false)],
            "integer" | "number" => vec![rules.0["minimum"].clone(), rules.0["maximum"].clone()],
            "string" if rules.0["format"] == "date-time" => vec![self.time_after(field)],
            "string" => {
                let Some(max) = rules.length("maxLength") else {
                    return rules.0["examples"].as_array().cloned().unwrap_or_else(|| vec![json!("UTC")]);
                };
                let lengths = [rules.length("minLength").unwrap_or(0), max];
                lengths
                    .iter()
                    .filter_map(|length| self.text_of_length(operation, field, *length))
                    .map(Value::from)
                    .collect()
            }
            "array" => {
                let (few, many) = (rules.length("minItems").unwrap_or(0), rules.length("maxItems"));
                [few, 1, many.unwrap_or(2)]
                    .into_iter()
                    .map(|count| self.list((operation, field), rules, count))
                    .collect()
            }
            "object" if rules.0.get("properties").is_some() => vec![json!({})],
            "object" if rules.0["additionalProperties"]["type"] == "integer" => {
                let bound = |name: &str| json!({ "asia": rules.0["additionalProperties"][name] });
                vec![json!({}), bound("minimum"), bound("maximum")]
            }
            "object" => {
                let max = rules.length("maxProperties").unwrap();
                vec![json!({}), json!({ "X-Name": "value" }), headers(max)]
            }
            other => panic!("{field} has the unknown type {other}"),
        }
    }

    /// Invalid values of a field of an operation.
    pub(super) fn rejected_values(&self, operation: &ApiOperation, field: &str, rules: &Rules<'_>) -> Vec<Value> {
        let mut rejected_values = match rules.kind() {
            "boolean" => vec![json!("true"), json!(1), json!([])],
            "integer" | "number" => {
                let step = if rules.kind() == "integer" { 1.0 } else { 0.001 };
                let beside = |bound: &str, by: f64| json!(rules.0[bound].as_f64().unwrap() + by);
                let mut rejected_values =
                    vec![beside("minimum", -step), beside("maximum", step), json!("5"), json!(true)];
                rejected_values.extend((rules.kind() == "integer").then(|| beside("minimum", 0.5)));
                rejected_values
            }
            "string" => {
                let mut rejected_values = vec![json!(5), json!(true), json!({}), json!(["x"])];
                if rules.0["format"] == "date-time" {
                    rejected_values.extend(["", "soon", "2026-11-28", "2026-11-28T12:00:00"].map(Value::from));
                } else if rules.enum_values().is_some() {
                    rejected_values.push(json!("none-such"));
                } else if let Some(max) = rules.length("maxLength") {
                    rejected_values.extend(self.text_of_length(operation, field, max + 1).map(Value::from));
                    let short = rules.length("minLength").and_then(|min| min.checked_sub(1));
                    rejected_values.extend(short.map(|length| json!("a".repeat(length))));
                }
                rejected_values
            }
            "array" => {
                let mut rejected_values = vec![json!({}), json!("x"), json!([5]), json!([["x"]])];
                rejected_values
                    .extend(rules.length("maxItems").map(|max| self.list((operation, field), rules, max + 1)));
                rejected_values
                    .extend(rules.length("minItems").map(|min| self.list((operation, field), rules, min - 1)));
                rejected_values.extend(rules.0["items"].get("enum").map(|_| json!(["none-such"])));
                rejected_values
            }
            "object" if rules.0.get("properties").is_some() => vec![json!([]), json!("x"), json!(5)],
            "object" => {
                let mut rejected_values = vec![json!([]), json!("x"), json!({ "asia": true }), json!({ "asia": null })];
                if let Some(max) = rules.0["additionalProperties"]["maximum"].as_i64() {
                    let min = rules.0["additionalProperties"]["minimum"].as_i64().unwrap();
                    rejected_values.extend([min - 1, max + 1].map(|ms| json!({ "asia": ms })));
                    rejected_values.push(json!({ "none-such": min }));
                }
                rejected_values.extend(rules.length("maxProperties").map(|max| headers(max + 1)));
                rejected_values
            }
            other => panic!("{field} has the unknown type {other}"),
        };
        if let (Some(enum_values), "updateMonitor" | "updateDestination") = (rules.enum_values(), operation.id)
            && field == "type"
        {
            let accepted_values = self.accepted_values(operation, field, rules);
            rejected_values.extend(enum_values.into_iter().filter(|value| !accepted_values.contains(value)));
        }
        rejected_values
    }

    /// Makes an otherwise valid text of a length in characters; `None` if the format does not allow that length.
    pub(super) fn text_of_length(&self, operation: &ApiOperation, field: &str, length: usize) -> Option<String> {
        let filled = |start: &str| {
            let rest = length.checked_sub(start.len())?;
            Some(format!("{start}{}", "a".repeat(rest)))
        };
        match (operation.id, field) {
            (_, "url") if length == 0 => Some(String::new()),
            (_, "url" | "supportUrl" | "vendorUrl") => filled("https://a.example/"),
            (_, "slug") => filled(&format!("s{}", self.next())).or_else(|| filled("z")),
            (_, "to" | "email") => {
                let mailbox = format!("{:012}@", self.next());
                Some(format!("{mailbox}{}", host("example.com", length.checked_sub(mailbox.len())?)?))
            }
            (_, "customDomain") => host(&format!("{:06}.example", self.next()), length),
            (_, "chat") if length == 1 => Some("5".to_owned()),
            (_, "chat") => filled("@a"),
            (_, "token") => filled(""),
            (_, "key") => Some("0".repeat(length)),
            // Its limit is in bytes.
            (_, "csv") => Some("a".repeat(length)),
            (_, "body" | "password") => Some("\u{e9}".repeat(length)),
            // Lengths are in characters, not bytes, without surrounding whitespace.
            _ if length > 0 => Some(format!("  {}\n", "\u{1f6a2}".repeat(length)).trim_end_matches('\n').to_owned()),
            _ => Some(String::new()),
        }
    }

    fn time_after(&self, field: &str) -> Value {
        let ahead = match field {
            "startsAt" => DAY + HOUR,
            "endsAt" => DAY + 3 * HOUR,
            _ => -HOUR,
        };
        json!(self.time_from_now(ahead).to_string())
    }

    /// Makes a list of `count` valid entries.
    fn list(&self, (operation, field): (&ApiOperation, &str), rules: &Rules<'_>, count: usize) -> Value {
        let enum_values = rules.0["items"]["enum"].as_array();
        let one = |number: usize| match (field, enum_values) {
            (_, Some(enum_values)) => enum_values[number % enum_values.len()].clone(),
            // Each once.
            ("monitorIds", _) if operation.id == "updateMonitors" => json!(format!("mon_{number}")),
            ("monitorIds", _) => json!(self.ids["monitorId"]),
            ("monitors", _) => json!({ "id": self.ids["monitorId"], "impact": "major" }),
            ("remind", _) => json!(format!("{}h", number + 1)),
            ("allowedPeople", _) => json!(format!("reader{number}@example.com")),
            ("allowedDomains", _) => json!(format!("shop{number}.example")),
            _ => panic!("add a valid entry of {field}"),
        };
        (0..count).map(one).collect()
    }
}

fn headers(count: usize) -> Value {
    (0..count).map(|number| (format!("X-{number}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
}

/// Makes a host name of a length with the given ending; `None` if that is impossible.
fn host(end: &str, length: usize) -> Option<String> {
    let mut host = end.to_owned();
    while host.len() < length {
        let label = (length - host.len() - 1).clamp(1, 63);
        host = format!("{}.{host}", "a".repeat(label));
    }
    (host.len() == length).then_some(host)
}
