//! Screens of incidents and maintenance over HTTP: forms and their faults, repetitions, conflicts, and roles.

use parallax_core::role::Role;
use parallax_core::time::HOUR;
use parallax_service::test_world::START;
use serde_json::{Value, json};

use super::signed_in_browser::{hidden, location};
use super::{SignedInBrowser, TestClient};

/// Text with everything that markup must not let through.
const HOSTILE: &str = "</title></textarea><script>alert(1)</script>\" onx='1'";

impl TestClient {
    async fn create_incident(&self, body: Value) -> String {
        let created = self.call(&self.write_key, "POST", &self.shop_path("/incidents"), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.body["incident"]["id"].as_str().unwrap().to_owned()
    }

    async fn incident(&self, id: &str) -> Value {
        self.get(&self.shop_path(&format!("/incidents/{id}"))).await.body["incident"].clone()
    }

    pub(super) async fn incidents(&self) -> Vec<Value> {
        self.get(&self.shop_path("/incidents")).await.body["incidents"].as_array().unwrap().clone()
    }
}

async fn owner(client: &TestClient) -> SignedInBrowser {
    client.sign_in(Role::Owner).await
}

#[tokio::test]
async fn lists_show_open_ones_first_and_windows_apart() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let empty = client.open(&browser, &client.screen("/incidents")).await;
    assert_eq!(empty.status, 200);
    assert!(empty.text.contains("Monitors open them automatically; you can also write one."), "{}", empty.text);
    let (start, end) = ((START + HOUR).to_string(), (START + 2 * HOUR).to_string());
    let (began, over) = ((START - 3 * HOUR).to_string(), (START - 2 * HOUR).to_string());
    client.create_incident(json!({ "title": "Slow checkout" })).await;
    client.create_incident(json!({ "title": "Old trouble", "startedAt": began, "resolvedAt": over })).await;
    client
        .create_incident(json!({ "kind": "maintenance", "title": "Upgrade", "startsAt": start, "endsAt": end }))
        .await;
    let list = client.open(&browser, &client.screen("/incidents")).await.text;
    let at = |text: &str| list.find(text).unwrap_or_else(|| panic!("{text}: {list}"));
    assert!(at("Slow checkout") < at("Old trouble") && !list.contains("Upgrade"), "{list}");
    assert!(list.contains("Resolved") && list.contains("after 1 h"), "{list}");
    let windows = client.open(&browser, &client.screen("/incidents?kind=maintenance")).await.text;
    assert!(windows.contains("Upgrade") && windows.contains("starts in 59 min") && !windows.contains("Slow checkout"));
    let past = client.open(&browser, &client.screen("/incidents?state=past")).await.text;
    assert!(past.contains("Old trouble") && !past.contains("Slow checkout"), "{past}");
    let none = client.open(&browser, &client.screen("/incidents?kind=maintenance&state=past")).await.text;
    assert!(none.contains("Nothing matches.") && none.contains("Clear filters"), "{none}");
    assert_eq!(client.open(&browser, &client.screen("/incidents?before=x")).await.status, 400);
}

#[tokio::test]
async fn an_update_is_posted_once_together_with_what_it_changes() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": "Front" })).await;
    let monitor = monitor["id"].as_str().unwrap().to_owned();
    let id = client.create_incident(json!({ "title": "Broken", "impact": "partial" })).await;
    let path = client.screen(&format!("/incidents/{id}"));
    let screen = client.open(&browser, &path).await;
    assert!(screen.text.contains("No subscribers yet") && screen.text.contains(">Post<"), "{}", screen.text);
    let (once, loaded) = (hidden(&screen, "idempotency_key"), hidden(&screen, "loaded"));
    let affected = format!("{monitor} major");
    let form = [
        ("idempotency_key", once.as_str()),
        ("loaded", &loaded),
        ("status", "identified"),
        ("message", "A **cable**"),
        ("title", "Payments fail"),
        ("impact", "major"),
        ("monitors", ""),
        ("monitors", &affected),
        ("remind", "30m, 1h"),
        ("notify", "true"),
    ];
    let posted = client.submit(&browser, &path, &form).await;
    assert_eq!(posted.status, 303, "{}", posted.text);
    assert!(location(&posted).starts_with(&path), "{}", location(&posted));
    // A double click leads to the same place and posts nothing more.
    let again = client.submit(&browser, &path, &form).await;
    assert_eq!(location(&again), location(&posted));
    let incident = client.incident(&id).await;
    assert_eq!(incident["updates"].as_array().unwrap().len(), 2, "{incident}");
    assert_eq!(incident["updates"][0]["body"], "A **cable**");
    assert_eq!((&incident["title"], &incident["status"]), (&json!("Payments fail"), &json!("identified")));
    assert_eq!(incident["monitors"], json!([{ "id": monitor, "name": "Front", "impact": "major" }]));
    assert_eq!(incident["remind"], json!(["30m", "1h"]));
    let shown = client.open(&browser, location(&posted)).await.text;
    assert!(shown.contains("Posted") && shown.contains("<strong>cable</strong>"), "{shown}");
}

