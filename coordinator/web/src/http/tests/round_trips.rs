//! Tests of sending back documents that were read: unchanged they change nothing, and fields that a route can't change
//! are rejected or cause a warning.

use parallax_core::flapping::Flapping;
use parallax_core::incident::IncidentStatus;
use parallax_core::machine::MachineView;
use parallax_core::page::Page;
use parallax_core::plan::Plan;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::test_world::START;
use serde_json::json;

use super::*;

/// Creates one of every resource with a PATCH route; returns paths and the names of the resources in responses.
async fn resources(client: &TestClient) -> Vec<(String, &'static str)> {
    let mut resources = Vec::new();
    for body in [
        json!({ "url": "https://a.example", "groupName": "A", "keyword": "ok", "headers": { "X-A": "b" } }),
        json!({ "type": "tcp", "host": "a.example", "port": 25, "slowThresholds": { "asia": 5 }, "pinnedRegion": "asia" }),
        json!({ "type": "dns", "host": "a.example", "dnsType": "MX", "latencyLocations": ["asia", "europe"] }),
        json!({ "type": "ping", "host": "2001:db8::1", "slowThresholdMs": 200 }),
        json!({ "type": "certificate", "host": "a.example" }),
        json!({ "type": "domain", "host": "a.example", "warnDays": 20 }),
        json!({ "type": "heartbeat", "name": "Job", "periodMinutes": 5 }),
        json!({ "type": "component", "name": "Vendor", "vendorUrl": "https://status.example.org" }),
    ] {
        let created = client.create_monitor(body).await;
        resources.push((client.shop_path(&format!("/monitors/{}", created["id"].as_str().unwrap())), "monitor"));
    }
    let monitor = resources[0].0.rsplit('/').next().unwrap().to_owned();
    for body in [
        json!({ "title": "x", "message": "*y*", "monitors": [{ "id": monitor, "impact": "major" }], "remind": ["1h"] }),
        json!({ "title": "x", "startedAt": "2026-11-27T12:00:00Z", "resolvedAt": "2026-11-27T12:30:00Z" }),
        json!({
            "kind": "maintenance", "title": "x", "startsAt": "2026-12-01T00:00:00Z", "endsAt": "2026-12-01T01:00:00Z",
            "repeat": "weekly", "timezone": "Europe/Berlin", "monitorIds": [monitor],
        }),
        json!({
            "kind": "maintenance", "title": "x", "startsAt": "2026-11-01T00:00:00Z", "endsAt": "2026-11-01T01:00:00Z",
        }),
    ] {
        let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
        assert_eq!((created.status, created.body.get("warnings")), (201, None), "{created:?}");
        let id = created.body["incident"]["id"].as_str().unwrap().to_owned();
        resources.push((client.shop_path(&format!("/incidents/{id}")), "incident"));
    }
    for body in [
        json!({ "type": "webhook", "name": "x", "url": "https://hooks.example.com/x", "events": ["went-down"] }),
        json!({ "type": "telegram", "name": "x", "token": "12345:abc", "chat": "@shop", "monitorIds": [monitor] }),
        json!({ "type": "email", "name": "x", "to": "ops@example.com" }),
    ] {
        let created = client.call(&client.write_key, "POST", &client.shop_path("/destinations"), body).await;
        let id = created.body["destination"]["id"].as_str().unwrap().to_owned();
        resources.push((client.shop_path(&format!("/destinations/{id}")), "destination"));
    }
    resources.extend([(client.shop_path(""), "page"), (client.shop_path("/alerts"), "alerts")]);
    resources
}

