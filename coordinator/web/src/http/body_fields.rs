//! Fields of request bodies, declared once for both parsing and the OpenAPI schema.
//!
//! The code that reads a body takes each field from a [`BodyFields`]. A JSON object returns the value sent, and tells a
//! value of the wrong type from a missing one; a [`SchemaBuilder`] returns nothing and records the schema. So every
//! field that is read is described, and every field described is read.

use std::collections::BTreeMap;

use parallax_core::incident::Impact;
use parallax_core::patch::PatchField;
use parallax_core::vantage::Region;
use serde_json::{Map, Value, json};

use super::json_body::JsonObject;

/// Limit of entries of a list or map of names, checked before its entries are.
const MAX_ENTRIES: usize = 64;
/// Largest integer up to which all integers are exact in a double: 2^53.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A field: name, description, and the bounds shown in the schema. The bounds are enforced by the validation of the
/// field, not here.
#[derive(Debug, Clone)]
pub(super) struct FieldSpec {
    name: &'static str,
    description: &'static str,
    required: bool,
    nullable: bool,
    bounds: Map<String, Value>,
}

/// Declares an optional field.
pub(super) fn field(name: &'static str, about: &'static str) -> FieldSpec {
    FieldSpec { name, description: about, required: false, nullable: false, bounds: Map::new() }
}

impl FieldSpec {
    /// Makes the field required.
    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Allows null.
    pub(super) const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Sets the length of a text, in characters.
    pub(super) fn length(self, min: usize, max: usize) -> Self {
        let field = if min > 0 { self.bound("minLength", min) } else { self };
        field.bound("maxLength", max)
    }

    /// Sets the range of a number.
    pub(super) fn range(self, min: impl Into<Value>, max: impl Into<Value>) -> Self {
        self.bound("minimum", min).bound("maximum", max)
    }

    /// Sets the minimum number of entries of a list.
    pub(super) fn min_items(self, min: usize) -> Self {
        self.bound("minItems", min)
    }

    /// Sets the maximum number of entries of a list.
    pub(super) fn max_items(self, max: usize) -> Self {
        self.bound("maxItems", max)
    }

    /// Marks a text as an ISO 8601 timestamp.
    pub(super) fn date_time(self) -> Self {
        self.bound("format", "date-time")
    }

    /// Sets the allowed values.
    pub(super) fn one_of<'a>(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Value::from).collect();
        self.bound("enum", values)
    }

    /// Sets the default value.
    pub(super) fn default(self, value: impl Into<Value>) -> Self {
        self.bound("default", value)
    }

    /// Adds an example.
    pub(super) fn example(self, value: impl Into<Value>) -> Self {
        let example = value.into();
        self.bound("examples", vec![example])
    }

    /// Name of the field.
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if null is allowed.
    pub(super) const fn is_nullable(&self) -> bool {
        self.nullable
    }

    fn bound(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.bounds.insert(name.to_owned(), value.into());
        self
    }

    /// Builds the JSON schema of the field.
    fn schema(self, kind: FieldKind) -> Value {
        let Self { description: about, nullable, bounds, .. } = self;
        let mut schema = Map::new();
        let name = match kind {
            FieldKind::Text => "string",
            FieldKind::Integer => "integer",
            FieldKind::Number => "number",
            FieldKind::Boolean => "boolean",
            FieldKind::List(_) => "array",
            FieldKind::Map(_) | FieldKind::Object(_) => "object",
        };
        let is_choice = bounds.contains_key("enum");
        if nullable {
            schema.insert("type".to_owned(), json!([name, "null"]));
        } else {
            schema.insert("type".to_owned(), json!(name));
        }
        match kind {
            FieldKind::List(items) => {
                schema.insert("items".to_owned(), items);
            }
            FieldKind::Map(values) => {
                schema.insert("additionalProperties".to_owned(), values);
            }
            FieldKind::Object(inner) => schema.extend(inner),
            FieldKind::Text | FieldKind::Integer | FieldKind::Number | FieldKind::Boolean => {}
        }
        schema.extend(bounds);
        if is_choice
            && nullable
            && let Some(Value::Array(values_with_null)) = schema.get_mut("enum")
        {
            values_with_null.push(Value::Null);
        }
        schema.insert("description".to_owned(), json!(about));
        Value::Object(schema)
    }
}

