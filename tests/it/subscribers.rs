//! Subscribers with a real service and a real mail server: confirmation, updates, unsubscribing, and updates across
//! kill -9.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};
use parallax_tests::api_client::{ApiClient, http_client_builder};
use parallax_tests::eventually::{eventually, print_note, wall_clock};
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const SOON: Duration = Duration::from_secs(60);
/// Longest delivery of one update to all subscribers.
const LONG: Duration = Duration::from_secs(300);
/// Concurrent mails of the service.
const SLOTS: usize = 8;

/// A message that was accepted.
#[derive(Debug, Clone)]
struct AcceptedMail {
    to: String,
    /// Headers, unfolded, and text, with soft line breaks removed.
    text: String,
}

impl AcceptedMail {
    fn header(&self, name: &str) -> String {
        let mut lines = self.text.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or_else(String::new, |(_, it)| it.to_owned())
    }
}

/// A mail server (RFC 5321) that accepts everything.
struct Mailbox {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<AcceptedMail>>>,
    count: watch::Receiver<usize>,
}

impl Mailbox {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (told, count) = watch::channel(0);
        let mailbox = Self { address: listener.local_addr().unwrap(), taken: Arc::default(), count };
        let (taken, told) = (Arc::clone(&mailbox.taken), Arc::new(told));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (taken, told) = (Arc::clone(&taken), Arc::clone(&told));
                // The service may be killed during a connection.
                tokio::spawn(async move { talk(stream, &taken, &told).await.ok() });
            }
        });
        mailbox
    }

    fn config(&self) -> String {
        format!(
            "[mail]\ntransport = \"smtp\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"status@example.com\"\n",
            self.address.port()
        )
    }

    fn taken(&self) -> Vec<AcceptedMail> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn has(&self, count: usize, limit: Duration) {
        let mut seen = self.count.clone();
        let waiting = seen.wait_for(|now| *now >= count);
        let came = tokio::time::timeout(limit, waiting).await.is_ok();
        assert!(came, "{} of {count} mails came within {limit:?}", *self.count.borrow());
    }
}

