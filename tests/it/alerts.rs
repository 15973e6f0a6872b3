//! Alerts end to end: a webhook made by the API hears of each outage, in order, once for each id, over kill -9.

use std::collections::BTreeMap;
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, note};
use parallax_tests::installation::Account;
use parallax_tests::pair;
use parallax_tests::receivers::{Manner, Receiver};
use parallax_tests::targets::{Mode, Target};
use serde_json::{Value, json};

/// Rounds every ten seconds, and receivers on loopback.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n\n[deliver]\nallow_private = true\n";
/// Longest time until a change is seen, with a start of the coordinator in it.
const SEEN: Duration = Duration::from_secs(90);

async fn becomes(account: &Account, status: &str) {
    eventually_every(API_PERIOD, &format!("it is {status}"), SEEN, async || {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == status).then_some(())
    })
    .await;
}

/// The receiver's events by first arrival, each with its id and how often it came.
fn heard(receiver: &Receiver) -> Vec<(String, String, usize)> {
    let mut heard: Vec<(String, String, usize)> = Vec::new();
    for taken in receiver.taken() {
        let body: Value = serde_json::from_slice(&taken.body).unwrap();
        let event = body["event"].as_str().unwrap().to_owned();
        assert_eq!(taken.header("x-service-event"), event);
        let id = taken.header("webhook-id").to_owned();
        match heard.iter_mut().find(|(known, ..)| *known == id) {
            Some((_, of, times)) => {
                assert_eq!(*of, event, "one id is one event");
                *times += 1;
            }
            None => heard.push((id, event, 1)),
        }
    }
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_hears_of_each_outage_once_and_in_order_over_kill_9() {
    let (mut coordinator, _agents, account) = pair::start(CONFIG).await;
    let mut site = Target::start().await;
    let receiver = Receiver::start(Manner::Take).await;
    account.client.create_monitor(&account.page, &json!({"name": "shop", "url": site.url()})).await;
    let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
    let made = account.client.post(&format!("/pages/{}/destinations", account.page), &hook).await.is(201);
    let destination = made["destination"]["id"].clone();
    becomes(&account, "up").await;

    let mut expected = Vec::new();
    for (mode, status, event) in [
        (Mode::Status(500), "down", "went-down"),
        (Mode::Pass, "up", "recovered"),
        (Mode::Status(503), "down", "went-down"),
        (Mode::Pass, "up", "recovered"),
    ] {
        site.set(mode).await;
        becomes(&account, status).await;
        // The change is durable; whether it was read, written or sent by now is left to chance.
        coordinator.process.kill();
        coordinator.restart().await;
        expected.push(event);
        eventually(&format!("{expected:?} is heard"), SEEN, async || {
            (heard(&receiver).len() >= expected.len()).then_some(())
        })
        .await;
        let events: Vec<String> = heard(&receiver).into_iter().map(|(_, event, _)| event).collect();
        assert_eq!(events, expected);
    }

    let heard = heard(&receiver);
    assert!(heard.iter().all(|(.., times)| *times <= 2), "at most once more for each kill: {heard:?}");
    let path = format!("/pages/{}/deliveries", account.page);
    let listed = account.client.get(&path).await.is(200);
    let listed: BTreeMap<String, String> = listed["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|delivery| delivery["destinationId"] == destination)
        .map(|delivery| {
            let text = |name: &str| delivery[name].as_str().unwrap().to_owned();
            (text("id"), text("event"))
        })
        .collect();
    let told: BTreeMap<String, String> =
        heard.iter().map(|(id, event, _)| (id.clone(), event.clone())).collect();
    assert_eq!(listed, told, "what is listed is what was heard, and nothing else");
    note(&format!("{} events over {} kills: {heard:?}", heard.len(), expected.len()));
}
