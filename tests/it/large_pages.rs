//! A page with as much text as it may have: its cost on disk, and the cost of readers who take nothing of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use parallax_tests::client::{Answer, Client, plain};
use parallax_tests::eventually::note;
use parallax_tests::installation::{Account, Coordinator};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const CONFIG: &str = "requests_per_minute = 100000\n";
/// An update of the greatest length in bytes.
const MESSAGE: (char, usize) = ('\u{1f525}', 4000);
/// Updates of one incident.
const UPDATES: usize = 20;
/// What a page may have open, in bytes.
const MOST: usize = 2 << 20;
/// Readers that ask and take nothing.
const IDLE: usize = 60;
const LIMIT: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// A coordinator with a page that is full, and the incidents on it, oldest first.
struct Scene {
    coordinator: Coordinator,
    account: Account,
    client: Client,
    incidents: Vec<String>,
}

impl Scene {
    async fn set() -> Self {
        let coordinator = Coordinator::serve("127.0.0.1:0".parse().unwrap(), CONFIG).await;
        let account = coordinator.account("pro");
        let client = Client::patient(&coordinator.ready.base_url, Some(&account.key), LIMIT);
        let mut scene = Self { coordinator, account, client, incidents: Vec::new() };
        let (sign, length) = MESSAGE;
        let message = sign.to_string().repeat(length);
        let mut bytes = 0;
        loop {
            let refused = match scene.incidents.last() {
                Some(last) if bytes % UPDATES != 0 => {
                    let path = scene.path(&format!("/{last}/updates"));
                    let posted =
                        scene.client.post(&path, &json!({"message": message, "notify": false})).await;
                    (posted.status != 201).then_some(posted)
                }
                _ => {
                    let body =
                        json!({"title": format!("Incident {bytes}"), "message": message, "notify": false});
                    let made = scene.client.post(&scene.path(""), &body).await;
                    if made.status == 201 {
                        let id = made.json()["incident"]["id"].as_str().unwrap().to_owned();
                        scene.incidents.push(id);
                        None
                    } else {
                        Some(made)
                    }
                }
            };
            if let Some(refused) = refused {
                let words = refused.refused(400, "bad_request");
                assert!(words.contains("message") && words.contains("2 MiB"), "{words}");
                break;
            }
            bytes += 1;
            assert!(bytes < 200, "a page has a bound");
        }
        let told = bytes * sign.len_utf8() * length;
        assert!(told > MOST * 9 / 10 && told < MOST, "{told}");
        scene
    }

    fn path(&self, rest: &str) -> String {
        format!("/pages/{}/incidents{rest}", self.account.page)
    }

    async fn public(&self, path: &str) -> Answer {
        let path = format!("/p/{}{path}", self.account.slug);
        self.coordinator.api().send(Method::GET, &path, None).await
    }

