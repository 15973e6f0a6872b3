//! Tests of api tools.

use super::*;

/// Limit of the list of tools in bytes, since it is part of every conversation with a model.
const MOST_BYTES: usize = 49_000;

fn tools() -> McpTools {
    McpTools::new(operations())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn the_tool_list_is_short() {
    let tools = tools();
    let json = serde_json::to_string(&tools.tool_list(true)).unwrap();
    let longest = tools.tool_list(true).into_iter().map(|tool| (tool.to_string().len(), tool["name"].clone()));
    let mut longest: Vec<_> = longest.collect();
    longest.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    assert!(json.len() <= MOST_BYTES, "{} bytes: {longest:?}", json.len());
    assert!(!json.contains("\"null\"") && !json.contains("uint32") && !json.contains(".."), "{json}");
}

#[test]
fn annotations_say_what_a_call_does() {
    let tools = tools();
    let hints = |name: &str| {
        let annotations = &tools.find(name).unwrap().definition["annotations"];
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
            .map(|hint| u8::from(annotations[hint] == true))
    };
    for (name, expected) in [
        ("list_monitors", [1, 0, 0, 0]),
        ("create_monitor", [0, 0, 0, 1]),
        ("update_monitor", [0, 1, 1, 1]),
        ("delete_monitor", [0, 1, 1, 0]),
        ("check_monitor", [0, 0, 0, 1]),
        ("test_monitor", [0, 0, 0, 1]),
        ("update_monitors", [0, 1, 0, 1]),
        ("update_monitor_order", [0, 1, 1, 0]),
        ("create_page", [0, 0, 0, 0]),
        ("update_page", [0, 1, 1, 0]),
        ("check_domain", [0, 0, 0, 1]),
        ("create_incident", [0, 0, 0, 1]),
        ("update_incident", [0, 1, 1, 0]),
        ("post_update", [0, 0, 0, 1]),
        ("create_deploy", [0, 0, 0, 0]),
        ("create_subscriber", [0, 0, 0, 1]),
        ("import_subscribers", [0, 0, 0, 1]),
        ("export_subscribers", [1, 0, 0, 0]),
        ("create_destination", [0, 0, 0, 1]),
        ("test_destination", [0, 0, 0, 1]),
        ("redeliver", [0, 0, 0, 1]),
        ("rotate_secret", [0, 1, 0, 0]),
        ("activate_secret", [0, 1, 0, 0]),
    ] {
        assert_eq!(hints(name), expected, "{name}");
    }
}

#[test]
fn shared_arguments_are_described_once() {
    let tools = tools();
    let fields = |name: &str| tools.find(name).unwrap().definition["inputSchema"]["properties"].clone();
    let (created, tested) = (fields("create_monitor"), fields("test_monitor"));
    assert_eq!(tested["url"], json!({ "type": "string", "description": "As in create_monitor." }));
    for name in tested.as_object().unwrap().keys() {
        assert!(created.get(name).is_some(), "{name}");
    }
    assert!(tested.get("periodMinutes").is_none() && !tested["type"].to_string().contains("heartbeat"), "{tested}");
}

#[test]
fn a_change_clears_fields_by_name() {
    let sent = |clear: Value| {
        let mut sent = object(json!({ "pageId": "p", "monitorId": "m", "name": "New", "clear": clear }));
        sent.retain(|_, value| !value.is_null());
        tools().request_for("update_monitor", sent).map(|request| String::from_utf8(request.body.unwrap()).unwrap())
    };
    assert_eq!(sent(json!(["keyword"])).unwrap(), r#"{"name":"New","keyword":null}"#);
    assert_eq!(sent(Value::Null).unwrap(), r#"{"name":"New"}"#);
    assert!(sent(json!(["type"])).unwrap_err().starts_with("clear must be names from groupName, "));
    assert!(sent(json!("keyword")).is_err());
    let both = json!({ "pageId": "p", "monitorId": "m", "keyword": "x", "clear": ["keyword"] });
    assert!(tools().request_for("update_monitor", object(both)).unwrap_err().starts_with("keyword must not"));
    let new = json!({ "pageId": "p", "clear": [] });
    assert_eq!(tools().request_for("create_monitor", object(new)).unwrap_err(), "there is no argument clear");
}

#[test]
fn a_read_only_key_sees_no_tool_that_writes() {
    let tools = tools();
    assert!(tools.tool_list(false).iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
    assert!(tools.tool_list(true).len() > tools.tool_list(false).len());
    for tool in tools.tool_list(true) {
        let name = tool["name"].as_str().unwrap_or_default();
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
}

#[test]
fn arguments_become_a_path_a_query_and_a_body() {
    let sent = object(json!({ "pageId": "pag_1/..", "name": "Shop", "url": "a.example" }));
    let request = tools().request_for("create_monitor", sent).unwrap();
    assert_eq!((request.method, request.path.as_str()), (Method::POST, "/api/v1/pages/pag_1%2F../monitors"));
    assert_eq!(request.body.as_deref(), Some(&br#"{"name":"Shop","url":"a.example"}"#[..]));
    let request = tools()
        .request_for(
            "get_monitor",
            object(json!({ "pageId": "p", (legacy::old_argument("monitorId").unwrap_or_default()): "m" })),
        )
        .unwrap();
    assert_eq!((request.path.as_str(), request.body), ("/api/v1/pages/p/monitors/m", None));
}

#[test]
fn checks_and_test_alerts_are_slow_tools() {
    let tools = tools();
    let waiting: Vec<&str> = tools.tools.keys().map(String::as_str).filter(|name| tools.is_slow(name)).collect();
    assert_eq!(waiting, ["check_domain", "check_monitor", "test_destination", "test_monitor"]);
}

#[test]
fn old_tool_names_work_and_are_not_listed() {
    let tools = tools();
    assert_eq!(legacy::OLD_TOOLS.map(|(old, _)| tools.writes(old)), [Some(false), Some(true)]);
    assert!(tools.tool_list(true).iter().all(|tool| legacy::OLD_TOOLS.iter().all(|(old, _)| tool["name"] != *old)));
}

#[test]
fn wrong_arguments_are_named() {
    let rejection = |name: &str, value| tools().request_for(name, object(value)).unwrap_err();
    assert_eq!(rejection("list_monitors", json!({})), "pageId is required and must be a string");
    assert_eq!(rejection("list_monitors", json!({ "pageId": 5 })), "pageId is required and must be a string");
    assert_eq!(rejection("list_pages", json!({ "x": 1 })), "there is no argument x");
    assert_eq!(rejection("nothing", json!({})), "there is no tool nothing");
    assert_eq!(
        rejection("create_monitor", json!({ "pageId": "p", "url": "a.example", "interval": 5 })),
        "there is no argument interval"
    );
}
