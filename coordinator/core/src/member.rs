//! The mesh's members as they are kept: agents and the invitations that make them.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, InvitationId};
use crate::place::{NetworkNo, PlaceNo, Region};
use crate::time::Timestamp;

/// An agent that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id, which its certificate bears.
    pub id: AgentId,
    /// Its dense number.
    pub place: PlaceNo,
    /// Name that the operator gave.
    pub name: String,
    /// Where it stands.
    pub region: Region,
    /// The network's label, for people.
    pub network: String,
    /// The network's number, for the rules.
    pub network_no: NetworkNo,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When it was revoked: it may never connect again.
    pub revoked_at: Option<Timestamp>,
    /// Serial of the newest certificate made for it.
    pub serial: Vec<u8>,
}

/// An invitation: a one-time token and the place it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Its id, which the token bears.
    pub id: InvitationId,
    /// SHA-256 of the token's secret.
    pub secret_hash: [u8; 32],
    /// Name for the agent.
    pub name: String,
    /// Where the agent stands.
    pub region: Region,
    /// The network's label.
    pub network: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// How often a wrong secret was tried; five end it.
    pub wrong_tries: u8,
    /// The agent that it made, once used.
    pub used_by: Option<AgentId>,
}
