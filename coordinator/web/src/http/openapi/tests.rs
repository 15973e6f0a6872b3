//! The description covers every route and nothing else.

mod rules;

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::http::route::HttpRoute;
use crate::http::routes::routes;

/// Converts a path to the form in the route table.
fn routed(path: &str) -> String {
    path.replace("Id}", "}")
}

#[test]
fn every_route_of_the_api_is_described_and_nothing_else() {
    let mut registered = BTreeSet::new();
    for (path, methods) in routes() {
        let Some(path) = path.strip_prefix("/api/v1") else { continue };
        for (method, route) in methods {
            if matches!(route, HttpRoute::Authenticated(_)) {
                registered.insert(format!("{method} {path}"));
            }
        }
    }
    let operations = operations();
    let described: BTreeSet<String> =
        operations.iter().map(|operation| format!("{} {}", operation.method, routed(operation.path))).collect();
    assert_eq!(described, registered);
    let ids: BTreeSet<&str> = operations.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), operations.len(), "ids are unique");
}

#[test]
fn every_reference_is_to_a_component_and_every_component_is_used() {
    let document: Value = serde_json::from_slice(&to_bytes("https://status.example")).unwrap();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses", "parameters", "headers"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            assert!(references.contains(&format!("#/components/{kind}/{name}")), "{kind} {name} is not used");
        }
    }
    assert_eq!(document["servers"][0]["url"], "https://status.example/api/v1");
}

#[test]
fn components_of_one_name_are_one_schema() {
    let mut seen = std::collections::BTreeMap::new();
    for operation in operations() {
        if let Some(document) = &operation.response.document {
            let schema = standalone_schema(document);
            assert_eq!(seen.entry(document.name).or_insert_with(|| schema.clone()), &schema, "{}", document.name);
        }
    }
}

#[test]
fn responses_require_every_property_of_the_document() {
    let document: Value = serde_json::from_slice(&to_bytes("https://status.example")).unwrap();
    let monitor = &document["components"]["schemas"]["Monitor"];
    let names: BTreeSet<&str> = monitor["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let required: BTreeSet<&str> = monitor["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(names, required);
    assert_eq!(monitor["properties"]["port"]["type"], serde_json::json!(["integer", "null"]));
    assert_eq!(monitor["properties"]["type"]["$ref"], "#/components/schemas/MonitorType");
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(reference) if name == "$ref" => {
                        references.insert(reference.clone());
                    }
                    other => collect(other, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
