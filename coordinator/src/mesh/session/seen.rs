//! The address that an agent is seen under, which it can't know behind a NAT: it is told, so that it checks nothing there.

use std::net::IpAddr;

use parallax_protocol::message::{SeenFrom, ToAgent};
use quinn::Connection;

use super::super::listener::mesh_version;

/// The address that an agent was last sent as its own.
#[derive(Debug)]
pub(super) struct SeenAddress {
    /// True where its version of the protocol has the frame.
    is_known: bool,
    told: Option<IpAddr>,
}

impl SeenAddress {
    /// Nothing was told yet.
    pub(super) fn new(connection: &Connection) -> Self {
        Self { is_known: mesh_version(connection) >= 2, told: None }
    }

    /// The frame to send, where the address is another than the agent was told: connections move (RFC 9000, section 9).
    pub(super) fn news(&mut self, connection: &Connection) -> Option<ToAgent> {
        let address = connection.remote_address().ip().to_canonical();
        if !self.is_known || self.told == Some(address) {
            return None;
        }
        self.told = Some(address);
        Some(ToAgent::SeenFrom(SeenFrom { address }))
    }
}
