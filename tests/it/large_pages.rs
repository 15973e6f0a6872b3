//! A page with the maximum amount of text: its cost on disk, and the cost of clients that do not read it.

use std::path::Path;
use std::time::Duration;

use parallax_tests::api_client::{ApiClient, ApiResponse, http_client_builder};
use parallax_tests::eventually::print_note;
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const CONFIG: &str = "requests_per_minute = 100000\n";
/// Incidents, and updates of each: close to the limit of open ones per page.
const INCIDENTS: usize = 6;
const UPDATES: usize = 20;
/// Clients that send a request and do not read.
const IDLE: usize = 60;
const LIMIT: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// A coordinator with a full page, and its incidents, oldest first.
struct Scene {
    coordinator: CoordinatorProcess,
    account: TestAccount,
    client: ApiClient,
    incidents: Vec<String>,
}

impl Scene {
    async fn set() -> Self {
        let coordinator = CoordinatorProcess::serve("127.0.0.1:0".parse().unwrap(), CONFIG).await;
        let account = coordinator.create_account("pro");
        let client = ApiClient::with_timeout(&coordinator.ready.base_url, Some(&account.key), LIMIT);
        let mut scene = Self { coordinator, account, client, incidents: Vec::new() };
        for n in 0..INCIDENTS {
            let body = json!({"title": format!("Incident {n}"), "message": message(), "notify": false});
            let made = scene.client.post(&scene.path(""), &body).await.expect_status(201);
            let id = made["incident"]["id"].as_str().unwrap().to_owned();
            for _ in 1..UPDATES {
                scene.client.post(&scene.path(&format!("/{id}/updates")), &update()).await.expect_status(201);
            }
            scene.incidents.push(id);
        }
        scene
    }

    fn path(&self, rest: &str) -> String {
        format!("/pages/{}/incidents{rest}", self.account.page)
    }

    async fn public(&self, path: &str) -> ApiResponse {
        let path = format!("/p/{}{path}", self.account.slug);
        self.coordinator.api().send(Method::GET, &path, None).await
    }

    /// Opens connections that request a path and do not read; all responses have begun.
    async fn idle(&self, path: &str, key: Option<&str>) -> Vec<TcpStream> {
        let host = self.coordinator.ready.base_url.trim_start_matches("http://").to_owned();
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let mut idle = Vec::new();
        for _ in 0..IDLE {
            let mut stream = TcpStream::connect(&host).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{key}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            idle.push(stream);
        }
        for stream in &idle {
            let mut first = [0; 1];
            assert_eq!(timeout(LIMIT, stream.peek(&mut first)).await.unwrap().unwrap(), 1);
        }
        idle
    }
}

/// Returns a text of four thousand characters of four bytes each.
fn message() -> String {
    "\u{1f525}".repeat(4000)
}

fn update() -> Value {
    json!({"message": message(), "notify": false})
}

