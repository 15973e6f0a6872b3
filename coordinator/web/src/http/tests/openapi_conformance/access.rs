//! Tests of every operation with every credential, and with ids that are unknown or of another account or page.

use super::*;
use crate::http::openapi::standalone_schema;

/// Returns an unknown id with the prefix of the given one.
fn unknown_id(id: &str) -> String {
    let (prefix, rest) = id.split_once('_').unwrap_or_default();
    format!("{prefix}_{}a", "0".repeat(rest.len() - 1))
}

#[tokio::test]
async fn every_operation_refuses_each_credential_that_is_not_enough() {
    let shop = ConformanceFixture::new().await;
    let client = &shop.client;
    for operation in operations() {
        let (method, path) = (operation.method.as_str(), ConformanceFixture::path(&operation, &shop.ids));
        let path = format!("/api/v1{path}");
        let read = operation.writes().then_some((client.read_key.as_str(), 403, "read_only"));
        let is_on_page = operation.path_parameters().next().is_some();
        let foreign_response = is_on_page.then_some((client.foreign_key.as_str(), 404, "not_found"));
        let bound = match operation.id {
            "createPage" | "deletePage" => Some((client.page_key.as_str(), 403, "one_page")),
            _ => is_on_page.then_some((client.page_key.as_str(), 404, "not_found")),
        };
        let invalid_keys =
            ["plx_wrong", "", client.revoked_key.as_str()].map(|key| Some((key, 401, "unauthenticated")));
        for (key, status, code) in invalid_keys.into_iter().chain([read, foreign_response, bound]).flatten() {
            // The invalid body must not be reported before the credential.
            let response = client.call(key, method, &path, json!({ "name": 5, "title": 5 })).await;
            assert!(is_refused(&response, status, code), "{} {code} {response:?}", operation.id);
            for name in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
                assert!(response.headers.contains_key(name), "{} {name}", operation.id);
            }
        }
        let bare = client.send(method, &path, &[("content-type", "application/json")], "{}").await;
        assert!(is_refused(&bare, 401, "unauthenticated"), "{} {bare:?}", operation.id);
        assert_eq!(bare.headers["www-authenticate"], "Bearer");
        client.world.clock.set(shop.time_from_now(10_000));
    }
}

#[tokio::test]
async fn every_operation_finds_only_what_is_on_its_page() {
    let shop = ConformanceFixture::new().await;
    let other_page = shop.create_resources(shop.client.world.blog.id.to_string()).await;
    let foreign = shop.client.world.foreign.id.to_string();
    let mut count = 0;
    for operation in operations() {
        let parts: Vec<_> = operation.path_parameters().collect();
        for parameter in &parts {
            let id = &shop.ids[parameter];
            let mut invalid = vec![unknown_id(id), "nonsense".to_owned(), format!("{id}0"), "%00".to_owned()];
            match *parameter {
                "pageId" => invalid.push(foreign.clone()),
                _ => invalid.push(other_page[parameter].clone()),
            }
            if parts.len() > 1 && *parameter == "pageId" {
                invalid.push(other_page[parameter].clone());
            }
            for invalid in invalid {
                let mut ids = shop.ids.clone();
                ids.insert(parameter, invalid);
                let path = ConformanceFixture::path(&operation, &ids);
                let response = shop.send(operation.method.as_str(), &path, json!({ "name": 5 })).await;
                assert!(is_refused(&response, 404, "not_found"), "{} {path} {response:?}", operation.id);
                count += 1;
            }
        }
    }
    assert!(count > 150, "{count}");
}

#[tokio::test]
async fn every_list_of_a_new_page_is_an_empty_list() {
    let shop = ConformanceFixture::new().await;
    let page = shop.send("POST", "/pages", json!({ "name": "New", "slug": "new" })).await;
    let page = text_of(&page.body["page"]["id"]);
    let mut ids = Ids::from([("pageId", page.clone())]);
    let mut count = 0;
    // Operations on monitors come last, since a monitor is created for them.
    let mut all = operations();
    all.sort_by_key(|operation| operation.path_parameters().count());
    for operation in all.into_iter().filter(|operation| !operation.writes()) {
        // These are never empty: the page exists, days are always filled, and a page starts with its owner's email.
        if matches!(operation.id, "listPages" | "getUptime" | "listDestinations" | "exportSubscribers") {
            continue;
        }
        let Some(document) = &operation.response.document else { continue };
        let schema = standalone_schema(document);
        let lists = schema["properties"].as_object().unwrap().iter();
        let lists: Vec<_> = lists.filter(|(_, it)| it["type"] == "array").map(|(name, _)| name).collect();
        if lists.is_empty() || operation.path_parameters().any(|parameter| !matches!(parameter, "pageId" | "monitorId"))
        {
            continue;
        }
        if operation.path_parameters().any(|parameter| parameter == "monitorId") && !ids.contains_key("monitorId") {
            let heartbeat = json!({ "type": "heartbeat", "name": "x", "periodMinutes": 5 });
            let created = shop.send("POST", &format!("/pages/{page}/monitors"), heartbeat).await;
            ids.insert("monitorId", text_of(&created.body["monitor"]["id"]));
        }
        let response = shop.send("GET", &ConformanceFixture::path(&operation, &ids), Value::Null).await;
        assert_eq!(response.status, 200, "{}", operation.id);
        for list in lists.into_iter().filter(|list| *list != "warnings") {
            assert_eq!(response.body[list], json!([]), "{} {list}", operation.id);
            count += 1;
        }
    }
    assert!(count >= 9, "{count}");
}
