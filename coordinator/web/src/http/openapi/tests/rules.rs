//! The rules that make generated clients good: names, nulls, errors, tags, and an example for everything.

use parallax_core::machine::MachineView;
use serde_json::json;

use super::*;
use crate::http::tests::TestClient;

fn document() -> Value {
    serde_json::from_slice(&to_bytes("https://status.example")).unwrap()
}

/// Returns the errors of a value against a schema of the document.
fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator.iter_errors(value).map(|fault| format!("{} {fault}", fault.instance_path())).collect()
}

fn schemas(document: &Value) -> &serde_json::Map<String, Value> {
    document["components"]["schemas"].as_object().unwrap()
}

/// Returns every operation with its path.
fn described(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let with_path = |path| move |(method, operation)| (path, method, operation);
    paths.iter().flat_map(|(path, methods)| methods.as_object().unwrap().iter().map(with_path(path))).collect()
}

/// Calls `call` for every object in the document, with its path.
fn each<'a>(value: &'a Value, pointer: &str, call: &mut impl FnMut(&str, &'a serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            call(pointer, object);
            for (name, value) in object {
                // Examples contain no schemas.
                if !matches!(name.as_str(), "example" | "examples") {
                    each(value, &format!("{pointer}/{name}"), call);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, &format!("{pointer}/*"), call)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_schema_has_examples_and_every_example_fits_its_schema() {
    let document = document();
    let mut schema_examples = 0;
    for (name, schema) in schemas(&document) {
        let examples = schema["examples"].as_array().unwrap_or_else(|| panic!("{name} has no example"));
        assert!(!examples.is_empty(), "{name}");
        assert!(jsonschema::meta::is_valid(schema), "{name}");
    }
    each(&document, "", &mut |pointer, object| {
        let schema = if object.contains_key("schema") { object["schema"].clone() } else { json!(object) };
        let mut examples: Vec<&Value> = object.get("example").into_iter().collect();
        match object.get("examples") {
            Some(Value::Array(several)) => examples.extend(several),
            Some(Value::Object(named)) => examples.extend(named.values().map(|one| &one["value"])),
            _ => {}
        }
        for example in examples {
            schema_examples += 1;
            assert_eq!(faults(&document, &schema, example), [""; 0], "{pointer} {example}");
        }
    });
    assert!(schema_examples > 100, "{schema_examples}");
}

#[test]
fn an_example_has_every_property_of_a_response_and_no_other() {
    let document = document();
    for (name, schema) in schemas(&document) {
        let Some(properties) = schema["properties"].as_object() else { continue };
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for example in schema["examples"].as_array().unwrap() {
            let fields: BTreeSet<&str> = example.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(fields.is_superset(&required), "{name}: {:?}", required.difference(&fields));
            assert!(fields.iter().all(|field| properties.contains_key(*field)), "{name}: {fields:?}");
        }
    }
}

#[test]
fn parameters_and_headers_have_examples_too() {
    let document = document();
    let mut count = 0;
    each(&document, "", &mut |pointer, object| {
        if object.contains_key("in") && object.contains_key("schema")
            || pointer.starts_with("/components/headers/") && object.contains_key("schema")
        {
            count += 1;
            let example = object.get("example").unwrap_or_else(|| panic!("{pointer} has no example"));
            assert!(!example.as_str().is_some_and(str::is_empty), "{pointer}");
            assert!(object["description"].as_str().is_some_and(|about| !about.is_empty()), "{pointer}");
        }
    });
    assert!(count > 30, "{count}");
}

#[test]
fn enums_and_objects_are_named_and_null_is_a_separate_type() {
    let document = document();
    each(&document["components"]["schemas"], "", &mut |pointer, object| {
        let Some(values) = object.get("enum").and_then(Value::as_array) else { return };
        assert!(!values.contains(&Value::Null), "{pointer}: generators can't handle null in an enum");
        let is_component = pointer.matches('/').count() == 1;
        assert!(is_component || pointer.ends_with("/propertyNames"), "{pointer} has no name");
    });
    each(&document["components"]["schemas"], "", &mut |pointer, object| {
        let inner = object.get("type").and_then(Value::as_str) == Some("object") && object.contains_key("properties");
        assert!(!inner || pointer.matches('/').count() == 1, "{pointer} has no name");
        assert_ne!(object.get("additionalProperties"), Some(&json!(false)), "{pointer}");
    });
    for (path, method, operation) in described(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let content = response.pointer("/content/application~1json/schema");
            assert!(content.is_none_or(|schema| schema.get("$ref").is_some()), "{method} {path} {status}");
        }
    }
    assert!(!schemas(&document).contains_key("Error"), "generators rename it");
}

#[test]
fn responses_require_their_properties_and_nothing_has_a_default() {
    let document = document();
    let operations = operations();
    let bodies: BTreeSet<&str> = operations.iter().filter_map(|one| Some(one.body.as_ref()?.name)).collect();
    let is_sent = |name: &str| bodies.contains(name) || ["AffectedMonitorInput", "MonitorsUpdateSet"].contains(&name);
    for (name, schema) in schemas(&document) {
        let Some(properties) = schema["properties"].as_object().filter(|_| !is_sent(name)) else { continue };
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, property) in properties {
            let is_nullable = property["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")))
                || property["anyOf"].as_array().is_some_and(|kinds| kinds.contains(&json!({ "type": "null" })));
            assert!(
                required.contains(field.as_str()) || !is_nullable,
                "{name}.{field}: optional and nullable is two ways to express one thing"
            );
        }
    }
    // TypeScript generators treat a field with a default as required.
    each(&document, "", &mut |pointer, object| {
        assert!(!object.contains_key("default"), "{pointer} has a default");
    });
    let description = |body: &str, field: &str| schemas(&document)[body]["properties"][field]["description"].clone();
    assert!(description("MonitorCreate", "method").as_str().unwrap().ends_with(" Default: GET."));
    assert!(description("MonitorUpdate", "method").as_str().unwrap().ends_with(" Null sets GET."));
    assert!(!description("MonitorUpdate", "type").as_str().unwrap().contains("http."));
}

