//! The dashboard's first screens over HTTP: overview, list of monitors, many at once, search and live updates.

use parallax_core::id::MonitorId;
use parallax_core::role::Role;

use super::signed_in_browser::location;
use super::{SignedInBrowser, TestClient, TestResponse};

/// Monitors of the shop.
const NAMES: [&str; 3] = ["Website", "Payments API", "Search"];

/// A client whose shop has three monitors, with their ids.
async fn client() -> (TestClient, Vec<String>) {
    let client = TestClient::new().await;
    let mut ids = Vec::new();
    for name in NAMES {
        let body = serde_json::json!({ "type": "http", "name": name, "url": "https://shop.example/" });
        ids.push(client.create_monitor(body).await["id"].as_str().unwrap().to_owned());
    }
    (client, ids)
}

async fn bulk(client: &TestClient, browser: &SignedInBrowser, fields: &[(&str, &str)]) -> TestResponse {
    client.submit(browser, &client.screen("/monitors/bulk"), fields).await
}

#[tokio::test]
async fn every_role_sees_the_overview_and_the_list() {
    let (client, ids) = client().await;
    for role in Role::ALL {
        let browser = client.sign_in(role).await;
        for address in ["/app".to_owned(), client.screen(""), client.screen("/monitors")] {
            let shown = client.open(&browser, &address).await;
            assert_eq!(shown.status, 200, "{address}: {}", shown.text);
            assert!(ids.iter().all(|id| shown.text.contains(id)), "{address} has every monitor: {}", shown.text);
            assert_eq!(shown.text.contains("New monitor"), role != Role::Viewer, "{address}");
        }
        let found = client.open(&browser, "/app/search?q=pay").await;
        assert!(found.text.contains("Payments API") && !found.text.contains(">Website<"), "{}", found.text);
    }
}

#[tokio::test]
async fn filters_are_part_of_the_address() {
    let (client, _) = client().await;
    let browser = client.sign_in(Role::Viewer).await;
    let shown = client.open(&browser, &client.screen("/monitors?q=pay&state=no-data&sort=name")).await;
    assert!(shown.text.contains(">Payments API</a>") && !shown.text.contains(">Website</a>"), "{}", shown.text);
    let evil = client.open(&browser, &client.screen("/monitors?q=%22%3E%3Cscript%3Ealert(1)&group=%3Cb%3E")).await;
    assert!(evil.status == 200 && !evil.text.contains("<script>alert"), "{}", evil.text);
}

#[tokio::test]
async fn many_monitors_are_paused_moved_and_deleted() {
    let (client, ids) = client().await;
    let browser = client.sign_in(Role::Editor).await;
    let chosen = [("id", ids[0].as_str()), ("id", ids[1].as_str())];
    let paused = bulk(&client, &browser, &[&chosen[..], &[("do", "pause")]].concat()).await;
    assert!(location(&paused).starts_with(&client.screen("/monitors?undo=")), "{}", location(&paused));
    assert!(paused.status == 303 && location(&paused).ends_with("&done=monitors-paused&count=2"));
    let list = client.open(&browser, location(&paused)).await;
    assert!(list.text.contains("2 monitors paused") && list.text.contains("Paused <b>2</b>"), "{}", list.text);
    let planned = bulk(&client, &browser, &[&chosen[..], &[("do", "maintenance")]].concat()).await;
    let form = format!("/incidents/new?kind=maintenance&monitor={}&monitor={}", ids[0], ids[1]);
    assert_eq!(location(&planned), client.screen(&form), "neither the token nor the key is in the address");
    let resumed = bulk(&client, &browser, &[("resume", &ids[0])]).await;
    assert!(location(&resumed).ends_with("done=monitors-resumed&count=1"));
    let moved = bulk(&client, &browser, &[&chosen[..], &[("do", "group"), ("group", "Shop")]].concat()).await;
    assert!(location(&moved).ends_with("done=monitors-grouped&count=2"));
    assert!(client.open(&browser, &client.screen("/monitors?group=Shop")).await.text.contains("All <b>2</b>"));

    // A deletion asks first, and takes only the word that it asks for.
    let delete = [&chosen[..], &[("do", "delete")]].concat();
    let asked = bulk(&client, &browser, &delete).await;
    assert!(asked.status == 200 && asked.text.contains("Delete 2 monitors?"), "{}", asked.text);
    let wrong = bulk(&client, &browser, &[&delete[..], &[("confirm", "yes")]].concat()).await;
    assert!(wrong.text.contains("Type delete 2 to delete them."), "{}", wrong.text);
    let deleted = bulk(&client, &browser, &[&delete[..], &[("confirm", "delete 2")]].concat()).await;
    assert!(location(&deleted).ends_with("done=monitors-deleted&count=2"));
    let left = client.open(&browser, &client.screen("/monitors")).await;
    assert!(left.text.contains("All <b>1</b>") && left.text.contains(&ids[2]), "{}", left.text);
}

