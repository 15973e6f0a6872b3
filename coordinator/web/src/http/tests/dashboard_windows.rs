//! Screens of maintenance over HTTP: windows in their own zone, and those that start at once.

use parallax_core::role::Role;
use parallax_core::time::{HOUR, MINUTE};
use serde_json::{Value, json};

use super::signed_in_browser::{hidden, location};
use super::{SignedInBrowser, TestClient, TestResponse};

#[tokio::test]
async fn a_window_is_planned_in_its_own_zone_with_its_next_dates() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let path = client.screen("/incidents/new?kind=maintenance");
    let form = [
        ("kind", "maintenance"),
        ("title", "Database upgrade"),
        ("startsAt", "2026-12-08T02:00"),
        ("endsAt", "2026-12-08T04:00"),
        ("timezone", "Europe/Berlin"),
        ("repeat", "monthly-weekday"),
        ("monitorIds", ""),
        ("remind", ""),
        ("remind", "1d"),
        ("remindOther", "3h"),
        ("notify", "true"),
    ];
    let preview = client.submit(&browser, &path, &[&form[..], &[("act", "preview")]].concat()).await;
    assert_eq!(preview.status, 200);
    for text in [
        "Every month on the second Tuesday, 2 h.",
        "Tue 8 Dec 2026",
        "Tue 13 Apr 2027",
        "UTC+2, after the clock change",
        "value=\"3h\"",
    ] {
        assert!(preview.text.contains(text), "{text}: {}", preview.text);
    }
    assert!(client.incidents().await.is_empty());
    let planned = client.submit(&browser, &path, &form).await;
    assert_eq!(planned.status, 303, "{}", planned.text);
    let window = client.incidents().await.remove(0);
    assert_eq!(window["startsAt"], Value::Null);
    assert_eq!(
        (&window["startedAt"], &window["endsAt"]),
        (&json!("2026-12-08T01:00:00.000Z"), &json!("2026-12-08T03:00:00.000Z"))
    );
    assert_eq!(window["repeat"]["every"], "monthly-weekday");
    assert_eq!(window["remind"], json!(["1d", "3h"]));
    let screen = client.open(&browser, location(&planned)).await;
    for text in [
        "Tue 8 Dec 2026, 02:00 to 04:00 (UTC+1)",
        "The whole page.",
        "Every month on the second Tuesday",
        "Stop repeating",
    ] {
        assert!(screen.text.contains(text), "{text}: {}", screen.text);
    }
    // Another window at the same time is named.
    let overlap = client.submit(&browser, &path, &[&form[..], &[("act", "preview")]].concat()).await.text;
    assert!(overlap.contains("Overlaps “Database upgrade”"), "{overlap}");
    // Changed in its zone, and nothing that was left alone.
    let own = location(&planned).split('?').next().unwrap().to_owned();
    let edit = client.open(&browser, &format!("{own}/edit")).await;
    assert!(edit.text.contains("value=\"2026-12-08T02:00\""), "{}", edit.text);
    let changed = [
        ("loaded", hidden(&edit, "loaded")),
        ("title", "Database upgrade".to_owned()),
        ("startsAt", "2026-12-08T02:00".to_owned()),
        ("endsAt", "2026-12-08T05:00".to_owned()),
        ("timezone", "Europe/Berlin".to_owned()),
        ("monitorIds", String::new()),
        ("remind", String::new()),
        ("remind", "1d".to_owned()),
        ("remindOther", "3h".to_owned()),
    ];
    let fields: Vec<(&str, &str)> = changed.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let saved = client.submit(&browser, &format!("{own}/edit"), &fields).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let window = client.incidents().await.remove(0);
    assert_eq!((&window["endsAt"], &window["remind"]), (&json!("2026-12-08T04:00:00.000Z"), &json!(["1d", "3h"])));
    assert_eq!(client.submit(&browser, &format!("{own}/stop"), &[]).await.status, 303);
    assert!(client.incidents().await[0]["repeat"]["stoppedAt"].is_string());
    let cancelled = client.submit(&browser, &format!("{own}/end"), &[]).await;
    assert_eq!(cancelled.status, 303, "{}", cancelled.text);
    assert!(client.open(&browser, &own).await.text.contains("Cancelled"));
    let late = client.submit(&browser, &format!("{own}/extend"), &[]).await;
    assert!(late.status == 400 && late.text.contains("completed"), "{}", late.text);
}

/// A page in Berlin with a planned window for two of its monitors, and its address.
async fn window_in_berlin() -> (TestClient, SignedInBrowser, String, [String; 2]) {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let zone = json!({ "timezone": "Europe/Berlin" });
    assert_eq!(client.call(&client.write_key, "PATCH", &client.shop_path(""), zone).await.status, 200);
    let mut ids = Vec::new();
    for url in ["a.example", "b.example"] {
        ids.push(client.create_monitor(json!({ "url": url })).await["id"].as_str().unwrap().to_owned());
    }
    let [first, second] = [ids.remove(0), ids.remove(0)];
    let window = json!({
        "kind": "maintenance", "title": "Upgrade", "monitorIds": [second, first],
        "startsAt": "2026-12-08T01:00:20Z", "endsAt": "2026-12-08T03:00:00Z",
    });
    let planned = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), window).await;
    assert_eq!(planned.status, 201, "{planned:?}");
    let own = client.screen(&format!("/incidents/{}", planned.body["incident"]["id"].as_str().unwrap()));
    (client, browser, own, [first, second])
}

