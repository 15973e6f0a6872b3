//! Tests of the events of all monitors of a page: merged order, cursors, and the filter.

use parallax_core::event::{Event, EventKind};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::vantage::{Region, RegionSet};
use serde_json::{Value, json};

use super::{TestClient, code};

impl TestClient {
    /// Records that the regions which a monitor is down from changed.
    async fn regions_changed(&self, page: PageId, monitor: &str, region: Region) {
        let (at, monitor) = (self.world.service.now(), monitor.parse::<MonitorId>().unwrap());
        let kind = EventKind::ScopeChanged(Some(RegionSet::only(region)));
        self.world.happened(Event { at, page: Some(page), monitor: Some(monitor), kind }).await;
    }

    async fn monitor_on(&self, page: PageId) -> String {
        let path = format!("/api/v1/pages/{page}/monitors");
        let created = self.call(&self.write_key, "POST", &path, json!({ "url": "a.example" })).await;
        created.body["monitor"]["id"].as_str().unwrap().to_owned()
    }

    /// Follows the cursors from the path on, and returns all events and the number of requests.
    async fn all_events(&self, path: &str) -> (Vec<Value>, usize) {
        let (mut events, mut cursor) = (Vec::new(), String::new());
        for count in 1.. {
            let response = self.get(&format!("{path}{cursor}")).await;
            assert_eq!(response.status, 200, "{response:?}");
            events.extend(response.body["events"].as_array().unwrap().iter().cloned());
            match response.body["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (events, count),
            }
        }
        unreachable!("the loop has no end")
    }
}

fn ids(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["monitorId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn events_of_all_monitors_are_one_list_newest_first() {
    let client = TestClient::new().await;
    let mut monitors = Vec::new();
    for _ in 0..3 {
        monitors.push(client.monitor_on(client.world.shop.id).await);
    }
    let [first, second, third] = &monitors[..] else { panic!() };
    let (shop, blog) = (client.world.shop.id, client.world.blog.id);
    let other = client.monitor_on(blog).await;
    let happened = [first, second, first, first, &other, third, second];
    for monitor in happened {
        let page = if *monitor == other { blog } else { shop };
        client.regions_changed(page, monitor, Region::Asia).await;
    }
    let path = client.shop_path("/events?limit=2");
    let expected: Vec<&str> = happened.iter().rev().filter(|id| **id != &other).map(|id| id.as_str()).collect();
    let (events, count) = client.all_events(&path).await;
    assert_eq!((ids(&events), count), (expected, 3));
    assert_eq!(events[0]["downFrom"], json!(["asia"]));
    assert!(events.is_sorted_by_key(|event| std::cmp::Reverse(event["id"].as_str().unwrap().parse::<u64>().unwrap())));
    let (of_first, _) = client.all_events(&format!("{path}&monitor={first}")).await;
    assert_eq!(ids(&of_first), [first; 3]);
    let (alone, _) = client.all_events(&client.shop_path(&format!("/monitors/{first}/events?limit=2"))).await;
    assert_eq!(alone, of_first, "the same entries as in the monitor's own list");
    client.call(&client.write_key, "DELETE", &client.shop_path(&format!("/monitors/{first}")), Value::Null).await;
    assert_eq!(ids(&client.all_events(&path).await.0), [second, third, second]);
}

#[tokio::test]
async fn parameters_are_checked_and_other_pages_are_not_reached() {
    let client = TestClient::new().await;
    let blog = client.world.blog.id;
    let other = client.monitor_on(blog).await;
    client.regions_changed(blog, &other, Region::Asia).await;
    for (query, field) in [
        ("limit=0".to_owned(), "limit"),
        ("cursor=x".to_owned(), "cursor"),
        ("monitor=x".to_owned(), "monitor"),
        (format!("monitor={other}"), "monitor"),
        ("monitor=mon_0000000000000000000000000a".to_owned(), "monitor"),
    ] {
        let refused = client.get(&client.shop_path(&format!("/events?{query}"))).await;
        assert_eq!((refused.status, code(&refused)), (400, "bad_request"), "{query}");
        assert_eq!(refused.body["error"]["fields"][0]["field"], field, "{query}");
    }
    let empty = client.get(&client.shop_path("/events")).await;
    assert_eq!(empty.body, json!({ "events": [], "nextCursor": null }));
}
