//! An agent's `Hello`: reads it and checks its limits.

use parallax_protocol::close::CloseReason;
use parallax_protocol::error::ProtocolError;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{Hello, ToCoordinator};
use quinn::{Connection, SendStream};

use super::super::wire::{Fault, Frames};
use super::MOST_NAMED;

/// Bytes of an agent's version text, at most.
const MOST_SOFTWARE: usize = 64;

/// Reads the agent's first frame.
pub(super) async fn greet(connection: &Connection) -> Result<(SendStream, Frames, Hello), Fault> {
    let (control, receive) = connection.accept_bi().await.map_err(|_| Fault::Lost)?;
    let mut frames = Frames::new(receive, MAX_FRAME);
    match frames.next().await? {
        Some(ToCoordinator::Hello(hello)) => Ok((control, frames, hello)),
        Some(_) | None => Err(Fault::Close(CloseReason::OutOfOrder)),
    }
}

/// Checks the limits of a `Hello`.
pub(super) fn check_bounds(hello: &Hello) -> Result<(), Fault> {
    let invalid = |field, rule| Err(Fault::Protocol(ProtocolError::Invalid { field, rule }));
    if hello.software.len() > MOST_SOFTWARE {
        return invalid("hello.software", "must have at most 64 bytes");
    }
    if hello.earlier_boots.len() > Hello::MAX_EARLIER_BOOTS {
        return invalid("hello.earlier_boots", "must be at most 32");
    }
    if hello.kinds.len() > MOST_NAMED || hello.faults.len() > MOST_NAMED {
        return invalid("hello", "must name at most 32 kinds and 32 faults");
    }
    Ok(())
}
