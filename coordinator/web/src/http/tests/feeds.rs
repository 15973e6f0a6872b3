//! Tests of feeds, badges and the JSON documents of a page: content types, caching and updates.

use parallax_core::event::MonitorStatus;
use parallax_core::machine::MachineView;
use parallax_core::vantage::Region;

use super::*;

impl TestClient {
    pub(super) async fn fetch(&self, path: &str) -> TestResponse {
        self.send("GET", path, &[], "").await
    }
}

#[tokio::test]
async fn every_format_of_a_page_is_typed_tagged_and_up_to_date() {
    let client = TestClient::new().await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": "Web" })).await;
    let monitor = monitor["id"].as_str().unwrap().to_owned();
    let incident = json!({ "title": "Old", "message": "Nothing." });
    let incident = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), incident).await;
    let incident = incident.body["incident"]["id"].as_str().unwrap().to_owned();
    let at = |hours: i64| (client.world.service.now() + hours * 3_600_000).to_string();
    let window = json!({ "kind": "maintenance", "title": "Move", "startsAt": at(48), "endsAt": at(49) });
    let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), window).await;
    assert_eq!(created.status, 201, "{created:?}");
    let (json, long_cache) = ("application/json", "max-age=30, stale-while-revalidate=60");
    let table = [
        ("api/v2/summary.json".to_owned(), json, long_cache),
        ("api/v2/status.json".to_owned(), json, long_cache),
        ("api/v2/components.json".to_owned(), json, long_cache),
        ("api/v2/incidents.json".to_owned(), json, long_cache),
        ("api/v2/incidents/unresolved.json".to_owned(), json, long_cache),
        ("api/v2/scheduled-maintenances.json".to_owned(), json, long_cache),
        ("api/v2/scheduled-maintenances/upcoming.json".to_owned(), json, long_cache),
        ("api/v2/scheduled-maintenances/active.json".to_owned(), json, long_cache),
        ("feed.atom".to_owned(), "application/atom+xml; charset=utf-8", long_cache),
        ("history.atom".to_owned(), "application/atom+xml; charset=utf-8", long_cache),
        ("feed.rss".to_owned(), "application/rss+xml; charset=utf-8", long_cache),
        ("history.rss".to_owned(), "application/rss+xml; charset=utf-8", long_cache),
        ("feed/atom".to_owned(), "application/atom+xml; charset=utf-8", long_cache),
        ("feed/rss".to_owned(), "application/rss+xml; charset=utf-8", long_cache),
        ("feed".to_owned(), "application/rss+xml; charset=utf-8", long_cache),
        ("sitemap.xml".to_owned(), "application/xml", "max-age=15"),
        ("maintenance.ics".to_owned(), "text/calendar; charset=utf-8", long_cache),
        ("badge.svg".to_owned(), "image/svg+xml", "max-age=30, s-maxage=30, must-revalidate"),
        ("badge.json".to_owned(), json, "max-age=30, s-maxage=30, must-revalidate"),
        (
            format!("monitors/{monitor}/badge.svg?metric=uptime"),
            "image/svg+xml",
            "max-age=30, s-maxage=30, must-revalidate",
        ),
        (format!("monitors/{monitor}/badge.json?metric=response"), json, "max-age=30, s-maxage=30, must-revalidate"),
        ("embed?theme=dark".to_owned(), "text/html; charset=utf-8", "max-age=15"),
        ("widget.js".to_owned(), "text/javascript; charset=utf-8", "max-age=3600"),
        ("llms.txt".to_owned(), "text/markdown; charset=utf-8", "max-age=15"),
        ("index.md".to_owned(), "text/markdown; charset=utf-8", "max-age=15"),
        ("history.md".to_owned(), "text/markdown; charset=utf-8", "max-age=15"),
        ("history/2026-11.md".to_owned(), "text/markdown; charset=utf-8", "max-age=15"),
        (format!("incidents/{incident}.md"), "text/markdown; charset=utf-8", "max-age=15"),
        (format!("monitors/{monitor}.md"), "text/markdown; charset=utf-8", "max-age=15"),
        ("og-0123456789ab.png".to_owned(), "image/png", "max-age=300"),
    ];
    for (path, media, cache_lifetime) in &table {
        let response = client.fetch(&format!("/p/shop/{path}")).await;
        assert_eq!((response.status, &response.headers["content-type"]), (200, &media.parse().unwrap()), "{path}");
        let cache_control = response.headers["cache-control"].to_str().unwrap();
        assert!(
            cache_control.starts_with("public, ") && cache_control.contains(cache_lifetime),
            "{path}: {cache_control}"
        );
        assert_eq!(response.headers["x-content-type-options"], "nosniff", "{path}");
        let tag = response.headers["etag"].to_str().unwrap();
        let not_modified = client.send("GET", &format!("/p/shop/{path}"), &[("if-none-match", tag)], "").await;
        assert_eq!((not_modified.status, not_modified.bytes.len()), (304, 0), "{path}");
        let own_host = client.send("GET", &format!("/{path}"), &[("host", "shop.pages.example")], "").await;
        assert_eq!(own_host.status, 200, "{path} on the page's host");
        let any_origin = response.headers.get("access-control-allow-origin").map(|it| it.to_str().unwrap());
        let is_for_scripts =
            *media == json || ["badge", "embed"].iter().any(|it| path.contains(it)) || *cache_lifetime == long_cache;
        assert_eq!(any_origin == Some("*"), is_for_scripts, "{path}");
    }
    let title = json!({ "title": "Renamed & <new>" });
    client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/incidents/{incident}")), title).await;
    for path in ["api/v2/summary.json", "api/v2/incidents.json", "feed.atom", "feed.rss", "index.md", "embed"] {
        let text = client.fetch(&format!("/p/shop/{path}")).await.text;
        assert!(text.contains("Renamed"), "{path}: {text}");
    }
    let summary = client.fetch("/p/shop/api/v2/summary.json").await.body;
    assert_eq!(summary["page"]["url"], "https://shop.pages.example");
    assert_eq!(summary["components"][0]["parallax_status"], "unknown");
    assert_eq!(summary["incidents"][0]["name"], "Renamed & <new>");
    assert_eq!(summary["scheduled_maintenances"][0]["status"], "scheduled");
    assert!(client.fetch("/p/shop/maintenance.ics").await.text.contains("\r\nSUMMARY:Move\r\n"));
}

