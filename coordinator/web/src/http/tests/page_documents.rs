//! Tests of page documents: canonical URLs, related incidents, ETags, script sizes and the subscribe dialog.

use parallax_core::time::{DAY, HOUR, MINUTE};

use super::pages::{dialog, document};
use super::*;

#[tokio::test]
async fn a_document_has_one_canonical_url() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example" })).await["id"].as_str().unwrap().to_owned();
    let incident = json!({ "title": "Till is jammed", "impact": "major", "monitorIds": [monitor] });
    let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let incident = opened.body["incident"]["id"].as_str().unwrap().to_owned();
    let mut pictures = std::collections::BTreeSet::new();
    for (path, best) in [
        ("", String::new()),
        ("?range=24h", String::new()),
        ("/history", "/history/2026-11".to_owned()),
        (&*format!("/incidents/{incident}"), format!("/incidents/{incident}")),
        (&*format!("/monitors/{monitor}?range=7d"), format!("/monitors/{monitor}")),
    ] {
        let canonical = format!("<link rel=\"canonical\" href=\"https://shop.pages.example{best}\">");
        let shared = document(&client, &format!("/p/shop{path}")).await;
        let own_path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let own_response = client.send("GET", &own_path, &[("host", "shop.pages.example")], "").await;
        assert!(shared.contains(&canonical) && own_response.text.contains(&canonical), "{path}: {shared}");
        let picture = shared.split("og:image\" content=\"").nth(1).unwrap().split('"').next().unwrap();
        pictures.insert(picture.to_owned());
    }
    assert_eq!(pictures.len(), 1, "all previews show the status of the page: {pictures:?}");
}

#[tokio::test]
async fn a_monitors_page_lists_its_incidents_and_windows_of_the_whole_page() {
    let client = TestClient::new().await;
    let mut ids = Vec::new();
    for name in ["Till", "Door"] {
        let created = client.create_monitor(json!({ "url": "a.example", "name": name })).await;
        ids.push(created["id"].as_str().unwrap().to_owned());
    }
    let now = client.world.service.now();
    for (title, body) in [
        ("Jammed", json!({ "impact": "major", "monitorIds": [ids[0]] })),
        (
            "Rebuilding",
            json!({
                "kind": "maintenance",
                "startsAt": (now + DAY).to_string(),
                "endsAt": (now + DAY + HOUR).to_string(),
            }),
        ),
        (
            "Far away",
            json!({
                "kind": "maintenance",
                "startsAt": (now + 9 * DAY).to_string(),
                "endsAt": (now + 9 * DAY + HOUR).to_string(),
            }),
        ),
        (
            "Long ago",
            json!({
                "impact": "major",
                "monitorIds": [ids[0]],
                "startedAt": (now - 120 * DAY).to_string(),
                "resolvedAt": (now - 80 * DAY).to_string(),
            }),
        ),
    ] {
        let mut body = body;
        body["title"] = title.into();
        let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
        assert_eq!(opened.status, 201, "{opened:?}");
    }
    for path in ["", ".md"] {
        let till = document(&client, &format!("/p/shop/monitors/{}{path}", ids[0])).await;
        let second = document(&client, &format!("/p/shop/monitors/{}{path}", ids[1])).await;
        for (title, of_till, of_door) in
            [("Jammed", true, false), ("Rebuilding", true, true), ("Far away", false, false), ("Long ago", true, false)]
        {
            assert_eq!((till.contains(title), second.contains(title)), (of_till, of_door), "{title}{path}");
        }
    }
    assert!(document(&client, "/p/shop").await.contains("ongoing, "), "the day lists the open incident");
}

#[tokio::test]
async fn a_document_keeps_its_tag_until_its_content_changes() {
    let client = TestClient::new().await;
    client.create_monitor(json!({ "url": "a.example" })).await;
    let body = json!({ "title": "Till is jammed", "impact": "partial", "message": "We look." });
    let opened = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
    let id = opened.body["incident"]["id"].as_str().unwrap().to_owned();
    let update = json!({ "status": "resolved", "message": "Over." });
    client
        .call(&client.write_key, "POST", &client.shop_path(&format!("/incidents/{id}/updates")), update.clone())
        .await;
    let own_host = [("host", "shop.pages.example")];
    // Documents with daily figures, since hourly figures would change in between.
    let paths = ["/?range=90d", "/history/2026-11", &format!("/incidents/{id}"), "/embed"];
    let has_text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (_, after) = text.rsplit_once("<time id=\"written\" datetime=\"").unwrap();
        after.split('"').next().unwrap().to_owned()
    };
    for path in paths {
        let first = client.send("GET", path, &own_host, "").await;
        // The cached document has expired and is rendered again.
        let begin = client.world.service.now();
        client.world.clock.set(begin + 20 * MINUTE);
        let tag = first.headers["etag"].to_str().unwrap();
        let later = client.send("GET", path, &own_host, "").await;
        assert_ne!(has_text(&first.bytes), has_text(&later.bytes), "{path}");
        assert_eq!(later.headers["etag"], tag, "{path}");
        let not_modified = client.send("GET", path, &[own_host[0], ("if-none-match", tag)], "").await;
        assert_eq!((not_modified.status, not_modified.bytes.len()), (304, 0), "{path}");
        client.world.clock.set(begin);
    }
    let before = client.send("GET", "/history/2026-11", &own_host, "").await;
    let title = json!({ "title": "Till was jammed" });
    client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/incidents/{id}")), title).await;
    let after = client.send("GET", "/history/2026-11", &own_host, "").await;
    assert_ne!(before.headers["etag"], after.headers["etag"]);
}

#[tokio::test]
async fn the_scripts_of_a_document_are_small() {
    const MOST: usize = 6 * 1024;
    let client = TestClient::new().await;
    let gzip = [("accept-encoding", "gzip")];
    for (path, max) in [("/p/shop", MOST), ("/p/shop/embed", MOST / 2)] {
        let text = document(&client, path).await;
        let mut bytes = 0;
        for part in text.split("<script src=\"").skip(1) {
            bytes += client.send("GET", part.split('"').next().unwrap(), &gzip, "").await.bytes.len();
        }
        assert!((1..=max).contains(&bytes), "{path}: {bytes}");
    }
}

#[tokio::test]
async fn the_dialog_of_a_page_has_every_way_to_subscribe() {
    let client = TestClient::new().await;
    let text = document(&client, "/p/shop").await;
    let dialog = dialog(&text);
    assert!(dialog.contains("name=\"email\""), "{dialog}");
    for link in ["subscribe", "feed.atom", "feed.rss", "maintenance.ics"] {
        assert!(dialog.contains(&format!("<a href=\"/p/shop/{link}\">")), "{link}: {dialog}");
        assert_eq!(client.fetch(&format!("/p/shop/{link}")).await.status, 200, "{link}");
    }
    assert!(document(&client, "/p/shop/subscribe").await.contains("name=\"url\""), "the page offers webhooks");
}
