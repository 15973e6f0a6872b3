//! Tests of acknowledging a running outage over HTTP.

use parallax_core::event::MonitorStatus;
use parallax_core::id::MonitorId;
use parallax_core::machine::MachineView;
use parallax_core::time::MINUTE;
use parallax_service::test_world::START;

use super::*;

/// Sets the monitor's state: down since that minute, or up.
fn set_state(client: &TestClient, id: MonitorId, down_since: Option<i64>) {
    let outage_since = down_since.map(|minute| START + minute * MINUTE);
    let status = if outage_since.is_some() { MonitorStatus::Down } else { MonitorStatus::Up };
    let view = MachineView { status, since: outage_since, outage_since, ..MachineView::default() };
    client.world.views.lock().unwrap().insert(id, view);
}

async fn new_monitor(client: &TestClient) -> (MonitorId, String, String) {
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let id: MonitorId = created["id"].as_str().unwrap().parse().unwrap();
    let monitor = client.shop_path(&format!("/monitors/{id}"));
    (id, format!("{monitor}/acknowledge"), monitor)
}

#[tokio::test]
async fn a_running_outage_is_acknowledged_once_until_it_is_over() {
    let client = TestClient::new().await;
    let (id, path, monitor) = new_monitor(&client).await;
    let acknowledged = async || client.get(&monitor).await.body["monitor"]["acknowledged"].clone();
    let acknowledge = async |body: Value| client.call(&client.write_key, "POST", &path, body).await;
    assert_eq!(acknowledged().await, Value::Null);
    set_state(&client, id, Some(1));
    let by = client.get("/api/v1/me").await.body["key"]["name"].clone();
    let first = acknowledge(json!({ "note": " Restarting the cache " })).await;
    let at = client.world.service.now().to_string();
    let expected = json!({ "by": by, "at": at, "note": "Restarting the cache" });
    assert_eq!((first.status, &first.body["monitor"]["acknowledged"]), (200, &expected), "{first:?}");
    assert_eq!(acknowledged().await, expected);
    // A repetition, without a body, keeps the first one.
    client.world.clock.set(START + 5 * MINUTE);
    let again = acknowledge(Value::Null).await;
    assert_eq!((again.status, &again.body["monitor"]["acknowledged"]), (200, &expected), "{again:?}");
    // The recovery ends it, and the next outage has none.
    set_state(&client, id, None);
    assert_eq!(acknowledged().await, Value::Null);
    set_state(&client, id, Some(9));
    assert_eq!(acknowledged().await, Value::Null);
    assert_eq!(acknowledge(Value::Null).await.body["monitor"]["acknowledged"]["note"], Value::Null);
    assert_ne!(acknowledged().await, Value::Null);
    for _ in 0..2 {
        assert_eq!(client.call(&client.write_key, "DELETE", &path, Value::Null).await.status, 204);
        assert_eq!(acknowledged().await, Value::Null);
    }
    let events = client.get(&format!("{monitor}/events")).await.body["events"].clone();
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["acknowledgement-withdrawn", "acknowledged", "acknowledged"]);
    let [withdrawn, _, first] = events.as_array().unwrap().as_slice() else { panic!("{events}") };
    assert_eq!((&withdrawn["by"], &withdrawn["downSince"]), (&by, &json!((START + 9 * MINUTE).to_string())));
    assert_eq!((&first["by"], &first["note"]), (&by, &json!("Restarting the cache")));
}

#[tokio::test]
async fn an_acknowledgement_that_breaks_a_rule_is_refused() {
    let client = TestClient::new().await;
    let (id, path, _) = new_monitor(&client).await;
    let refusal = async |body: Value| {
        let response = client.call(&client.write_key, "POST", &path, body).await;
        (response.status, response.body["error"].clone())
    };
    let (status, error) = refusal(Value::Null).await;
    let message = &error["message"];
    assert_eq!((status, message), (400, &json!("the monitor is not down: there is no outage to acknowledge")));
    set_state(&client, id, Some(1));
    for (body, rule) in [
        (json!({ "note": "x".repeat(201) }), "note must be at most 200 characters"),
        (json!({ "note": "a\nb" }), "note must not contain control characters"),
        (json!([]), "the body must be a JSON object"),
    ] {
        let (status, error) = refusal(body).await;
        assert_eq!((status, &error["message"]), (400, &json!(rule)));
    }
    let text = client.call(&client.write_key, "POST", &path, json!({ "note": 5 })).await;
    assert_eq!((text.status, &text.body["error"]["fields"][0]["field"]), (400, &json!("note")), "{text:?}");
    let hinted = client.call(&client.write_key, "POST", &path, json!({ "message": "On it" })).await;
    assert_eq!(hinted.body["warnings"][0], "message was ignored: send it as note");
}

#[tokio::test]
async fn an_edit_of_the_monitor_keeps_the_acknowledgement() {
    let client = TestClient::new().await;
    let (id, path, monitor) = new_monitor(&client).await;
    set_state(&client, id, Some(1));
    client.call(&client.write_key, "POST", &path, json!({ "note": "On it" })).await;
    // A client may send the whole document back, also after the outage is over.
    let mut document = client.get(&monitor).await.body["monitor"].clone();
    document["name"] = json!("Renamed");
    let edited = client.call(&client.write_key, "PATCH", &monitor, document).await;
    assert_eq!((edited.status, &edited.body["monitor"]["acknowledged"]["note"]), (200, &json!("On it")), "{edited:?}");
}
