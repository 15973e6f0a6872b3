//! Names for the parts of a body. Client generators make a type for each name, and invent one if it is missing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Objects within bodies, keyed by the list field that holds them.
const OBJECTS: [(&str, &str); 1] = [("monitors", "AffectedMonitorInput")];

/// Gives every enum and every object in that body a component of its own. Known enums keep their name.
pub(super) fn name_parts(body: &str, components: &mut BTreeMap<String, Value>) {
    let Some(mut schema) = components.remove(body) else { return };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        name_properties(body, properties, components);
    }
    components.insert(body.to_owned(), schema);
}

fn name_properties(parent: &str, properties: &mut Map<String, Value>, components: &mut BTreeMap<String, Value>) {
    for (name, property) in properties {
        let parent = format!("{parent}{}", capital(name));
        let object = OBJECTS.into_iter().find(|(field, _)| field == name);
        let has_fields = property.get("properties").is_some();
        match (property.get_mut("items"), object) {
            (Some(items), Some((_, component))) => {
                let mut item = items.take();
                if let Some(properties) = item.get_mut("properties").and_then(Value::as_object_mut) {
                    name_properties(component, properties, components);
                }
                components.insert(component.to_owned(), item);
                *items = reference(component);
            }
            (Some(items), None) => name_enum(&parent, items, components),
            (None, _) if has_fields => {
                let mut object = property.take();
                if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                    name_properties(&parent, properties, components);
                }
                components.insert(parent.clone(), object);
                *property = reference(&parent);
            }
            (None, _) => name_enum(&parent, property, components),
        }
    }
}

/// Replaces an enum with a reference to a component. An empty value means the same as null and is only described.
fn name_enum(parent: &str, schema: &mut Value, components: &mut BTreeMap<String, Value>) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(Value::Array(mut values)) = object.shift_remove("enum") else { return };
    object.shift_remove("type");
    let nullable = values.contains(&Value::Null);
    values.retain(|value| value.as_str().is_some_and(|value| !value.is_empty()));
    let is_known = |schema: &Value| {
        let existing = schema.get("enum").and_then(Value::as_array);
        existing.is_some_and(|existing| {
            existing.len() == values.len() && values.iter().all(|value| existing.contains(value))
        })
    };
    let existing = components.iter().find(|(_, schema)| is_known(schema)).map(|(name, _)| name.clone());
    let name = existing.unwrap_or_else(|| {
        let description = object.get("description").cloned().unwrap_or_default();
        let component = json!({ "type": "string", "enum": values, "description": description });
        components.insert(parent.to_owned(), component);
        parent.to_owned()
    });
    if nullable {
        object.insert("anyOf".to_owned(), json!([reference(&name), { "type": "null" }]));
    } else {
        object.insert("$ref".to_owned(), json!(format!("#/components/schemas/{name}")));
    }
}

fn reference(component: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{component}") })
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enums_and_objects_become_components() {
        let values = json!({ "type": "string", "enum": ["none", "major"] });
        let region = json!({ "type": "string", "enum": ["asia"] });
        let body = json!({ "properties": {
            "impact": { "type": ["string", "null"], "enum": ["major", "none", null], "description": "How much" },
            "status": { "type": "string", "enum": ["open"], "description": "Which" },
            "pinned": { "type": ["string", "null"], "enum": ["asia", "", null] },
            "monitors": { "type": "array", "items": { "properties": { "impact": values } } },
            "places": { "type": "array", "items": region },
            "name": { "type": "string" },
            "set": { "type": "object", "properties": { "pinned": { "type": "string", "enum": ["asia"] } } },
        } });
        let mut components =
            BTreeMap::from([("Body".to_owned(), body), ("Impact".to_owned(), values), ("Region".to_owned(), region)]);
        name_parts("Body", &mut components);
        let impact = reference("Impact");
        let nothing = json!({ "type": "null" });
        let expected = json!({ "properties": {
            "impact": { "description": "How much", "anyOf": [impact, nothing] },
            "status": { "description": "Which", "$ref": "#/components/schemas/BodyStatus" },
            "pinned": { "anyOf": [reference("Region"), nothing] },
            "monitors": { "type": "array", "items": reference("AffectedMonitorInput") },
            "places": { "type": "array", "items": reference("Region") },
            "name": { "type": "string" },
            "set": reference("BodySet"),
        } });
        assert_eq!(components["Body"], expected);
        assert_eq!(components["BodySet"]["properties"]["pinned"], reference("Region"));
        assert_eq!(components["BodyStatus"]["enum"], json!(["open"]));
        assert_eq!(components["AffectedMonitorInput"], json!({ "properties": { "impact": impact } }));
        assert_eq!(components.len(), 6);
    }
}