async fn talk(stream: TcpStream, taken: &Mutex<Vec<AcceptedMail>>, told: &watch::Sender<usize>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 mail.example ESMTP\r\n").await?;
    let mut to = String::new();
    while let Some(line) = lines.next_line().await? {
        let verb = line.to_ascii_uppercase();
        let answer = if verb.starts_with("DATA") {
            write.write_all(b"354 go on\r\n").await?;
            let mut text = String::new();
            loop {
                // A connection that ends before the final dot has sent no message.
                let Some(line) = lines.next_line().await? else { return Ok(()) };
                if line == "." {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            let text = text.replace("=\n", "").replace("=3D", "=").replace("\n ", " ");
            let mut all = taken.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(AcceptedMail { to: to.clone(), text });
            told.send_replace(all.len());
            "250 taken\r\n"
        } else if let Some(address) = verb.starts_with("RCPT").then(|| line.split(['<', '>']).nth(1)).flatten() {
            to = address.to_owned();
            "250 ok\r\n"
        } else if verb.starts_with("QUIT") {
            write.write_all(b"221 bye\r\n").await?;
            return Ok(());
        } else {
            "250 ok\r\n"
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

/// A browser without scripts.
pub(crate) struct ScriptlessBrowser(reqwest::Client);

impl ScriptlessBrowser {
    pub(crate) fn new() -> Self {
        Self(http_client_builder(SOON).build().unwrap())
    }

    pub(crate) async fn get(&self, url: &str) -> (u16, String) {
        let answer = self.0.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(crate) async fn post(&self, url: &str, body: &str) -> u16 {
        let request = self.0.post(url).header("content-type", "application/x-www-form-urlencoded");
        request.body(body.to_owned()).send().await.unwrap().status().as_u16()
    }
}

/// Returns the first URL of that part of the page in a message.
fn link(mail: &AcceptedMail, part: &str) -> String {
    let at = mail.text.find(&format!("/{part}?t=")).unwrap_or_else(|| panic!("{part}: {}", mail.text));
    let start = mail.text[..at].rfind("http").unwrap();
    mail.text[start..].split([' ', '\n', '>', '"', '<']).next().unwrap().to_owned()
}

async fn opens_an_incident(account: &TestAccount, title: &str) -> String {
    let body = json!({ "title": title, "message": "We are looking." });
    let made = account.client.post(&format!("/pages/{}/incidents", account.page), &body).await.expect_status(201);
    made["incident"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_visitor_subscribes_is_told_and_leaves_with_one_click() {
    let mailbox = Mailbox::open().await;
    let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &mailbox.config()).await;
    let account = coordinator.create_account("pro");
    let page = format!("{}/p/{}", coordinator.ready.base_url, account.slug);
    let visitor = ScriptlessBrowser::new();
    assert_eq!(visitor.post(&format!("{page}/subscribe"), "email=ann%40example.com").await, 200);
    mailbox.has(1, SOON).await;
    let asked = mailbox.taken().remove(0);
    let confirm = link(&asked, "confirm");
    let (status, form) = visitor.get(&confirm).await;
    assert!(status == 200 && form.contains("ann@example.com"), "{form}");
    opens_an_incident(&account, "Before").await;
    let (at, token) = confirm.split_once('?').unwrap();
    assert_eq!(visitor.post(at, token).await, 200);

    let incident = opens_an_incident(&account, "Broken cable").await;
    mailbox.has(2, SOON).await;
    let news = mailbox.taken().remove(1);
    assert_eq!(news.to, "ann@example.com");
    assert!(news.header("Subject").contains("Broken cable"), "earlier updates are not sent: {}", news.text);
    assert_eq!(news.header("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let leave = link(&news, "unsubscribe");
    assert!(news.header("List-Unsubscribe").contains(&leave), "{}", news.text);
    assert_eq!(visitor.get(&leave).await.0, 200);
    let update = json!({ "status": "monitoring", "message": "Better" });
    let updates = format!("/pages/{}/incidents/{incident}/updates", account.page);
    account.client.post(&updates, &update).await.expect_status(201);
    mailbox.has(3, SOON).await;

    assert_eq!(visitor.post(&leave, "List-Unsubscribe=One-Click").await, 200);
    // A later subscriber receives the next update; by then an update to the one who unsubscribed would have been sent.
    assert_eq!(visitor.post(&format!("{page}/subscribe"), "email=bob%40example.com").await, 200);
    mailbox.has(4, SOON).await;
    let confirm = link(&mailbox.taken()[3], "confirm");
    let (at, token) = confirm.split_once('?').unwrap();
    assert_eq!(visitor.post(at, token).await, 200);
    account.client.post(&updates, &json!({ "status": "resolved", "message": "Done" })).await.expect_status(201);
    mailbox.has(5, SOON).await;
    assert_eq!(mailbox.taken()[4].to, "bob@example.com");
}

/// Text with which a customer could deceive strangers.
const LURE: &str = "Your account is locked: call 0800 123456 or see evil.example";

#[tokio::test]
async fn a_burst_of_150_wishes_mails_twenty_strangers_and_none_reads_the_customers_words() {
    let mailbox = Mailbox::open().await;
    let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &mailbox.config()).await;
    let account = coordinator.create_account("pro");
    let page = format!("/pages/{}", account.page);
    account.client.patch(&page, &json!({ "name": LURE })).await.expect_status(200);
    let keys: Vec<String> = (0..3).map(|_| coordinator.create_key(&account.account, "write")).collect();
    // As subscribers and as alert mailboxes, with several keys, all at once.
    let wishes = (0..150).map(|n| {
        let client = account.client.with_key(Some(&keys[n % 3]));
        let (path, body) = if n % 3 == 0 {
            let to = format!("stranger{n}@example.com");
            (format!("{page}/destinations"), json!({ "type": "email", "name": LURE, "to": to }))
        } else {
            (format!("{page}/subscribers"), json!({ "email": format!("stranger{n}@example.com") }))
        };
        async move { client.post(&path, &body).await }
    });
    let answers = futures_util::future::join_all(wishes).await;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    for answer in answers.into_iter().filter(|answer| answer.status != 201) {
        let wait: u32 = answer.header("retry-after").unwrap_or_else(|| panic!("{answer:?}")).parse().unwrap();
        assert!((1..=3600).contains(&wait), "{wait}");
        let words = answer.expect_error(429, "rate_limited");
        assert!(
            words.contains("confirmation requests an hour") || words.contains("confirmation requests a minute"),
            "{words}"
        );
    }
    assert_eq!(taken, 20, "an hour of a new account");
    mailbox.has(taken, SOON).await;
    // The owner's own mail follows everything queued before it.
    let hook = format!("{page}/destinations");
    let own = account.client.get(&hook).await.expect_status(200)["destinations"][0]["id"].as_str().unwrap().to_owned();
    account.client.post(&format!("{hook}/{own}/test"), &json!({})).await.expect_status(200);
    mailbox.has(taken + 1, SOON).await;
    let mails = mailbox.taken();
    let strangers: Vec<&AcceptedMail> = mails.iter().filter(|mail| mail.to.starts_with("stranger")).collect();
    assert_eq!((strangers.len(), mails.len()), (taken, taken + 1));
    for mail in strangers {
        for word in ["locked", "0800", "evil"] {
            assert!(!mail.text.contains(word), "{word}: {}", mail.text);
        }
        assert!(mail.header("Subject").contains(&format!("/p/{}", account.slug)), "{}", mail.text);
    }
}

#[tokio::test]
async fn a_mailboxs_reader_stops_alerts_with_one_click_and_the_owner_is_notified() {
    let mailbox = Mailbox::open().await;
    let coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &mailbox.config()).await;
    let (account, visitor) = (coordinator.create_account("pro"), ScriptlessBrowser::new());
    let all = format!("/pages/{}/destinations", account.page);
    let body = json!({ "type": "email", "name": "Ops", "to": "ann@example.com" });
    let made = account.client.post(&all, &body).await.expect_status(201);
    let test = format!("{all}/{}/test", made["destination"]["id"].as_str().unwrap());
    mailbox.has(1, SOON).await;
    let confirm = link(&mailbox.taken()[0], "confirm-alerts");
    let (at, token) = confirm.split_once('?').unwrap();
    assert_eq!(visitor.post(at, token).await, 200);
    account.client.post(&test, &json!({})).await.expect_status(200);
    mailbox.has(2, SOON).await;
    let alert = mailbox.taken().remove(1);
    let stop = link(&alert, "stop-alerts");
    assert!(alert.header("List-Unsubscribe").contains(&stop), "{}", alert.text);
    assert_eq!(alert.header("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let (status, form) = visitor.get(&stop).await;
    assert!(status == 200 && form.contains("ann@example.com"), "{form}");
    account.client.post(&test, &json!({})).await.expect_status(200);
    assert_eq!(visitor.post(&stop, "List-Unsubscribe=One-Click").await, 200);
    mailbox.has(4, SOON).await;
    let told = mailbox.taken().remove(3);
    assert!(told.to.starts_with("owner") && told.text.contains("The recipient stopped the alerts"), "{}", told.text);
    account.client.post(&test, &json!({})).await.expect_error(400, "bad_request");
}

fn known(n: u128, page: PageId) -> Subscriber {
    let now = wall_clock();
    let mut random = [0; 10];
    random[6..].copy_from_slice(&u32::try_from(n).unwrap().to_be_bytes());
    Subscriber {
        id: SubscriberId::new(now, random),
        page,
        contact: Contact::Email(format!("{n}@example.com")),
        fingerprint: n.to_be_bytes(),
        monitors: None,
        confirmed_at: Some(now),
        token: [7; 16],
        confirmation_sent_at: now,
        health: Default::default(),
        created_at: now,
        by_owner: false,
        queued_at: None,
    }
}

/// Writes subscribers to the store of a stopped service.
async fn seed(coordinator: &CoordinatorProcess, subscribers: &[Subscriber]) {
    let folder = coordinator.data().join("store");
    let store =
        tokio::task::spawn_blocking(move || Store::on_disk(&folder, DiskOptions::default())).await.unwrap().unwrap();
    let mut batch = Batch::new();
    for subscriber in subscribers {
        batch.write(subscriber.clone());
    }
    store.commit(batch).await.unwrap();
    store.close().await;
}

/// Sends one update to `count` subscribers, while the service is killed `kills` times.
async fn kills(count: u128, kills: usize) {
    let mailbox = Mailbox::open().await;
    let mut coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), &mailbox.config()).await;
    let account = coordinator.create_account("pro");
    coordinator.process.terminate();
    coordinator.process.wait_for_exit(SOON).await;
    let page: PageId = account.page.parse().unwrap();
    let mut everybody: Vec<Subscriber> = (1..=count).map(|n| known(n, page)).collect();
    everybody.sort_by_key(|it| it.id);
    seed(&coordinator, &everybody).await;
    coordinator.restart().await;
    let client = ApiClient::new(&coordinator.ready.base_url, Some(&account.key));
    let account = TestAccount { client, ..account };
    opens_an_incident(&account, "Broken cable").await;

    let (visitor, mut left) = (ScriptlessBrowser::new(), BTreeSet::new());
    let step = usize::try_from(count).unwrap() / (kills + 1);
    for kill in 1..=kills {
        // At varying positions: a few messages after a moving threshold.
        mailbox.has(kill * step + kill * 7 % 13, LONG).await;
        if let Some(last) = everybody.pop_if(|_| kill % 2 == 1 && kill < kills) {
            let leave = last.unsubscribe_url(&format!("{}/p/{}", coordinator.ready.base_url, account.slug));
            assert_eq!(visitor.post(&leave, "List-Unsubscribe=One-Click").await, 200);
            let Contact::Email(address) = last.contact else { panic!("all are mailboxes") };
            left.insert(address);
        }
        coordinator.process.kill();
        coordinator.restart().await;
    }
    let mut got: BTreeMap<String, Vec<String>> = BTreeMap::new();
    eventually("everybody has the update", LONG, async || {
        got.clear();
        for mail in mailbox.taken() {
            got.entry(mail.to.clone()).or_default().push(mail.header("Message-ID"));
        }
        (got.len() >= everybody.len()).then_some(())
    })
    .await;
    assert!(left.iter().all(|address| !got.contains_key(address)), "no one who had unsubscribed: {left:?}");
    let again: usize = got.values().map(|ids| ids.len() - 1).sum();
    assert!(again <= kills * SLOTS, "{again} mails were repeated");
    assert!(got.values().all(|ids| ids.iter().collect::<BTreeSet<_>>().len() == 1), "each has one id");
    print_note(&format!(
        "{} received it, {} unsubscribed, {again} mails were repeated after {kills} kills",
        got.len(),
        left.len()
    ));
}

#[tokio::test]
async fn three_hundred_are_told_over_five_kills() {
    kills(300, 5).await;
}

#[tokio::test]
#[ignore = "takes minutes: `cargo test -p parallax-tests --test it five_thousand -- --ignored`"]
async fn five_thousand_are_told_over_thirty_kills() {
    kills(5_000, 30).await;
}
