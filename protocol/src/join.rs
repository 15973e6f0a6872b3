//! The two frames of an enrolment.

use crate::close::CloseReason;
use crate::id::{WireAgentId, WireRegion};
use crate::text::SecretText;
use serde::{Deserialize, Serialize};

/// Request of a new host, sent after it has verified the coordinator's authority against the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The token as the operator pasted it.
    pub token: SecretText,
    /// A PKCS #10 certificate request in DER. Only its key is used.
    pub csr_der: Vec<u8>,
}

/// Response of the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinResponse {
    /// The host is enrolled.
    Enrolled(Enrolment),
    /// The host is not enrolled, and nothing was stored.
    Refused {
        /// Reason.
        reason: CloseReason,
    },
}

/// An enrolled agent's identity. Name, region and network are the coordinator's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// The agent's certificate chain in DER, leaf first.
    pub certificates_der: Vec<Vec<u8>>,
    /// The authorities to trust, in DER.
    pub authorities_der: Vec<Vec<u8>>,
    /// The agent's number.
    pub agent: WireAgentId,
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: WireRegion,
    /// Its network: an AS number or provider label.
    pub network: String,
    /// The mesh's name.
    pub mesh: String,
    /// The coordinator's time, epoch ms: used to validate certificates if the host's clock is wrong.
    pub coordinator_ms: i64,
}