#[tokio::test]
async fn a_form_is_sent_once_and_never_with_another_act() {
    let (client, ids) = client().await;
    let browser = client.sign_in(Role::Editor).await;
    let paused = async || {
        let monitors = client.get(&client.shop_path("/monitors")).await.body["monitors"].clone();
        monitors.as_array().unwrap().iter().filter(|it| it["paused"] == true).count()
    };
    let send = async |act| {
        let fields = [("idempotency_key", "one"), ("id", ids[0].as_str()), ("id", ids[1].as_str()), ("do", act)];
        bulk(&client, &browser, &fields).await
    };
    let edit = client.world.service.last_edit();
    let first = send("pause").await;
    assert_eq!((first.status, paused().await, client.world.service.last_edit()), (303, 2, edit + 2), "{}", first.text);
    let again = send("pause").await;
    assert_eq!((again.status, location(&again)), (303, location(&first)));
    assert_eq!(client.world.service.last_edit(), edit + 2, "a second click");
    let other = send("resume").await;
    assert!(other.status == 422 && other.text.contains("already sent, with other values"), "{}", other.text);
    assert_eq!(paused().await, 2);
    // A monitor that is gone is named, and does not stop the others.
    let unknown = MonitorId::from_u128(7).to_string();
    let fields = [("id", ids[2].as_str()), ("id", unknown.as_str()), ("do", "pause")];
    let partly = bulk(&client, &browser, &fields).await;
    assert!(partly.status == 200 && partly.text.contains("1 of 2 changed"), "{}", partly.text);
    assert!(partly.text.contains(&unknown) && partly.text.contains("It no longer exists."), "{}", partly.text);
    assert_eq!(paused().await, 3);
}

#[tokio::test]
async fn too_many_monitors_are_refused_rather_than_fewer_or_all_changed() {
    let (client, ids) = client().await;
    let browser = client.sign_in(Role::Editor).await;
    let others: Vec<String> = (1..=500).map(|n| MonitorId::from_u128(n).to_string()).collect();
    let edit = client.world.service.last_edit();
    for (act, max) in [("maintenance", 100), ("pause", 500), ("delete", 500)] {
        let chosen = others[..max].iter().chain([&ids[0]]).map(|id| ("id", id.as_str()));
        let fields: Vec<(&str, &str)> = chosen.chain([("do", act)]).collect();
        let refused = bulk(&client, &browser, &fields).await;
        let text = format!("Choose at most {max} monitors. You chose {}.", max + 1);
        assert!(refused.status == 400 && refused.text.contains(&text), "{act}: {}", refused.text);
    }
    assert_eq!(client.world.service.last_edit(), edit);
    // Monitors that are all gone never become the whole page.
    let gone = bulk(&client, &browser, &[("id", others[0].as_str()), ("do", "maintenance")]).await;
    assert_eq!((gone.status, location(&gone)), (303, &*client.screen("/monitors")));
}