/// Sends the form of a window as it was drawn, except for its zone and times.
async fn save(
    (client, browser, own, [first, second]): &(TestClient, SignedInBrowser, String, [String; 2]),
    loaded: &str,
    (zone, start, end): (&str, &str, &str),
) -> TestResponse {
    let fields = [
        ("loaded", loaded),
        ("title", "Upgrade"),
        ("startsAt", start),
        ("endsAt", end),
        ("timezone", zone),
        ("monitorIds", ""),
        ("monitorIds", first.as_str()),
        ("monitorIds", second.as_str()),
        ("remind", ""),
        ("remindOther", ""),
    ];
    client.submit(browser, &format!("{own}/edit"), &fields).await
}

#[tokio::test]
async fn times_of_a_window_are_compared_as_instants_whatever_the_zone() {
    let scene = window_in_berlin().await;
    let (client, browser, own, ids) = &scene;
    let times = async || {
        let window = client.incidents().await.remove(0);
        [&window["startedAt"], &window["endsAt"]].map(|at| at.as_str().unwrap().to_owned())
    };
    let stored = ["2026-12-08T01:00:20.000Z", "2026-12-08T03:00:00.000Z"];
    let edit = client.open(browser, &format!("{own}/edit")).await;
    let loaded = hidden(&edit, "loaded");
    assert!(edit.text.contains("value=\"2026-12-08T02:00\""), "{}", edit.text);
    // As drawn, and the same instants in another zone: nothing changes, not even the seconds.
    let before = client.world.service.last_edit();
    for same in [
        ("Europe/Berlin", "2026-12-08T02:00", "2026-12-08T04:00"),
        ("Asia/Tokyo", "2026-12-08T10:00", "2026-12-08T12:00"),
    ] {
        let saved = save(&scene, &loaded, same).await;
        assert_eq!((saved.status, times().await), (303, stored.map(str::to_owned)), "{}", saved.text);
    }
    assert_eq!(client.world.service.last_edit(), before);
    // The same local times in another zone are other instants.
    let moved = save(&scene, &loaded, ("Asia/Tokyo", "2026-12-08T02:00", "2026-12-08T04:00")).await;
    assert_eq!(moved.status, 303, "{}", moved.text);
    assert_eq!(times().await, ["2026-12-07T17:00:00.000Z", "2026-12-07T19:00:00.000Z"]);
    // Both changed.
    let edit = client.open(browser, &format!("{own}/edit")).await;
    assert!(edit.text.contains("value=\"2026-12-07T18:00\""), "{}", edit.text);
    let fresh = hidden(&edit, "loaded");
    let moved = save(&scene, &fresh, ("Asia/Tokyo", "2026-12-09T09:00", "2026-12-09T11:30")).await;
    assert_eq!(moved.status, 303, "{}", moved.text);
    assert_eq!(times().await, ["2026-12-09T00:00:00.000Z", "2026-12-09T02:30:00.000Z"]);
    let affected: Vec<Value> = client.incidents().await[0]["monitors"].as_array().unwrap().clone();
    assert_eq!(affected.len(), ids.len());
    // A change of someone else meanwhile is a conflict, shown in the form's zone, and what was typed stays.
    let crossed = save(&scene, &fresh, ("Asia/Tokyo", "2026-12-10T09:00", "2026-12-10T11:00")).await;
    assert!(crossed.status == 409 && crossed.text.contains("2026-12-09 09:00"), "{}", crossed.text);
    assert!(crossed.text.contains("value=\"2026-12-10T09:00\""), "{}", crossed.text);
    let again = save(&scene, &hidden(&crossed, "loaded"), ("Asia/Tokyo", "2026-12-10T09:00", "2026-12-10T11:00")).await;
    assert_eq!((again.status, times().await[0].as_str()), (303, "2026-12-10T00:00:00.000Z"), "{}", again.text);
}

#[tokio::test]
async fn maintenance_starts_with_one_press_and_is_lengthened_and_ended() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": "Front" })).await;
    let monitor = monitor["id"].as_str().unwrap();
    let screen =
        client.open(&browser, &client.screen(&format!("/incidents/new?kind=maintenance&monitor={monitor}"))).await;
    assert!(screen.text.contains("Start now for") && screen.text.contains("value=\"60\">1 h<"), "{}", screen.text);
    let once = hidden(&screen, "idempotency_key");
    let form = [("minutes", "60"), ("monitorIds", monitor), ("notify", "false"), ("idempotency_key", once.as_str())];
    let started = client.submit(&browser, &client.screen("/incidents/start"), &form).await;
    let again = client.submit(&browser, &client.screen("/incidents/start"), &form).await;
    assert_eq!((started.status, location(&again)), (303, location(&started)));
    let windows = client.incidents().await;
    assert_eq!((windows.len(), &windows[0]["kind"]), (1, &json!("maintenance")));
    let now = client.world.service.now();
    assert_eq!(windows[0]["endsAt"], (now + HOUR).to_string());
    let own = location(&started).split('?').next().unwrap().to_owned();
    let shown = client.open(&browser, &own).await.text;
    assert!(shown.contains("In maintenance") && shown.contains("ends in 1 h") && shown.contains("End now"), "{shown}");
    client.submit(&browser, &format!("{own}/extend"), &[]).await;
    assert_eq!(client.incidents().await[0]["endsAt"], (now + HOUR + 30 * MINUTE).to_string());
    client.submit(&browser, &format!("{own}/end"), &[]).await;
    assert_eq!(client.incidents().await[0]["status"], "completed");
    let wrong = client.submit(&browser, &client.screen("/incidents/start"), &[("minutes", "0")]).await;
    assert_eq!(wrong.status, 400);
}
