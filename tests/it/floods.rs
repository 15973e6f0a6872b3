//! Strangers who flood the doors: HTTP with connections that say and take nothing, the agents' port with datagrams.

mod begun;
mod heads;
mod http;
mod mesh;

use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::{Agent, Coordinator};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

/// Waits until no other flood of this binary is under way: each is to have the machine to itself.
async fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

/// The agent, the first of so many, has been connected all the time, and nothing was dropped.
async fn stayed(coordinator: &Coordinator, agent: &Agent, of: usize) {
    coordinator.connected(of).await;
    eventually("the agent says so", Duration::from_secs(10), async || {
        agent.status().is_some_and(|now| now["connected"] == true).then_some(())
    })
    .await;
    let status = agent.status().expect("it is there");
    assert_eq!(status["connections"], 1, "never connected anew: {status}");
    for member in coordinator.members() {
        assert_eq!((&member["dropped"], &member["status"]), (&json!(0), &json!("connected")), "{member}");
    }
}
