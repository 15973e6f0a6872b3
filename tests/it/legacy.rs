//! Legacy API names: scripts written when monitors were called checkpoints keep working.

use parallax_tests::installation::CoordinatorProcess;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_old_paths_answer_like_the_new_and_both_names_are_in_every_answer() {
    let coordinator = CoordinatorProcess::up(&["--region", "europe"]).await;
    let key = coordinator.ready.api_key.clone().expect("the first start makes a key");
    let page = coordinator.ready.page_id.clone().expect("the first start makes a page");
    let client = coordinator.api().with_key(Some(&key));
    let old = format!("/pages/{page}/checkpoints");

    let made = client.post(&old, &json!({"url": "example.com"})).await.expect_status(201);
    assert!(made["monitor"]["id"].is_string());
    assert_eq!(made["monitor"], made["checkpoint"]);
    let id = made["monitor"]["id"].as_str().unwrap();

    let list = client.get(&format!("/pages/{page}/monitors")).await.expect_status(200);
    assert_eq!(list["monitors"], list["checkpoints"]);
    assert_eq!(client.get(&old).await.expect_status(200), list);
    let one = client.get(&format!("{old}/{id}")).await.expect_status(200);
    assert_eq!(one, client.get(&format!("/pages/{page}/monitors/{id}")).await.expect_status(200));
    let changed = client.patch(&format!("{old}/{id}"), &json!({"name": "renamed"})).await.expect_status(200);
    assert_eq!(changed["checkpoint"]["name"], "renamed");
    let status = client.get(&format!("/pages/{page}/status")).await.expect_status(200);
    assert_eq!(status["monitors"], status["checkpoints"]);
    client.delete(&format!("{old}/{id}")).await.expect_status(204);
    client.get(&format!("{old}/{id}")).await.expect_error(404, "not_found");
}
