//! Alerts end to end: a webhook created by the API receives each outage, in order and once per id, across kill -9.

use std::collections::BTreeMap;
use std::time::Duration;

use parallax_tests::agent_pair;
use parallax_tests::eventually::{API_PERIOD, eventually, eventually_every, print_note};
use parallax_tests::installation::TestAccount;
use parallax_tests::test_target::{TargetMode, TestTarget};
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver};
use serde_json::{Value, json};

/// Rounds every ten seconds, and receivers on loopback.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n\n[deliver]\nallow_private = true\n";
/// Longest wait for a status change, including a start of the coordinator.
const SEEN: Duration = Duration::from_secs(90);

async fn becomes(account: &TestAccount, status: &str) {
    eventually_every(API_PERIOD, &format!("it is {status}"), SEEN, async || {
        let monitors = account.client.monitors(&account.page).await;
        monitors.iter().all(|monitor| monitor["status"] == status).then_some(())
    })
    .await;
}

/// Returns the receiver's events by first arrival, each with its id and the number of arrivals.
fn heard(receiver: &WebhookReceiver) -> Vec<(String, String, usize)> {
    let mut heard: Vec<(String, String, usize)> = Vec::new();
    for taken in receiver.received() {
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
    let (mut coordinator, _agents, account) = agent_pair::start(CONFIG).await;
    let mut site = TestTarget::start().await;
    let receiver = WebhookReceiver::start(ReceiverMode::Accept).await;
    account.client.create_monitor(&account.page, &json!({"name": "shop", "url": site.url()})).await;
    let hook = json!({"type": "webhook", "name": "On call", "url": receiver.url()});
    let made = account.client.post(&format!("/pages/{}/destinations", account.page), &hook).await.expect_status(201);
    let destination = made["destination"]["id"].clone();
    becomes(&account, "up").await;

    let mut expected = Vec::new();
    for (mode, status, event) in [
        (TargetMode::Status(500), "down", "went-down"),
        (TargetMode::Pass, "up", "recovered"),
        (TargetMode::Status(503), "down", "went-down"),
        (TargetMode::Pass, "up", "recovered"),
    ] {
        site.set(mode).await;
        becomes(&account, status).await;
        // The change is durable; the kill may come before or after it was read, written or sent.
        coordinator.process.kill();
        coordinator.restart().await;
        expected.push(event);
        eventually(&format!("{expected:?} is received"), SEEN, async || {
            (heard(&receiver).len() >= expected.len()).then_some(())
        })
        .await;
        let events: Vec<String> = heard(&receiver).into_iter().map(|(_, event, _)| event).collect();
        assert_eq!(events, expected);
    }

    let heard = heard(&receiver);
    assert!(heard.iter().all(|(.., times)| *times <= 2), "at most once more for each kill: {heard:?}");
    let path = format!("/pages/{}/deliveries", account.page);
    let listed = account.client.get(&path).await.expect_status(200);
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
    let told: BTreeMap<String, String> = heard.iter().map(|(id, event, _)| (id.clone(), event.clone())).collect();
    assert_eq!(listed, told, "the list has exactly the received deliveries");
    print_note(&format!("{} events over {} kills: {heard:?}", heard.len(), expected.len()));
}
