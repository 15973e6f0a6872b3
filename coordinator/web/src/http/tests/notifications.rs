//! Tests of destinations, deliveries, subscribers and alert settings: what each key sees, test alerts and plans.

use serde_json::{Value, json};

use super::*;

const HOOK: &str = "https://hooks.example.com/secret-path?token=x";

impl TestClient {
    async fn destination(&self, body: Value) -> Value {
        let created = self.call(&self.write_key, "POST", &self.shop_path("/destinations"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body["destination"].clone()
    }

    async fn read(&self, path: &str) -> Value {
        self.call(&self.read_key, "GET", path, Value::Null).await.body
    }

    fn destination_path(&self, destination: &Value) -> String {
        self.shop_path(&format!("/destinations/{}", destination["id"].as_str().unwrap()))
    }
}

fn hook() -> Value {
    json!({ "type": "webhook", "name": "Team", "url": HOOK })
}

#[tokio::test]
async fn secrets_are_unmasked_only_in_one_destination_for_a_writer() {
    let client = TestClient::new().await;
    let created = [
        hook(),
        json!({ "type": "slack", "name": "x", "url": "https://hooks.slack.com/services/T/B/secret-path" }),
        json!({ "type": "telegram", "name": "x", "token": "12345:secret-path", "chat": "@shop" }),
        json!({ "type": "ntfy", "name": "x", "url": "https://ntfy.sh/secret-path", "token": "secret-path" }),
        json!({ "type": "pagerduty", "name": "x", "key": "secretpathsecretpathsecretpath00" }),
        json!({ "type": "email", "name": "x", "to": "secret-path@example.com" }),
    ];
    for body in created {
        let kind = body["type"].clone();
        let created = client.destination(body.clone()).await;
        let full = client.get(&client.destination_path(&created)).await.body["destination"].clone();
        assert_eq!(full, created, "{kind}");
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(&created[name], value, "{kind}");
        }
        assert_eq!(created["secret"].is_string(), kind == "webhook", "{created}");
        let masked = client.read(&client.destination_path(&created)).await;
        let text = masked.to_string().to_lowercase();
        assert!(!text.contains("secret-path") && !text.contains("secretpath"), "{text}");
        assert_eq!(masked["destination"]["secret"], Value::Null);
    }
    let list = client.read(&client.shop_path("/destinations")).await.to_string();
    assert!(!list.contains("secret-path") && list.contains("https://hooks.slack.com/***"), "{list}");
    assert!(!list.contains("whsec_") && list.contains("o***@example.com"), "{list}");
    let list = client.get(&client.shop_path("/destinations")).await.body.to_string();
    assert!(list.contains("secret-path@example.com"), "keys with write access see email addresses");
    assert!(!list.contains("whsec_") && !list.contains("12345:secret-path"), "{list}");
}

#[tokio::test]
async fn a_masked_value_is_not_accepted_as_an_address() {
    let client = TestClient::new().await;
    let created = client.destination(hook()).await;
    let mut document = client.get(&client.shop_path("/destinations")).await.body["destinations"][1].clone();
    assert_eq!(document["id"], created["id"]);
    let rejection = client.call(&client.write_key, "PATCH", &client.destination_path(&created), document.clone()).await;
    assert_eq!((rejection.status, &rejection.body["error"]["fields"][0]["field"]), (400, &json!("url")));
    // The unmasked document can be sent back unchanged.
    document = created.clone();
    let unchanged = client.call(&client.write_key, "PATCH", &client.destination_path(&created), document).await;
    assert_eq!((unchanged.status, &unchanged.body["destination"]), (200, &created));
}

#[tokio::test]
async fn a_new_secret_is_pending_until_it_is_activated_or_a_day_has_passed() {
    let client = TestClient::new().await;
    let created = client.destination(hook()).await;
    let path = format!("{}/rotate-secret", client.destination_path(&created));
    let bearer = format!("Bearer {}", client.write_key);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "once")];
    let first = client.send("POST", &path, &headers, "").await;
    assert_eq!(first.status, 200, "{first:?}");
    let rotated = &first.body["destination"];
    assert_ne!(rotated["secret"], created["secret"]);
    let until = client.world.service.now() + parallax_core::time::DAY;
    assert_eq!(rotated["oldSecretUntil"], json!(until.to_string()));
    let repeated = client.send("POST", &path, &headers, "").await;
    assert_eq!(repeated.body, first.body);
    assert!(repeated.headers.contains_key("idempotency-replayed"));
    assert_eq!(
        (&created["secretPending"], &rotated["secretPending"], &rotated["secretRotatedAt"]),
        (&json!(false), &json!(true), &json!(client.world.service.now().to_string()))
    );
    // A second rotation replaces the pending secret; the original one stays active.
    client.world.clock.set(client.world.service.now() + parallax_core::time::HOUR);
    let second = client.call(&client.write_key, "POST", &path, Value::Null).await.body["destination"].clone();
    assert_ne!(second["secret"], rotated["secret"]);
    let until = client.world.service.now() + parallax_core::time::DAY;
    assert_eq!(second["oldSecretUntil"], json!(until.to_string()));
    let list = client.read(&client.shop_path("/destinations")).await["destinations"][1].clone();
    assert_eq!((&list["secretPending"], &list["secret"]), (&json!(true), &Value::Null));
    let activate = format!("{}/activate-secret", client.destination_path(&created));
    for _ in 0..2 {
        let active = client.call(&client.write_key, "POST", &activate, Value::Null).await;
        assert_eq!(active.status, 200, "{active:?}");
        let active = &active.body["destination"];
        assert_eq!(active["secret"], second["secret"]);
        assert_eq!((&active["secretPending"], &active["oldSecretUntil"]), (&json!(false), &Value::Null));
    }
    // A pending secret becomes active after a day.
    client.call(&client.write_key, "POST", &path, Value::Null).await;
    client.world.clock.set(client.world.service.now() + parallax_core::time::DAY);
    let expired = client.get(&client.destination_path(&created)).await.body["destination"].clone();
    assert_eq!((&expired["secretPending"], &expired["oldSecretUntil"]), (&json!(false), &Value::Null));
    let mail = client.get(&client.shop_path("/destinations")).await.body["destinations"][0].clone();
    let rejection = client
        .call(&client.write_key, "POST", &format!("{}/rotate-secret", client.destination_path(&mail)), Value::Null)
        .await;
    assert_eq!(rejection.body["error"]["message"], "only a webhook has a secret");
}

