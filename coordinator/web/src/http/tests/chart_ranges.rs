//! Tests of the chart range of a page: the default follows the age of its data, unless the visitor selects one.

use parallax_core::time::{DAY, MINUTE};
use parallax_service::test_world::START;

use super::*;

impl TestClient {
    /// Returns the selected range of a document.
    async fn selected_range(&self, path: &str) -> String {
        let document = self.send("GET", path, &[("accept", "text/html")], "").await;
        assert_eq!(document.status, 200, "{path}");
        let before = document.text.split("aria-current=\"true\">").nth(1);
        before.and_then(|it| it.split('<').next()).unwrap_or_else(|| panic!("{path}: {}", document.text)).to_owned()
    }
}

#[tokio::test]
async fn the_default_range_follows_the_age_of_the_page() {
    let client = TestClient::new().await;
    // The page is older than its only monitor, so the age of the monitor counts.
    client.world.clock.set(START + 100 * DAY);
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let monitor_path = format!("/p/shop/monitors/{}", created["id"].as_str().unwrap());
    for (age, expected) in [
        (MINUTE, "24 hours"),
        (DAY - 1, "24 hours"),
        // The document cached just before is still fresh, except that the range has changed.
        (DAY, "7 days"),
        (7 * DAY - 1, "7 days"),
        (7 * DAY, "30 days"),
        (30 * DAY - 1, "30 days"),
        (30 * DAY, "90 days"),
    ] {
        client.world.clock.set(START + 100 * DAY + age);
        for path in ["/p/shop", monitor_path.as_str()] {
            assert_eq!(client.selected_range(path).await, expected, "{path} {age}");
            for (range, label) in [("24h", "24 hours"), ("90d", "90 days"), ("30d", "30 days")] {
                assert_eq!(client.selected_range(&format!("{path}?range={range}")).await, label, "{path} {age}");
            }
            assert_eq!(client.selected_range(&format!("{path}?range=1y")).await, expected, "{path} {age}");
        }
    }
}

#[tokio::test]
async fn the_chosen_range_is_kept_in_links_to_monitors() {
    let client = TestClient::new().await;
    let created = client.create_monitor(json!({ "url": "a.example" })).await;
    let path = format!("/p/shop/monitors/{}", created["id"].as_str().unwrap());
    for (query, link) in [("", format!("{path}\"")), ("?range=90d", format!("{path}?range=90d\""))] {
        let page = client.send("GET", &format!("/p/shop{query}"), &[], "").await.text;
        assert!(page.contains(&format!("href=\"{link}")), "{link}: {page}");
        // Each range has a URL that works at any age.
        for name in ["24h", "7d", "30d", "90d"] {
            assert!(page.contains(&format!("href=\"/p/shop?range={name}\"")), "{name}");
        }
    }
}