#[tokio::test]
async fn everything_can_be_sent_back_as_it_was_read() {
    let client = TestClient::new().await;
    let logo = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=";
    let branding =
        json!({ "logo": logo, "password": "open sesame", "private": true, "allowedPeople": ["a@example.com"] });
    assert_eq!(client.call(&client.write_key, "PATCH", &client.shop_path(""), branding).await.status, 200);
    let mut sent_back = 0;
    for (path, name) in resources(&client).await {
        let read = client.get(&path).await.body;
        // Time passes, and the status may have changed in between.
        client.world.clock.set(client.world.service.now() + 1000);
        let document = read[name].clone();
        let unchanged = client.call(&client.write_key, "PATCH", &path, document.clone()).await;
        assert_eq!((unchanged.status, unchanged.body.get("warnings")), (200, None), "{path} {unchanged:?}");
        assert_eq!(unchanged.body[name], document, "{path}");
        // Only the edited field changes.
        let field = if name == "incident" { "title" } else { "name" };
        if document.get(field).is_some() {
            let mut edited = document.clone();
            edited[field] = json!("Other");
            let changed = client.call(&client.write_key, "PATCH", &path, edited.clone()).await;
            assert_eq!((changed.status, changed.body.get("warnings")), (200, None), "{path} {changed:?}");
            assert_eq!(changed.body[name], edited, "{path}");
        }
        sent_back += 1;
        // Move on the clock, so that the rate limit is not reached.
        client.world.clock.set(client.world.service.now() + 60_000);
    }
    assert_eq!(sent_back, 17);
    let address = client.get(&client.shop_path("")).await.body["page"].clone();
    let unchanged = client.call(&client.write_key, "PATCH", &client.shop_path("/address"), address.clone()).await;
    assert_eq!((unchanged.status, &unchanged.body["page"]), (200, &address));
}

