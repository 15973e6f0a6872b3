//! Screens of maintenance over HTTP: windows in their own zone, and those that start at once.

use parallax_core::role::Role;
use parallax_core::time::{HOUR, MINUTE};
use serde_json::{Value, json};

use super::TestClient;
use super::signed_in_browser::{hidden, location};

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
