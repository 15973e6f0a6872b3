//! Protocol and identity of a connection's peer, as the handshake settled them.

use parallax_certs::CertsError;
use parallax_certs::identity::AgentIdentity;
use parallax_protocol::version::{ConnectionPurpose, connection_purpose};
use quinn::Connection;
use quinn::crypto::rustls::HandshakeData;
use rustls_pki_types::CertificateDer;

/// Returns the protocol that the handshake agreed on, if both sides know it.
pub(super) fn negotiated_purpose(connection: &Connection) -> Option<ConnectionPurpose> {
    let data = connection.handshake_data()?.downcast::<HandshakeData>().ok()?;
    connection_purpose(&data.protocol?)
}

/// Returns the negotiated version of the mesh protocol; 0 if none was negotiated.
pub(super) fn mesh_version(connection: &Connection) -> u16 {
    match negotiated_purpose(connection) {
        Some(ConnectionPurpose::Mesh(version)) => version,
        Some(ConnectionPurpose::Join(_)) | None => 0,
    }
}

/// Returns the identity in the verified certificate, with the certificate, if the client presented one.
pub(super) fn identity(
    connection: &Connection,
) -> Option<Result<(AgentIdentity, CertificateDer<'static>), CertsError>> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let leaf = chain.into_iter().next()?;
    Some(AgentIdentity::of_agent(&leaf).map(|identity| (identity, leaf)))
}