/// Returns the size of all files below a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
    let sizes = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        if kind.is_dir() { Some(size(&entry.path())) } else { entry.metadata().ok().map(|it| it.len()) }
    });
    sizes.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_changes_nothing_costs_no_disk_and_a_long_answer_is_drawn_again() {
    let scene = Scene::set().await;
    let Scene { coordinator, account, incidents, .. } = &scene;
    let base = &coordinator.ready.base_url;
    let http = http_client_builder(LIMIT).build().unwrap();
    let write = async |key: String, body: Value| {
        let url = format!("{base}/api/v1{}", scene.path(&format!("/{}", incidents[0])));
        let sent = http.patch(url).bearer_auth(&account.key).header("idempotency-key", key);
        sent.header("content-type", "application/json").body(body.to_string()).send().await.unwrap()
    };
    let before = size(&coordinator.data());
    for n in 0..100 {
        assert_eq!(write(format!("empty-{n}"), json!({})).await.status(), 200);
    }
    let grown = size(&coordinator.data()).saturating_sub(before);
    print_note(&format!("disk for a hundred empty writes: {} KiB", grown / 1024));
    assert!(grown < 4 * MIB, "{grown}");
    // A change is replayed with the record's current state, since the response was too long to store.
    let body = json!({"title": "Renamed"});
    let first = write("rename".to_owned(), body.clone()).await;
    assert!(first.headers().get("idempotency-replayed").is_none());
    assert_eq!(write("another".to_owned(), json!({"title": "Last"})).await.status(), 200);
    let again = write("rename".to_owned(), body).await;
    let replayed = again.headers()["idempotency-replayed"].to_str().unwrap();
    assert_eq!((again.status().as_u16(), replayed), (200, "true"));
    assert_eq!(again.headers()["idempotency-answer"], "current");
    let again: Value = serde_json::from_str(&again.text().await.unwrap()).unwrap();
    assert_eq!(again["incident"]["title"], "Last");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_lists_are_bounded_and_all_of_it_can_be_read() {
    let scene = Scene::set().await;
    let Scene { account, client, incidents, .. } = &scene;
    // A list is split into parts of about a mebibyte; each incident appears exactly once.
    let (mut found, mut before) = (Vec::new(), String::new());
    loop {
        let answer = client.get(&scene.path(&format!("?limit=200{before}"))).await;
        assert!(answer.text.len() < 5 << 18, "{}", answer.text.len());
        let part = answer.expect_status(200);
        let listed = part["incidents"].as_array().unwrap().iter();
        found.extend(listed.map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(next) = part["nextBefore"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(found.iter().rev().collect::<Vec<_>>(), incidents.iter().collect::<Vec<_>>());
    // The status document has the newest ten updates of each incident, and the number of omitted ones.
    let document = scene.public("/status.json").await.expect_status(200);
    let shown = document["incidents"].as_array().unwrap();
    assert_eq!(shown.len(), incidents.len());
    for (incident, id) in shown.iter().rev().zip(incidents) {
        assert_eq!((&incident["id"], incident["updates"].as_array().unwrap().len()), (&json!(id), 10));
        assert_eq!(incident["moreUpdates"]["count"], UPDATES - 10);
        let url = incident["moreUpdates"]["url"].as_str().unwrap();
        assert!(url.ends_with(&format!("/p/{}/incidents/{id}", account.slug)), "{url}");
        let whole = client.get(&scene.path(&format!("/{id}"))).await.expect_status(200);
        assert_eq!(whole["incident"]["updates"].as_array().unwrap().len(), UPDATES);
    }
    let vendor = scene.public("/api/v2/summary.json").await.expect_status(200);
    assert_eq!(vendor["incidents"].as_array().unwrap().len(), incidents.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_who_take_nothing_hold_little_memory_and_take_nothing_from_others() {
    let scene = Scene::set().await;
    let Scene { coordinator, account, client, .. } = &scene;
    // Public content is shared: one copy for all connections.
    let path = format!("/p/{}/status.json", account.slug);
    assert_eq!(scene.public("/status.json").await.status, 200);
    let before = coordinator.process.resident_bytes();
    let idle = scene.idle(&path, None).await;
    let grown = coordinator.process.resident_bytes().saturating_sub(before);
    print_note(&format!("memory for sixty idle readers: {} KiB", grown / 1024));
    assert!(grown < 32 * MIB, "{grown}");
    drop(idle);
    // Private content counts against its account's share; beyond it, only that account's requests are refused.
    let list = format!("/api/v1{}", scene.path("?limit=200"));
    let idle = scene.idle(&list, Some(&account.key)).await;
    let refused = client.get(&scene.path("?limit=200")).await;
    assert_eq!(refused.header("retry-after"), Some("2"), "{}", refused.text.len());
    refused.expect_error(503, "overloaded");
    assert_eq!(scene.public("/status.json").await.status, 200);
    let other = coordinator.create_account("free");
    assert_eq!(other.client.get(&format!("/pages/{}/incidents", other.page)).await.status, 200);
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_so_much_text_open_and_what_ends_makes_room() {
    let scene = Scene::set().await;
    let Scene { client, incidents, .. } = &scene;
    let updates = scene.path(&format!("/{}/updates", incidents[0]));
    let mut more = 0;
    let refused = loop {
        let posted = client.post(&updates, &update()).await;
        if posted.status != 201 {
            break posted;
        }
        more += 1;
        assert!(more < 20, "a page has a bound");
    };
    let words = refused.expect_error(400, "bad_request");
    assert!(words.contains("message") && words.contains("2 MiB"), "{words}");
    let end = json!({"status": "resolved", "message": message(), "notify": false});
    client.post(&updates, &end).await.expect_status(201);
    client.post(&scene.path(&format!("/{}/updates", incidents[1])), &update()).await.expect_status(201);
}

/// Starts a server that answers every request with that head and body.
async fn answering(head: &'static str, body: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 << 10];
            let mut read = 0;
            while !request[..read].windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut request[read..]).await {
                    Ok(more) if more > 0 => read += more,
                    _ => break,
                }
            }
            let head = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_log_is_no_reading_device() {
    const OPEN: &str = "requests_per_minute = 100000\n\n[deliver]\nallow_private = true\n";
    let coordinator = CoordinatorProcess::serve("127.0.0.1:0".parse().unwrap(), OPEN).await;
    let account = coordinator.create_account("pro");
    let secret = format!("{}top secret", "internal\r\n\u{1b}[2J".repeat(60));
    for (head, body, shown) in [
        ("Content-Type: text/plain\r\n", secret.clone().into_bytes(), "internal"),
        ("", secret.clone().into_bytes(), "internal"),
        ("Content-Type: application/octet-stream\r\n", secret.clone().into_bytes(), ""),
        ("Content-Type: text/plain\r\n", vec![0xff, 0x00, b'x'], ""),
    ] {
        let (url, task) = answering(head, body).await;
        let made = json!({"type": "webhook", "name": "Internal", "url": url});
        let path = format!("/pages/{}/destinations", account.page);
        let made = account.client.post(&path, &made).await.expect_status(201);
        let path = format!("{path}/{}/test", made["destination"]["id"].as_str().unwrap());
        let tested = account.client.post(&path, &json!({})).await;
        assert!(!tested.text.contains("top secret"), "{}", tested.text);
        let tested = tested.expect_status(200);
        let answer = tested["delivery"]["log"][0]["answer"].as_str().unwrap();
        assert!(answer.chars().count() <= 200 && answer.starts_with(shown), "{answer:?}");
        assert_eq!(answer.is_empty(), shown.is_empty(), "{answer:?}");
        assert!(!answer.chars().any(char::is_control), "{answer:?}");
        task.abort();
    }
}
