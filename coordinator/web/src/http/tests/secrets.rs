//! Tests that no response reveals secrets: headers and bodies of checks, URL credentials, and ping URLs for read keys.

use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn no_response_shows_the_headers_and_bodies_of_checks() {
    let client = TestClient::new().await;
    let secrets = json!({
        "url": "https://user:s3cretpass@a.example/", "headers": { "X-Token": "s3cret\u{e9}head" }, "method": "POST",
        "body": "s3cretbody", "name": "Front",
    });
    let bearer = format!("Bearer {}", client.write_key);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "once")];
    let list = client.shop_path("/monitors");
    let mut responses = vec![client.send("POST", &list, &headers, &secrets.to_string()).await];
    assert_eq!(responses[0].status, 201);
    let path = responses[0].headers["location"].to_str().unwrap().to_owned();
    responses.push(client.send("POST", &list, &headers, &secrets.to_string()).await);
    responses.push(client.send("POST", &list, &headers, "{\"headers\": {\"A\": \"s3cret\"}}").await);
    // Errors name the field and the rule, but not the value.
    for invalid in [
        json!({ "headers": { "X-Token": "s3cret\r\n" } }),
        json!({ "headers": { "X-Token": ["s3cret"] } }),
        json!({ "body": ["s3cret"] }),
        json!({ "url": "https://u:s3cret@" }),
        json!({ "url": "ftp://u:s3cret@a.example" }),
        json!({ "url": "https://a.example", "headers": { "Authorization": "s3cret", "authorization": "s3cret" } }),
    ] {
        let rejection = client.call(&client.write_key, "PATCH", &path, invalid.clone()).await;
        assert_eq!(rejection.status, 400, "{invalid}");
        responses.push(rejection);
    }
    responses.push(client.call(&client.write_key, "PATCH", &path, json!({ "name": "Back" })).await);
    for key in [&client.write_key, &client.read_key] {
        for rest in ["", "/checks", "/events", "/uptime", "/pings"] {
            responses.push(client.call(key, "GET", &format!("{path}{rest}"), Value::Null).await);
        }
        for rest in ["", "/monitors", "/checkpoints", "/status", "/incidents", "/deploys"] {
            responses.push(client.call(key, "GET", &client.shop_path(rest), Value::Null).await);
        }
    }
    responses.push(client.call(&client.write_key, "POST", &format!("{path}/check"), Value::Null).await);
    for response in responses {
        let text = format!("{} {:?}", response.body, response.headers);
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn no_read_only_key_sees_a_ping_url() {
    let client = TestClient::new().await;
    let heartbeat = client.create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let url = heartbeat["heartbeat"]["pingUrl"].as_str().unwrap();
    let token = url.rsplit('/').next().unwrap().to_owned();
    client.send("POST", &format!("/ping/{token}"), &[], "s3cret output").await;
    let path_of = |rest: &str| client.shop_path(&format!("/monitors/{}{rest}", heartbeat["id"].as_str().unwrap()));
    for path in [
        path_of(""),
        path_of("/pings"),
        path_of("/checks"),
        path_of("/events"),
        client.shop_path("/monitors"),
        client.shop_path("/status"),
    ] {
        let response = client.call(&client.read_key, "GET", &path, Value::Null).await;
        assert_eq!(response.status, 200, "{path}");
        let text = response.body.to_string();
        assert!(!text.contains(&token) && !text.contains("s3cret"), "{path}: {text}");
    }
    let read = client.call(&client.read_key, "GET", &path_of(""), Value::Null).await;
    assert_eq!(read.body["monitor"]["heartbeat"].get("pingUrl"), Some(&Value::Null));
    let write = client.get(&path_of("")).await;
    assert_ne!(read.headers["etag"], write.headers["etag"], "read and write keys get different documents");
    // The status document is public, even for a write key.
    assert!(!client.get(&client.shop_path("/status")).await.body.to_string().contains(&token));
}

#[tokio::test]
async fn foreign_ids_in_a_body_are_treated_as_missing() {
    let client = TestClient::new().await;
    let blog = format!("/api/v1/pages/{}/monitors", client.world.blog.id);
    let other = client.call(&client.write_key, "POST", &blog, json!({ "url": "a.example" })).await;
    let foreign_path = format!("/api/v1/pages/{}/monitors", client.world.foreign.id);
    let foreign_monitor = client.call(&client.foreign_key, "POST", &foreign_path, json!({ "url": "a.example" })).await;
    let deleted = client.create_monitor(json!({ "url": "a.example" })).await;
    let deleted_path = client.shop_path(&format!("/monitors/{}", deleted["id"].as_str().unwrap()));
    assert_eq!(client.call(&client.write_key, "DELETE", &deleted_path, Value::Null).await.status, 204);
    let ids = [
        json!("mon_0000000000000000000000000a"),
        other.body["monitor"]["id"].clone(),
        foreign_monitor.body["monitor"]["id"].clone(),
        deleted["id"].clone(),
        json!(client.world.shop.id.to_string()),
        json!("nonsense"),
        json!(""),
    ];
    let incident =
        client.call(&client.write_key, "POST", &client.shop_path("/incidents"), json!({ "title": "x" })).await;
    let incident = incident.headers["location"].to_str().unwrap().to_owned();
    for (method, path, body) in [
        ("POST", client.shop_path("/incidents"), json!({ "title": "x", "monitorIds": [null] })),
        ("POST", client.shop_path("/incidents"), json!({ "title": "x", "monitors": [{ "id": null }] })),
        ("PATCH", incident.clone(), json!({ "checkpointIds": [null] })),
        ("PATCH", incident.clone(), json!({ "checkpoints": [{ "id": null }] })),
        ("POST", client.shop_path("/deploys"), json!({ "version": "1", "monitorIds": [null] })),
    ] {
        let mut responses = Vec::new();
        for id in &ids {
            let body = body.to_string().replace("null", &id.to_string());
            let body = serde_json::from_str(&body).unwrap();
            let rejection = client.call(&client.write_key, method, &path, body).await;
            responses.push((rejection.status, rejection.body));
        }
        assert!(responses.iter().all(|one| one.0 == 400 && *one == responses[0]), "{method} {path}: {responses:?}");
    }
    let befores: Vec<_> = ["inc_0000000000000000000000000a", "mon_0000000000000000000000000a", "x", ""].into();
    for before in befores {
        let rejection = client.get(&client.shop_path(&format!("/incidents?before={before}"))).await;
        assert_eq!(rejection.body["error"]["message"], "before must be the id of an incident of this page");
    }
}
