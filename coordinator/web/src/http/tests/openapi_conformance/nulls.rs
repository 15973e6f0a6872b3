//! Tests of PATCH requests: omitted fields are kept, null clears, and the response shows the result.

use super::values::Rules;
use super::*;

/// Fields, each with another field that depends on it.
const LINKED: [(&str, &str); 2] = [("monitorIds", "monitors"), ("keyword", "keywordMode")];
/// Fields that are stored but never returned.
const UNSHOWN: [&str; 3] = ["headers", "body", "timezone"];

impl ConformanceFixture {
    /// Applies a change and returns the resource in the response.
    async fn patch(&self, operation: &ApiOperation, path: &str, body: Value) -> Value {
        let response = self.send("PATCH", path, body).await;
        assert_eq!(response.status, 200, "{} {response:?}", operation.id);
        response.body.as_object().unwrap().values().next().unwrap().clone()
    }
}

#[tokio::test]
async fn absent_fields_of_a_change_stay_and_null_clears() {
    let shop = ConformanceFixture::new().await;
    let mut count = 0;
    for operation in operations().into_iter().filter(|it| it.method == Method::PATCH) {
        let properties = operation.body.as_ref().unwrap().schema["properties"].as_object().unwrap().clone();
        for (field, schema) in &properties {
            let rules = Rules(schema);
            // For maintenance windows, null stops the repetition, and is not a valid time.
            let is_of_window =
                operation.id == "updateIncident" && matches!(field.as_str(), "repeat" | "startsAt" | "endsAt");
            if !rules.is_nullable() || is_of_window {
                continue;
            }
            let (ids, _) = shop.valid_request(&operation, field).await;
            let path = ConformanceFixture::path(&operation, &ids);
            let bare = shop.patch(&operation, &path, json!({ (field): null })).await;
            // The last value is never the default: the longest text, the last choice, or false if true is the default.
            let values = shop.accepted_values(&operation, field, &rules);
            let mut changed_fields = 0;
            for value in values.into_iter().filter(|value| *value != json!("")) {
                let set = shop.patch(&operation, &path, json!({ (field): value })).await;
                changed_fields += usize::from(set != bare);
                let unchanged = shop.patch(&operation, &path, json!({})).await;
                assert_eq!(unchanged, set, "{} {field} {value}", operation.id);
                let response = shop.patch(&operation, &path, json!({ (field): null })).await;
                assert_eq!(response, bare, "{} {field} {value}", operation.id);
            }
            assert!(changed_fields > 0 || UNSHOWN.contains(&field.as_str()), "{} {field}: {bare}", operation.id);
            shop.clear(&operation, &ids, &shop.send("GET", "/me", Value::Null).await).await;
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

#[tokio::test]
async fn a_change_of_one_field_leaves_every_other_as_it_was() {
    let shop = ConformanceFixture::new().await;
    for operation in operations().into_iter().filter(|it| it.method == Method::PATCH) {
        let properties = operation.body.as_ref().unwrap().schema["properties"].as_object().unwrap().clone();
        let mut fields: BTreeMap<String, Value> = BTreeMap::new();
        let (ids, _) = shop.valid_request(&operation, "").await;
        let path = ConformanceFixture::path(&operation, &ids);
        for (field, schema) in &properties {
            // Fields of other types, maintenance windows or repeating entries do not apply to this resource.
            let rules = Rules(schema);
            let Some(value) = shop.accepted_values(&operation, field, &rules).pop() else { continue };
            let response = shop.send("PATCH", &path, json!({ (field): value })).await;
            if response.status != 200 {
                continue;
            }
            let document = response.body.as_object().unwrap().values().next().unwrap().clone();
            let is_other = |other: &String| other != field && !LINKED.contains(&(field, other));
            for (other, before) in fields.iter().filter(|(other, _)| is_other(other)) {
                assert_eq!(&document[other], before, "{} {field} changed {other}", operation.id);
            }
            for name in properties.keys() {
                fields.extend(document.get(name).map(|value| (name.clone(), value.clone())));
            }
        }
    }
}