#[tokio::test]
async fn a_refused_form_keeps_what_was_typed_and_says_why_under_each_field() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.create_incident(json!({ "title": "Broken" })).await;
    let path = client.screen(&format!("/incidents/{id}"));
    let form = [("status", "identified"), ("message", " "), ("title", ""), ("impact", "huge"), ("remind", "soon")];
    let refused = client.submit(&browser, &path, &form).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for text in [
        "4 fields need a change",
        "id=\"message-fault\"",
        "Is required.",
        "Must be 1 to 120 characters.",
        "Must be entries like 15m, 1h or 2d, from 1m to 30d.",
        "value=\"soon\"",
    ] {
        assert!(refused.text.contains(text), "{text}: {}", refused.text);
    }
    assert_eq!(client.incident(&id).await["updates"].as_array().unwrap().len(), 1, "nothing half done");
    let hostile = [("status", "identified"), ("message", HOSTILE), ("title", HOSTILE), ("impact", "huge")];
    let refused = client.submit(&browser, &path, &hostile).await.text;
    assert!(!refused.contains("<script>alert") && refused.contains("&#60;script&#62;alert(1)"), "{refused}");
}

#[tokio::test]
async fn a_template_or_a_preview_saves_nothing() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": "Front" })).await;
    let id = client.create_incident(json!({ "title": "Broken", "monitorIds": [monitor["id"]] })).await;
    let path = client.screen(&format!("/incidents/{id}"));
    let chosen = client.submit(&browser, &path, &[("act", "template:monitoring"), ("message", "")]).await;
    assert_eq!(chosen.status, 200);
    assert!(chosen.text.contains("The fix for Front is in place. We are watching the results."), "{}", chosen.text);
    assert!(chosen.text.contains("value=\"monitoring\" checked"), "{}", chosen.text);
    let typed = [("act", "template:resolved"), ("message", "Typed before")];
    let both = client.submit(&browser, &path, &typed).await.text;
    assert!(both.contains("Typed before") && both.contains("The problem with Front is solved."), "{both}");
    let preview =
        client.submit(&browser, &path, &[("act", "preview"), ("message", "A *draft*"), ("status", "identified")]).await;
    assert!(preview.text.contains("<em>draft</em>") && preview.text.contains("not posted yet"), "{}", preview.text);
    assert_eq!(client.incident(&id).await["updates"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_of_someone_else_meanwhile_is_a_conflict() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.create_incident(json!({ "title": "Broken", "impact": "partial" })).await;
    let edit = client.screen(&format!("/incidents/{id}/edit"));
    let screen = client.open(&browser, &edit).await;
    let (once, loaded) = (hidden(&screen, "idempotency_key"), hidden(&screen, "loaded"));
    let theirs = json!({ "title": "Theirs" });
    client.call(&client.write_key, "PATCH", &client.shop_path(&format!("/incidents/{id}")), theirs).await;
    let form = |loaded: &str, once: &str| {
        let fields = [("title", "Mine"), ("impact", "major"), ("monitors", ""), ("remind", "")];
        let mut form: Vec<(String, String)> = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        form.push(("loaded".to_owned(), loaded.to_owned()));
        form.push(("idempotency_key".to_owned(), once.to_owned()));
        form
    };
    let send = async |form: &[(String, String)]| {
        let fields: Vec<(&str, &str)> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        client.submit(&browser, &edit, &fields).await
    };
    let conflict = send(&form(&loaded, &once)).await;
    assert_eq!(conflict.status, 409, "{}", conflict.text);
    assert!(conflict.text.contains("Someone else set this to “Theirs” meanwhile."), "{}", conflict.text);
    assert!(conflict.text.contains("value=\"Mine\""));
    assert_eq!(client.incident(&id).await["impact"], "partial", "nothing half done");
    // Sent again, the form is about the current values.
    let saved = send(&form(&hidden(&conflict, "loaded"), &hidden(&conflict, "idempotency_key"))).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    assert_eq!(client.incident(&id).await["title"], "Mine");
}

#[tokio::test]
async fn an_incident_is_opened_once_and_faults_are_shown() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let path = client.screen("/incidents/new");
    let screen = client.open(&browser, &path).await;
    let once = hidden(&screen, "idempotency_key");
    let refused = client.submit(&browser, &path, &[("kind", "incident"), ("title", ""), ("notify", "true")]).await;
    assert!(refused.status == 400 && refused.text.contains("Is required."), "{}", refused.text);
    let form = [("idempotency_key", once.as_str()), ("kind", "incident"), ("title", "Broken"), ("notify", "false")];
    let opened = client.submit(&browser, &path, &form).await;
    let again = client.submit(&browser, &path, &form).await;
    assert_eq!((opened.status, location(&again)), (303, location(&opened)));
    assert_eq!(client.incidents().await.len(), 1);
    // The same form with other values is not done under the same key.
    let other = [("idempotency_key", once.as_str()), ("kind", "incident"), ("title", "Other"), ("notify", "false")];
    let reused = client.submit(&browser, &path, &other).await;
    assert!(reused.text.contains("This form was already sent, with other values."), "{}", reused.text);
    let past = [
        ("kind", "incident"),
        ("title", "Past"),
        ("timezone", "Europe/Berlin"),
        ("startedAt", "2026-11-01T10:00"),
        ("resolvedAt", "2026-11-01T11:00"),
        ("notify", "true"),
    ];
    assert_eq!(client.submit(&browser, &path, &past).await.status, 303);
    let past = client.incidents().await.into_iter().find(|it| it["title"] == "Past").unwrap();
    assert_eq!((&past["startedAt"], &past["status"]), (&json!("2026-11-01T09:00:00.000Z"), &json!("resolved")));
}

