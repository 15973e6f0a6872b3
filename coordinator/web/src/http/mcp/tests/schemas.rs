//! Calls every tool, and checks its arguments and results against its schemas.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::event::{Event, EventKind, MonitorStatus, StatusChange};
use parallax_core::machine::MachineView;
use parallax_core::observation::Failure;
use parallax_core::page::domain_verification::LookupFailure;
use parallax_service::hosts::domains::TxtLookup;

use super::*;
use crate::http::openapi::{operations, standalone_schema};

/// DNS stub that finds no records.
#[derive(Debug)]
struct NoRecords;

impl TxtLookup for NoRecords {
    fn texts<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<String>, LookupFailure>> {
        async { Err(LookupFailure::NoRecord) }.boxed()
    }
}

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    validator.iter_errors(value).map(|fault| format!("{} {fault}", fault.instance_path())).collect()
}

async fn tools_of(client: &TestClient, key: &str) -> Vec<Value> {
    let list = reply_to(client, key, message(1, "tools/list", json!({}))).await;
    list["result"]["tools"].as_array().unwrap().clone()
}

/// Creates one of everything on a page. Returns the ids of the page, a monitor, a heartbeat and an incident.
async fn populate(client: &TestClient) -> [String; 4] {
    let page = client.world.shop.id.to_string();
    let id = |created: &Value| created["id"].as_str().unwrap().to_owned();
    let monitor = client
        .create_monitor(json!({
            "name": "Front", "url": "https://a.example", "slowThresholds": { "asia": 900 }, "keyword": "x", "groupName": "Core",
            "method": "POST", "headers": { "X-Token": "hush-header" }, "body": "hush-body",
        }))
        .await;
    for other in [
        json!({ "name": "tcp", "type": "tcp", "host": "a.example", "port": 22, "pinnedRegion": "asia" }),
        json!({ "name": "dns", "type": "dns", "host": "a.example", "dnsExpect": "192.0.2.1" }),
        json!({ "name": "ping", "type": "ping", "host": "a.example", "latencyLocations": ["asia"], "paused": true }),
        json!({ "name": "certificate", "type": "certificate", "host": "a.example" }),
        json!({ "name": "domain", "type": "domain", "host": "a.example" }),
        json!({ "type": "component", "name": "Vendor", "vendorUrl": "https://www.githubstatus.com" }),
    ] {
        client.create_monitor(other).await;
    }
    let heartbeat = client.create_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    let ping = heartbeat["heartbeat"]["pingUrl"].as_str().unwrap().split_once("/ping/").unwrap().1.to_owned();
    client.send("POST", &format!("/ping/{ping}/fail"), &[("user-agent", "cron")], "no space left").await;
    let at = client.world.service.now();
    let change = StatusChange {
        from: MonitorStatus::Up,
        to: MonitorStatus::Down,
        alert: None,
        since: at,
        down_since: Some(at),
        reason: Some(Failure::UnexpectedStatus(503)),
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: Vec::new(),
        flapping: None,
    };
    let (event_page, monitor) = (Some(client.world.shop.id), id(&monitor));
    let event = Event { at, page: event_page, monitor: monitor.parse().ok(), kind: EventKind::StatusChanged(change) };
    client.world.happened(event).await;
    let affected = json!([{ "id": monitor, "impact": "major" }]);
    let incident = json!({ "title": "Slow", "monitors": affected, "remind": ["1h"], "message": "We look." });
    let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let window = json!({
        "kind": "maintenance", "title": "Upgrade", "startsAt": (at + 3_600_000).to_string(),
        "endsAt": (at + 7_200_000).to_string(), "repeat": "weekly", "timezone": "Europe/Berlin",
    });
    assert_eq!(client.call(&client.write_key, "POST", &client.shop_path("/incidents"), window).await.status, 201);
    let deploy = json!({ "version": "1.0", "url": "https://a.example/1.0", "monitorIds": [monitor] });
    assert_eq!(client.call(&client.write_key, "POST", &client.shop_path("/deploys"), deploy).await.status, 201);
    [page, monitor, id(&heartbeat), id(&opened.body["incident"])]
}

