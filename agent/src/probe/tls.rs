//! TLS handshakes and words for what is wrong with them.

use std::{io, sync::Arc};

use parallax_dial::Host;
use parallax_protocol::{
    result::{Failure, Phase},
    text::Detail,
};
use rustls::{CertificateError, ClientConfig, Error as TlsError, InvalidMessage};
use rustls_pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::facts::bad_target;

/// Shakes hands as a client that expects the certificate of `host`.
///
/// # Errors
/// [`Failure::Timeout`] at `deadline`, or the word for what is wrong.
pub(super) async fn handshake(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    host: &Host,
    deadline: Instant,
) -> Result<TlsStream<TcpStream>, Failure> {
    let name = server_name(host)?;
    // A handshake is several writes. A connection that can't be tuned has broken already: the first of them will say so.
    let _ = stream.set_nodelay(true);
    match timeout_at(deadline, TlsConnector::from(config).connect(name, stream)).await {
        Err(_) => Err(Failure::Timeout { phase: Phase::Tls }),
        Ok(Err(error)) => Err(io_failure(&error).unwrap_or_else(|| other("handshake failed"))),
        Ok(Ok(stream)) => Ok(stream),
    }
}

/// The word for a broken connection, TLS or not; `None` for a kind that says nothing.
pub(super) fn io_failure(error: &io::Error) -> Option<Failure> {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        return Some(tls_failure(tls));
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some(Failure::ClosedEarly),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some(Failure::Reset)
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(Failure::Unreachable),
        _ => None,
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, Failure> {
    match host {
        Host::Ip(ip) => Ok(ServerName::IpAddress((*ip).into())),
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned())
            .map_err(|_| bad_target("this host name can't be in a certificate")),
    }
}

/// The word for what TLS says is wrong.
pub(super) fn tls_failure(error: &TlsError) -> Failure {
    match error {
        TlsError::InvalidCertificate(fault) => certificate_failure(fault),
        TlsError::AlertReceived(alert) => other(&format!("the peer sent the alert {alert:?}")),
        // A length is believed only of a record that is one of TLS: nothing else gets as far as this.
        TlsError::InvalidMessage(
            InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
        ) => other("the certificate chain, or another message of the handshake, is over 64 KiB"),
        TlsError::InvalidMessage(_) => other("the peer does not speak TLS"),
        TlsError::PeerIncompatible(_) => other("no common TLS version or cipher suite"),
        TlsError::NoCertificatesPresented => other("the peer shows no certificate"),
        // The library's enum grows; its further words are of no help to a customer.
        _ => other("handshake failed"),
    }
}

fn certificate_failure(fault: &CertificateError) -> Failure {
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Failure::TlsExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Failure::TlsNotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Failure::TlsNameMismatch
        }
        CertificateError::UnknownIssuer => Failure::TlsUnknownIssuer,
        CertificateError::Revoked => Failure::TlsRevoked,
        CertificateError::BadEncoding => other("the certificate can't be read"),
        CertificateError::BadSignature => other("a signature in the certificate chain is wrong"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            other("the certificate is not for servers")
        }
        _ => other("the certificate is not acceptable"),
    }
}

fn other(detail: &str) -> Failure {
    Failure::TlsOther { detail: Detail::new(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(error: TlsError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    #[test]
    fn each_fault_of_a_certificate_has_its_word() {
        for (fault, failure) in [
            (CertificateError::Expired, Failure::TlsExpired),
            (CertificateError::NotValidYet, Failure::TlsNotYetValid),
            (CertificateError::NotValidForName, Failure::TlsNameMismatch),
            (CertificateError::UnknownIssuer, Failure::TlsUnknownIssuer),
            (CertificateError::Revoked, Failure::TlsRevoked),
            (CertificateError::BadSignature, other("a signature in the certificate chain is wrong")),
        ] {
            let error = wrapped(TlsError::InvalidCertificate(fault));
            assert_eq!(io_failure(&error), Some(failure));
        }
    }

    #[test]
    fn a_chain_that_is_too_long_is_not_taken_for_another_protocol() {
        let said = |fault| tls_failure(&TlsError::InvalidMessage(fault)).to_string();
        assert!(said(InvalidMessage::HandshakePayloadTooLarge).ends_with("is over 64 KiB"));
        assert!(said(InvalidMessage::CertificatePayloadTooLarge).ends_with("is over 64 KiB"));
        assert!(said(InvalidMessage::InvalidContentType).ends_with("does not speak TLS"));
    }

    #[test]
    fn a_broken_connection_is_told_from_a_broken_handshake() {
        let kind = |kind: io::ErrorKind| io_failure(&io::Error::from(kind));
        assert_eq!(kind(io::ErrorKind::UnexpectedEof), Some(Failure::ClosedEarly));
        assert_eq!(kind(io::ErrorKind::ConnectionReset), Some(Failure::Reset));
        assert_eq!(kind(io::ErrorKind::Other), None);
    }
}