#[tokio::test]
async fn clone_in_a_rows_menu_opens_the_form_with_the_monitors_values() {
    let (client, ids) = client().await;
    let browser = client.sign_in(Role::Editor).await;
    let list = client.open(&browser, &client.screen("/monitors")).await;
    let (before, _) = list.text.split_once("Clone</a>").unwrap();
    let (_, link) = before.rsplit_once("<a href=\"").unwrap();
    let form = client.open(&browser, &link.split('"').next().unwrap().replace("ID", &ids[1])).await;
    assert!(form.status == 200 && form.text.contains("value=\"Payments API copy\""), "{}", form.text);
    assert!(form.text.contains("value=\"https://shop.example/\""), "{}", form.text);
}

#[tokio::test]
async fn what_every_monitor_would_refuse_changes_nothing() {
    let (client, ids) = client().await;
    let browser = client.sign_in(Role::Owner).await;
    let long = "g".repeat(61);
    let fields = [("id", ids[0].as_str()), ("do", "group"), ("group", long.as_str())];
    let refused = bulk(&client, &browser, &fields).await;
    assert!(refused.status == 400 && refused.text.contains("Nothing was changed"), "{}", refused.text);
    assert!(refused.text.contains("Must be at most 60 characters."), "{}", refused.text);
    let nothing = bulk(&client, &browser, &[("do", "pause")]).await;
    assert_eq!((nothing.status, location(&nothing)), (303, &*client.screen("/monitors")));
    for bad in [&[("do", "explode"), ("id", ids[0].as_str())][..], &[("do", "pause"), ("id", "mon_x")]] {
        assert_eq!(bulk(&client, &browser, bad).await.status, 404, "{bad:?}");
    }
}

#[tokio::test]
async fn a_viewer_and_a_stranger_change_nothing() {
    let (client, ids) = client().await;
    let viewer = client.sign_in(Role::Viewer).await;
    let refused = bulk(&client, &viewer, &[("id", &ids[0]), ("do", "pause")]).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let owner = client.sign_in(Role::Owner).await;
    // Another account's page, and a page that does not exist, look the same.
    let unknown = "/app/pages/pg_00000000000000000000000001/monitors";
    let stranger = client.open(&owner, unknown).await;
    assert_eq!(stranger.status, 404);
    assert_eq!(client.submit(&owner, &format!("{unknown}/bulk"), &[("do", "pause")]).await.status, 404);
    let signed_out = client.send("GET", &client.screen("/monitors?state=down"), &[], "").await;
    let address = client.screen("/monitors?state=down");
    let next: String = url::form_urlencoded::byte_serialize(address.as_bytes()).collect();
    let back = format!("/sign-in?next={next}");
    assert_eq!((signed_out.status, location(&signed_out)), (303, back.as_str()));
    let list = client.open(&owner, &client.screen("/monitors")).await;
    assert!(list.text.contains("All <b>3</b>") && !list.text.contains("Paused"), "{}", list.text);
}

#[tokio::test]
async fn a_live_screen_opens_a_stream_of_its_own_account() {
    let (client, _) = client().await;
    let browser = client.sign_in(Role::Viewer).await;
    let stream = client.open(&browser, "/app/live").await;
    assert_eq!(stream.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(stream.headers["cache-control"], "no-store");
    assert!(stream.text.starts_with("retry: ") && stream.text.ends_with("event: beat\ndata: 1\n\n"), "{}", stream.text);
    assert_eq!(client.send("GET", "/app/live", &[], "").await.status, 303, "strangers get none");
    let session = client.world.signed_in(Role::Viewer).await;
    let busy = SignedInBrowser::of(&client, &session);
    let streams = &client.context.session_streams;
    let open: Vec<_> = (0..8).map(|_| streams.open(session.session.id).unwrap()).collect();
    assert_eq!(client.open(&busy, "/app/live").await.status, 429, "eight at a time");
    assert_eq!(client.open(&browser, "/app/live").await.status, 200);
    drop(open);
    assert_eq!(client.open(&busy, "/app/live").await.status, 200);
}