#[tokio::test]
async fn a_test_alert_returns_its_result_and_is_listed_as_a_delivery() {
    let client = TestClient::new().await;
    client.world.receive();
    let created = client.destination(hook()).await;
    let path = format!("{}/test", client.destination_path(&created));
    let tested = client.call(&client.write_key, "POST", &path, Value::Null).await;
    assert_eq!(tested.status, 200, "{tested:?}");
    let delivery = &tested.body["delivery"];
    assert_eq!((&delivery["status"], &delivery["test"]), (&json!("delivered"), &json!(true)));
    assert_eq!((&delivery["log"][0]["status"], &delivery["log"][0]["answer"]), (&json!(204), &json!("taken")));
    let body: Value = serde_json::from_str(delivery["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["page"], "Shop");
    let query = format!("/deliveries?destinationId={}&status=delivered", created["id"].as_str().unwrap());
    let list = client.read(&client.shop_path(&query)).await;
    assert_eq!(list["deliveries"][0]["id"], delivery["id"], "{list}");
    assert_eq!((list["deliveries"].as_array().unwrap().len(), &list["nextBefore"]), (1, &Value::Null));
    let delivery_path = client.shop_path(&format!("/deliveries/{}", delivery["id"].as_str().unwrap()));
    assert_eq!(&client.read(&delivery_path).await["delivery"], delivery);
    let repeated = client.call(&client.write_key, "POST", &format!("{delivery_path}/redeliver"), Value::Null).await;
    assert_eq!((repeated.status, &repeated.body["delivery"]["status"]), (200, &json!("waiting")));
    assert_eq!(repeated.body["delivery"]["id"], delivery["id"]);
    for query in ["status=lost", "destinationId=x", "before=x", "limit=201"] {
        let rejection = client.get(&client.shop_path(&format!("/deliveries?{query}"))).await;
        assert_eq!(rejection.status, 400, "{query}");
    }
}

#[tokio::test]
async fn a_sixth_test_in_a_minute_waits_for_the_next() {
    let client = TestClient::new().await;
    client.world.receive();
    let created = client.destination(hook()).await;
    let path = format!("{}/test", client.destination_path(&created));
    for _ in 0..5 {
        assert_eq!(client.call(&client.write_key, "POST", &path, Value::Null).await.status, 200);
    }
    let rejection = client.call(&client.write_key, "POST", &path, Value::Null).await;
    assert_eq!((rejection.status, code(&rejection)), (429, "rate_limited"));
    assert_eq!(rejection.headers["retry-after"], "60");
}

#[tokio::test]
async fn the_free_plan_has_mail_only_and_reports_so() {
    let client = TestClient::new().await;
    let plan = parallax_core::plan::Plan::Free;
    client.world.service.accounts.set_plan(client.world.owner.id, plan).await.unwrap();
    for kind in ["webhook", "slack", "discord", "teams"] {
        let body = json!({ "type": kind, "name": "x", "url": "https://hooks.example.com/x" });
        let rejection = client.call(&client.write_key, "POST", &client.shop_path("/destinations"), body).await;
        assert_eq!((rejection.status, code(&rejection)), (422, "plan_limit"), "{kind}");
    }
}

#[tokio::test]
async fn a_smaller_plan_disables_destinations_and_a_larger_one_enables_them() {
    use parallax_core::plan::Plan;

    let client = TestClient::new().await;
    client.world.receive();
    let created = client.destination(hook()).await;
    let test_delivery = client
        .call(&client.write_key, "POST", &format!("{}/test", client.destination_path(&created)), Value::Null)
        .await;
    let test_delivery = test_delivery.body["delivery"]["id"].as_str().unwrap().to_owned();
    let vendor = json!({ "type": "component", "name": "Vendor", "vendorUrl": "https://status.example.org" });
    let vendor = client.create_monitor(vendor).await;
    assert_eq!((&vendor["paused"], &vendor["pausedBy"]), (&json!(false), &Value::Null));
    let owner = client.world.owner.id;
    let put_on = async |plan| client.world.service.accounts.set_plan(owner, plan).await.unwrap();
    let mails = || client.world.sent_of_no_page("plan.changed").len();
    client.world.clock.set(client.world.service.now() + 1000);
    put_on(Plan::Free).await;
    put_on(Plan::Free).await;
    assert_eq!(mails(), 1, "once");
    let off = client.get(&client.destination_path(&created)).await.body["destination"].clone();
    let now = json!(client.world.service.now().to_string());
    assert_eq!((&off["status"], &off["offReason"], &off["offSince"]), (&json!("off"), &json!("plan"), &now));
    let list = client.read(&client.shop_path("/destinations")).await["destinations"][1].clone();
    assert_eq!(list["offReason"], "plan");
    let edit = json!({ "name": "Other", "enabled": true });
    let edited = client.call(&client.write_key, "PATCH", &client.destination_path(&created), edit).await;
    assert_eq!((edited.status, &edited.body["destination"]["offReason"]), (200, &json!("plan")));
    let repeated = client.shop_path(&format!("/deliveries/{test_delivery}/redeliver"));
    for path in [format!("{}/test", client.destination_path(&created)), repeated.clone()] {
        let rejection = client.call(&client.write_key, "POST", &path, Value::Null).await;
        assert_eq!((rejection.status, code(&rejection)), (422, "plan_limit"), "{path}");
    }
    let monitor_path = client.shop_path(&format!("/monitors/{}", vendor["id"].as_str().unwrap()));
    let paused = client.get(&monitor_path).await.body["monitor"].clone();
    assert_eq!((&paused["paused"], &paused["pausedBy"]), (&json!(true), &json!("plan")));
    put_on(Plan::Pro).await;
    assert_eq!(mails(), 1, "a larger plan stops nothing");
    let on = client.get(&client.destination_path(&created)).await.body["destination"].clone();
    assert_eq!((&on["status"], &on["offReason"]), (&json!("active"), &Value::Null));
    assert_eq!(client.call(&client.write_key, "POST", &repeated, Value::Null).await.status, 200);
    assert_eq!(client.get(&monitor_path).await.body["monitor"]["paused"], false);
}

#[tokio::test]
async fn hostile_names_are_refused_or_unchanged() {
    let client = TestClient::new().await;
    let with_name = |name: &str| json!({ "type": "email", "name": name, "to": "owner@example.com" });
    for rejected in
        ["a\r\nBcc: b@example.com", "a\0b", "a\u{85}b", "a\u{1b}[31m", "\u{202e}evil", "\u{200d}", &"x".repeat(4000)]
    {
        let rejection =
            client.call(&client.write_key, "POST", &client.shop_path("/destinations"), with_name(rejected)).await;
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{rejected:?}");
    }
    for accepted in ["<script>alert(1)</script>", "[a](javascript:b)", "\"},{\""] {
        assert_eq!(client.destination(with_name(accepted)).await["name"], accepted);
    }
}

#[tokio::test]
async fn a_subscriber_added_by_the_owner_must_confirm() {
    let client = TestClient::new().await;
    let path = client.shop_path("/subscribers");
    let add = async |body: Value| client.call(&client.write_key, "POST", &path, body).await;
    let added = add(json!({ "email": "Reader@Example.com" })).await;
    assert_eq!(added.status, 201, "{added:?}");
    let subscriber = &added.body["subscriber"];
    assert_eq!((&subscriber["confirmedAt"], &subscriber["type"]), (&Value::Null, &json!("email")));
    // The email holds the confirmation link, so its content is not shown.
    let deliveries = client.get(&client.shop_path("/deliveries")).await.body["deliveries"].clone();
    assert_eq!(deliveries[0]["subscriberId"], subscriber["id"], "{deliveries}");
    let id = deliveries[0]["id"].as_str().unwrap();
    let mail = client.get(&client.shop_path(&format!("/deliveries/{id}"))).await.body["delivery"].clone();
    assert_eq!((&mail["body"], &mail["subject"]), (&Value::Null, &Value::Null));
    let repeated = client.shop_path(&format!("/deliveries/{id}/redeliver"));
    assert_eq!(client.call(&client.write_key, "POST", &repeated, Value::Null).await.status, 400);
    // A subscriber added twice gets only one confirmation email.
    assert_eq!(add(json!({ "email": "reader@example.com" })).await.body, added.body);
    let deliveries = client.get(&client.shop_path("/deliveries")).await.body["deliveries"].clone();
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
    for (invalid, field) in [
        (json!({}), "email"),
        (json!({ "email": "reader" }), "email"),
        (json!({ "email": "a@example.com", "monitorIds": ["x"] }), "monitorIds"),
        (json!({ "email": 5 }), "email"),
    ] {
        let rejection = add(invalid).await;
        assert_eq!((rejection.status, &rejection.body["error"]["fields"][0]["field"]), (400, &json!(field)));
    }
    add(json!({ "email": "second@example.com" })).await;
    let first = client.read(&format!("{path}?limit=1")).await;
    assert_eq!(first["subscribers"][0]["email"].as_str().map(|it| it.ends_with("***@example.com")), Some(true));
    let next = first["nextCursor"].as_str().unwrap();
    let second = client.read(&format!("{path}?limit=1&cursor={next}")).await;
    assert_eq!((second["subscribers"].as_array().unwrap().len(), &second["nextCursor"]), (1, &Value::Null));
    let subscriber_path = format!("{path}/{}", subscriber["id"].as_str().unwrap());
    assert_eq!(client.call(&client.write_key, "DELETE", &subscriber_path, Value::Null).await.status, 204);
    assert_eq!(client.get(&path).await.body["subscribers"].as_array().unwrap().len(), 1);
}
