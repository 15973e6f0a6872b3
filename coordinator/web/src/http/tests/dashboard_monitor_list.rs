//! The list of monitors over HTTP: its order, and the form that changes many.

use parallax_core::role::Role;

use super::signed_in_browser::{between, hidden, location};
use super::*;

impl TestClient {
    /// Names of the monitors, as listed.
    async fn names(&self) -> Vec<String> {
        let monitors = self.list("/monitors", "monitors").await;
        monitors.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The fields of the order as drawn, with other numbers where given.
fn order_fields<'a>(ids: &'a [String], numbers: &'a [&'a str], loaded: &'a str) -> Vec<(String, &'a str)> {
    let mut fields = vec![("loaded".to_owned(), loaded)];
    for (at, (id, number)) in (1..).zip(ids.iter().zip(numbers)) {
        fields.extend([("id".to_owned(), id.as_str()), (format!("at.{at}"), *number)]);
    }
    fields
}

#[tokio::test]
async fn monitors_are_reordered_without_script() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let mut ids = Vec::new();
    for name in ["One", "Two", "Three"] {
        ids.push(client.monitor(name).await);
    }
    let (list, path) = (client.app_path("?order=edit"), client.app_path("/order"));
    assert!(client.open(&browser, &client.app_path("")).await.text.contains("?order=edit"));
    let screen = client.open(&browser, &list).await;
    assert!(screen.status == 200 && screen.text.contains("Move up: Two"), "{}", screen.text);
    let loaded = hidden(&screen, "loaded");
    let send = async |numbers: &[&str], extra: &[(&str, &str)], loaded: &str| {
        let fields = order_fields(&ids, numbers, loaded);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        client.submit(&browser, &path, &[&fields[..], extra].concat()).await
    };
    let moved = send(&["1", "2", "3"], &[("up", &ids[2])], &loaded).await;
    let place = |text: &str, name: &str| text.find(&format!("<b>{name}</b>")).unwrap();
    assert!(moved.status == 200 && place(&moved.text, "Three") < place(&moved.text, "Two"), "{}", moved.text);
    assert_eq!(hidden(&moved, "loaded"), loaded);
    assert_eq!(client.names().await, ["One", "Two", "Three"], "nothing is saved before");
    let number = |screen: &TestResponse, name: &str| {
        let input = screen.text.split("<input").find(|it| it.contains(&format!("\"Position of {name}\""))).unwrap();
        (between(input, "value=\"", "\"").to_owned(), input.contains("\" aria-invalid=\"true\" "))
    };
    let wrong = send(&["3", "2", "9<"], &[("save", "order")], &loaded).await;
    assert!(wrong.status == 400 && wrong.text.contains("whole number from 1 to 3"), "{}", wrong.text);
    let expected = [("One", "3", false), ("Two", "2", false), ("Three", "9&#60;", true)];
    for (name, typed, is_wrong) in expected {
        assert_eq!(number(&wrong, name), (typed.to_owned(), is_wrong), "nothing typed is lost");
    }
    let once = [("save", "order"), ("idempotency_key", "0a")];
    for _ in 0..2 {
        let saved = send(&["3", "2", "3"], &once, &loaded).await;
        assert_eq!(saved.status, 303, "{}", saved.text);
        assert!(client.open(&browser, location(&saved)).await.text.contains("Order of 3 monitors saved"));
        assert_eq!(client.names().await, ["Two", "Three", "One"]);
    }
    // The order that this form was drawn with is no longer the stored one.
    let stale = send(&["2", "2", "3"], &[("save", "order"), ("idempotency_key", "0b")], &loaded).await;
    assert!(stale.status == 409 && stale.text.contains("The order was changed by you meanwhile."), "{}", stale.text);
    assert!(place(&stale.text, "Two") < place(&stale.text, "One"), "with the numbers as typed: {}", stale.text);
    assert_eq!((number(&stale, "One").0.as_str(), number(&stale, "Two").0.as_str()), ("2", "1"));
    let wrong = send(&["1", "x", "3"], &[("save", "order"), ("idempotency_key", "0c")], &loaded).await;
    assert_eq!((wrong.status, number(&wrong, "Two")), (409, ("x".to_owned(), true)));
    assert_eq!(client.names().await, ["Two", "Three", "One"]);
    // The same key with another order: it becomes a new form, which can be saved.
    let reused = send(&["1", "2", "3"], &once, &hidden(&stale, "loaded")).await;
    assert!(reused.status == 422 && reused.text.contains("already sent"), "{}", reused.text);
    assert_ne!(hidden(&reused, "idempotency_key"), "0a");
    let again = send(&["1", "2", "3"], &[("save", "order")], &hidden(&stale, "loaded")).await;
    assert_eq!((again.status, client.names().await), (303, vec!["One".into(), "Two".into(), "Three".into()]));

    let viewer = client.sign_in(Role::Viewer).await;
    assert_eq!(client.open(&viewer, &list).await.status, 403);
    assert_eq!(client.submit(&viewer, &path, &[("save", "order")]).await.status, 403);
    assert!(!client.open(&viewer, &client.app_path("")).await.text.contains("?order=edit"));
    let foreign = format!("/app/pages/{}/monitors", client.world.foreign.id);
    assert_eq!(client.open(&browser, &format!("{foreign}?order=edit")).await.status, 404);
    assert_eq!(client.submit(&browser, &format!("{foreign}/order"), &[("save", "order")]).await.status, 404);
}

