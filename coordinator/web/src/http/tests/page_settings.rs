//! The settings of a status page over HTTP: forms, preview, roles, and other accounts' pages.

use parallax_core::key::KeyAccess;
use parallax_core::page::Page;
use parallax_core::role::Role;

use super::TestClient;
use super::signed_in_browser::{hidden, location};

const SECTIONS: [&str; 7] = ["look", "address", "access", "uptime", "language", "badges", "delete"];

/// The page as it is stored.
async fn shop(client: &TestClient) -> Page {
    let caller = client.world.caller(KeyAccess::Read).await;
    client.world.service.pages.get(&caller, client.world.shop.id).unwrap()
}

#[tokio::test]
async fn every_section_has_an_address_and_strangers_pages_are_not_found() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let (shop, foreign) = (client.world.shop.id, client.world.foreign.id);
    for section in SECTIONS {
        let opened = client.open(&owner, &format!("/app/pages/{shop}/settings/{section}")).await;
        assert_eq!(opened.status, 200, "{section}: {}", opened.text);
        assert!(!opened.text.contains("style=") && !opened.text.contains("<script>"), "{section}");
        let path = format!("/app/pages/{foreign}/settings/{section}");
        assert_eq!(client.open(&owner, &path).await.status, 404, "{section}");
        if section != "badges" {
            assert_eq!(client.submit(&owner, &path, &[("name", "Mine")]).await.status, 404, "{section}");
        }
    }
    for path in ["preview", "settings/address/check"] {
        let path = format!("/app/pages/{foreign}/{path}");
        assert_eq!(client.submit(&owner, &path, &[("name", "Mine")]).await.status, 404, "{path}");
    }
    let first = client.open(&owner, &format!("/app/pages/{shop}/settings")).await;
    assert_eq!(location(&first), format!("/app/pages/{shop}/settings/look"));
}

#[tokio::test]
async fn the_look_is_saved_and_a_fault_stands_under_its_field() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/settings/look", client.world.shop.id);
    let hostile = "<b>Shop</b>\" onx=1";
    let fields = [
        ("name", hostile),
        ("description", "Shops"),
        ("supportUrl", ""),
        ("accentColor", "#1d5c8f"),
        ("theme", "dark"),
        ("showLocations", "false"),
        ("showLocations", "true"),
        ("noindex", "false"),
    ];
    let saved = client.submit(&owner, &path, &fields).await;
    assert_eq!(
        (saved.status, location(&saved)),
        (303, format!("{path}?done=saved&count=1").as_str()),
        "{}",
        saved.text
    );
    let shown = client.open(&owner, location(&saved)).await;
    assert!(shown.text.contains("Changes saved") && shown.text.contains("&#60;b&#62;Shop"), "{}", shown.text);
    assert!(!shown.text.contains("<b>Shop"), "{}", shown.text);
    let page = shop(&client).await;
    assert_eq!((page.name.as_str(), page.show_locations, page.noindex), (hostile, true, false));
    let refused = client.submit(&owner, &path, &[("name", ""), ("accentColor", "blue"), ("description", "Kept")]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for text in
        ["id=\"name-fault\"", "id=\"accentColor-fault\"", "2 fields need a change", "value=\"Kept\"", "value=\"blue\""]
    {
        assert!(refused.text.contains(text), "{text} in {}", refused.text);
    }
}

#[tokio::test]
async fn a_change_by_someone_else_meanwhile_is_a_conflict() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/settings/look", client.world.shop.id);
    let shown = client.open(&owner, &path).await.text;
    let loaded = shown.split("name=\"loaded\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let other = client.submit(&owner, &path, &[("description", "Theirs"), ("loaded", &loaded)]).await;
    assert_eq!(other.status, 303, "{}", other.text);
    let conflict = client.submit(&owner, &path, &[("description", "Mine"), ("loaded", &loaded)]).await;
    assert_eq!(conflict.status, 409, "{}", conflict.text);
    assert!(conflict.text.contains("“Theirs”") && conflict.text.contains("value=\"Mine\""), "{}", conflict.text);
    // A section changes its own fields alone.
    let other = client.submit(&owner, &path, &[("slug", "stolen"), ("private", "true")]).await;
    assert_eq!(other.status, 303);
    let page = shop(&client).await;
    assert_eq!((page.slug.as_str(), page.private), ("shop", false));
}

