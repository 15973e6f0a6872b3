//! Floods by unauthenticated peers: HTTP connections that are idle, slow or do not read, and datagrams at the mesh
//! port.

mod http;
mod malformed_requests;
mod mesh;
mod unfinished_handshakes;

use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

/// Waits until no other flood test of this process runs: each needs the whole machine. Between processes,
/// `.config/nextest.toml` sees to it.
async fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

/// Asserts that the agent, the first of `of`, stayed connected, and that no result was dropped.
async fn stayed(coordinator: &CoordinatorProcess, agent: &AgentProcess, of: usize) {
    coordinator.wait_for_agents(of).await;
    eventually("the agent says so", Duration::from_secs(10), async || {
        agent.status().is_some_and(|now| now["connected"] == true).then_some(())
    })
    .await;
    let status = agent.status().expect("it is there");
    assert_eq!(status["connections"], 1, "never reconnected: {status}");
    for member in coordinator.members() {
        assert_eq!((&member["dropped"], &member["status"]), (&json!(0), &json!("connected")), "{member}");
    }
}
