//! Import and export of subscribers over HTTP: preview, confirmation, roles, and no formula in a file.

use parallax_core::role::Role;
use parallax_core::subscriber::import::MAX_IMPORT_BYTES;
use parallax_core::time::MINUTE;
use serde_json::json;

use super::signed_in_browser::{between, hidden, location};
use super::*;

/// An owner whose confirmation has expired.
async fn unconfirmed_owner(client: &TestClient) -> SignedInBrowser {
    let browser = client.sign_in(Role::Owner).await;
    client.world.clock.set(client.world.service.now() + 11 * MINUTE);
    browser
}

#[tokio::test]
async fn an_import_is_previewed_confirmed_and_listed() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Editor).await;
    client.world.subscribed("known@example.com").await;
    let path = client.screen("/subscribers/import");
    assert!(client.open(&browser, &client.screen("/subscribers")).await.text.contains(&format!("href=\"{path}\"")));
    let form = client.open(&browser, &path).await;
    assert!(form.status == 200 && form.text.contains("multipart/form-data"), "{}", form.text);
    let nothing = "Choose a file, or enter at least one address.";
    for (text, why) in [("", nothing), (" \r\n", nothing), ("email", "Must have at least one address.")] {
        let refused = client.submit(&browser, &path, &[("csv", text)]).await;
        assert!(refused.status == 400 && refused.text.contains(why), "{}", refused.text);
    }
    let text = "email\r\nann@example.com\r\n<b>x</b>\r\nknown@example.com\r\nbob@example.com\r\n";
    let preview = client.submit(&browser, &path, &[("csv", text), ("idempotency_key", "0a")]).await;
    assert_eq!(preview.status, 200);
    for expected in ["Import 4 lines", "2 new", "1 already there", "1 refused", "line 3", "Ask 2 people"] {
        assert!(preview.text.contains(expected), "{expected}: {}", preview.text);
    }
    assert!(!preview.text.contains("<b>x</b>"), "{}", preview.text);
    assert_eq!(client.list("/subscribers", "subscribers").await.len(), 1, "nothing is stored before");
    let key = hidden(&preview, "idempotency_key");
    assert_ne!(key, "0a", "the button is another request");
    let confirmed = [("csv", text), ("do", "import"), ("idempotency_key", key.as_str())];
    for _ in 0..2 {
        let done = client.submit(&browser, &path, &confirmed).await;
        assert_eq!(done.status, 303, "{}", done.text);
        let list = client.open(&browser, location(&done)).await.text;
        assert!(list.contains("Imported. 2 addresses are asked, some each hour."), "{list}");
        assert!(list.contains("Imported, to be asked") && list.contains("To be asked 2"), "{list}");
    }
    let none = client.submit(&browser, &path, &[("csv", text)]).await.text;
    assert!(none.contains("0 new") && none.contains("Choose another file") && !none.contains("Ask 0"), "{none}");
}

#[tokio::test]
async fn a_file_counts_before_the_text() {
    let client = TestClient::new().await;
    let browser = client.sign_in(Role::Owner).await;
    let part = |name: &str, file: &str, value: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
    };
    let post = async |fields: &[String]| {
        let token = part("form_token", "", &browser.form_token);
        let body = [std::slice::from_ref(&token), fields, &["--x--\r\n".to_owned()]].concat();
        let headers = [
            ("cookie", browser.cookie.as_str()),
            ("content-type", "multipart/form-data; boundary=x"),
            ("sec-fetch-site", "same-origin"),
        ];
        client.send("POST", &client.screen("/subscribers/import"), &headers, &body.concat()).await
    };
    let send = async |file: &str, name: &str| {
        post(&[part("csv", "", "typed@example.com"), part("file", &format!("; filename=\"{name}\""), file)]).await
    };
    let preview = send("ann@example.com\r\nbob@example.com\r\n", "list.csv").await;
    assert!(preview.text.contains("2 new") && preview.text.contains("ann@example.com"), "{}", preview.text);
    assert!(send("", "").await.text.contains("1 new"), "the text, without a file");
    let empty = send("", "list.csv").await;
    assert!(empty.status == 400 && empty.text.contains("Is empty: choose another file."), "{}", empty.text);
    assert!(empty.text.contains("typed@example.com"), "what was typed stays: {}", empty.text);
    let name = client.submit(&browser, &client.screen("/subscribers/import"), &[("file", "list.csv")]).await;
    assert!(name.status == 400 && name.text.contains("Has no content: choose the file again."), "{}", name.text);
    let long: String =
        (0..5_001).map(|n| format!("reader-with-a-really-rather-long-address-{n}@mail.example.com\r\n")).collect();
    let refused = send(&long, "list.csv").await;
    assert!(refused.status == 400 && refused.text.contains("Must have at most 5000 lines."), "{}", refused.status);
    let lines: String =
        (0..5_000).map(|n| format!("reader-with-a-really-rather-long-address-{n}@mail.example.com\r\n")).collect();
    assert!(send(&lines, "list.csv").await.text.contains("5000 new"), "more than other bodies may have");
    // The largest text is confirmed as the preview's form sends it: URL-encoded, this one would be too long.
    let header = format!("email,name\r\nann@example.com,{}", "é".repeat(MAX_IMPORT_BYTES / 2 - 20));
    let preview = send(&header, "list.csv").await;
    assert!(preview.text.contains("Ask 1 person") && preview.text.contains("enctype=\"multipart/form-data\""));
    let confirmed = post(&[part("csv", "", &header), part("do", "", "import")]).await;
    assert!(confirmed.status == 303 && location(&confirmed).contains("subscribers-imported"), "{}", confirmed.text);
}

