//! Tests of what a model sees: instructions, size of the tool list, filtered results, reasons, and the time.

use parallax_core::event::MonitorStatus;
use parallax_core::machine::MachineView;
use parallax_core::observation::Failure;
use parallax_core::vantage::{Region, RegionSet};

use super::*;

/// Sends a message with a key, or to the public page without one.
async fn ask(client: &TestClient, key: Option<&str>, body: &Value) -> Value {
    match key {
        Some(key) => reply_to(client, key, body.clone()).await,
        None => {
            let headers = [("content-type", "application/json")];
            client.send("POST", "/p/shop/mcp", &headers, &body.to_string()).await.body
        }
    }
}

/// Calls a tool and returns its structured content.
async fn tool_result(client: &TestClient, key: Option<&str>, name: &str, arguments: Value) -> Value {
    let result = ask(client, key, &tool(1, name, arguments)).await;
    assert_eq!(result["result"]["isError"], false, "{name}: {result}");
    result["result"]["structuredContent"].clone()
}

/// A monitor that is up, and one that is down from Asia.
async fn two_monitors(client: &TestClient) {
    let (up, down) = (MonitorStatus::Up, MonitorStatus::Down);
    for (name, status, reason) in [("Up", up, None), ("Down", down, Some(Failure::UnexpectedStatus(503)))] {
        let created = client.create_monitor(json!({ "name": name, "url": "https://inner.example/x" })).await;
        let down_from = reason.is_some().then(|| RegionSet::only(Region::Asia));
        let view = MachineView { status, down_from, down_reason: reason, ..MachineView::default() };
        client.world.views.lock().unwrap().insert(created["id"].as_str().unwrap().parse().unwrap(), view);
    }
}