    /// Connections that asked for a path and take nothing of the answer, all of which have begun.
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

/// Bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
    let sizes = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        if kind.is_dir() { Some(size(&entry.path())) } else { entry.metadata().ok().map(|it| it.len()) }
    });
    sizes.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_page_costs_its_readers_and_its_disk_little() {
    let scene = Scene::set().await;
    let Scene { coordinator, account, client, incidents } = &scene;
    let base = &coordinator.ready.base_url;

    // A write that changes nothing writes nothing, whatever key it carries.
    let http = plain(LIMIT).build().unwrap();
    let write = async |id: &str, key: String, body: Value| {
        let url = format!("{base}/api/v1{}", scene.path(&format!("/{id}")));
        let sent = http.patch(url).bearer_auth(&account.key).header("idempotency-key", key);
        sent.header("content-type", "application/json").body(body.to_string()).send().await.unwrap()
    };
    let before = size(&coordinator.data());
    for n in 0..100 {
        assert_eq!(write(&incidents[0], format!("empty-{n}"), json!({})).await.status(), 200);
    }
    let grown = size(&coordinator.data()).saturating_sub(before);
    note(&format!("disk for a hundred empty writes: {} KiB", grown / 1024));
    assert!(grown < 4 * MIB, "{grown}");

    // One that changes something is answered again: with the thing as it is, since the answer was long.
    let body = json!({"title": "Renamed"});
    let first = write(&incidents[0], "rename".to_owned(), body.clone()).await;
    assert!(first.headers().get("idempotency-replayed").is_none());
    assert_eq!(write(&incidents[0], "another".to_owned(), json!({"title": "Last"})).await.status(), 200);
    let again = write(&incidents[0], "rename".to_owned(), body).await;
    assert_eq!(
        (again.status().as_u16(), again.headers()["idempotency-replayed"].to_str().unwrap()),
        (200, "true")
    );
    assert_eq!(again.headers()["idempotency-answer"], "current");
    assert_eq!(again.json::<Value>().await.unwrap()["incident"]["title"], "Last");

    // The status document has the newest ten updates of each, and says how many there are beside them.
    let document = scene.public("/status.json").await.is(200);
    let shown = document["incidents"].as_array().unwrap();
    assert_eq!(shown.len(), incidents.len());
    let oldest = shown.iter().find(|it| it["id"] == incidents[0].as_str()).unwrap();
    assert_eq!(oldest["updates"].as_array().unwrap().len(), 10);
    assert_eq!(oldest["moreUpdates"]["count"], UPDATES - 10);
    let url = oldest["moreUpdates"]["url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/p/{}/incidents/{}", account.slug, incidents[0])), "{url}");
    let whole = client.get(&scene.path(&format!("/{}", incidents[0]))).await.is(200);
    assert_eq!(whole["incident"]["updates"].as_array().unwrap().len(), UPDATES);
    let vendor = scene.public("/api/v2/summary.json").await.is(200);
    assert_eq!(vendor["incidents"].as_array().unwrap().len(), incidents.len());

    // A list is given in parts that have about a mebibyte each, and no incident twice or not at all.
    let (mut found, mut parts, mut before) = (Vec::new(), 0, String::new());
    loop {
        let answer = client.get(&scene.path(&format!("?limit=200{before}"))).await;
        assert!(answer.text.len() < MOST, "{}", answer.text.len());
        let part = answer.is(200);
        found.extend(
            part["incidents"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()),
        );
        parts += 1;
        let Some(next) = part["nextBefore"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert!(parts > 1, "{parts}");
    assert_eq!(found.len(), incidents.len());
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), incidents.iter().collect());

    // Readers who take nothing have one copy of what everybody sees.
    let before = coordinator.process.resident();
    let idle = scene.idle(&format!("/p/{}/status.json", account.slug), None).await;
    let grown = coordinator.process.resident().saturating_sub(before);
    note(&format!("memory for sixty idle readers: {} KiB", grown / 1024));
    assert!(grown < 32 * MIB, "{grown}");
    drop(idle);

    // Of what is a key's own its account has a share, beyond which it is refused, and nobody else.
    let list = format!("/api/v1{}", scene.path("?limit=200"));
    let idle = scene.idle(&list, Some(&account.key)).await;
    let refused = client.get(&scene.path("?limit=200")).await;
    assert_eq!(refused.header("retry-after"), Some("2"), "{}", refused.text.len());
    refused.refused(503, "overloaded");
    assert_eq!(scene.public("/status.json").await.status, 200);
    let other = coordinator.account("free");
    assert_eq!(other.client.get(&format!("/pages/{}/incidents", other.page)).await.status, 200);
    drop(idle);

    // One that is over makes room, with whatever is said of it.
    let (sign, length) = MESSAGE;
    let end = json!({"status": "resolved", "message": sign.to_string().repeat(length), "notify": false});
    client.post(&scene.path(&format!("/{}/updates", incidents[0])), &end).await.is(201);
    let body = json!({"title": "Next", "notify": false});
    client.post(&scene.path(""), &body).await.is(201);
}

/// Answers every request with that head and body, for as long as it lives.
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
    let coordinator = Coordinator::serve("127.0.0.1:0".parse().unwrap(), OPEN).await;
    let account = coordinator.account("pro");
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
        let made = account.client.post(&path, &made).await.is(201);
        let path = format!("{path}/{}/test", made["destination"]["id"].as_str().unwrap());
        let tested = account.client.post(&path, &json!({})).await;
        assert!(!tested.text.contains("top secret"), "{}", tested.text);
        let tested = tested.is(200);
        let answer = tested["delivery"]["log"][0]["answer"].as_str().unwrap();
        assert!(answer.chars().count() <= 200 && answer.starts_with(shown), "{answer:?}");
        assert_eq!(answer.is_empty(), shown.is_empty(), "{answer:?}");
        assert!(!answer.chars().any(char::is_control), "{answer:?}");
        task.abort();
    }
}
