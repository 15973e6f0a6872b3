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
    /// The newest certificate that it is known to hold; none before it has connected.
    pub held: Option<Certified>,
    /// Since when two hosts take its identity from each other.
    pub shared_since: Option<Timestamp>,
}

/// A certificate as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certified {
    /// Its serial number.
    pub serial: Vec<u8>,
    /// First second of its life, unix time.
    pub from: i64,
}

/// What a certificate that an agent shows is beside those that are known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the one known to be held.
    Held,
    /// The agent has not been known to hold it yet: it is the newest one made, or younger than the one held. The latter
    /// is so where the records were put back from a snapshot.
    Newer,
    /// The agent holds a newer one: whoever shows this is not where the agent is.
    Older,
}

impl Agent {
    /// What that certificate is to this agent. One that was made and never shown does not outdate the one held: its
    /// answer may have been lost.
    pub fn standing(&self, shown: &Certified) -> Standing {
        match &self.held {
            Some(held) if held.serial == shown.serial => Standing::Held,
            Some(held) if shown.serial != self.serial && shown.from <= held.from => Standing::Older,
            Some(_) | None => Standing::Newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certified(serial: u8, from: i64) -> Certified {
        Certified { serial: vec![serial], from }
    }

    #[test]
    fn a_certificate_older_than_the_one_held_is_known_as_such() {
        let agent = |newest: u8, held: Option<Certified>| Agent {
            id: AgentId::from_u128(1),
            place: PlaceNo(1),
            name: String::new(),
            region: Region::Europe,
            network: String::new(),
            network_no: NetworkNo(1),
            joined_at: Timestamp::from_millis(0),
            revoked_at: None,
            serial: vec![newest],
            held,
            shared_since: None,
        };
        for (what, newest, held, shown, standing) in [
            ("the first", 1, None, certified(1, 10), Standing::Newer),
            ("again", 1, Some(certified(1, 10)), certified(1, 10), Standing::Held),
            (
                "a renewed one whose answer was lost",
                2,
                Some(certified(1, 10)),
                certified(1, 10),
                Standing::Held,
            ),
            ("the renewed one", 2, Some(certified(1, 10)), certified(2, 20), Standing::Newer),
            ("the one before", 2, Some(certified(2, 20)), certified(1, 10), Standing::Older),
            ("made between, never held", 3, Some(certified(3, 30)), certified(2, 20), Standing::Older),
            ("of the same second", 3, Some(certified(3, 30)), certified(2, 30), Standing::Older),
            (
                "made after a snapshot that was put back",
                1,
                Some(certified(1, 10)),
                certified(2, 20),
                Standing::Newer,
            ),
            (
                "the newest, by a clock that was set back",
                2,
                Some(certified(1, 10)),
                certified(2, 5),
                Standing::Newer,
            ),
        ] {
            assert_eq!(agent(newest, held).standing(&shown), standing, "{what}");
        }
    }
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
