//! Schemas of tools' arguments, as short as a model needs them: what a client sends in every conversation costs it.

use serde_json::{Map, Value, json};

/// Keywords that a model does not need. What they say, the description says, or the refusal of a wrong value.
const LEFT_OUT: [&str; 11] = [
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
/// Words that a list's values may be out of, at most, for each to be named.
const MOST_WORDS: usize = 5;
/// The argument of a change that names the fields to clear.
pub(super) const CLEAR: &str = "clear";

/// A schema without what a model does not need, and without null: an argument that is not given is left out.
pub(super) fn terse(schema: &Value) -> Value {
    let Value::Object(object) = schema else { return schema.clone() };
    let mut terse = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            (left_out, _) if LEFT_OUT.contains(&left_out) => continue,
            ("type", Value::Array(kinds)) => {
                kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default()
            }
            ("enum", Value::Array(words)) => {
                words.iter().filter(|word| !word.is_null() && *word != "").cloned().collect()
            }
            ("items" | "additionalProperties", inner) => short(inner),
            ("properties", Value::Object(properties)) => terse_properties(properties),
            (_, value) => value.clone(),
        };
        terse.insert(keyword.clone(), value);
    }
    Value::Object(terse)
}

/// Shortens the schema of what a list or map holds. A long list of words is left out: it stands beside another argument, or
/// a tool lists it.
fn short(inner: &Value) -> Value {
    let mut inner = terse(inner);
    if let Some(object) = inner.as_object_mut()
        && object.get("enum").and_then(Value::as_array).is_some_and(|words| words.len() > MOST_WORDS)
    {
        object.shift_remove("enum");
    }
    inner
}

fn terse_properties(properties: &Map<String, Value>) -> Value {
    properties.iter().map(|(name, property)| (name.clone(), terse(property))).collect()
}

/// The fields of a change that null clears.
pub(super) fn clearable(properties: &Map<String, Value>) -> Vec<String> {
    let is_nullable = |property: &Value| {
        property.get("type").and_then(Value::as_array).is_some_and(|kinds| kinds.contains(&json!("null")))
    };
    properties.iter().filter(|(_, property)| is_nullable(property)).map(|(name, _)| name.clone()).collect()
}

/// The argument that names fields to clear. Their names stand beside it, so that it need not list them.
pub(super) fn clear() -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": "Names of fields to clear." })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_what_a_model_does_not_need_are_left_out() {
        let schema = json!({
            "type": ["string", "null"], "enum": ["a", "", null], "default": "a", "examples": ["a"],
            "description": "Which.", "maximum": 5,
        });
        let expected = json!({ "type": "string", "enum": ["a"], "description": "Which.", "maximum": 5 });
        assert_eq!(terse(&schema), expected);
        let list = json!({ "type": "array", "items": { "properties": { "title": schema } }, "minItems": 1 });
        // A field may be called what a keyword is.
        assert_eq!(
            terse(&list),
            json!({ "type": "array", "items": { "properties": { "title": expected } } })
        );
    }

    #[test]
    fn what_null_clears_is_known() {
        let properties = json!({ "a": { "type": ["string", "null"] }, "b": { "type": "string" } });
        assert_eq!(clearable(properties.as_object().unwrap()), ["a"]);
    }
}
