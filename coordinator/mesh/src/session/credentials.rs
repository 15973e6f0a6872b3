//! An agent's credentials: certificate renewal over the live connection, and notification of changed authorities.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parallax_certs::identity::AgentIdentity;
use parallax_core::member::{self, AgentRecord, CertificateStatus, IdentityChange, IdentityUpdate};
use parallax_core::time::{SECOND, Timestamp};
use parallax_protocol::close::CloseReason;
use parallax_protocol::error::ProtocolError;
use parallax_protocol::message::{RenewedCertificate, ToAgent, TrustReport, TrustedAuthorities};
use tokio::time::{Instant, interval};
use tracing::{info, warn};

use super::super::roster::HeldCredentials;
use super::super::{MeshCounters, join};
use super::{Hub, Session, SessionError, enrolled_agent};

/// Upper bound of the minimum time between two renewals on one connection.
const MAX_SPACING: Duration = Duration::from_secs(60);
/// Lower bound of that time.
const MIN_SPACING: Duration = Duration::from_secs(1);
/// Issued certificates remembered per connection until the agent reports which one it holds.
const MAX_KNOWN: usize = 4;

/// The certificates of one connection.
pub(super) struct SessionCertificates {
    /// Certificates that the agent may hold, by serial: the one presented, and those issued since.
    known: BTreeMap<Vec<u8>, KnownCertificate>,
    /// First millisecond after the connection's end.
    ends: Arc<AtomicI64>,
    /// Serial of the certificate that the agent last reported.
    held_serial: Vec<u8>,
    renewed_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct KnownCertificate {
    /// Key hash of its authority.
    authority: Option<[u8; 32]>,
    ends: i64,
    /// First second of its validity.
    valid_from: i64,
}

impl SessionCertificates {
    /// Starts with the certificate presented in the handshake.
    pub(super) fn new(presented: &AgentIdentity, authority: Option<[u8; 32]>) -> Self {
        let ends = end_of(presented.validity.not_after);
        let held_serial = presented.serial.as_bytes().to_vec();
        let presented = KnownCertificate { authority, ends, valid_from: presented.validity.not_before };
        let known = BTreeMap::from([(held_serial.clone(), presented)]);
        Self { known, ends: Arc::new(AtomicI64::new(ends)), held_serial, renewed_at: None }
    }

    /// Returns the end of the connection, which moves when the agent holds a newer certificate.
    pub(super) fn ends(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.ends)
    }

    /// Returns the certificate that the agent last reported, in stored form.
    fn held_certificate(&self) -> member::CertificateId {
        let valid_from = self.known.get(&self.held_serial).map_or(0, |certificate| certificate.valid_from);
        member::CertificateId { serial: self.held_serial.clone(), valid_from }
    }

    /// Writes the agent's certificate to its record, if the record does not have it yet.
    pub(super) async fn record_presented(&self, hub: &Hub, agent: &AgentRecord) {
        let certificate = self.held_certificate();
        match agent.certificate_status(&certificate) {
            CertificateStatus::Newest => {}
            CertificateStatus::Previous | CertificateStatus::Superseded => return,
            CertificateStatus::NewerThanRecord => {
                if let Some(omitted) = hub.logs.admit((Some(agent.id), "certificate ahead")) {
                    warn!(
                        agent = %agent.id, name = agent.name, serial = %hex::encode(&certificate.serial), omitted,
                        "the agent's certificate is newer than its record, so the store was restored from an older backup; it is accepted as the newest",
                    );
                }
            }
        }
        hub.update_record(agent.id, IdentityChange::Presented(certificate)).await;
    }

    fn remember(&mut self, serial: Vec<u8>, certificate: KnownCertificate) {
        if self.known.len() >= MAX_KNOWN {
            let expires_first =
                self.known.iter().min_by_key(|(_, certificate)| certificate.ends).map(|(serial, _)| serial.clone());
            expires_first.and_then(|serial| self.known.remove(&serial));
        }
        self.known.insert(serial, certificate);
    }

    /// Returns true if any certificate that the agent may hold was issued by that authority.
    fn has_certificate_of(&self, authority: [u8; 32]) -> bool {
        self.known.values().any(|certificate| certificate.authority == Some(authority))
    }
}

impl Session {
    /// Sends the agent the trusted authorities, and whether its certificate should be renewed.
    pub(super) async fn send_authorities(&mut self) -> Result<(), SessionError> {
        let trust = self.hub.trust.load_full();
        let renew = !self.certificates.has_certificate_of(trust.signing.key_hash());
        self.send(&ToAgent::Authorities(TrustedAuthorities { authorities_der: trust.authorities_der(), renew })).await
    }

