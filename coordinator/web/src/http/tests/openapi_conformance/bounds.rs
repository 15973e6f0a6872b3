//! Tests of every bound in the OpenAPI description by its last valid and first invalid value, and of every type.

use super::values::Rules;
use super::*;

/// Lists all body fields with their operations.
fn fields() -> Vec<(ApiOperation, String, Value)> {
    let mut fields = Vec::new();
    for operation in operations() {
        let Some(body) = &operation.body else { continue };
        for (name, schema) in body.schema["properties"].as_object().unwrap() {
            fields.push((operation.clone(), name.clone(), schema.clone()));
        }
    }
    fields
}

impl ConformanceFixture {
    /// Sends a request with the value for the field.
    async fn try_value(&self, operation: &ApiOperation, field: &str, value: &Value) -> TestResponse {
        let (ids, mut body) = self.valid_request(operation, field).await;
        let mut ids = ids;
        if operation.id == "createDestination" && field == "type" {
            body = value.as_str().map_or(body, destination_of);
        }
        if matches!(operation.id, "createMonitor" | "testMonitor") && field == "type" {
            body = json!({
                "url": "a.example", "host": "a.example", "port": 1, "name": "x", "periodMinutes": 5,
                "vendorUrl": "https://www.githubstatus.com",
            });
        }
        if operation.id == "updateMonitors" && field == "delete" && value == true {
            body.as_object_mut().unwrap().remove("set");
        }
        if operation.id == "createIncident" && field == "kind" {
            body["startsAt"] = json!(self.time_from_now(DAY).to_string());
            body["endsAt"] = json!(self.time_from_now(DAY + HOUR).to_string());
        }
        if operation.id == "postUpdate" && field == "status" && value == "completed" {
            ids.insert("incidentId", self.create("incident", self.incident("startsAt")).await);
        }
        body[field] = value.clone();
        let response = self.send(operation.method.as_str(), &Self::path(operation, &ids), body).await;
        self.clear(operation, &ids, &response).await;
        response
    }
}

/// Body of a destination of a type.
fn destination_of(kind: &str) -> Value {
    let mut body = hook();
    match kind {
        "email" => body["to"] = json!("owner@example.com"),
        "slack" => body["url"] = json!("https://hooks.slack.com/services/T000/B000/XXXX"),
        "discord" => body["url"] = json!("https://discord.com/api/webhooks/1/x"),
        "telegram" => (body["token"], body["chat"]) = (json!("123456:ABC-def"), json!("5")),
        "ntfy" => body["url"] = json!("https://ntfy.example/topic"),
        "pagerduty" => body["key"] = json!("0".repeat(32)),
        _ => {}
    }
    body
}

fn abbreviated(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

#[tokio::test]
async fn values_that_the_description_allows_are_accepted() {
    let shop = ConformanceFixture::new().await;
    let mut faults = Vec::new();
    for (operation, field, schema) in fields() {
        let rules = Rules(&schema);
        for value in shop.accepted_values(&operation, &field, &rules) {
            let response = shop.try_value(&operation, &field, &value).await;
            if response.status != operation.response.status {
                faults.push(format!("{} {field} {}: {}", operation.id, abbreviated(&value), response.text));
            }
        }
    }
    assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
}

#[tokio::test]
async fn values_that_the_description_forbids_are_refused_by_name() {
    let shop = ConformanceFixture::new().await;
    let mut faults = Vec::new();
    for (operation, field, schema) in fields() {
        let rules = Rules(&schema);
        for value in shop.rejected_values(&operation, &field, &rules) {
            let response = shop.try_value(&operation, &field, &value).await;
            let fields = response.body["error"]["fields"].as_array().cloned().unwrap_or_default();
            let is_named = fields.iter().any(|fault| fault["field"] == field.as_str());
            if !is_refused(&response, 400, "bad_request") || !is_named {
                faults.push(format!("{} {field} {}: {}", operation.id, abbreviated(&value), response.text));
            }
        }
    }
    assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
}

#[tokio::test]
async fn null_is_accepted_only_where_the_description_says_so() {
    let shop = ConformanceFixture::new().await;
    let mut faults = Vec::new();
    for (operation, field, schema) in fields() {
        let response = shop.try_value(&operation, &field, &Value::Null).await;
        // Null is valid for these fields only on incidents; maintenance windows require them.
        let is_of_window = matches!(field.as_str(), "startsAt" | "endsAt");
        let is_taken = Rules(&schema).is_nullable() && !is_of_window;
        let expected = if is_taken { operation.response.status } else { 400 };
        if response.status != expected {
            faults.push(format!("{} {field} null: {}", operation.id, response.text));
        }
    }
    assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
}

#[tokio::test]
async fn required_fields_are_required_and_no_others() {
    let shop = ConformanceFixture::new().await;
    for operation in operations() {
        let Some(body) = &operation.body else { continue };
        let required: Vec<&str> = body
            .schema
            .get("required")
            .into_iter()
            .flat_map(|it| it.as_array().unwrap())
            .filter_map(Value::as_str)
            .collect();
        let (ids, accepted) = shop.valid_request(&operation, "").await;
        let path = ConformanceFixture::path(&operation, &ids);
        for field in &required {
            let mut without = accepted.clone();
            without.as_object_mut().unwrap().remove(*field);
            let response = shop.send(operation.method.as_str(), &path, without).await;
            assert!(is_refused(&response, 400, "bad_request"), "{} {field} {response:?}", operation.id);
        }
        // An order is one value: there is nothing to leave as it is.
        if operation.method == Method::PATCH && operation.id != "updateMonitorOrder" {
            assert_eq!(required, [""; 0], "{}", operation.id);
            let response = shop.send("PATCH", &path, json!({ "none-such": [5] })).await;
            assert_eq!(response.status, 200, "{} {response:?}", operation.id);
        }
    }
}

#[tokio::test]
async fn every_query_parameter_conforms_to_the_description() {
    let shop = ConformanceFixture::new().await;
    let mut count = 0;
    for operation in operations() {
        let path = ConformanceFixture::path(&operation, &shop.ids);
        for parameter in &operation.query {
            let rules = Rules(&parameter.schema);
            let number = |bound: &str| parameter.schema[bound].as_i64().unwrap_or_default();
            let (accepted, rejected) = match (rules.kind(), rules.enum_values()) {
                ("integer", _) => (
                    vec![number("minimum").to_string(), number("maximum").to_string()],
                    vec![(number("minimum") - 1).to_string(), (number("maximum") + 1).to_string()],
                ),
                ("boolean", _) => (vec!["true".to_owned(), "false".to_owned()], vec!["1".to_owned()]),
                (_, Some(words)) => (words.iter().map(text_of).collect(), vec!["none".to_owned()]),
                _ if parameter.schema["format"] == "date" => {
                    (vec!["2026-11-27".to_owned()], vec!["2026-11-31".to_owned(), "27.11.2026".to_owned()])
                }
                _ => (Vec::new(), Vec::new()),
            };
            for (values, status) in
                [(accepted, 200), (rejected, 400), (vec![String::new(), "none such".to_owned()], 400)]
            {
                for value in values {
                    let query = format!("{path}?{}={}", parameter.name, value.replace(' ', "%20"));
                    // A valid deletion would remove the resource needed for the next values.
                    if operation.writes() && status == 200 {
                        continue;
                    }
                    let response = shop.send(operation.method.as_str(), &query, Value::Null).await;
                    assert_eq!(response.status, status, "{query} {response:?}");
                    let fault = &response.body["error"]["fields"][0]["field"];
                    assert!(status == 200 || fault == parameter.name, "{query} {response:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 40, "{count}");
}
