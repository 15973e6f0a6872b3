//! Members of the mesh as stored: agents, and the invitations by which they join.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, InvitationId};
use crate::late;
use crate::place::{NetworkNo, PlaceNo, Region};
use crate::time::Timestamp;

/// An agent that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Id, also in its certificate.
    pub id: AgentId,
    /// Its dense number.
    pub place: PlaceNo,
    /// Name given by the operator.
    pub name: String,
    /// Region of the agent.
    pub region: Region,
    /// Label of the network, for people.
    pub network: String,
    /// Number of the network, for the rules.
    pub network_no: NetworkNo,
    /// Time of joining.
    pub joined_at: Timestamp,
    /// Time of revocation: it may never connect again.
    pub revoked_at: Option<Timestamp>,
    /// Serial of the newest certificate issued to it.
    pub serial: Vec<u8>,
    /// Further state of its identity. Older records have none.
    #[serde(deserialize_with = "late::or_default")]
    pub standing: Standing,
}

/// State of an agent's identity besides the newest certificate. It is the last field of the record and
/// defaults if the record ends early, so that fields may be added at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Serial of the certificate that requested the newest one, until the newest is seen in use: if the
    /// response was lost, the agent requests again with this one. Empty afterwards.
    pub before: Vec<u8>,
    /// Latest start of validity among the recorded certificates, in Unix seconds; 0 without any.
    pub valid_from: i64,
    /// End of the period in which its results don't count, because two hosts compete for the identity.
    pub shared_until: Option<Timestamp>,
}

/// A certificate's relation to an agent's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Footing {
    /// The newest.
    Newest,
    /// The one that requested the newest, which has not been seen in use yet.
    Before,
    /// Unknown and issued later than all recorded ones: the record is older than the certificate, as after a
    /// restore.
    Ahead,
    /// Replaced by a newer one.
    Superseded,
}

/// A change of an agent's identity, for its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A certificate was issued, requested with another.
    Issued {
        /// The new certificate.
        made: Certificate,
        /// The certificate that requested it.
        by: Certificate,
    },
    /// The agent connected with this certificate.
    Shown(Certificate),
    /// Its identity is suspended until then, or no longer.
    Shared(Option<Timestamp>),
}

/// The fields by which records tell certificates apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its serial number.
    pub serial: Vec<u8>,
    /// Start of validity, in Unix seconds.
    pub valid_from: i64,
}

/// The outcome of recording a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// The record changed.
    Changed,
    /// The record was already up to date.
    Same,
    /// The certificate has been superseded; nothing changed.
    Superseded,
}

impl Agent {
    /// Classifies a certificate by this record.
    pub fn footing(&self, shown: &Certificate) -> Footing {
        if self.serial == shown.serial {
            Footing::Newest
        } else if !self.standing.before.is_empty() && self.standing.before == shown.serial {
            Footing::Before
        } else if shown.valid_from > self.standing.valid_from {
            Footing::Ahead
        } else {
            Footing::Superseded
        }
    }

    /// Applies a change of identity.
    pub fn take_in(&mut self, note: &Note) -> Noted {
        let before = self.clone();
        match note {
            Note::Issued { made, by } if self.footing(by) != Footing::Superseded => {
                self.standing.before.clone_from(&by.serial);
                self.hold(made);
            }
            Note::Shown(shown) if matches!(self.footing(shown), Footing::Newest | Footing::Ahead) => {
                self.standing.before.clear();
                self.hold(shown);
            }
            Note::Shown(shown) if self.footing(shown) == Footing::Before => {}
            Note::Issued { .. } | Note::Shown(_) => return Noted::Superseded,
            Note::Shared(until) => self.standing.shared_until = *until,
        }
        if *self == before { Noted::Same } else { Noted::Changed }
    }

    fn hold(&mut self, newest: &Certificate) {
        self.serial.clone_from(&newest.serial);
        // After a clock was set back, an older certificate must not look newer than all others.
        self.standing.valid_from = self.standing.valid_from.max(newest.valid_from);
    }
}

/// Wrong secrets after which an invitation is blocked.
pub const MAX_WRONG_TRIES: u8 = 5;

/// An invitation: a one-time token, and the name, region and network of the agent that joins with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Id, also in the token.
    pub id: InvitationId,
    /// SHA-256 of the token's secret.
    pub secret_hash: [u8; 32],
    /// Name for the agent.
    pub name: String,
    /// Region of the agent.
    pub region: Region,
    /// Label of the network.
    pub network: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Number of wrong secrets tried; five block it.
    pub wrong_tries: u8,
    /// The agent that joined with it, once used.
    pub used_by: Option<AgentId>,
    /// Time of revocation. Older records end before this field.
    #[serde(deserialize_with = "late::or_default")]
    pub revoked_at: Option<Timestamp>,
}

/// State of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationState {
    /// Its token is valid.
    Open,
    /// An agent has joined with it.
    Used,
    /// The operator revoked it.
    Revoked,
    /// Too many wrong secrets were tried.
    Blocked,
    /// It has expired.
    Expired,
}