#[tokio::test]
async fn an_export_needs_an_owner_who_confirmed_lately() {
    let client = TestClient::new().await;
    client.world.subscribed("=1+1@example.com").await;
    client.world.subscribed("ann@example.com").await;
    let path = client.screen("/subscribers.csv");
    let owner = client.sign_in(Role::Owner).await;
    assert!(client.open(&owner, &client.screen("/subscribers")).await.text.contains(&path));
    let file = client.open(&owner, &path).await;
    assert_eq!((file.status, file.headers["content-type"].to_str().unwrap()), (200, "text/csv; charset=utf-8"));
    assert!(file.headers["content-disposition"].to_str().unwrap().contains("subscribers-shop.csv"));
    let lines: Vec<&str> = file.text.split("\r\n").collect();
    assert_eq!(lines[0], "address,type,state,since,monitors");
    assert!(lines[1..3].iter().any(|line| line.starts_with("'=1+1@example.com,email,confirmed,")), "{lines:?}");
    assert!(lines[1..3].iter().any(|line| line.starts_with("ann@example.com,email,confirmed,")), "{lines:?}");
    let unconfirmed = unconfirmed_owner(&client).await;
    let asked = client.open(&unconfirmed, &path).await;
    assert!(asked.status == 303 && location(&asked).starts_with("/confirm?next="), "{}", asked.text);
    for role in [Role::Editor, Role::Viewer] {
        let browser = client.sign_in(role).await;
        assert_eq!(client.open(&browser, &path).await.status, 403, "{role:?}");
        assert!(!client.open(&browser, &client.screen("/subscribers")).await.text.contains("Export CSV"), "{role:?}");
    }
    let viewer = client.sign_in(Role::Viewer).await;
    let import = client.screen("/subscribers/import");
    assert_eq!(client.open(&viewer, &import).await.status, 403);
    for act in ["preview", "import"] {
        let refused = client.submit(&viewer, &import, &[("csv", "a@example.com"), ("do", act)]).await;
        assert_eq!(refused.status, 403, "{act}");
    }
    let foreign = client.world.foreign.id;
    for rest in ["/subscribers.csv", "/subscribers/import"] {
        assert_eq!(client.open(&owner, &format!("/app/pages/{foreign}{rest}")).await.status, 404, "{rest}");
    }
    let foreign_import = format!("/app/pages/{foreign}/subscribers/import");
    assert_eq!(client.submit(&owner, &foreign_import, &[("csv", "a@example.com")]).await.status, 404);
}