#[tokio::test]
async fn a_post_mortem_is_previewed_published_and_removed() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.create_incident(json!({ "title": "Broken" })).await;
    let path = client.screen(&format!("/incidents/{id}/postmortem"));
    let preview = client.submit(&browser, &path, &[("act", "preview"), ("postmortem", "## Why\n\nA *disk*")]).await;
    assert!(preview.status == 200 && preview.text.contains("<em>disk</em>"), "{}", preview.text);
    assert_eq!(client.incident(&id).await["postmortem"], Value::Null);
    assert_eq!(client.submit(&browser, &path, &[("postmortem", "A disk")]).await.status, 303);
    assert_eq!(client.incident(&id).await["postmortem"], "A disk");
    let long = "x".repeat(20_001);
    let refused = client.submit(&browser, &path, &[("postmortem", &long)]).await;
    assert!(refused.status == 400 && refused.text.contains("Must be at most 20000 characters."), "{}", refused.status);
    assert_eq!(client.submit(&browser, &path, &[("postmortem", "")]).await.status, 303);
    assert_eq!(client.incident(&id).await["postmortem"], Value::Null);
}

#[tokio::test]
async fn deleting_takes_the_typed_title() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let id = client.create_incident(json!({ "title": HOSTILE })).await;
    let path = client.screen(&format!("/incidents/{id}/delete"));
    let question = client.open(&browser, &path).await;
    assert!(
        !question.text.contains("<script>alert") && question.text.contains("Delete incident?"),
        "{}",
        question.text
    );
    let once = hidden(&question, "idempotency_key");
    let refused = client.submit(&browser, &path, &[("confirm", "Other"), ("idempotency_key", &once)]).await;
    assert!(refused.status == 400 && refused.text.contains("Must be the title"), "{}", refused.text);
    assert_eq!(client.incidents().await.len(), 1);
    let form = [("confirm", HOSTILE), ("idempotency_key", once.as_str())];
    let deleted = client.submit(&browser, &path, &form).await;
    let again = client.submit(&browser, &path, &form).await;
    assert_eq!((deleted.status, again.status, location(&again)), (303, 303, location(&deleted)));
    assert!(client.incidents().await.is_empty());
}

