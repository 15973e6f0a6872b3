//! Dismissal: asks a revoked or removed agent to delete its customer data.

use std::time::Duration;

use parallax_certs::identity::AgentIdentity;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::ToAgent;
use quinn::{Connection, SendStream};
use tokio::time::timeout;

use super::super::hub::Hub;
use super::super::wire::{self, FrameReceiver};

/// Time limit for an agent to open its control stream and read the reason for the refusal.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Returns true if a refused agent was revoked or removed. An agent that is merely unknown may have joined after
/// the backup that this store was restored from: it must not delete data that the newer store may still need.
pub(super) async fn is_due(hub: &Hub, identity: &AgentIdentity, reason: CloseReason) -> bool {
    match (reason, identity.agent.parse()) {
        (CloseReason::Revoked, _) => true,
        (CloseReason::UnknownAgent, Ok(id)) => hub.members.is_removed(id).await,
        _ => false,
    }
}

/// Sends the reason in a frame on the control stream, which the agent has `opened` or opens now, and waits until
/// the agent has received it. Before its welcome an agent trusts no connection close, since anyone who observes a
/// handshake can forge one.
pub(super) async fn send(connection: &Connection, reason: CloseReason, opened: Option<(SendStream, FrameReceiver)>) {
    let sent = async {
        // The stream's other half stays open: an agent that can't write its hello would read nothing.
        let (mut control, _frames, _hello) = match opened {
            Some((control, frames)) => (control, Some(frames), None),
            None => {
                let (control, hello) = connection.accept_bi().await.ok()?;
                (control, None, Some(hello))
            }
        };
        wire::write(&mut control, &ToAgent::Closing { reason }, MAX_FRAME).await.ok()?;
        control.finish().ok()?;
        control.stopped().await.ok()
    };
    // An agent that does not read it receives it on its next connection.
    let _ = timeout(TIME_LIMIT, sent).await;
}