impl InvitationState {
    /// Name that commands print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Used => "used",
            Self::Revoked => "revoked",
            Self::Blocked => "blocked",
            Self::Expired => "expired",
        }
    }
}

impl Invitation {
    /// Its state at that moment.
    pub fn state(&self, now: Timestamp) -> InvitationState {
        if self.used_by.is_some() {
            InvitationState::Used
        } else if self.revoked_at.is_some() {
            InvitationState::Revoked
        } else if self.wrong_tries >= MAX_WRONG_TRIES {
            InvitationState::Blocked
        } else if now >= self.expires_at {
            InvitationState::Expired
        } else {
            InvitationState::Open
        }
    }

    /// Returns true while its token is valid: it then reserves the agent's name.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.state(now) == InvitationState::Open
    }
}

/// Normalizes an agent's name for comparison: without case and spaces, so that `FRA 1` is `fra1`.
pub fn name_key(name: &str) -> String {
    name.chars().filter(|sign| !sign.is_whitespace()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(number: u8) -> Certificate {
        Certificate { serial: vec![number], valid_from: i64::from(number) * 100 }
    }

    fn agent(newest: u8) -> Agent {
        Agent {
            id: AgentId::from_u128(1),
            place: PlaceNo(1),
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            network_no: NetworkNo(0),
            joined_at: Timestamp::from_millis(0),
            revoked_at: None,
            serial: vec![newest],
            standing: Standing { valid_from: i64::from(newest) * 100, ..Standing::default() },
        }
    }

    fn issued(made: u8, by: u8) -> Note {
        Note::Issued { made: certificate(made), by: certificate(by) }
    }

    #[test]
    fn an_agent_whose_answer_was_lost_asks_again_with_the_certificate_before() {
        let mut agent = agent(1);
        assert_eq!(agent.take_in(&issued(2, 1)), Noted::Changed);
        assert_eq!(agent.footing(&certificate(1)), Footing::Before);
        assert_eq!(agent.take_in(&issued(3, 1)), Noted::Changed, "made twice");
        assert_eq!(agent.take_in(&Note::Shown(certificate(3))), Noted::Changed);
        assert_eq!(agent.take_in(&Note::Shown(certificate(3))), Noted::Same);
    }

    #[test]
    fn a_certificate_whose_successor_was_seen_makes_no_other_and_changes_nothing() {
        let mut agent = agent(1);
        agent.take_in(&issued(2, 1));
        agent.take_in(&Note::Shown(certificate(2)));
        let before = agent.clone();
        assert_eq!(agent.take_in(&issued(9, 1)), Noted::Superseded);
        assert_eq!(agent.take_in(&Note::Shown(certificate(1))), Noted::Superseded);
        assert_eq!(agent, before);
        assert_eq!(agent.take_in(&issued(3, 2)), Noted::Changed);
        assert_eq!(agent.take_in(&issued(4, 1)), Noted::Superseded, "older than the one before");
    }

    #[test]
    fn a_certificate_that_is_newer_than_restored_records_is_taken_for_the_newest() {
        let mut agent = agent(1);
        assert_eq!(agent.footing(&certificate(5)), Footing::Ahead);
        assert_eq!(agent.take_in(&Note::Shown(certificate(5))), Noted::Changed);
        assert_eq!(agent.footing(&certificate(4)), Footing::Superseded);
        assert_eq!(agent.take_in(&issued(6, 5)), Noted::Changed);
    }

    #[test]
    fn a_certificate_made_under_a_clock_that_was_set_back_does_not_bring_older_ones_back() {
        let mut agent = agent(5);
        agent.take_in(&Note::Issued {
            made: Certificate { valid_from: 100, ..certificate(6) },
            by: certificate(5),
        });
        agent.take_in(&Note::Shown(Certificate { valid_from: 100, ..certificate(6) }));
        assert_eq!(agent.footing(&certificate(5)), Footing::Superseded);
    }

    #[test]
    fn an_invitation_without_the_moment_of_its_revocation_is_read() {
        let invitation = Invitation {
            id: InvitationId::from_u128(7),
            secret_hash: [1; 32],
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            created_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(10),
            wrong_tries: 0,
            used_by: None,
            revoked_at: None,
        };
        let bytes = postcard::to_stdvec(&(7_u64, &invitation)).unwrap();
        let read: (u64, Invitation) = postcard::from_bytes(&bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(read, (7, invitation.clone()));
        let [before, end] = [9, 10].map(Timestamp::from_millis);
        assert!(invitation.is_open(before) && invitation.state(end) == InvitationState::Expired);
        let revoked = Invitation { revoked_at: Some(before), ..invitation };
        assert_eq!(revoked.state(before), InvitationState::Revoked);
        assert_eq!(name_key(" FRA  1 "), name_key("fra1"));
    }

    #[test]
    fn a_record_of_before_the_standing_is_read() {
        let mut agent = agent(5);
        agent.standing = Standing::default();
        let bytes = postcard::to_stdvec(&(7_u64, &agent)).unwrap();
        // The three empty fields of the identity state take a byte each.
        let read: (u64, Agent) = postcard::from_bytes(&bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(read, (7, agent));
    }
}