#[tokio::test]
async fn keys_import_and_export_as_they_list() {
    let client = TestClient::new().await;
    let (import, export) = (client.shop_path("/subscribers/import"), client.shop_path("/subscribers.csv"));
    let monitor = client.create_monitor(json!({ "name": "Cart, EU", "url": "a.example" })).await;
    let text = format!("email,monitors\nann@example.com,{}\nnobody\n", monitor["id"].as_str().unwrap());
    let body = |dry_run: bool| json!({ "csv": text, "dryRun": dry_run });
    let expected = |dry_run: bool| {
        json!({
            "dryRun": dry_run, "added": 1, "known": 0, "repeated": 0, "optedOut": 0, "refused": 1,
            "refusedLines": [{ "line": 3, "rule": "must be an email address" }],
        })
    };
    for dry_run in [true, true, false] {
        let reply = client.call(&client.write_key, "POST", &import, body(dry_run)).await;
        assert_eq!((reply.status, &reply.body["import"]), (200, &expected(dry_run)));
    }
    let again = client.call(&client.write_key, "POST", &import, body(false)).await;
    assert_eq!((&again.body["import"]["added"], &again.body["import"]["known"]), (&json!(0), &json!(1)));
    let listed = client.list("/subscribers", "subscribers").await;
    assert!(listed[0]["queuedAt"].is_string() && listed[0]["confirmedAt"].is_null(), "{listed:?}");
    for (key, status) in [(&client.read_key, 403), (&client.page_key, 404), (&client.foreign_key, 404)] {
        assert_eq!(client.call(key, "POST", &import, body(false)).await.status, status);
    }
    let wrong = client.call(&client.write_key, "POST", &import, json!({ "csv": "" })).await;
    assert_eq!((wrong.status, &wrong.body["error"]["fields"][0]["field"]), (400, &json!("csv")), "{}", wrong.text);
    assert_eq!(client.call(&client.write_key, "POST", &import, json!({})).await.status, 400);

    let own = client.call(&client.write_key, "GET", &export, Value::Null).await;
    let line = between(&own.text, "monitors\r\n", "\r\n");
    assert!(line.starts_with("ann@example.com,email,queued,") && line.ends_with(",\"Cart, EU\""), "{line}");
    let masked = client.call(&client.read_key, "GET", &export, Value::Null).await;
    assert!(masked.text.contains("a***@example.com") && !masked.text.contains("ann@example.com"), "{}", masked.text);
    for (key, status) in [(&client.page_key, 404), (&client.foreign_key, 404), (&client.revoked_key, 401)] {
        assert_eq!(client.call(key, "GET", &export, Value::Null).await.status, status);
    }
}

#[tokio::test]
async fn an_export_that_is_imported_again_changes_and_asks_nobody() {
    let client = TestClient::new().await;
    let (import, export) = (client.shop_path("/subscribers/import"), client.shop_path("/subscribers.csv"));
    let cart = client.create_monitor(json!({ "name": "=Cart; EU", "url": "a.example" })).await;
    let gone = client.create_monitor(json!({ "name": "Gone", "url": "b.example" })).await;
    for address in ["ann@example.com", "=1+1@example.com", "'+2@example.com"] {
        client.world.subscribed(address).await;
    }
    let [cart, gone] = [cart, gone].map(|monitor| monitor["id"].as_str().unwrap().to_owned());
    let text = format!("email,monitors\nbob@example.com,{cart}\nzoe@example.com,{gone}");
    client.call(&client.write_key, "POST", &import, json!({ "csv": text })).await;
    let deleted = client.shop_path(&format!("/monitors/{gone}"));
    assert_eq!(client.call(&client.write_key, "DELETE", &deleted, Value::Null).await.status, 204);
    let before = client.list("/subscribers", "subscribers").await;
    let deliveries = client.list("/deliveries", "deliveries").await.len();
    let own = client.call(&client.write_key, "GET", &export, Value::Null).await.text;
    assert!(own.contains(&cart) && own.contains(",(deleted)\r\n"), "{own}");
    let repeated = client.call(&client.write_key, "POST", &import, json!({ "csv": own })).await.body["import"].clone();
    assert_eq!([&repeated["added"], &repeated["known"], &repeated["refused"]], [0, 5, 0], "{repeated}");
    assert_eq!(client.list("/subscribers", "subscribers").await, before);
    assert_eq!(client.list("/deliveries", "deliveries").await.len(), deliveries);
    let masked = client.call(&client.read_key, "GET", &export, Value::Null).await.text;
    let refused =
        client.call(&client.write_key, "POST", &import, json!({ "csv": masked })).await.body["import"].clone();
    assert_eq!((&refused["added"], &refused["refused"]), (&json!(0), &json!(5)), "no mask is an address: {refused}");
}