#[tokio::test]
async fn a_logo_is_sent_as_a_file() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/settings/look", client.world.shop.id);
    let send_named = async |token: &str, name: &str, media: &str, file: &str| {
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"form_token\"\r\n\r\n{token}\r\n--b\r\nContent-Disposition: \
             form-data; name=\"logo\"; filename=\"{name}\"\r\nContent-Type: {media}\r\n\r\n{file}\r\n--b--\r\n"
        );
        let headers = [
            ("content-type", "multipart/form-data; boundary=b"),
            ("cookie", owner.cookie.as_str()),
            ("sec-fetch-site", "same-origin"),
        ];
        client.send("POST", &path, &headers, &body).await
    };
    let send = async |token: &str, media: &str, file: &str| send_named(token, "a", media, file).await;
    assert_eq!(send("wrong", "image/svg+xml", "<svg/>").await.status, 403);
    for (media, file) in [("text/html", "<svg/>"), ("image/svg+xml", "")] {
        let refused = send(&owner.form_token, media, file).await;
        assert!(refused.status == 400 && refused.text.contains("id=\"logo-fault\""), "{}", refused.text);
    }
    let none = send_named(&owner.form_token, "", "application/octet-stream", "").await;
    assert_eq!(none.status, 303, "no file was chosen");
    let has_logo = async || shop(&client).await.branding.logo.is_some();
    assert!(!has_logo().await);
    let saved = send(&owner.form_token, "image/svg+xml", "<svg/>").await;
    assert!(saved.status == 303 && has_logo().await, "{}", saved.text);
    let preview = client.open(&owner, &format!("/app/pages/{}/preview", client.world.shop.id)).await;
    assert!(preview.text.contains("src=\"data:image/svg+xml;base64,"), "{}", preview.text);
    let base = "<base target=\"_blank\">";
    assert!(preview.text.contains(&format!("<head>{base}")), "{}", preview.text);
    assert!(!client.send("GET", "/p/shop", &[], "").await.text.contains(base), "links of the page itself work");
    assert_eq!(client.submit(&owner, &path, &[("removeLogo", "true")]).await.status, 303);
    assert!(!has_logo().await);
}

#[tokio::test]
async fn the_preview_shows_unsaved_settings_in_a_sandbox_and_saves_nothing() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/preview", client.world.shop.id);
    let shown = client.submit(&owner, &path, &[("name", "<i>New</i>"), ("accentColor", "#ff0000")]).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("sandbox") && policy.contains("frame-ancestors 'self'") && !policy.contains("script-src"));
    assert!(shown.text.contains("&#60;i&#62;New") && shown.text.contains("data:text/css;base64,"), "{}", shown.text);
    // A sandbox refuses both, and the browser's console would say so.
    assert!(!shown.text.contains("<script") && !shown.text.contains("http-equiv"), "{}", shown.text);
    let page = shop(&client).await;
    assert_eq!((page.name.as_str(), page.branding.accent), ("Shop", None));
    let invalid = client.submit(&owner, &path, &[("name", "")]).await;
    assert!(invalid.status == 200 && invalid.text.contains("name: Must be"), "{}", invalid.text);
    let dark = client.open(&owner, &format!("{path}?theme=dark")).await;
    assert!(dark.text.contains("data-theme=\"dark\""), "{}", dark.text);
}

