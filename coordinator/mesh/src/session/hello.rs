//! An agent's `Hello`: reads it and checks its limits.

use parallax_protocol::close::CloseReason;
use parallax_protocol::error::ProtocolError;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{AgentHello, ToCoordinator};
use quinn::{Connection, SendStream};

use super::super::wire::{FrameReceiver, SessionError};
use super::MAX_LISTED;

/// Bytes of an agent's version text, at most.
const MAX_SOFTWARE: usize = 64;

/// Reads the agent's first frame.
pub(super) async fn read_hello(
    connection: &Connection,
) -> Result<(SendStream, FrameReceiver, AgentHello), SessionError> {
    let (control, receive) = connection.accept_bi().await.map_err(|_| SessionError::Lost)?;
    let mut frames = FrameReceiver::new(receive, MAX_FRAME);
    match frames.next().await? {
        Some(ToCoordinator::Hello(hello)) => Ok((control, frames, hello)),
        Some(_) | None => Err(SessionError::Close(CloseReason::OutOfOrder)),
    }
}

/// Checks the limits of a `Hello`.
pub(super) fn check_bounds(hello: &AgentHello) -> Result<(), SessionError> {
    let invalid = |field, rule| Err(SessionError::Protocol(ProtocolError::Invalid { field, rule }));
    if hello.software.len() > MAX_SOFTWARE {
        return invalid("hello.software", "must have at most 64 bytes");
    }
    if hello.earlier_boots.len() > AgentHello::MAX_EARLIER_BOOTS {
        return invalid("hello.earlier_boots", "must be at most 32");
    }
    if hello.kinds.len() > MAX_LISTED || hello.faults.len() > MAX_LISTED {
        return invalid("hello", "must name at most 32 kinds and 32 faults");
    }
    Ok(())
}
