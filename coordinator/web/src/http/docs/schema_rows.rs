//! Schemas in words: the type, description and bounds of a field.

use serde_json::{Map, Value};

use crate::views::api_reference::ReferenceRow;

/// The description's components, which references point to.
pub(super) struct Components<'a>(pub(super) &'a Value);

impl<'a> Components<'a> {
    /// Returns the name and schema that a reference points to.
    pub(super) fn find(&self, reference: &'a str) -> Option<(&'a str, &'a Value)> {
        let name = reference.rsplit('/').next()?;
        Some((name, self.0.get("schemas")?.get(name)?))
    }

    /// Returns the fields of a schema, or of the schema it refers to.
    pub(super) fn rows(&self, schema: &'a Value) -> Vec<ReferenceRow> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let schema = reference.and_then(|it| self.find(it)).map_or(schema, |(_, schema)| schema);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let row = |(name, property): (&String, &'a Value)| ReferenceRow {
            name: name.clone(),
            required: is_required(name),
            ..self.row(property)
        };
        properties.into_iter().flatten().map(row).collect()
    }

    /// Describes a schema; the row has no name yet.
    pub(super) fn row(&self, schema: &'a Value) -> ReferenceRow {
        let mut row = ReferenceRow::default();
        self.describe_type(schema, &mut row);
        row.limits = bounds(schema);
        let about = schema.get("description").and_then(Value::as_str);
        row.about =
            parallax_markdown::render_short(about.or_else(|| self.referenced_description(schema)).unwrap_or_default());
        row
    }

    /// Returns the description of the schema that a reference points to.
    fn referenced_description(&self, schema: &'a Value) -> Option<&'a str> {
        let (_, referenced) = self.find(schema.get("$ref")?.as_str()?)?;
        referenced.get("description")?.as_str()
    }

    /// Writes the type, the enum values and the link of a schema into the row.
    fn describe_type(&self, schema: &'a Value, row: &mut ReferenceRow) {
        let Value::Object(object) = schema else { return };
        if let Some((name, referenced)) = object.get("$ref").and_then(Value::as_str).and_then(|it| self.find(it)) {
            match referenced.get("enum").and_then(Value::as_array) {
                Some(text) => {
                    row.kind.push_str("string");
                    row.allowed_values = enum_values(text);
                }
                None => {
                    row.kind.push_str(name);
                    name.clone_into(&mut row.link);
                }
            }
        } else if let Some(choices) = object.get("anyOf").and_then(Value::as_array) {
            for (at, choice) in choices.iter().enumerate() {
                row.kind.push_str(if at > 0 { " or " } else { "" });
                self.describe_type(choice, row);
            }
        } else {
            self.describe_plain_type(object, row);
        }
    }

    fn describe_plain_type(&self, object: &'a Map<String, Value>, row: &mut ReferenceRow) {
        let kinds = match object.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(kind)) => vec![kind.as_str()],
            _ => vec!["any"],
        };
        if let Some(enum_list) = object.get("enum").and_then(Value::as_array) {
            row.allowed_values = enum_values(enum_list);
        }
        for (at, kind) in kinds.into_iter().enumerate() {
            row.kind.push_str(if at > 0 { " or " } else { "" });
            match (kind, object.get("items"), object.get("additionalProperties")) {
                ("array", Some(items), _) => {
                    row.kind.push_str("list of ");
                    self.describe_type(items, row);
                }
                ("object", _, Some(values)) => {
                    row.kind.push_str("object of ");
                    self.describe_type(values, row);
                }
                ("string", ..) if object.get("format").is_some_and(|format| format == "date-time") => {
                    row.kind.push_str("time");
                }
                ("string", ..) if object.get("format").is_some_and(|format| format == "date") => {
                    row.kind.push_str("date");
                }
                (kind, ..) => row.kind.push_str(kind),
            }
        }
    }
}

/// Returns the values of an enum without null and the empty value, which the type and description mention.
fn enum_values(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

/// Formats the bounds of a schema, and of its items.
pub(super) fn bounds(schema: &Value) -> String {
    let number = |name: &str| schema.get(name).filter(|bound| bound.is_number()).map(ToString::to_string);
    let range = |min: &str, max: &str, unit: &str| match (number(min), number(max)) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (Some(min), None) if min == "1" => Some(format!("at least 1{}", unit.trim_end_matches('s'))),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, None) => None,
    };
    let bounds_texts = [
        range("minLength", "maxLength", " characters"),
        range("minimum", "maximum", ""),
        range("minItems", "maxItems", " items"),
        range("minProperties", "maxProperties", " names"),
    ];
    let mut all: Vec<String> = bounds_texts.into_iter().flatten().collect();
    let inner = schema.get("items").or_else(|| schema.get("additionalProperties")).map(bounds);
    all.extend(inner.filter(|inner| !inner.is_empty()).map(|inner| format!("each {inner}")));
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_described_in_words() {
        let components = json!({ "schemas": {
            "Region": { "type": "string", "enum": ["asia", "africa"], "description": "A region." },
            "Page": { "type": "object", "properties": {} },
        } });
        let components = Components(&components);
        for (schema, kind, link, expected, bounds) in [
            (json!({ "type": ["string", "null"], "maxLength": 60 }), "string or null", "", 0, "at most 60 characters"),
            (json!({ "$ref": "#/x/Region" }), "string", "", 2, ""),
            (json!({ "anyOf": [{ "$ref": "#/x/Region" }, { "type": "null" }] }), "string or null", "", 2, ""),
            (
                json!({ "type": "array", "items": { "$ref": "#/x/Page" }, "maxItems": 5 }),
                "list of Page",
                "Page",
                0,
                "at most 5 items",
            ),
            (
                json!({ "type": ["object", "null"], "additionalProperties": { "type": "integer", "minimum": 1, "maximum": 9 } }),
                "object of integer or null",
                "",
                0,
                "each 1 to 9",
            ),
            (json!({ "type": "string", "format": "date-time" }), "time", "", 0, ""),
            (
                json!({ "type": ["array", "null"], "items": {}, "minItems": 1 }),
                "list of any or null",
                "",
                0,
                "at least 1 item",
            ),
            (json!({ "type": "string", "enum": ["a", "", null] }), "string", "", 1, ""),
        ] {
            let row = components.row(&schema);
            assert_eq!(
                (row.kind.as_str(), row.link.as_str(), row.allowed_values.len(), row.limits.as_str()),
                (kind, link, expected, bounds),
                "{schema}"
            );
        }
        let reference = json!({ "$ref": "#/x/Region" });
        assert!(components.row(&reference).about.as_str().contains("A region."));
    }
}