#[tokio::test]
async fn the_tag_of_a_badge_depends_on_its_text_and_style() {
    let client = TestClient::new().await;
    let tag = async |path: &str| {
        let response = client.fetch(&format!("/p/shop/{path}")).await;
        assert_eq!(response.status, 200, "{path}");
        response.headers["etag"].to_str().unwrap().to_owned()
    };
    let first = tag("badge.svg").await;
    assert_eq!(tag("badge.svg?style=flat&v=2").await, first, "the image is the same");
    for other in ["badge.svg?style=flat-square", "badge.svg?label=x", "badge.svg?metric=uptime", "badge.json"] {
        assert_ne!(tag(other).await, first, "{other}");
    }
    let id = client.create_monitor(json!({ "url": "a.example" })).await["id"].as_str().unwrap().to_owned();
    assert_eq!(tag("badge.svg").await, first, "the status is still unknown");
    let view = MachineView { status: MonitorStatus::Up, ..MachineView::default() };
    client.world.views.lock().unwrap().insert(id.parse().unwrap(), view);
    client.world.mesh.set_in_service(&[Region::Asia]);
    client.world.clock.set(client.world.service.now() + parallax_core::time::HOUR);
    assert_ne!(tag("badge.svg").await, first);
}

#[tokio::test]
async fn a_badge_without_data_says_so_and_an_invalid_parameter_is_named() {
    let client = TestClient::new().await;
    for path in [
        "/p/none/badge.svg",
        "/p/shop/monitors/mon_0000000000000000000000000a/badge.svg",
        "/p/shop/monitors/x/badge.svg",
    ] {
        let response = client.fetch(path).await;
        assert_eq!((response.status, &response.headers["content-type"]), (404, &"image/svg+xml".parse().unwrap()));
        assert!(response.text.contains(">not found</text>") && response.text.contains("#59606b"), "{}", response.text);
    }
    let shields = client.fetch("/p/shop/monitors/x/badge.json").await;
    assert_eq!((shields.status, &shields.body["isError"]), (404, &json!(true)));
    for (path, field) in [
        ("badge.svg?style=social", "style"),
        ("badge.json?metric=ping", "metric"),
        ("badge.svg?days=0", "days"),
        ("embed?theme=pink", "theme"),
    ] {
        let rejection = client.fetch(&format!("/p/shop/{path}")).await;
        assert_eq!((rejection.status, &rejection.body["error"]["fields"][0]["field"]), (400, &json!(field)));
    }
    let badge = client.fetch("/p/shop/badge.svg?label=%3Cscript%3E&style=flat-square").await;
    assert!(badge.text.contains("&#60;script&#62;") || badge.text.contains("&lt;script&gt;"), "{}", badge.text);
    let policy = badge.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
}

