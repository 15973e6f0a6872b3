//! Tests of the old names of monitors in paths, request bodies and responses.

use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn every_route_of_a_monitor_answers_the_same_under_its_old_path() {
    let client = TestClient::new().await;
    let heartbeat = client.create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let id = heartbeat["id"].as_str().unwrap();
    for rest in ["", "/pings", "/checks", "/checks?limit=1", "/events", "/uptime", "/uptime?from=2026-11-01"] {
        let new = client.get(&client.shop_path(&format!("/monitors/{id}{rest}"))).await;
        let old = client.get(&client.shop_path(&format!("/checkpoints/{id}{rest}"))).await;
        assert_eq!((new.status, &new.body), (200, &old.body), "{rest}");
        assert_eq!(new.headers["etag"], old.headers["etag"], "{rest}");
    }
    for rest in ["/checks?limit=0", "/events?cursor=x", "/uptime?to=x", "/none"] {
        let new = client.get(&client.shop_path(&format!("/monitors/{id}{rest}"))).await;
        let old = client.get(&client.shop_path(&format!("/checkpoints/{id}{rest}"))).await;
        assert!(new.status >= 400);
        assert_eq!((new.status, &new.body), (old.status, &old.body), "{rest}");
    }
    let http = client.create_monitor(json!({ "url": "a.example" })).await;
    let checked = client.shop_path(&format!("/checkpoints/{}/check", http["id"].as_str().unwrap()));
    let checked = client.call(&client.write_key, "POST", &checked, Value::Null).await;
    assert_eq!((checked.status, checked.body["regions"].is_array()), (200, true));
    let repeated = client.shop_path(&format!("/monitors/{}/check", http["id"].as_str().unwrap()));
    assert_eq!(
        client.call(&client.write_key, "POST", &repeated, Value::Null).await.status,
        429,
        "both paths name the same monitor"
    );
}

#[tokio::test]
async fn a_monitor_is_created_changed_and_deleted_under_its_old_path() {
    let client = TestClient::new().await;
    let list = client.shop_path("/checkpoints");
    let created = client.call(&client.write_key, "POST", &list, json!({ "url": "a.example" })).await;
    assert_eq!((created.status, &created.body["monitor"]), (201, &created.body["checkpoint"]));
    let path = created.headers["location"].to_str().unwrap().replace("/monitors/", "/checkpoints/");
    let changed = client.call(&client.write_key, "PATCH", &path, json!({ "name": "New" })).await;
    assert_eq!((changed.status, &changed.body["checkpoint"]["name"]), (200, &json!("New")));
    let monitors = client.get(&list).await.body;
    assert_eq!((&monitors["monitors"], &monitors["checkpoints"][0]["name"]), (&monitors["checkpoints"], &json!("New")));
    assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 404);
}

#[tokio::test]
async fn answers_carry_the_old_names_wherever_monitors_are_named() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await;
    let window = json!({
        "kind": "maintenance", "title": "x", "startsAt": "2026-11-28T00:00:00Z", "endsAt": "2026-11-28T01:00:00Z",
        "checkpoints": [{ "id": monitor["id"] }],
    });
    for body in [json!({ "title": "x", "checkpointIds": [monitor["id"]] }), window] {
        let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
    }
    let deploy = json!({ "version": "1", "checkpointIds": [monitor["id"]] });
    let deploy = client.call(&client.write_key, "POST", &client.shop_path("/deploys"), deploy).await.body;
    assert_eq!(deploy["deploy"]["checkpointIds"], json!([monitor["id"]]));
    assert_eq!(deploy["deploy"]["monitorIds"], deploy["deploy"]["checkpointIds"]);
    let status = client.get(&client.shop_path("/status")).await.body;
    for object in [&status, &status["incidents"][0], &status["maintenance"][0]] {
        assert_eq!(object["monitors"][0]["id"], monitor["id"]);
        assert_eq!(object["monitors"], object["checkpoints"]);
    }
    let deploys = client.get(&client.shop_path("/deploys")).await.body;
    assert_eq!(deploys["deploys"][0]["checkpointIds"], json!([monitor["id"]]));
}

#[tokio::test]
async fn a_page_may_have_the_old_name_of_monitors_as_slug() {
    let client = TestClient::new().await;
    for slug in ["checkpoints", "monitors"] {
        let body = json!({ "name": format!("Page {slug}"), "slug": slug });
        assert_eq!(client.call(&client.write_key, "POST", "/api/v1/pages", body).await.status, 201);
    }
    let page_text = async |path: &str| {
        let request = ParsedRequest {
            method: Method::GET,
            path: path.to_owned(),
            query: String::new(),
            headers: HeaderMap::new(),
            peer: None,
            body: futures_util::stream::empty().boxed(),
        };
        let (context, table) = (Arc::clone(&client.context), Arc::clone(&client.table));
        let body = handle(context, table, request).await.into_response().into_body();
        String::from_utf8(body.to_vec()).unwrap()
    };
    assert!(page_text("/p/checkpoints").await.contains("Page checkpoints"));
    assert!(page_text("/p/monitors").await.contains("Page monitors"));
}