#[tokio::test]
async fn access_says_who_can_see_the_page() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/settings/access", client.world.shop.id);
    let save = async |fields: &[(&str, &str)]| client.submit(&owner, &path, fields).await;
    let missing = save(&[("access", "password"), ("password", "")]).await;
    assert!(missing.status == 400 && missing.text.contains("Is required."), "{}", missing.text);
    assert_eq!(save(&[("access", "password"), ("password", "open sesame")]).await.status, 303);
    assert_eq!(save(&[("access", "password"), ("password", "")]).await.status, 303, "the stored one stays");
    let shown = client.open(&owner, &path).await.text;
    assert!(shown.contains("Everyone with the password can see the page") && !shown.contains("sesame"), "{shown}");
    let people = [("access", "private"), ("allowedPeople", "a@shop.example\r\nb@shop.example, c@shop.example")];
    let wrong = save(&[people[0], people[1], ("allowedDomains", "not a domain")]).await;
    assert!(wrong.status == 400 && wrong.text.contains("id=\"allowedDomains-fault\""), "{}", wrong.text);
    assert!(wrong.text.contains("b@shop.example, c@shop.example"), "typed lines stay: {}", wrong.text);
    assert_eq!(save(&[people[0], people[1], ("allowedDomains", "shop.example")]).await.status, 303);
    let shown = client.open(&owner, &path).await.text;
    assert!(shown.contains("3 people and 1 email domain can see the page; everyone else sees a sign-in."), "{shown}");
    assert_eq!(save(&[("access", "public")]).await.status, 303);
    let page = shop(&client).await;
    assert!(page.password_hash.is_none() && !page.private);
}

#[tokio::test]
async fn a_form_that_comes_back_does_not_open_what_a_colleague_closed() {
    for (mine, theirs) in [("public", "password"), ("private", "password")] {
        let client = TestClient::new().await;
        let owner = client.sign_in(Role::Owner).await;
        let path = format!("/app/pages/{}/settings/access", client.world.shop.id);
        let save = async |fields: &[(&str, &str)]| client.submit(&owner, &path, fields).await;
        assert_eq!(save(&[("access", mine), ("allowedPeople", "a@shop.example")]).await.status, 303);
        let loaded = hidden(&client.open(&owner, &path).await, "loaded");
        let colleague = [("access", theirs), ("password", "open sesame"), ("allowedPeople", "b@shop.example")];
        assert_eq!(save(&colleague).await.status, 303);
        let mut fields = vec![("access", mine), ("password", ""), ("allowedPeople", "c@shop.example")];
        fields.extend([("allowedDomains", "not a domain"), ("loaded", &*loaded)]);
        let wrong = save(&fields).await;
        assert!(matches!(wrong.status, 400 | 409), "{}", wrong.text);
        let loaded = hidden(&wrong, "loaded");
        fields.truncate(3);
        fields.extend([("allowedDomains", ""), ("loaded", &*loaded)]);
        let again = save(&fields).await;
        let page = shop(&client).await;
        assert!(page.private || page.password_hash.is_some(), "{mine}, {theirs}: {}", again.text);
    }
}

#[tokio::test]
async fn an_own_domain_shows_its_records_and_can_be_looked_up() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let path = format!("/app/pages/{}/settings/address", client.world.shop.id);
    let taken = client.submit(&owner, &path, &[("slug", "journal"), ("customDomain", "")]).await;
    assert!(taken.status == 400 && taken.text.contains("Is taken."), "{}", taken.text);
    let fields = [("slug", "shop"), ("customDomain", "status.shop.example")];
    assert_eq!(client.submit(&owner, &path, &fields).await.status, 303);
    let shown = client.open(&owner, &path).await.text;
    for text in [
        "_parallax-challenge.status.shop.example",
        "parallax-domain-verification=",
        "CNAME",
        "status.example",
        "Check now",
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    assert_eq!(client.submit(&owner, &path, &fields).await.status, 303, "unchanged");
    let check = format!("{path}/check");
    let looked = client.submit(&owner, &check, &[]).await;
    assert!(location(&looked).contains("done=domain-missing"), "{}", looked.text);
    let again = client.submit(&owner, &check, &[]).await;
    assert!(again.status == 429 && again.text.contains("was just checked"), "{} {}", again.status, again.text);
    assert!(again.headers.contains_key("retry-after"), "{:?}", again.headers);
    let cleared = client.submit(&owner, &path, &[("slug", "shop"), ("customDomain", "")]).await;
    assert!(cleared.status == 303 && shop(&client).await.domain_claim.is_none(), "{}", cleared.text);
}

