//! Addresses that are not public fail with a clear reason: as a literal, by a hostname, and through a redirect.
//! No proxy comes between deliveries and the guard.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::netns::{NETWORKS, Topology};
use parallax_tests::test_target::TargetMode;
use parallax_tests::webhook_receiver::{ReceiverMode, WebhookReceiver};
use serde_json::{Value, json};

use crate::scenario_setup::{FIRST_VERDICT, TopologyScene, says_not_public};

in_a_world!(an_address_that_is_not_public_fails_and_says_so, not_public);

async fn not_public(world: Topology) {
    let stage = TopologyScene::start(&world, &NETWORKS, "pro", "", json!({})).await;
    let bodies = [
        json!({"name": "loopback", "url": "http://127.0.0.1/"}),
        json!({"name": "loopback v6", "url": "http://[::1]/"}),
        json!({"name": "mapped", "url": "http://[::ffff:127.0.0.1]/"}),
        json!({"name": "private", "url": "http://10.0.0.1/"}),
        json!({"name": "link-local", "url": "http://169.254.169.254/latest/"}),
        json!({"name": "named private", "url": "http://private.test/"}),
        json!({"name": "named loopback", "url": "http://loop.test/"}),
        json!({"name": "named link-local", "url": "http://metadata.test/"}),
        json!({"name": "tcp private", "type": "tcp", "host": "192.168.0.1", "port": 22}),
        json!({"name": "tcp named", "type": "tcp", "host": "private.test", "port": 22}),
    ];
    let mut monitors = Vec::new();
    for body in &bodies {
        monitors.push(stage.account.client.create_monitor(&stage.account.page, body).await);
    }
    for monitor in &monitors {
        refused(&stage, monitor).await;
    }
    // The name resolves, and the site passes by it: the address is refused, not the name.
    let named = json!({"name": "by name", "url": "http://site.test/"});
    let named = stage.account.client.create_monitor(&stage.account.page, &named).await;
    eventually_every(API_PERIOD, "the site passes by its name", FIRST_VERDICT, async || {
        (stage.account.client.monitor(&stage.account.page, &named).await["status"] == "up").then_some(())
    })
    .await;
}

in_a_world!(a_redirect_to_an_address_that_is_not_public_fails_and_says_so, redirected);

async fn redirected(world: Topology) {
    let config = "[plans.pro]\ninterval_seconds = 10\n";
    let mut stage = TopologyScene::start(&world, &NETWORKS, "pro", config, json!({})).await;
    for to in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(169, 254, 169, 254)] {
        stage.site.set(TargetMode::Redirect(format!("http://{to}/"))).await;
        let monitor = stage.monitor.clone();
        refused(&stage, &monitor).await;
        stage.site.set(TargetMode::Pass).await;
        stage.wait_for_status("up", Duration::from_secs(30)).await;
    }
    stage.site.set(TargetMode::Redirect("http://private.test/".into())).await;
    let monitor = stage.monitor.clone();
    refused(&stage, &monitor).await;
}

/// Waits for a failed check of the monitor, whose reason must say that the address is not public.
async fn refused(stage: &TopologyScene, monitor: &Value) {
    let what = format!("{} fails", monitor["name"]);
    let check = eventually_every(API_PERIOD, &what, FIRST_VERDICT, async || {
        let check = stage.account.client.monitor(&stage.account.page, monitor).await["lastCheck"].take();
        (check["ok"] == false).then_some(check)
    })
    .await;
    assert!(says_not_public(check["error"].as_str().unwrap_or_default()), "{}: {check}", monitor["name"]);
    assert_eq!(check["statusCode"], Value::Null, "nothing of an answer is shown: {check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_ignore_the_proxies_of_the_environment() {
    const SOON: Duration = Duration::from_secs(60);
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let config = "[deliver]\nallow_private = true\n";
    let mut coordinator = CoordinatorProcess::serve(([127, 0, 0, 1], 0).into(), config).await;
    coordinator.process.terminate();
    coordinator.process.wait_for_exit(SOON).await;
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        coordinator.set_variable(name, &url);
        coordinator.set_variable(&name.to_lowercase(), &url);
    }
    coordinator.set_variable("NO_PROXY", "");
    coordinator.set_variable("no_proxy", "");
    coordinator.restart().await;

    let receiver = WebhookReceiver::start(ReceiverMode::Accept).await;
    let account = coordinator.create_account("pro");
    let path = format!("/pages/{}/destinations", account.page);
    let hook = json!({"name": "hook", "type": "webhook", "url": receiver.url()});
    let made = account.client.post(&path, &hook).await.expect_status(201);
    let test = format!("{path}/{}/test", made["destination"]["id"].as_str().unwrap());
    account.client.post(&test, &json!({})).await.expect_status(200);
    receiver.wait_for_count(1, SOON).await;
    let reached = proxy.accept().map(|(_, from)| from).map_err(|error| error.kind());
    assert_eq!(reached, Err(std::io::ErrorKind::WouldBlock), "the proxy was reached");
}