#[test]
fn every_operation_lists_its_errors_and_has_one_known_tag() {
    let document = document();
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (path, method, operation) in described(&document) {
        let refusals = operation["responses"].as_object().unwrap();
        let mut expected = vec!["401", "429", "500", "503"];
        if method != "get" {
            expected.extend(["400", "403", "422"]);
        }
        if path.contains('{') {
            expected.push("404");
        }
        for status in expected {
            let reference = refusals.get(status).and_then(|response| response.get("$ref"));
            assert!(reference.is_some(), "{method} {path} {status} is a shared response");
        }
        let [tag] = &operation["tags"].as_array().unwrap()[..] else { panic!("{method} {path}") };
        assert!(tags.contains(&tag), "{method} {path}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(id.starts_with(|c: char| c.is_ascii_lowercase()) && id.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{id}");
        assert!(!path.ends_with('/'), "{path}");
    }
    let retry_after = &document["components"]["responses"]["RateLimited"]["headers"]["Retry-After"];
    assert_eq!(retry_after["$ref"], "#/components/headers/Retry-After");
    assert_eq!(document["security"], json!([{ "bearerAuth": [] }]));
}

#[test]
fn a_webhook_is_described_with_valid_signatures() {
    let document = document();
    let webhook = &document["webhooks"]["alert"]["post"];
    let value = |name: &str| {
        let parameters = webhook["parameters"].as_array().unwrap();
        let described = parameters.iter().find(|parameter| parameter["name"] == name);
        described.unwrap_or_else(|| panic!("{name}"))["example"].as_str().unwrap().to_owned()
    };
    // Computed with Python's hmac and hashlib from the body in the description.
    let description = webhook["description"].as_str().unwrap();
    let body = description.split("```").nth(1).unwrap().trim();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), schemas(&document)["Alert"]["examples"][0]);
    assert_eq!(value("X-Service-Signature"), SIGNATURE, "{body}");
    assert_eq!(value("webhook-signature"), STANDARD, "{} {}", value("webhook-id"), value("webhook-timestamp"));
    assert_eq!((value("X-Service-Event"), value("X-Service-Delivery")), ("went-down".to_owned(), value("webhook-id")));
    let bodies = &webhook["requestBody"]["content"]["application/json"];
    assert_eq!(bodies["schema"]["$ref"], "#/components/schemas/Alert");
    assert_eq!(bodies["examples"].as_object().unwrap().len(), 5);
}