#[tokio::test]
async fn regions_target_language_and_zone_are_saved() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let base = format!("/app/pages/{}/settings", client.world.shop.id);
    let uptime = format!("{base}/uptime");
    let shown = client.open(&owner, &uptime).await.text;
    assert_eq!(shown.matches(" checked").count(), 7, "every region, and Europe: {shown}");
    let fields = [("uptimeTarget", "99.9"), ("uptimeRegions", ""), ("uptimeRegions", "asia"), ("latencyLocations", "")];
    assert_eq!(client.submit(&owner, &uptime, &fields).await.status, 303);
    let shown = client.open(&owner, &uptime).await.text;
    assert!(shown.contains("99.9 % allows 43 min of downtime in 30 days."), "{shown}");
    let refused = client.submit(&owner, &uptime, &[("uptimeTarget", "12")]).await;
    assert!(refused.status == 400 && refused.text.contains("uptimeTarget-fault"), "{}", refused.text);
    let language = format!("{base}/language");
    let fields = [("language", "de"), ("timezone", "Europe/Berlin")];
    assert_eq!(client.submit(&owner, &language, &fields).await.status, 303);
    let page = shop(&client).await;
    let regions = page.uptime_regions.map(|it| it.len());
    assert_eq!((page.uptime_target, regions, page.timezone.name()), (Some(99.9), Some(1), "Europe/Berlin"));
}

#[tokio::test]
async fn editors_change_the_look_alone_and_viewers_nothing() {
    let client = TestClient::new().await;
    let (editor, viewer) = (client.sign_in(Role::Editor).await, client.sign_in(Role::Viewer).await);
    let base = format!("/app/pages/{}/settings", client.world.shop.id);
    for (section, fields, editors) in [
        ("look", ("description", "By an editor"), 303),
        ("uptime", ("uptimeTarget", "99.5"), 303),
        ("language", ("timezone", "Europe/Berlin"), 303),
        ("address", ("slug", "stolen"), 403),
        ("access", ("access", "public"), 403),
        ("delete", ("name", "Shop"), 403),
    ] {
        let path = format!("{base}/{section}");
        assert_eq!(client.submit(&viewer, &path, &[fields]).await.status, 403, "{section}");
        assert_eq!(client.submit(&editor, &path, &[fields]).await.status, editors, "{section}");
        let shown = client.open(&viewer, &path).await;
        assert_eq!(shown.status, if section == "delete" { 403 } else { 200 }, "{section}");
        assert!(!shown.text.contains("class=\"save\""), "{section}: {}", shown.text);
    }
    assert_eq!(client.open(&editor, "/app/pages/new").await.status, 403);
}

#[tokio::test]
async fn a_page_is_made_once_and_deleted_by_its_name() {
    let client = TestClient::new().await;
    let owner = client.sign_in(Role::Owner).await;
    let shown = client.open(&owner, "/app/pages/new").await;
    assert!(shown.status == 200 && shown.text.contains(".pages.example"), "{}", shown.text);
    let refused = client.submit(&owner, "/app/pages/new", &[("name", "Docs"), ("slug", "shop")]).await;
    assert!(refused.status == 400 && refused.text.contains("Is taken."), "{}", refused.text);
    let fields = [("name", "Docs"), ("slug", "docs-page"), ("timezone", "UTC"), ("idempotency_key", "one")];
    let made = client.submit(&owner, "/app/pages/new", &fields).await;
    let again = client.submit(&owner, "/app/pages/new", &fields).await;
    assert_eq!((made.status, location(&made)), (303, location(&again)), "{}", made.text);
    let id = location(&made).strip_prefix("/app/pages/").unwrap().split('/').next().unwrap().to_owned();
    let path = format!("/app/pages/{id}/settings/delete");
    let refused = client.submit(&owner, &path, &[("name", "docs")]).await;
    assert!(refused.status == 400 && refused.text.contains("Must be the name of the page."), "{}", refused.text);
    let deleted = client.submit(&owner, &path, &[("name", "Docs")]).await;
    assert_eq!((deleted.status, location(&deleted)), (303, "/app?done=page-deleted&count=1"), "{}", deleted.text);
    assert_eq!(client.open(&owner, &path).await.status, 404);
}
