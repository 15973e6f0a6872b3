//! Members of the mesh as stored: agents, and the invitations by which they join.

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{AgentId, InvitationId};
use crate::time::Timestamp;
use crate::vantage::{NetworkNo, Region, VantageNo};

/// An agent that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Id, also in its certificate.
    pub id: AgentId,
    /// Its dense number.
    pub vantage_no: VantageNo,
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
    #[serde(deserialize_with = "compat::or_default")]
    pub identity: IdentityState,
}

/// State of an agent's identity besides the newest certificate. It is the last field of the record and
/// defaults if the record ends before it. Fields may be added at its end, each with `compat::or_default`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityState {
    /// Serial of the certificate that requested the newest one, until the newest is seen in use: if the
    /// response was lost, the agent requests again with this one. Empty afterwards.
    pub previous_serial: Vec<u8>,
    /// Latest start of validity among the recorded certificates, in Unix seconds; 0 without any.
    pub valid_from: i64,
    /// End of the period in which its results don't count, because two hosts compete for the identity.
    pub suspended_until: Option<Timestamp>,
}

/// A certificate's relation to an agent's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateStatus {
    /// The newest.
    Newest,
    /// The one that requested the newest, which has not been seen in use yet.
    Previous,
    /// Unknown and issued later than all recorded ones: the record is older than the certificate, as after a
    /// restore.
    NewerThanRecord,
    /// Replaced by a newer one.
    Superseded,
}

/// A change of an agent's identity, for its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityChange {
    /// A certificate was issued, requested with another.
    Issued {
        /// The new certificate.
        made: CertificateId,
        /// The certificate that requested it.
        by: CertificateId,
    },
    /// The agent connected with this certificate.
    Presented(CertificateId),
    /// Its identity is suspended until then, or no longer.
    Suspended(Option<Timestamp>),
}

/// The fields by which records tell certificates apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateId {
    /// Its serial number.
    pub serial: Vec<u8>,
    /// Start of validity, in Unix seconds.
    pub valid_from: i64,
}

/// The outcome of recording a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityUpdate {
    /// The record changed.
    Changed,
    /// The record was already up to date.
    Unchanged,
    /// The certificate has been superseded; nothing changed.
    Superseded,
}

impl AgentRecord {
    /// Classifies a certificate by this record.
    pub fn certificate_status(&self, certificate: &CertificateId) -> CertificateStatus {
        if self.serial == certificate.serial {
            CertificateStatus::Newest
        } else if !self.identity.previous_serial.is_empty() && self.identity.previous_serial == certificate.serial {
            CertificateStatus::Previous
        } else if certificate.valid_from > self.identity.valid_from {
            CertificateStatus::NewerThanRecord
        } else {
            CertificateStatus::Superseded
        }
    }

    /// Applies a change of identity.
    pub fn apply(&mut self, note: &IdentityChange) -> IdentityUpdate {
        let before = self.clone();
        match note {
            IdentityChange::Issued { made, by } if self.certificate_status(by) != CertificateStatus::Superseded => {
                self.identity.previous_serial.clone_from(&by.serial);
                self.set_newest(made);
            }
            IdentityChange::Presented(certificate)
                if matches!(
                    self.certificate_status(certificate),
                    CertificateStatus::Newest | CertificateStatus::NewerThanRecord
                ) =>
            {
                self.identity.previous_serial.clear();
                self.set_newest(certificate);
            }
            IdentityChange::Presented(certificate)
                if self.certificate_status(certificate) == CertificateStatus::Previous => {}
            IdentityChange::Issued { .. } | IdentityChange::Presented(_) => {
                return IdentityUpdate::Superseded;
            }
            IdentityChange::Suspended(until) => self.identity.suspended_until = *until,
        }
        if *self == before { IdentityUpdate::Unchanged } else { IdentityUpdate::Changed }
    }

    fn set_newest(&mut self, newest: &CertificateId) {
        self.serial.clone_from(&newest.serial);
        // After a clock was set back, an older certificate must not look newer than all others.
        self.identity.valid_from = self.identity.valid_from.max(newest.valid_from);
    }
}