#[tokio::test]
async fn only_the_frame_may_be_framed() {
    let client = TestClient::new().await;
    for (path, framed) in
        [("embed", "frame-ancestors *"), ("", "frame-ancestors 'none'"), ("history", "frame-ancestors 'none'")]
    {
        let response = client.fetch(format!("/p/shop/{path}").trim_end_matches('/')).await;
        let policy = response.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains(framed) && !policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[tokio::test]
async fn a_client_that_prefers_markdown_gets_it_at_the_same_url() {
    let client = TestClient::new().await;
    let accept = [("accept", "text/markdown, text/html")];
    for path in ["/p/shop", "/p/shop/history", "/p/shop.md"] {
        let response = client.send("GET", path, &accept, "").await;
        assert_eq!(response.headers["content-type"], "text/markdown; charset=utf-8", "{path}");
        assert_eq!(response.headers["vary"], "accept, accept-encoding", "{path}");
        assert!(response.text.starts_with("# Shop"), "{}", response.text);
    }
    let html = client.fetch("/p/shop").await;
    let links = html.headers["link"].to_str().unwrap();
    assert!(links.contains("</p/shop/status.json>; rel=\"status\""), "{links}");
    assert!(html.text.contains("<meta property=\"og:title\" content=\"Shop: no data yet\">"), "{}", html.text);
    let image = html.text.split("property=\"og:image\" content=\"").nth(1).unwrap();
    let image = image.split('"').next().unwrap().strip_prefix("https://shop.pages.example").unwrap();
    let picture = client.send("GET", image, &[("host", "shop.pages.example")], "").await;
    assert_eq!((picture.status, &picture.bytes[1..4]), (200, &b"PNG"[..]));
    assert_eq!(client.fetch("/p/shop/og-nonsense.png").await.status, 404);
    assert!(html.text.contains("href=\"/p/shop/feed.atom\" type=\"application/atom+xml\""));
}

#[tokio::test]
async fn imported_incidents_keep_their_times_and_displace_no_open_one() {
    let client = TestClient::new().await;
    let path = client.shop_path("/incidents");
    let open = json!({ "title": "Going on", "message": "We look." });
    client.call(&client.write_key, "POST", &path, open).await;
    let now = client.world.service.now();
    let day = parallax_core::time::DAY;
    for number in 1..=60 {
        let at = |hours: i64| (now - number * day + hours * 3_600_000).to_string();
        let past = json!({ "title": format!("Import {number}"), "startedAt": at(0), "resolvedAt": at(1) });
        let created = client.call(&client.write_key, "POST", &path, past).await;
        assert_eq!(created.status, 201, "{created:?}");
        if number == 2 {
            let id = created.body["incident"]["id"].as_str().unwrap();
            let postmortem = json!({ "postmortem": "A cable." });
            client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/incidents/{id}")), postmortem).await;
        }
    }
    let at = |hours: i64| now - 2 * day + hours * 3_600_000;
    let past = json!({
        "kind": "maintenance", "title": "Imported move", "startsAt": at(0).to_string(), "endsAt": at(1).to_string(),
    });
    client.call(&client.write_key, "POST", &path, past).await;
    let rss = client.fetch("/p/shop/feed.rss").await.text;
    let items: Vec<&str> = rss.split("<item>").skip(1).collect();
    assert_eq!(items.len(), 50);
    assert!(items[0].contains("<title>Going on</title>"), "{}", items[0]);
    let of_day = |at: parallax_core::time::Timestamp| at.to_utc().unwrap().format("%d %b %Y %H:%M").to_string();
    for (number, item) in [(1, items[1]), (2, items.iter().find(|it| it.contains(">Import 2<")).unwrap())] {
        let over = of_day(now - number * day + 3_600_000);
        assert!(item.contains(&over), "{over}: {item}");
    }
    let atom = client.fetch("/p/shop/feed.atom").await.text;
    let entry = atom.split("<entry>").find(|entry| entry.contains(">Import 2<")).unwrap();
    let expected = [format!("<published>{}<", at(0)), format!("<updated>{}<", at(1))];
    assert!(expected.iter().all(|expected| entry.contains(expected)), "{expected:?}: {entry}");
    let incidents = client.fetch("/p/shop/api/v2/incidents.json").await.body["incidents"].take();
    let incidents = incidents.as_array().unwrap();
    let component = |name: &str| incidents.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!((incidents.len(), &component("Going on")["status"]), (50, &json!("investigating")));
    let second = component("Import 2");
    assert_eq!(
        (&second["created_at"], &second["updated_at"], &second["incident_updates"][0]["created_at"]),
        (&json!(at(0).to_string()), &json!(at(1).to_string()), &json!(at(1).to_string()))
    );
    let calendar = client.fetch("/p/shop/maintenance.ics").await.text;
    let over = at(1).to_utc().unwrap().format("%Y%m%dT%H%M%SZ").to_string();
    let start_text = at(0).to_utc().unwrap().format("%Y%m%dT%H%M%SZ").to_string();
    for expected in [format!("LAST-MODIFIED:{over}"), format!("CREATED:{start_text}"), format!("DTSTAMP:{over}")] {
        assert!(calendar.contains(&expected), "{expected}: {calendar}");
    }
}

#[tokio::test]
async fn a_deleted_window_stays_in_the_calendar_as_cancelled() {
    let client = TestClient::new().await;
    let path = client.shop_path("/incidents");
    let at = |hours: i64| (client.world.service.now() + hours * 3_600_000).to_string();
    let window = json!({ "kind": "maintenance", "title": "Secret move", "startsAt": at(48), "endsAt": at(49) });
    let created = client.call(&client.write_key, "POST", &path, window).await;
    let id = created.body["incident"]["id"].as_str().unwrap().to_owned();
    let read = async || client.fetch("/p/shop/maintenance.ics").await.text.replace("\r\n ", "");
    let number = |calendar: &str| {
        let sequence = calendar.split("\r\n").find_map(|line| line.strip_prefix("SEQUENCE:"));
        sequence.unwrap().parse::<u64>().unwrap()
    };
    let before = read().await;
    assert!(before.contains("\r\nSTATUS:CONFIRMED\r\n"), "{before}");
    let incident_path = format!("/incidents/{id}");
    assert_eq!(
        client.call(&client.write_key, "DELETE", &client.shop_path(&incident_path), json!(null)).await.status,
        204
    );
    let after = read().await;
    assert!(after.contains("\r\nSTATUS:CANCELLED\r\n") && !after.contains("Secret"), "{after}");
    assert!(after.contains(&format!("\r\nUID:{id}@parallax\r\n")), "{after}");
    assert!(number(&after) > number(&before), "{before} {after}");
    client.world.clock.set(client.world.service.now() + 31 * parallax_core::time::DAY);
    assert!(!read().await.contains("BEGIN:VEVENT"));
}
