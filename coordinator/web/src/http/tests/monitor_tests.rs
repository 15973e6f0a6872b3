//! Tests of a monitor that is not saved yet: results by region, limits, and that nothing is stored.

use parallax_core::plan::Plan;
use serde_json::{Value, json};

use super::{TestClient, TestResponse, code};

impl TestClient {
    async fn put_on(&self, plan: Plan) {
        self.world.service.accounts.set_plan(self.world.owner.id, plan).await.unwrap();
    }

    async fn test_monitor(&self, body: Value) -> TestResponse {
        self.call(&self.write_key, "POST", &self.shop_path("/monitors/test"), body).await
    }
}

#[tokio::test]
async fn the_result_of_each_region_is_returned_and_nothing_is_stored() {
    let client = TestClient::new().await;
    let store = client.world.service.watch_events();
    let before = *store.borrow();
    let passed = client.test_monitor(json!({ "url": "https://shop.example", "paused": true, "urll": 1 })).await;
    assert_eq!(passed.status, 200, "{passed:?}");
    let [europe, asia] = &passed.body["regions"].as_array().unwrap()[..] else { panic!("{passed:?}") };
    assert_eq!(
        (&europe["region"], &europe["error"], &europe["seen"]["ok"]),
        (&json!("europe"), &json!(null), &json!(true))
    );
    assert_eq!((&europe["seen"]["latencyMs"], &europe["seen"]["error"]), (&json!(40), &json!(null)));
    assert_eq!((&asia["seen"], &asia["error"]), (&json!(null), &json!("no agent in this region is in service")));
    assert_eq!(passed.body["warnings"], json!(["urll was ignored: did you mean url?"]));
    let failed = client.test_monitor(json!({ "type": "tcp", "host": "down.example", "port": 5 })).await;
    let seen = &failed.body["regions"][0]["seen"];
    assert_eq!((&seen["ok"], &seen["error"]), (&json!(false), &json!("connection refused")));
    assert_eq!((failed.body.get("warnings"), *store.borrow()), (None, before), "no event");
    assert_eq!(client.get(&client.shop_path("/monitors")).await.body["monitors"], json!([]));
    assert_eq!(client.create_monitor(json!({ "url": "a.example" })).await["position"], 0);
}

#[tokio::test]
async fn a_pinned_region_counts_only_on_plans_with_regions() {
    let client = TestClient::new().await;
    let regions = async || {
        let body = json!({ "url": "https://shop.example", "pinnedRegion": "asia" });
        client.test_monitor(body).await.body["regions"].as_array().unwrap().len()
    };
    client.put_on(Plan::Free).await;
    assert_eq!(regions().await, 2);
    client.put_on(Plan::Hobby).await;
    assert_eq!(regions().await, 1);
}

#[tokio::test]
async fn bodies_are_checked_as_for_a_new_monitor() {
    let client = TestClient::new().await;
    let too_long = "x".repeat(81);
    for body in
        [json!({}), json!({ "type": "tcp", "host": "-", "port": 0 }), json!({ "url": "a.example", "name": too_long })]
    {
        let tested = client.test_monitor(body.clone()).await;
        let created = client.call(&client.write_key, "POST", &client.shop_path("/monitors"), body).await;
        assert_eq!((tested.status, &tested.body), (400, &created.body));
    }
    let heartbeat = client.test_monitor(json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 })).await;
    assert_eq!((heartbeat.status, code(&heartbeat)), (400, "bad_request"));
    assert_eq!(heartbeat.body["error"]["message"], "heartbeats can't be tested: their jobs report by ping");
    client.put_on(Plan::Free).await;
    let component = json!({ "type": "component", "name": "Git", "vendorUrl": "https://www.githubstatus.com" });
    let component = client.test_monitor(component).await;
    assert_eq!((component.status, code(&component)), (422, "plan_limit"));
}

#[tokio::test]
async fn a_full_plan_does_not_forbid_a_test_but_an_account_has_twenty_a_minute() {
    let client = TestClient::new().await;
    client.put_on(Plan::Free).await;
    for _ in 0..2 {
        client.create_monitor(json!({ "url": "a.example" })).await;
    }
    let body = json!({ "url": "a.example" });
    let full = client.call(&client.write_key, "POST", &client.shop_path("/monitors"), body.clone()).await;
    assert_eq!((full.status, code(&full)), (422, "plan_limit"));
    for _ in 0..20 {
        assert_eq!(client.test_monitor(body.clone()).await.status, 200);
    }
    // Pages and keys of an account share the limit; a body that is refused does not count.
    let blog = format!("/api/v1/pages/{}/monitors/test", client.world.blog.id);
    let refused = client.call(&client.page_key, "POST", &blog, body.clone()).await;
    assert_eq!((refused.status, code(&refused)), (429, "rate_limited"));
    let message = "an account can test 20 unsaved monitors a minute; try again in 60 seconds";
    assert_eq!(
        (&refused.body["error"]["message"], &refused.headers["retry-after"]),
        (&json!(message), &"60".parse().unwrap())
    );
    client.world.clock.set(client.world.service.now() + 60_000);
    for body in [json!({}), body] {
        let expected = if body == json!({}) { 400 } else { 200 };
        assert_eq!(client.test_monitor(body).await.status, expected);
    }
}