#[tokio::test]
async fn many_monitors_get_the_filled_fields() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    let (one, two) = (client.monitor("One").await, client.monitor("Two").await);
    let (chosen, path) = ([("id", one.as_str()), ("id", two.as_str())], client.app_path("/bulk"));
    let send = async |fields: &[(&str, &str)]| client.submit(&browser, &path, &[&chosen[..], fields].concat()).await;
    assert_eq!(client.submit(&browser, &path, &[("do", "edit")]).await.status, 303, "nothing is ticked");
    let form = send(&[("do", "edit"), ("group", "")]).await;
    assert!(form.status == 200 && form.text.contains("Edit 2 monitors"), "{}", form.text);
    let empty = send(&[("do", "change"), ("slowThresholdMs", ""), ("groupName", " "), ("pinnedRegion", "")]).await;
    assert!(empty.status == 400 && empty.text.contains("Fill in at least one field."), "{}", empty.text);
    let wrong = send(&[("do", "change"), ("slowThresholdMs", "99999"), ("groupName", "Shop")]).await;
    assert!(wrong.status == 400 && wrong.text.contains("Must be a whole number from 1 to 9999."), "{}", wrong.text);
    assert!(wrong.text.contains("value=\"99999\"") && wrong.text.contains("value=\"Shop\""), "nothing typed is lost");
    let saved = send(&[("do", "change"), ("slowThresholdMs", "400"), ("idempotency_key", "0a")]).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    assert!(client.open(&browser, location(&saved)).await.text.contains("2 monitors changed"));
    let saved = send(&[("do", "change"), ("groupName", "Shop"), ("latencyLocations", "asia")]).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    for id in [&one, &two] {
        let monitor = client.stored(id).await;
        assert_eq!(
            (&monitor["slowThresholdMs"], &monitor["group"], &monitor["latencyLocations"]),
            (&json!(400), &json!("Shop"), &json!(["asia"]))
        );
    }
    client.call(&client.write_key, "DELETE", &client.shop_path(&format!("/monitors/{one}")), Value::Null).await;
    let partly = send(&[("do", "change"), ("slowThresholdMs", "500"), ("idempotency_key", "0b")]).await;
    assert!(partly.text.contains("1 of 2 changed") && partly.text.contains("It no longer exists."), "{}", partly.text);
    assert_eq!(client.stored(&two).await["slowThresholdMs"], 500);

    let viewer = client.sign_in(Role::Viewer).await;
    for act in ["edit", "change"] {
        let fields = [("id", two.as_str()), ("do", act), ("slowThresholdMs", "1")];
        assert_eq!(client.submit(&viewer, &path, &fields).await.status, 403, "{act}");
    }
}