/// Wrong secrets after which an invitation is blocked.
pub const MAX_WRONG_SECRETS: u8 = 5;

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
    pub wrong_secrets: u8,
    /// The agent that joined with it, once used.
    pub used_by: Option<AgentId>,
    /// Time of revocation. Older records end before this field.
    #[serde(deserialize_with = "compat::or_default")]
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
        } else if self.wrong_secrets >= MAX_WRONG_SECRETS {
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

    fn certificate(number: u8) -> CertificateId {
        CertificateId { serial: vec![number], valid_from: i64::from(number) * 100 }
    }

    fn agent(newest: u8) -> AgentRecord {
        AgentRecord {
            id: AgentId::from_u128(1),
            vantage_no: VantageNo(1),
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            network_no: NetworkNo(0),
            joined_at: Timestamp::from_millis(0),
            revoked_at: None,
            serial: vec![newest],
            identity: IdentityState { valid_from: i64::from(newest) * 100, ..IdentityState::default() },
        }
    }

    fn issued(made: u8, by: u8) -> IdentityChange {
        IdentityChange::Issued { made: certificate(made), by: certificate(by) }
    }

    #[test]
    fn an_agent_that_lost_the_response_renews_with_its_previous_certificate() {
        let mut agent = agent(1);
        assert_eq!(agent.apply(&issued(2, 1)), IdentityUpdate::Changed);
        assert_eq!(agent.certificate_status(&certificate(1)), CertificateStatus::Previous);
        assert_eq!(agent.apply(&issued(3, 1)), IdentityUpdate::Changed, "made twice");
        assert_eq!(agent.apply(&IdentityChange::Presented(certificate(3))), IdentityUpdate::Changed);
        assert_eq!(agent.apply(&IdentityChange::Presented(certificate(3))), IdentityUpdate::Unchanged);
    }

    #[test]
    fn a_superseded_certificate_is_not_renewed_and_changes_nothing() {
        let mut agent = agent(1);
        agent.apply(&issued(2, 1));
        agent.apply(&IdentityChange::Presented(certificate(2)));
        let before = agent.clone();
        assert_eq!(agent.apply(&issued(9, 1)), IdentityUpdate::Superseded);
        assert_eq!(agent.apply(&IdentityChange::Presented(certificate(1))), IdentityUpdate::Superseded);
        assert_eq!(agent, before);
        assert_eq!(agent.apply(&issued(3, 2)), IdentityUpdate::Changed);
        assert_eq!(agent.apply(&issued(4, 1)), IdentityUpdate::Superseded, "older than the one before");
    }

    #[test]
    fn a_certificate_newer_than_restored_records_becomes_the_newest() {
        let mut agent = agent(1);
        assert_eq!(agent.certificate_status(&certificate(5)), CertificateStatus::NewerThanRecord);
        assert_eq!(agent.apply(&IdentityChange::Presented(certificate(5))), IdentityUpdate::Changed);
        assert_eq!(agent.certificate_status(&certificate(4)), CertificateStatus::Superseded);
        assert_eq!(agent.apply(&issued(6, 5)), IdentityUpdate::Changed);
    }

    #[test]
    fn a_certificate_issued_under_a_clock_set_back_does_not_revive_older_ones() {
        let mut agent = agent(5);
        agent.apply(&IdentityChange::Issued {
            made: CertificateId { valid_from: 100, ..certificate(6) },
            by: certificate(5),
        });
        agent.apply(&IdentityChange::Presented(CertificateId { valid_from: 100, ..certificate(6) }));
        assert_eq!(agent.certificate_status(&certificate(5)), CertificateStatus::Superseded);
    }

    #[test]
    fn an_invitation_record_without_revocation_is_read() {
        let invitation = Invitation {
            id: InvitationId::from_u128(7),
            secret_hash: [1; 32],
            name: "fra1".to_owned(),
            region: Region::Europe,
            network: "AS1".to_owned(),
            created_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(10),
            wrong_secrets: 0,
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
    fn an_agent_record_without_identity_state_is_read() {
        let mut agent = agent(5);
        agent.identity = IdentityState::default();
        let bytes = postcard::to_stdvec(&(7_u64, &agent)).unwrap();
        // The three empty fields of the identity state take a byte each.
        let read: (u64, AgentRecord) = postcard::from_bytes(&bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(read, (7, agent));
    }
}
