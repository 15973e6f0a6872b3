//! The word to an agent that was revoked or forgotten: it is to delete what it holds of customers.

use std::time::Duration;

use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::ToAgent;
use quinn::Connection;
use tokio::time::timeout;

use super::super::wire;

/// Longest time that an agent may take to open its control stream and to read why it is not let in.
const LIMIT: Duration = Duration::from_secs(5);

/// Says why in a frame, and waits until the agent has it. An agent believes no connection's close before its welcome,
/// since those who see a handshake can forge one.
pub(super) async fn tell(connection: &Connection, reason: CloseReason) {
    let told = async {
        // The stream's other half is kept: an agent that can't write its hello would read nothing.
        let (mut control, _hello) = connection.accept_bi().await.ok()?;
        wire::write(&mut control, &ToAgent::Closing { reason }, MAX_FRAME).await.ok()?;
        control.finish().ok()?;
        control.stopped().await.ok()
    };
    // An agent that does not listen is told at its next connection.
    let _ = timeout(LIMIT, told).await;
}