#[tokio::test]
async fn instructions_name_only_existing_tools() {
    let client = TestClient::new().await;
    for key in [Some(client.write_key.as_str()), Some(client.read_key.as_str()), None] {
        let hello = ask(&client, key, &message(1, "initialize", json!({}))).await;
        let instructions_text = hello["result"]["instructions"].as_str().unwrap().to_owned();
        let list = ask(&client, key, &message(2, "tools/list", json!({}))).await;
        let tools: Vec<&str> =
            list["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        let tool_names: Vec<&str> = instructions_text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|tool_name| tool_name.contains('_'))
            .collect();
        assert!(tool_names.iter().all(|name| tools.contains(name)), "{instructions_text} {tools:?}");
        assert!(tool_names.contains(&"get_time"), "{instructions_text}");
        assert_eq!(tool_names.contains(&"list_pages"), key.is_some(), "{instructions_text}");
        assert_eq!(tool_names.contains(&"post_update"), key == Some(client.write_key.as_str()), "{instructions_text}");
        let text = list.to_string();
        assert!(text.len() <= 49_200, "{} bytes", text.len());
    }
}

#[tokio::test]
async fn a_public_page_answers_to_the_old_name_too() {
    let client = TestClient::new().await;
    two_monitors(&client).await;
    let (old, new) = crate::http::legacy::OLD_TOOLS[0];
    let list = tool_result(&client, None, new, json!({})).await;
    assert_eq!(tool_result(&client, None, old, json!({})).await, list);
    assert_eq!(list["monitors"].as_array().unwrap().len(), 2);
    assert_eq!(list["monitors"], list[crate::http::legacy::OLD_MONITORS]);
    let unknown = ask(&client, None, &tool(1, crate::http::legacy::OLD_TOOLS[1].0, json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn a_key_gets_the_reason_and_a_visitor_does_not() {
    let client = TestClient::new().await;
    two_monitors(&client).await;
    let page = client.world.shop.id.to_string();
    let arguments = json!({ "pageId": page, "status": "down" });
    for name in ["get_status", "list_monitors"] {
        let result = tool_result(&client, Some(&client.read_key), name, arguments.clone()).await;
        let [monitor] = &result["monitors"].as_array().unwrap()[..] else { panic!("{result}") };
        assert_eq!(monitor["downReason"], "unexpected status 503 (from Asia)", "{name}");
        assert_eq!(result["monitors"], result[crate::http::legacy::OLD_MONITORS], "{name}");
        let all = tool_result(&client, Some(&client.read_key), name, json!({ "pageId": page })).await;
        assert_eq!(all["monitors"][0]["downReason"], Value::Null, "{name}");
    }
    let status = client.get(&client.shop_path("/status")).await.body;
    for name in ["get_status", "list_monitors"] {
        let result = tool_result(&client, None, name, json!({ "status": "down" })).await;
        assert_eq!(result["monitors"].as_array().unwrap().len(), 1);
        for document in [result.to_string(), status.to_string()] {
            assert!(!document.contains("503") && !document.contains("downReason"), "{name} {document}");
        }
    }
}

#[tokio::test]
async fn a_brief_result_keeps_the_state() {
    let client = TestClient::new().await;
    two_monitors(&client).await;
    let page = client.world.shop.id.to_string();
    let arguments = json!({ "pageId": page, "brief": true, "status": "down" });
    let result = tool_result(&client, Some(&client.read_key), "list_monitors", arguments.clone()).await;
    let [monitor] = &result["monitors"].as_array().unwrap()[..] else { panic!("{result}") };
    let fields: Vec<&str> = monitor.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["id", "name", "type", "target", "status", "downFrom", "downReason"]);
    assert_eq!(result.as_object().unwrap().len(), 1, "no old names: {result}");
    let result = tool_result(&client, Some(&client.read_key), "get_status", arguments).await;
    assert_eq!(result["monitors"][0]["downReason"], "unexpected status 503 (from Asia)");
    assert!(result["page"].get("supportUrl").is_none() && result.get("status").is_some(), "{result}");
    let title = json!({ "title": "Broken", "message": "We look." });
    client.call(&client.write_key, "POST", &client.shop_path("/incidents"), title).await;
    let arguments = json!({ "pageId": page, "brief": true });
    let result = tool_result(&client, Some(&client.read_key), "list_incidents", arguments).await;
    assert_eq!(result["incidents"][0]["latestUpdate"]["body"], "We look.");
    assert_eq!(result["incidents"][0].get("updates"), None);
}

#[tokio::test]
async fn the_time_is_in_the_pages_zone() {
    let client = TestClient::new().await;
    let page = client.world.shop.id.to_string();
    let zone = json!({ "timezone": "Asia/Tokyo" });
    assert_eq!(client.call(&client.write_key, "PATCH", &client.shop_path(""), zone).await.status, 200);
    let now = client.world.service.now().to_string();
    for (key, arguments, zone) in [
        (Some(client.read_key.as_str()), json!({}), "UTC"),
        (Some(client.read_key.as_str()), json!({ "pageId": page }), "Asia/Tokyo"),
        (None, json!({}), "Asia/Tokyo"),
        (None, json!({ "timezone": "Europe/Berlin" }), "Europe/Berlin"),
    ] {
        let time = tool_result(&client, key, "get_time", arguments).await;
        assert_eq!((&time["now"], &time["timezone"]), (&json!(now), &json!(zone)));
    }
    let foreign_page = ask(&client, Some(&client.page_key), &tool(1, "get_time", json!({ "pageId": page }))).await;
    assert_eq!(foreign_page["result"]["isError"], true);
}

#[tokio::test]
async fn a_window_is_planned_in_local_time() {
    let client = TestClient::new().await;
    let page = client.world.shop.id.to_string();
    let window = json!({
        "pageId": page, "kind": "maintenance", "title": "Upgrade", "startsAt": "2026-12-08T02:00:00",
        "endsAt": "2026-12-08 03:00", "timezone": "Europe/Berlin",
    });
    let created = tool_result(&client, Some(&client.write_key), "create_incident", window.clone()).await;
    assert_eq!(created["incident"]["startedAt"], "2026-12-08T01:00:00.000Z");
    let mut bare = window;
    bare.as_object_mut().unwrap().remove("timezone");
    let rejection = reply_to(&client, &client.write_key, tool(2, "create_incident", bare)).await;
    let text = rejection["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("for a local time, also send timezone"), "{text}");
}

#[tokio::test]
async fn tool_texts_are_complete_sentences() {
    let client = TestClient::new().await;
    let page = client.world.shop.id.to_string();
    let heartbeat = client.create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let check = tool(1, "check_monitor", json!({ "pageId": page, "monitorId": heartbeat["id"] }));
    let rejection = reply_to(&client, &client.write_key, check).await;
    assert_eq!(
        rejection["result"]["content"][0]["text"],
        "bad_request: a heartbeat can't be checked on request: its job reports by ping"
    );
    let list = reply_to(&client, &client.write_key, message(2, "tools/list", json!({}))).await;
    for tool in list["result"]["tools"].as_array().unwrap() {
        let text = tool["description"].as_str().unwrap();
        assert!(text.ends_with('.') && !text.contains("..") && !text.contains('$'), "{text}");
        // For monitors, notify is off by default, so the sentence does not apply.
        let is_asked = tool["name"].as_str().is_some_and(|name| name.contains("_monitor"));
        let has_notify = tool["inputSchema"]["properties"].get("notify").is_some() && !is_asked;
        assert_eq!(text.contains("unless notify is false"), has_notify, "{text}");
    }
}