#[test]
fn subscriber_webhooks_are_described_by_examples() {
    let document = document();
    for (name, schema, event) in [
        ("subscriberNews", "SubscriberNews", "incident.updated"),
        ("subscriberChallenge", "SubscriberChallenge", "subscription.challenge"),
    ] {
        let webhook = &document["webhooks"][name]["post"];
        let body = &webhook["requestBody"]["content"]["application/json"];
        assert_eq!(body["schema"]["$ref"], format!("#/components/schemas/{schema}"));
        assert_eq!(body["example"], schemas(&document)[schema]["examples"][0], "{name}");
        assert_eq!(body["example"]["event"], event);
        let headers = webhook["parameters"].as_array().unwrap();
        assert_eq!((headers.len(), &headers[0]["example"]), (6, &json!(event)), "{name}");
    }
    let described = &document["webhooks"]["subscriberNews"]["post"]["requestBody"]["content"]["application/json"];
    // The payload has these members plus the subscriber's own `unsubscribeUrl`.
    let members: Vec<&String> = described["example"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["event", "page", "pageUrl", "incident", "update", "at", "unsubscribeUrl"]);
}

const SIGNATURE: &str = "sha256=e5affc287bca17de2bbbf7aa2f4794fe18d50444d7e80e89e3e178360152c01c";
const STANDARD: &str = "v1,anKUWPzHPUGgVf+HrlfIy32UEVKjWwDlOEo17yAFJa4=";

#[tokio::test]
async fn examples_of_bodies_are_accepted() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let id = monitor["id"].as_str().unwrap();
    let down = MachineView { outage_since: Some(client.world.service.now()), ..MachineView::default() };
    client.world.views.lock().unwrap().insert(id.parse().unwrap(), down);
    let opened = json!({ "title": "x" });
    let incident = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), opened).await.body;
    let incident = incident["incident"]["id"].as_str().unwrap();
    let mail = json!({ "type": "email", "name": "x", "to": "a@example.com" });
    let destination = client.call(&client.write_key, "POST", &client.shop_path("/destinations"), mail).await.body;
    let destination = destination["destination"]["id"].as_str().unwrap();
    let document = document();
    let mut accepted = 0;
    for operation in operations() {
        let Some(body) = &operation.body else { continue };
        for example in schemas(&document)[body.name]["examples"].as_array().unwrap() {
            let text = if operation.id == "updateMonitorOrder" {
                // The monitors that the examples before created are on the page too.
                let list = client.get(&client.shop_path("/monitors")).await.body["monitors"].clone();
                let ids: Vec<&Value> = list.as_array().unwrap().iter().rev().map(|monitor| &monitor["id"]).collect();
                json!({ "monitorIds": ids }).to_string()
            } else {
                example.to_string().replace(&examples::id("monitorId"), id)
            };
            let path = operation
                .path
                .replace("{pageId}", &client.world.shop.id.to_string())
                .replace("{monitorId}", id)
                .replace("{incidentId}", incident)
                .replace("{destinationId}", destination);
            let path = format!("/api/v1{path}");
            let body = serde_json::from_str(&text).unwrap();
            let response = client.call(&client.write_key, operation.method.as_str(), &path, body).await;
            assert_eq!(response.status, operation.response.status, "{text} {response:?}");
            accepted += 1;
        }
    }
    assert!(accepted >= 15, "{accepted}");
}
