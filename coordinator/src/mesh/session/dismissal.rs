//! The word to an agent that was revoked or forgotten: it is to delete what it holds of customers.

use std::time::Duration;

use parallax_certs::identity::Identity;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::ToAgent;
use quinn::{Connection, SendStream};
use tokio::time::timeout;

use super::super::hub::Hub;
use super::super::wire::{self, Frames};

/// Longest time that an agent may take to open its control stream and to read why it is not let in.
const LIMIT: Duration = Duration::from_secs(5);

/// Checks that an agent which is refused was revoked or forgotten. One that is merely unknown may have joined after the
/// backup that this store was restored from: it must not delete what the newer store may yet be asked for.
pub(super) async fn is_due(hub: &Hub, identity: &Identity, reason: CloseReason) -> bool {
    match (reason, identity.agent.parse()) {
        (CloseReason::Revoked, _) => true,
        (CloseReason::Unknown, Ok(id)) => hub.members.is_removed(id).await,
        _ => false,
    }
}

/// Says why in a frame on the control stream, where the agent has `opened` it or does so now, and waits until the agent
/// has it. An agent believes no connection's close before its welcome, since those who see a handshake can forge one.
pub(super) async fn tell(connection: &Connection, reason: CloseReason, opened: Option<(SendStream, Frames)>) {
    let told = async {
        // The stream's other half is kept: an agent that can't write its hello would read nothing.
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
    // An agent that does not listen is told at its next connection.
    let _ = timeout(LIMIT, told).await;
}
