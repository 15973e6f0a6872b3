//! Reports an agent's public address to it, which it can't know behind a NAT, so that it never checks that address.

use std::net::IpAddr;

use parallax_protocol::message::{ExternalAddress, ToAgent};
use quinn::Connection;

use super::super::peer::mesh_version;

/// The address that an agent was last sent as its own.
#[derive(Debug)]
pub(super) struct AgentPublicAddress {
    /// True if the agent's protocol version has the frame.
    is_supported: bool,
    sent: Option<IpAddr>,
}

impl AgentPublicAddress {
    /// Starts with nothing sent.
    pub(super) fn new(connection: &Connection) -> Self {
        Self { is_supported: mesh_version(connection) >= 2, sent: None }
    }

    /// Returns the frame to send if the address has changed: connections migrate (RFC 9000, section 9).
    pub(super) fn changed_frame(&mut self, connection: &Connection) -> Option<ToAgent> {
        let address = connection.remote_address().ip().to_canonical();
        if !self.is_supported || self.sent == Some(address) {
            return None;
        }
        self.sent = Some(address);
        Some(ToAgent::ExternalAddress(ExternalAddress { address }))
    }
}