#[tokio::test]
async fn every_tool_conforms_to_its_schemas() {
    let client = TestClient::new().await;
    let [page, monitor, heartbeat, incident] = populate(&client).await;
    let of_monitor = json!({ "pageId": page, "monitorId": monitor });
    let with = |base: &Value, extra: Value| {
        let mut arguments = base.clone();
        arguments.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap());
        arguments
    };
    let of_page = json!({ "pageId": page });
    let of_incident = with(&of_page, json!({ "incidentId": incident }));
    let deploys = reply_to(&client, &client.read_key, tool(1, "list_deploys", of_page.clone())).await;
    let deploy = deploys["result"]["structuredContent"]["deploys"][0]["id"].clone();
    client.world.receive();
    let created = async |name: &str, extra: Value| {
        let result = reply_to(&client, &client.write_key, tool(1, name, with(&of_page, extra))).await;
        result["result"]["structuredContent"].clone()
    };
    let hook = json!({ "type": "webhook", "name": "Team", "url": "https://hooks.example.com/x" });
    let destination = created("create_destination", hook.clone()).await["destination"]["id"].clone();
    let destination = with(&of_page, json!({ "destinationId": destination }));
    let tested = reply_to(&client, &client.write_key, tool(1, "test_destination", destination.clone())).await;
    let delivery = tested["result"]["structuredContent"]["delivery"]["id"].clone();
    let delivery = with(&of_page, json!({ "deliveryId": delivery }));
    let subscriber = created("create_subscriber", json!({ "email": "a@example.com" })).await;
    let subscriber = with(&of_page, json!({ "subscriberId": subscriber["subscriber"]["id"] }));
    client.world.name_server.set(Arc::new(NoRecords));
    let down = MachineView { outage_since: Some(client.world.service.now()), ..MachineView::default() };
    client.world.views.lock().unwrap().insert(monitor.parse().unwrap(), down);
    let monitors = client.get(&client.shop_path("/monitors")).await.body["monitors"].clone();
    let order: Vec<Value> = monitors.as_array().unwrap().iter().rev().map(|it| it["id"].clone()).collect();
    // Ordered so that nothing is deleted before it is used.
    let calls = [
        ("get_key", json!({})),
        ("get_time", of_page.clone()),
        ("list_regions", json!({})),
        ("list_pages", json!({})),
        ("get_page", of_page.clone()),
        ("update_page", with(&of_page, json!({ "uptimeTarget": 99.9, "latencyLocations": ["asia"] }))),
        ("update_page_address", with(&of_page, json!({ "slug": "renamed", "customDomain": "status.b.example" }))),
        ("check_domain", of_page.clone()),
        ("get_status", of_page.clone()),
        ("create_page", json!({ "name": "New", "slug": "new-page" })),
        ("list_monitors", of_page.clone()),
        ("update_monitor_order", with(&of_page, json!({ "monitorIds": order }))),
        ("create_monitor", with(&of_page, json!({ "url": "https://b.example" }))),
        ("get_monitor", with(&of_page, json!({ "monitorId": heartbeat }))),
        ("update_monitor", with(&of_monitor, json!({ "clear": ["keyword"], "expectStatus": 204 }))),
        ("check_monitor", of_monitor.clone()),
        ("update_monitors", with(&of_page, json!({ "monitorIds": [monitor, "none"], "set": { "groupName": "A" } }))),
        ("test_monitor", with(&of_page, json!({ "url": "https://b.example" }))),
        ("acknowledge_outage", with(&of_monitor, json!({ "note": "On it" }))),
        ("delete_acknowledgement", of_monitor.clone()),
        ("list_checks", with(&of_monitor, json!({ "limit": 5 }))),
        ("list_events", of_monitor.clone()),
        ("list_page_events", of_page.clone()),
        ("get_uptime", with(&of_monitor, json!({ "from": "2026-11-20", "to": "2026-11-28" }))),
        ("get_latency", with(&of_monitor, json!({ "range": "7d", "points": 24 }))),
        ("list_pings", with(&of_page, json!({ "monitorId": heartbeat }))),
        ("list_incidents", with(&of_page, json!({ "open": true }))),
        ("create_incident", with(&of_page, json!({ "title": "Down", "monitorIds": [monitor] }))),
        ("get_incident", of_incident.clone()),
        ("update_incident", with(&of_incident, json!({ "postmortem": "It was the disk." }))),
        ("post_update", with(&of_incident, json!({ "status": "resolved", "message": "Over." }))),
        ("list_deploys", of_page.clone()),
        ("create_deploy", with(&of_page, json!({ "version": "1.1" }))),
        ("delete_deploy", with(&of_page, json!({ "deployId": deploy }))),
        ("list_destinations", of_page.clone()),
        ("create_destination", with(&of_page, hook)),
        ("get_destination", destination.clone()),
        ("update_destination", with(&destination, json!({ "events": ["went-down"], "enabled": true }))),
        ("test_destination", destination.clone()),
        ("rotate_secret", destination.clone()),
        ("activate_secret", destination.clone()),
        ("list_deliveries", with(&of_page, json!({ "status": "delivered", "limit": 5 }))),
        ("get_delivery", delivery.clone()),
        ("redeliver", delivery),
        ("delete_destination", destination),
        ("list_subscribers", of_page.clone()),
        ("create_subscriber", with(&of_page, json!({ "email": "b@example.com", "monitorIds": [monitor] }))),
        ("import_subscribers", with(&of_page, json!({ "csv": "c@example.com", "dryRun": true }))),
        ("export_subscribers", of_page.clone()),
        ("delete_subscriber", subscriber),
        ("get_alerts", of_page.clone()),
        ("update_alerts", with(&of_page, json!({ "repeatMinutes": 30, "automaticIncidents": false }))),
        ("delete_incident", of_incident),
        ("delete_monitor", of_monitor),
        ("delete_page", of_page),
    ];
    let documents: BTreeMap<String, Value> = operations()
        .into_iter()
        .map(|operation| {
            // A text is in the result as `csv`.
            let document = operation.response.document.as_ref();
            let document = document.filter(|_| operation.response.media == "application/json");
            let schema = document.map_or_else(|| json!({}), standalone_schema);
            (operation.id.to_lowercase(), schema)
        })
        .collect();
    let tools = tools_of(&client, &client.write_key).await;
    let mut names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>());
    for (name, arguments) in calls {
        let tool_of = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(faults(&tool_of["inputSchema"], &arguments), [""; 0], "{name}");
        let result = reply_to(&client, &client.write_key, tool(2, name, arguments)).await;
        assert_eq!(result["result"]["isError"], false, "{name} {result}");
        let content = &result["result"]["structuredContent"];
        // Results match the response schemas of the API; tools declare no output schema.
        assert_eq!(tool_of.get("outputSchema"), None, "{name}");
        if let Some(schema) = documents.get(&name.replace('_', "")) {
            assert_eq!(faults(schema, content), [""; 0], "{name} {content}");
        }
    }
}