/// Type of a field; for lists and maps with the schema of their entries, for objects with that of their fields.
pub(super) enum FieldKind {
    Text,
    Integer,
    Number,
    Boolean,
    List(Value),
    Map(Value),
    Object(Map<String, Value>),
}

/// Source of the fields of a body: a JSON object, or a schema under construction.
pub(super) trait BodyFields {
    /// Takes one field. `read` returns `None` for a value of the wrong type, which is then reported with `rule`.
    fn take<T>(
        &mut self,
        field: FieldSpec,
        kind: FieldKind,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T>;

    /// Takes a string.
    fn text(&mut self, field: FieldSpec) -> PatchField<String> {
        self.take(field, FieldKind::Text, "must be a string", |value| value.as_str().map(str::to_owned))
    }

    /// Takes an integer; `443.0` is accepted as one.
    fn integer(&mut self, field: FieldSpec) -> PatchField<i64> {
        self.take(field, FieldKind::Integer, "must be a whole number", as_integer)
    }

    /// Takes a number.
    fn number(&mut self, field: FieldSpec) -> PatchField<f64> {
        self.take(field, FieldKind::Number, "must be a number", Value::as_f64)
    }

    /// Takes a boolean.
    fn boolean(&mut self, field: FieldSpec) -> PatchField<bool> {
        self.take(field, FieldKind::Boolean, "must be true or false", Value::as_bool)
    }

    /// Takes a list of region names.
    fn regions(&mut self, field: FieldSpec) -> PatchField<Vec<String>> {
        let items = json!({ "type": "string", "enum": region_names() });
        let field = field.bound("minItems", 1);
        self.take(field, FieldKind::List(items), "must be a list of regions", |value| as_strings(value, MAX_ENTRIES))
    }

    /// Takes a map of region names to integers from `min` to `max`.
    fn region_integers(&mut self, field: FieldSpec, min: i64, max: i64) -> PatchField<BTreeMap<String, i64>> {
        let values = json!({ "type": "integer", "minimum": min, "maximum": max });
        let field = field.bound("propertyNames", json!({ "enum": region_names() }));
        self.take(field, FieldKind::Map(values), "must be an object of regions and whole numbers", |value| {
            let items = value.as_object().filter(|items| items.len() <= MAX_ENTRIES)?;
            items.iter().map(|(region, ms)| as_integer(ms).map(|ms| (region.clone(), ms))).collect()
        })
    }

    /// Takes a list of strings.
    fn strings(&mut self, field: FieldSpec) -> PatchField<Vec<String>> {
        self.take(field, FieldKind::List(json!({ "type": "string" })), "must be a list of strings", |value| {
            as_strings(value, usize::MAX)
        })
    }

    /// Takes a list of the given values.
    fn choices(&mut self, field: FieldSpec, values: &[&'static str]) -> PatchField<Vec<String>> {
        let items = json!({ "type": "string", "enum": values });
        let field = field.bound("minItems", 1);
        self.take(field, FieldKind::List(items), "must be a list of strings", |value| as_strings(value, MAX_ENTRIES))
    }

    /// Takes a list of at most `max` ids. Duplicates count toward the limit.
    fn ids(&mut self, field: FieldSpec, max: usize) -> PatchField<Vec<String>> {
        let rule = format!("must be a list of at most {max} ids");
        self.take(field.max_items(max), FieldKind::List(json!({ "type": "string" })), &rule, |value| {
            as_strings(value, max)
        })
    }

    /// Takes a list of at most `max` affected monitors: objects with an id and an optional impact.
    fn affected_monitors(&mut self, field: FieldSpec, max: usize) -> PatchField<Vec<(String, Option<String>)>> {
        let items = json!({
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": { "type": "string", "description": "Monitor id." },
                "impact": {
                    "type": ["string", "null"], "enum": Impact::ALL.map(|it| Some(it.name())).into_iter().chain([None]).collect::<Vec<_>>(),
                    "description": "Impact on this monitor.",
                },
            },
        });
        let rule = format!("must be a list of at most {max} objects, each with the id of a monitor");
        self.take(field.max_items(max), FieldKind::List(items), &rule, |value| {
            let one = |item: &Value| {
                let impact = match item.get("impact") {
                    None | Some(Value::Null) => None,
                    Some(impact) => Some(impact.as_str()?.to_owned()),
                };
                Some((item.get("id")?.as_str()?.to_owned(), impact))
            };
            value.as_array().filter(|items| items.len() <= max)?.iter().map(one).collect()
        })
    }

    /// Takes an object, whose fields `describe` describes.
    fn object(&mut self, field: FieldSpec, describe: impl FnOnce(&mut SchemaBuilder)) -> PatchField<JsonObject> {
        let mut fields = SchemaBuilder::default();
        describe(&mut fields);
        self.take(field, FieldKind::Object(fields.schema()), "must be an object", |value| value.as_object().cloned())
    }

    /// Takes a map of at most `max` names to strings.
    fn string_map(&mut self, field: FieldSpec, max: usize) -> PatchField<Vec<(String, String)>> {
        let values = json!({ "type": "string" });
        let field = field.bound("maxProperties", max);
        self.take(field, FieldKind::Map(values), "must be an object of names and strings", |value| {
            value.as_object()?.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
        })
    }
}

impl<F: BodyFields> BodyFields for &mut F {
    fn take<T>(
        &mut self,
        field: FieldSpec,
        kind: FieldKind,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T> {
        (**self).take(field, kind, rule, read)
    }
}

/// Fields of a request body.
impl BodyFields for &JsonObject {
    fn take<T>(
        &mut self,
        field: FieldSpec,
        _: FieldKind,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T> {
        self.get(field.name).map_or(PatchField::Absent, |value| read_value(value, rule, read))
    }
}

/// Reads a value that was sent.
pub(super) fn read_value<T>(value: &Value, rule: &str, read: impl FnOnce(&Value) -> Option<T>) -> PatchField<T> {
    match value {
        Value::Null => PatchField::Null,
        value => read(value).map_or_else(|| PatchField::Invalid(rule.to_owned()), PatchField::Value),
    }
}

/// A request body that records the names of the fields taken from it.
#[derive(Debug)]
pub(super) struct RecordedFields<'a> {
    object: &'a JsonObject,
    names: Vec<&'static str>,
}

impl<'a> RecordedFields<'a> {
    /// Wraps a body; no field has been taken yet.
    pub(super) const fn new(object: &'a JsonObject) -> Self {
        Self { object, names: Vec::new() }
    }