#[tokio::test]
async fn texts_of_others_are_escaped_on_every_screen() {
    let client = TestClient::new().await;
    let browser = owner(&client).await;
    let monitor = client.create_monitor(json!({ "url": "a.example", "name": HOSTILE })).await;
    let body = json!({ "title": HOSTILE, "message": HOSTILE, "monitorIds": [monitor["id"]] });
    let id = client.create_incident(body).await;
    client
        .call(
            &client.write_key,
            "PATCH",
            &client.shop_path(&format!("/incidents/{id}")),
            json!({ "postmortem": HOSTILE }),
        )
        .await;
    let (start, end) = ((START + HOUR).to_string(), (START + 2 * HOUR).to_string());
    let window = json!({
        "kind": "maintenance", "title": HOSTILE, "message": HOSTILE, "startsAt": start, "endsAt": end,
        "monitorIds": [monitor["id"]], "repeat": "weekly",
    });
    let window = client.create_incident(window).await;
    let monitor = monitor["id"].as_str().unwrap();
    for path in [
        "/incidents".to_owned(),
        "/incidents?kind=maintenance".to_owned(),
        format!("/incidents?monitor={monitor}"),
        format!("/incidents/{id}"),
        format!("/incidents/{id}/edit"),
        format!("/incidents/{id}/postmortem"),
        format!("/incidents/{id}/delete"),
        format!("/incidents/{window}"),
        format!("/incidents/{window}/edit"),
        format!("/incidents/{window}/delete"),
        "/incidents/new".to_owned(),
        format!("/incidents/new?kind=maintenance&monitor={monitor}"),
    ] {
        let screen = client.open(&browser, &client.screen(&path)).await;
        assert_eq!(screen.status, 200, "{path}: {}", screen.text);
        assert!(
            !screen.text.contains("<script>alert") && !screen.text.contains("</script>\" onx"),
            "{path}: {}",
            screen.text
        );
    }
}

#[tokio::test]
async fn viewers_look_and_change_nothing_and_strangers_find_nothing() {
    let client = TestClient::new().await;
    let id = client.create_incident(json!({ "title": "Broken" })).await;
    let (start, end) = ((START + HOUR).to_string(), (START + 2 * HOUR).to_string());
    let window = client
        .create_incident(json!({ "kind": "maintenance", "title": "Upgrade", "startsAt": start, "endsAt": end }))
        .await;
    let viewer = client.sign_in(Role::Viewer).await;
    for path in ["/incidents".to_owned(), format!("/incidents/{id}"), format!("/incidents/{window}")] {
        let screen = client.open(&viewer, &client.screen(&path)).await;
        assert_eq!(screen.status, 200, "{path}");
        for absent in ["New incident", "Post an update", "/edit\"", "/delete\"", "End now", "Cancel window"] {
            assert!(!screen.text.contains(absent), "{path}: {absent}");
        }
    }
    let forms = ["/edit", "/postmortem", "/delete"].map(|rest| format!("/incidents/{id}{rest}"));
    for path in forms.into_iter().chain(["/incidents/new".to_owned(), "/incidents/new?kind=maintenance".to_owned()]) {
        assert_eq!(client.open(&viewer, &client.screen(&path)).await.status, 403, "{path}");
    }
    let posts = ["", "/edit", "/postmortem", "/delete"].map(|rest| format!("/incidents/{id}{rest}"));
    let windows = ["/end", "/extend", "/stop"].map(|rest| format!("/incidents/{window}{rest}"));
    let others = ["/incidents/new", "/incidents/start"].map(str::to_owned);
    let form = [
        ("title", "x"),
        ("status", "resolved"),
        ("message", "x"),
        ("postmortem", "x"),
        ("confirm", "Broken"),
        ("minutes", "60"),
    ];
    let before = client.incidents().await;
    for path in posts.into_iter().chain(windows).chain(others) {
        let refused = client.submit(&viewer, &client.screen(&path), &form).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
    }
    // Pages of another account, ids of another page, and ids of nothing look alike.
    let owner = owner(&client).await;
    let (foreign, blog) = (client.world.foreign.id, client.world.blog.id);
    for path in [
        format!("/app/pages/{foreign}/incidents"),
        format!("/app/pages/{foreign}/incidents/new"),
        format!("/app/pages/{foreign}/incidents/{id}"),
        format!("/app/pages/{blog}/incidents/{id}"),
        format!("/app/pages/{blog}/incidents/{id}/edit"),
        client.screen("/incidents/inc_nothing"),
    ] {
        let missing = client.open(&owner, &path).await;
        assert!(missing.status == 404 && missing.text.contains("Not found, or you have no access."), "{path}");
    }
    for rest in ["", "/edit", "/postmortem", "/delete", "/end", "/extend", "/stop"] {
        let path = format!("/app/pages/{blog}/incidents/{id}{rest}");
        assert_eq!(client.submit(&owner, &path, &form).await.status, 404, "{path}");
    }
    assert_eq!(client.incidents().await, before);
}