#[tokio::test]
async fn a_field_that_another_route_changes_is_refused_with_that_route() {
    let client = TestClient::new().await;
    client
        .world
        .put_page(Page { custom_domain: Some("status.shop.example".to_owned()), ..client.world.shop.clone() })
        .await;
    let resources = resources(&client).await;
    let path_of = |name: &str| resources.iter().find(|(_, it)| *it == name).unwrap().0.clone();
    for (path, sent, rule) in [
        (
            path_of("page"),
            json!({ "slug": "other" }),
            "slug can't be changed here: PATCH /api/v1/pages/{pageId}/address",
        ),
        (path_of("page"), json!({ "customDomain": null }), "customDomain can't be changed here: PATCH"),
        (path_of("page"), json!({ "url": "https://x.example" }), "url can't be changed: it follows slug"),
        (path_of("page"), json!({ "plan": "pro" }), "plan can't be changed through the API: the operator"),
        (
            path_of("page"),
            json!({ "passwordProtected": true }),
            "passwordProtected can't be changed: it follows password",
        ),
        (path_of("page"), json!({ "id": "pg_1" }), "id can't be changed: the service sets it"),
        (
            client.shop_path("/address"),
            json!({ "name": "x" }),
            "name can't be changed here: PATCH /api/v1/pages/{pageId} changes",
        ),
        (path_of("monitor"), json!({ "type": "tcp" }), "type can't be changed after creation"),
        (
            path_of("monitor"),
            json!({ "position": 7 }),
            "position can't be changed here: PATCH /api/v1/pages/{pageId}/monitors/order orders the page's monitors",
        ),
        (
            path_of("monitor"),
            json!({ "createdAt": "2026-01-01T00:00:00Z" }),
            "createdAt can't be changed: the service sets it",
        ),
        (
            path_of("incident"),
            json!({ "status": "resolved" }),
            "status can't be changed here: POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates",
        ),
        (
            path_of("incident"),
            json!({ "resolvedAt": "2026-11-27T12:46:00Z" }),
            "resolvedAt can't be changed here: POST",
        ),
        (path_of("incident"), json!({ "kind": "maintenance" }), "kind can't be changed after creation"),
        (path_of("incident"), json!({ "updates": [{ "body": "x" }] }), "updates can't be changed here: POST"),
        (
            path_of("destination"),
            json!({ "secret": "whsec_x" }),
            "secret can't be changed here: POST /api/v1/pages/{pageId}/destinations/{destinationId}/rotate-secret",
        ),
    ] {
        let rejection = client.call(&client.write_key, "PATCH", &path, sent.clone()).await;
        let message = rejection.body["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((rejection.status, code(&rejection)), (400, "bad_request"), "{sent} {rejection:?}");
        assert!(message.starts_with(rule), "{sent}: {message}");
    }
    let both = json!({ "name": "", "slug": "other" });
    let rejection = client.call(&client.write_key, "PATCH", &path_of("page"), both).await;
    let fields: Vec<_> = rejection.body["error"]["fields"].as_array().unwrap().iter().map(|it| &it["field"]).collect();
    assert_eq!(fields, ["slug", "name"], "all are reported");
    assert_eq!(client.get(&path_of("page")).await.body["page"]["name"], "Shop");
}

#[tokio::test]
async fn a_typo_gets_a_warning_next_to_the_result() {
    let client = TestClient::new().await;
    let resources = resources(&client).await;
    let path_of = |name: &str| resources.iter().find(|(_, it)| *it == name).unwrap().0.clone();
    let window = resources.iter().filter(|(_, it)| *it == "incident").nth(2).unwrap().0.clone();
    for (method, path, sent, warning) in [
        ("PATCH", path_of("monitor"), json!({ "group": "B" }), "group was ignored: send it as groupName"),
        ("PATCH", path_of("monitor"), json!({ "status": "up" }), "status was ignored: the checks set it"),
        ("PATCH", path_of("monitor"), json!({ "keywrod": "x" }), "keywrod was ignored: did you mean keyword?"),
        (
            "POST",
            client.shop_path("/monitors"),
            json!({ "url": "b.example", "group": "B" }),
            "group was ignored: send it as groupName",
        ),
        (
            "POST",
            client.shop_path("/monitors"),
            json!({ "type": "heartbeat", "name": "x", "periodMinutes": 5, "graceSeconds": 60 }),
            "graceSeconds was ignored: send it as graceMinutes",
        ),
        ("PATCH", path_of("page"), json!({ "time_zone": "UTC" }), "time_zone was ignored: did you mean timezone?"),
        (
            "PATCH",
            path_of("incident"),
            json!({ "message": "x" }),
            "message was ignored: POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates posts an update",
        ),
        ("PATCH", window, json!({ "startedAt": "2026-12-01T00:10:00Z" }), "startedAt was ignored: send it as startsAt"),
        (
            "POST",
            client.shop_path("/incidents"),
            json!({ "title": "x", "body": "y" }),
            "body was ignored: send it as message",
        ),
        (
            "POST",
            format!("{}/updates", path_of("incident")),
            json!({ "message": "x", "stats": "resolved" }),
            "stats was ignored: did you mean status?",
        ),
        (
            "POST",
            format!("{}/updates", path_of("incident")),
            json!({ "message": "x", "title": "y" }),
            "title was ignored: PATCH /api/v1/pages/{pageId}/incidents/{incidentId} changes it",
        ),
        (
            "POST",
            client.shop_path("/deploys"),
            json!({ "version": "1", "monitors": [] }),
            "monitors was ignored: send their ids as monitorIds",
        ),
        (
            "POST",
            client.shop_path("/destinations"),
            json!({ "type": "email", "name": "x", "to": "owner@example.com", "event": [] }),
            "event was ignored: did you mean events?",
        ),
        ("PATCH", path_of("destination"), json!({ "enable": true }), "enable was ignored: did you mean enabled?"),
        ("PATCH", path_of("alerts"), json!({ "repeat": 5 }), "repeat was ignored: send it as repeatMinutes"),
        (
            "POST",
            client.shop_path("/subscribers"),
            json!({ "email": "a@example.com", "monitors": ["x"] }),
            "monitors was ignored: send their ids as monitorIds",
        ),
        (
            "POST",
            "/api/v1/pages".to_owned(),
            json!({ "slug": "new", "name": "x", "customDomain": "a.example" }),
            "customDomain was ignored: it can't be changed here: PATCH /api/v1/pages/{pageId}/address changes it",
        ),
    ] {
        let result = client.call(&client.write_key, method, &path, sent.clone()).await;
        assert!(result.status < 300, "{sent} {result:?}");
        assert_eq!(result.body["warnings"], json!([warning]), "{sent}");
    }
}

#[tokio::test]
async fn a_monitor_can_be_sent_back_after_its_state_changed() {
    let client = TestClient::new().await;
    let id = client.create_monitor(json!({ "url": "a.example" })).await["id"].as_str().unwrap().to_owned();
    let path = client.shop_path(&format!("/monitors/{id}"));
    let show = |view: MachineView| client.world.views.lock().unwrap().insert(id.parse().unwrap(), view);
    let flapping = |changes| Some(Flapping { since: START, changes });
    let unconfirmed_from = RegionSet::only(Region::Asia);
    let views = [
        MachineView::default(),
        MachineView { flapping: flapping(3), ..MachineView::default() },
        MachineView { flapping: flapping(4), unconfirmed_from, disputed_since: Some(START), ..MachineView::default() },
        MachineView::default(),
    ];
    for (index, pair) in views.windows(2).enumerate() {
        show(pair[0].clone());
        let mut read = client.get(&path).await.body["monitor"].clone();
        read["name"] = json!(format!("Name {index}"));
        show(pair[1].clone());
        let changed = client.call(&client.write_key, "PATCH", &path, read.clone()).await;
        assert_eq!((changed.status, &changed.body["monitor"]["name"]), (200, &read["name"]), "{changed:?}");
    }
}

#[tokio::test]
async fn an_incident_can_be_sent_back_after_new_updates() {
    let client = TestClient::new().await;
    let body = json!({ "title": "x", "message": "It changed 3 times." });
    let created = client.call(&client.write_key, "POST", &client.shop_path("/incidents"), body).await;
    let id = created.body["incident"]["id"].as_str().unwrap().to_owned();
    let path = client.shop_path(&format!("/incidents/{id}"));
    let world = &client.world;
    let change = async |edit: fn(&mut parallax_core::incident::Incident)| {
        world.change_incident(id.parse().unwrap(), edit).await;
    };
    let send_back = async |read: &Value, title: &str| {
        let mut edited = read.clone();
        edited["title"] = json!(title);
        let response = client.call(&client.write_key, "PATCH", &path, edited).await;
        (response.status, response.body["incident"]["title"].clone(), response.body["warnings"].clone())
    };
    let read = client.get(&path).await.body["incident"].clone();
    // The text of a manual update is compared, so a different one is a change.
    change(|incident| incident.updates[0].body = "It changed 4 times.".to_owned()).await;
    assert_eq!(send_back(&read, "y").await.0, 400);
    change(|incident| incident.automatic = true).await;
    let read = client.get(&path).await.body["incident"].clone();
    change(|incident| incident.updates[0].body = "It changed 5 times.".to_owned()).await;
    assert_eq!(send_back(&read, "y").await, (200, json!("y"), Value::Null));
    // The automatic incident resolves.
    change(|incident| {
        let mut last = incident.updates[0].clone();
        last.id = parallax_core::id::UpdateId::from_u128(7);
        last.status = IncidentStatus::Resolved.name().to_owned();
        incident.updates.push(last);
        incident.status = IncidentStatus::Resolved;
        incident.resolved_at = Some(incident.started_at);
    })
    .await;
    assert_eq!(send_back(&read, "z").await, (200, json!("z"), Value::Null));
    let current = client.get(&path).await.body["incident"].clone();
    assert_eq!((&current["status"], current["resolvedAt"].is_string()), (&json!("resolved"), true));
    assert_eq!(current["updates"][1]["body"], "It changed 5 times.");
    let mut other = read.clone();
    other["updates"][0]["id"] = current["updates"][0]["id"].clone();
    other["updates"][0]["createdAt"] = json!("2026-01-01T00:00:00.000Z");
    assert_eq!(send_back(&other, "y").await.0, 400, "no such update was posted");
    let mut other = read;
    other["status"] = json!("identified");
    assert_eq!(send_back(&other, "y").await.0, 400, "it never had that status");
}

#[tokio::test]
async fn a_pause_by_the_plan_is_not_a_pause_by_the_owner() {
    let client = TestClient::new().await;
    let vendor = json!({ "type": "component", "name": "Vendor", "vendorUrl": "https://status.example.org" });
    let vendor = client.create_monitor(vendor).await;
    let path = client.shop_path(&format!("/monitors/{}", vendor["id"].as_str().unwrap()));
    let put_on = async |plan| client.world.service.accounts.set_plan(client.world.owner.id, plan).await.unwrap();
    let send = async |body: Value| {
        let response = client.call(&client.write_key, "PATCH", &path, body).await;
        let monitor = &response.body["monitor"];
        (response.status, monitor["paused"].clone(), monitor["pausedBy"].clone(), response.body["warnings"].clone())
    };
    let expected = json!(["the monitor stays paused: the account's plan has no component monitors"]);
    put_on(Plan::Free).await;
    let read = client.get(&path).await.body["monitor"].clone();
    assert_eq!(send(read).await, (200, json!(true), json!("plan"), Value::Null), "sent back unchanged");
    assert_eq!(send(json!({ "paused": false })).await, (200, json!(true), json!("plan"), expected.clone()));
    assert_eq!(send(json!({ "paused": true })).await, (200, json!(true), json!("owner"), Value::Null));
    put_on(Plan::Pro).await;
    assert_eq!(
        client.get(&path).await.body["monitor"]["pausedBy"],
        "owner",
        "the pause by the owner stays on a larger plan"
    );
    put_on(Plan::Free).await;
    assert_eq!(send(json!({ "paused": false })).await, (200, json!(true), json!("plan"), expected));
    put_on(Plan::Pro).await;
    assert_eq!(client.get(&path).await.body["monitor"]["paused"], false);
}