    /// Names of the fields taken so far.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }
}

impl BodyFields for RecordedFields<'_> {
    fn take<T>(
        &mut self,
        field: FieldSpec,
        kind: FieldKind,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T> {
        self.names.push(field.name);
        self.object.take(field, kind, rule, read)
    }
}

/// Schema of a body, built from the fields taken from it.
#[derive(Debug, Default)]
pub(super) struct SchemaBuilder {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl SchemaBuilder {
    /// Returns the schema, an object. Additional properties are allowed, since unknown fields are ignored.
    pub(super) fn schema(self) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        schema
    }
}

impl BodyFields for SchemaBuilder {
    fn take<T>(
        &mut self,
        field: FieldSpec,
        kind: FieldKind,
        _: &str,
        _: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T> {
        let name = field.name;
        if field.required {
            self.required.push(json!(name));
        }
        self.properties.insert(name.to_owned(), field.schema(kind));
        PatchField::Absent
    }
}

fn region_names() -> Vec<&'static str> {
    Region::ALL.iter().map(|region| region.name()).collect()
}

/// Reads a list of at most `max` strings.
fn as_strings(value: &Value, max: usize) -> Option<Vec<String>> {
    let items = value.as_array().filter(|items| items.len() <= max)?;
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn as_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER)?;
        Some(number as i64)
    })
}

#[cfg(test)]
mod tests;