    /// Records the certificate that the agent holds. If it is a newer one, the connection lasts as long as that.
    pub(super) async fn handle_trust_report(&mut self, report: TrustReport) -> Result<(), SessionError> {
        if report.authorities.is_empty() || report.authorities.len() > 2 {
            let rule = "must be one or two";
            return Err(SessionError::Protocol(ProtocolError::Invalid { field: "holds.authorities", rule }));
        }
        let Some(certificate) = self.certificates.known.get(&report.serial).copied() else {
            if let Some(omitted) = self.hub.logs.admit((Some(self.agent.id), "unknown certificate")) {
                warn!(
                    agent = %self.agent.id, omitted,
                    "the agent reported a certificate that was not issued on this connection",
                );
            }
            return Ok(());
        };
        self.certificates.ends.fetch_max(certificate.ends, Ordering::AcqRel);
        self.certificates.known.retain(|serial, _| *serial == report.serial);
        let is_another = std::mem::replace(&mut self.certificates.held_serial, report.serial.clone()) != report.serial;
        if is_another {
            self.hub
                .update_record(self.agent.id, IdentityChange::Presented(self.certificates.held_certificate()))
                .await;
        }
        let credentials = HeldCredentials { trusts: report.authorities, certified_by: certificate.authority };
        self.hub.with_roster(|roster| roster.record_credentials(self.agent.vantage_no, credentials));
        // The authority may have changed while the response was in flight.
        if is_another && certificate.authority != Some(self.hub.trust.load().signing.key_hash()) {
            self.send_authorities().await?;
        }
        Ok(())
    }

    /// Handles a request for a new certificate.
    pub(super) async fn renew(&mut self, request: &[u8]) -> Result<(), SessionError> {
        let response = match self.try_renew(request).await {
            Ok(renewed) => ToAgent::Renewed(renewed),
            Err(reason @ (CloseReason::Revoked | CloseReason::UnknownAgent)) => {
                return Err(SessionError::Close(reason));
            }
            Err(reason) => {
                MeshCounters::add(&self.hub.counters.renewals_refused);
                ToAgent::RenewRefused { reason }
            }
        };
        self.send(&response).await
    }

    async fn try_renew(&mut self, request: &[u8]) -> Result<RenewedCertificate, CloseReason> {
        let now = Instant::now();
        let trust = self.hub.trust.load_full();
        let signing = trust.signing.key_hash();
        let lifetime = self.hub.settings.certificate_life;
        let spacing = Duration::from_secs(lifetime.unsigned_abs() / 30).clamp(MIN_SPACING, MAX_SPACING);
        let is_soon = self.certificates.renewed_at.is_some_and(|last| now.duration_since(last) < spacing);
        // A certificate of an outgoing authority may be renewed without waiting.
        if is_soon && self.certificates.has_certificate_of(signing) {
            return Err(CloseReason::RateLimited);
        }
        enrolled_agent(&self.hub, self.agent.id).await.map_err(|fault| fault.reason())?;
        self.certificates.renewed_at = Some(now);
        let issued = join::issue_certificate(&trust, request, self.agent.id, self.hub.clock.now(), lifetime)?;
        let serial = issued.serial.as_bytes().to_vec();
        let valid_from = issued.validity.not_before;
        let held = self.certificates.held_certificate();
        let issued_certificate = member::CertificateId { serial: serial.clone(), valid_from };
        // Decided in the commit that records it, and sent only after: of two concurrent requests, one is too late.
        let change = IdentityChange::Issued { made: issued_certificate, by: held.clone() };
        let update = self.hub.update_record(self.agent.id, change).await.ok_or(CloseReason::Internal)?;
        let is_superseded = update == IdentityUpdate::Superseded;
        self.hub.with_roster(|roster| roster.record_superseded(self.agent.vantage_no, is_superseded));
        if is_superseded {
            if let Some(omitted) = self.hub.logs.admit((Some(self.agent.id), "renewal refused")) {
                warn!(
                    agent = %self.agent.id, name = self.agent.name, remote = %self.connection.remote_address(),
                    serial = %hex::encode(&held.serial), omitted,
                    "renewal refused: this certificate was replaced by another; the identity was copied, or the agent's folder was restored from a backup",
                );
            }
            return Err(CloseReason::Superseded);
        }
        let ends = end_of(issued.validity.not_after);
        let certificate = KnownCertificate { authority: Some(signing), ends, valid_from };
        self.certificates.remember(serial, certificate);
        MeshCounters::add(&self.hub.counters.renewed);
        if let Some(omitted) = self.hub.logs.admit((Some(self.agent.id), "renewed")) {
            info!(agent = %self.agent.id, serial = %issued.serial, omitted, "certificate renewed");
        }
        Ok(RenewedCertificate {
            certificates_der: vec![issued.certificate.to_vec()],
            authorities_der: trust.authorities_der(),
        })
    }
}

/// Waits until the certificate has expired by the coordinator's clock. Both the clock and the expiry may change at
/// any time.
pub(super) async fn wait_until_expired(hub: &Hub, ends: &AtomicI64) {
    let mut tick = interval(Duration::from_secs(1));
    while hub.clock.now() < Timestamp::from_millis(ends.load(Ordering::Acquire)) {
        tick.tick().await;
    }
}

fn end_of(not_after: i64) -> i64 {
    not_after.saturating_add(1).saturating_mul(SECOND)
}