#[tokio::test]
async fn every_tool_has_a_schema_a_description_and_annotations() {
    let client = TestClient::new().await;
    for tool in tools_of(&client, &client.write_key).await {
        let name = tool["name"].as_str().unwrap().to_owned();
        assert!(jsonschema::meta::is_valid(&tool["inputSchema"]), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        for property in tool["inputSchema"]["properties"].as_object().unwrap().values() {
            assert!(property["description"].as_str().is_some_and(|about| !about.is_empty()), "{name} {property}");
        }
        let hints = ["readOnlyHint", "openWorldHint", "destructiveHint"];
        let reads = tool["annotations"]["readOnlyHint"] == true;
        for hint in &hints[..if reads { 2 } else { 3 }] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
        }
        let overwrites = ["delete_", "update_", "rotate_", "activate_"].iter().any(|verb| name.starts_with(verb));
        assert_eq!(tool["annotations"]["destructiveHint"] == true, overwrites, "{name}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
    }
}

#[tokio::test]
async fn no_tool_shows_secrets_to_readers_or_visitors() {
    let client = TestClient::new().await;
    let [page, monitor, heartbeat, _] = populate(&client).await;
    let token =
        reply_to(&client, &client.write_key, tool(1, "get_monitor", json!({ "pageId": page, "monitorId": heartbeat })))
            .await;
    let token = token["result"]["structuredContent"]["monitor"]["heartbeat"]["pingUrl"].as_str().unwrap().to_owned();
    for (key, secrets) in [
        (&client.read_key, &["hush-header", "hush-body", token.as_str(), "no space left"][..]),
        (&client.write_key, &["hush-header", "hush-body"]),
    ] {
        for tool_of in tools_of(&client, key).await.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true) {
            let name = tool_of["name"].as_str().unwrap();
            for id in [&monitor, &heartbeat] {
                let mut arguments = json!({ "pageId": page, "monitorId": id });
                let parameters = tool_of["inputSchema"]["properties"].as_object().unwrap();
                arguments.as_object_mut().unwrap().retain(|name, _| parameters.contains_key(name));
                let result = reply_to(&client, key, tool(2, name, arguments)).await.to_string();
                for secret in secrets {
                    assert!(!result.contains(secret), "{name} shows {secret}: {result}");
                }
            }
        }
    }
    let old = crate::http::legacy::OLD_TOOLS[0].0;
    for name in ["get_status", "list_incidents", "list_maintenance", "list_monitors", old, "get_time"] {
        let headers = [("content-type", "application/json")];
        let call = tool(1, name, json!({})).to_string();
        let result = client.send("POST", "/p/shop/mcp", &headers, &call).await;
        assert_eq!(result.body["result"]["isError"], false, "{result:?}");
        let result = result.body.to_string();
        for secret in ["hush-header", "hush-body", token.as_str(), "a.example", "no space left"] {
            assert!(!result.contains(secret), "{name} shows {secret}: {result}");
        }
    }
}

#[tokio::test]
async fn a_refusal_names_every_field_and_its_rule() {
    let client = TestClient::new().await;
    let page = client.world.shop.id.to_string();
    let arguments = json!({ "pageId": page, "type": "tcp", "host": "a.example", "port": 0, "name": "" });
    let rejection = reply_to(&client, &client.write_key, tool(1, "create_monitor", arguments)).await;
    assert_eq!(rejection["result"]["isError"], true);
    let message = rejection["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        message.starts_with("bad_request: ")
            && message.contains("port must be a whole number from 1 to 65535")
            && message.contains("name must"),
        "{message}"
    );
}

#[tokio::test]
async fn update_incident_refuses_a_status() {
    let client = TestClient::new().await;
    let [page, _, _, incident] = populate(&client).await;
    // An incident is closed by posting an update; update_incident has no status argument.
    let closing = json!({ "pageId": page, "incidentId": incident, "status": "resolved" });
    let rejection = reply_to(&client, &client.write_key, tool(1, "update_incident", closing)).await;
    assert_eq!(rejection["result"]["content"][0]["text"], "there is no argument status");
}
