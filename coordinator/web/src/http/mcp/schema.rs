//! Compact schemas of tool arguments: clients send them to the model in every conversation, so each byte costs.

use serde_json::{Map, Value, json};

/// Keywords that a model does not need: the description or the error for an invalid value says the same.
const OMITTED_KEYWORDS: [&str; 11] = [
    "default",
    "examples",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "pattern",
    "propertyNames",
    "title",
];
/// Limit of allowed values of a list or map that its schema still names.
const MAX_ENUM_VALUES: usize = 5;
/// Argument of update tools that lists the fields to clear.
pub(super) const CLEAR: &str = "clear";

/// Removes from a schema what a model does not need, and null, since a missing argument is simply omitted.
pub(super) fn compact(schema: &Value) -> Value {
    let Value::Object(object) = schema else { return schema.clone() };
    let mut terse = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            (left_out, _) if OMITTED_KEYWORDS.contains(&left_out) => continue,
            ("type", Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
            ("enum", Value::Array(values)) => {
                values.iter().filter(|word| !word.is_null() && *word != "").cloned().collect()
            }
            ("items" | "additionalProperties", inner) => compact_items(inner),
            ("properties", Value::Object(properties)) => compact_properties(properties),
            (_, value) => value.clone(),
        };
        terse.insert(keyword.clone(), value);
    }
    Value::Object(terse)
}

/// Compacts the schema of the entries of a list or map. A long list of allowed values is omitted: another argument or a
/// tool names them.
fn compact_items(inner: &Value) -> Value {
    let mut inner = compact(inner);
    if let Some(object) = inner.as_object_mut()
        && object.get("enum").and_then(Value::as_array).is_some_and(|values| values.len() > MAX_ENUM_VALUES)
    {
        object.shift_remove("enum");
    }
    inner
}

fn compact_properties(properties: &Map<String, Value>) -> Value {
    properties.iter().map(|(name, property)| (name.clone(), compact(property))).collect()
}

/// Fields of an update that null clears.
pub(super) fn clearable_fields(properties: &Map<String, Value>) -> Vec<String> {
    let is_nullable = |property: &Value| {
        property.get("type").and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&json!("null")))
    };
    properties.iter().filter(|(_, property)| is_nullable(property)).map(|(name, _)| name.clone()).collect()
}

/// Schema of the argument that lists fields to clear. It does not name them, since they are arguments too.
pub(super) fn clear_argument() -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": "Names of fields to clear." })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_unneeded_keywords_are_left_out() {
        let schema = json!({
            "type": ["string", "null"], "enum": ["a", "", null], "default": "a", "examples": ["a"],
            "description": "Which.", "maximum": 5,
        });
        let expected = json!({ "type": "string", "enum": ["a"], "description": "Which.", "maximum": 5 });
        assert_eq!(compact(&schema), expected);
        let list = json!({ "type": "array", "items": { "properties": { "title": schema } }, "minItems": 1 });
        // A field may have the name of a keyword.
        assert_eq!(compact(&list), json!({ "type": "array", "items": { "properties": { "title": expected } } }));
    }

    #[test]
    fn fields_that_null_clears_are_listed() {
        let properties = json!({ "a": { "type": ["string", "null"] }, "b": { "type": "string" } });
        assert_eq!(clearable_fields(properties.as_object().unwrap()), ["a"]);
    }
}
