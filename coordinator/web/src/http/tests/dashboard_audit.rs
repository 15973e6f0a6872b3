//! The audit log and the plan of an account over HTTP.

use parallax_core::role::Role;
use serde_json::json;

use super::TestClient;

const AUDIT: &str = "/app/account/audit";

/// Makes a monitor of that name by the API, from that address.
async fn monitor(client: &TestClient, name: &str) -> String {
    let path = format!("/api/v1/pages/{}/monitors", client.world.shop.id);
    let body = json!({ "name": name, "type": "http", "url": "https://example.com" });
    let made = client.call(&client.write_key, "POST", &path, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body["monitor"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_owner_reads_who_changed_what() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let id = monitor(&client, "<b>Shop</b>").await;
    let path = format!("/api/v1/pages/{}/monitors/{id}", client.world.shop.id);
    let edit = json!({ "name": "Shop", "slowThresholdMs": 400 });
    assert_eq!(client.call(&client.write_key, "PATCH", &path, edit).await.status, 200);
    let log = client.open(&owner, AUDIT).await;
    assert_eq!(log.status, 200);
    for text in [
        "Created monitor <a href",
        "Changed monitor <a href",
        "API key",
        &format!("/app/pages/{}/monitors/{id}", client.world.shop.id),
        "Name: &#60;b&#62;Shop&#60;/b&#62; → Shop",
        "→ 400",
    ] {
        assert!(log.text.contains(text), "{text}: {}", log.text);
    }
    assert!(!log.text.contains("<b>Shop</b> →"));
    let none = client.open(&owner, &format!("{AUDIT}?action=deleted&subject=monitor")).await;
    assert!(none.text.contains("Nothing matches"), "{}", none.text);
    let found = client.open(&owner, &format!("{AUDIT}?q={id}&subject=monitor")).await;
    assert!(found.text.contains("Created monitor"), "{}", found.text);
    // What can't be a number is no number, and what is no filter filters nothing.
    let odd = client.open(&owner, &format!("{AUDIT}?before=x&subject=nothing&q=%00")).await;
    assert_eq!(odd.status, 200);
}

#[tokio::test]
async fn the_log_is_exported_without_formulas_and_the_export_is_logged() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    monitor(&client, "=cmd|' /C calc'!A0").await;
    let file = client.open(&owner, "/app/account/audit.csv").await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"audit-log.csv\"");
    let line = file.text.lines().find(|line| line.contains("cmd")).unwrap();
    assert!(line.contains(",created,monitor,'=cmd|' /C calc'!A0,mon_"), "{line}");
    assert!(
        file.text.starts_with("time,actor,actorId,kind,network,action,object,name,id,page,changes\r\n"),
        "{}",
        file.text
    );
    let log = client.open(&owner, &format!("{AUDIT}?action=exported")).await;
    assert!(log.text.contains("Exported the audit log of"), "{}", log.text);
    for role in [Role::Editor, Role::Viewer] {
        let browser = client.sign_in(role).await;
        for path in [AUDIT, "/app/account/audit.csv", "/app/account/plan"] {
            assert_eq!(client.open(&browser, path).await.status, 403, "{role:?} {path}");
        }
    }
}

#[tokio::test]
async fn the_plan_says_what_is_used_of_each_limit() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    monitor(&client, "Website").await;
    let plan = client.open(&owner, "/app/account/plan").await;
    assert_eq!(plan.status, 200);
    for text in ["Monitors", "1 of 100", "Vendor components", "0 of 200", "API keys", "Other plans", "every 5 min"] {
        assert!(plan.text.contains(text), "{text}: {}", plan.text);
    }
}
