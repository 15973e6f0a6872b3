//! TLS handshakes and the description of their failures.

mod explain;
mod hello;
mod web_verifier;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parallax_dial::{DialRoute, DialedConnection, Host};
use parallax_protocol::{
    result::{WireFailure, WireOwnFault, WirePhase},
    text::ShortText,
};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError, InvalidMessage, PeerIncompatible};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(super) use self::web_verifier::{WebVerifier, explained_chain_error};
use self::{
    explain::{ChainFault, explained},
    hello::ServerChoice,
};
use super::facts::{CheckError, bad_target};

/// Size of a record with an alert (RFC 8446, section 5.1): a server that sent no more has refused the first
/// hello.
const ALERT_BYTES: u64 = 7;
/// Time limit for a second hello to a server that refused the first.
const SECOND_HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// The stream after a handshake.
pub(super) type WebTlsStream = TlsStream<CountingStream<TcpStream>>;

/// Performs a handshake as a client that expects the certificate of `host`. A server that refuses gets a
/// second hello over another connection to the same address, which shows its requirements.
///
/// # Errors
/// [`WireFailure::Timeout`] at `deadline`, or the failure's description; the agent's own fault if this TLS
/// library lacks a feature.
pub(super) async fn handshake(
    connected: DialedConnection,
    config: Arc<ClientConfig>,
    host: &Host,
    deadline: Instant,
) -> Result<WebTlsStream, CheckError> {
    let name = server_name(host)?;
    // A handshake is several writes.
    connected.disable_nagle();
    let route = connected.route();
    let stream = CountingStream { inner: connected.stream, bytes: 0 };
    let handshake = TlsConnector::from(config).connect(name, stream).into_fallible();
    let (error, stream) = match timeout_at(deadline, handshake).await {
        Err(_) => return Err(WireFailure::Timeout { phase: WirePhase::Tls }.into()),
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(failed)) => failed,
    };
    let has_refused = stream.bytes <= ALERT_BYTES;
    drop(stream);
    if has_refused && let Some(refusal) = HelloRefusal::of(&error) {
        let again = Box::pin(second_hello(route, host, deadline.min(Instant::now() + SECOND_HELLO_TIMEOUT)));
        match (again.await, refusal) {
            (Some(ServerChoice::Unsupported(what)), _) => {
                return Err(unsupported(&format!("the server requires {what}, which this check does not support")));
            }
            (Some(ServerChoice::Supported), HelloRefusal::NothingInCommon) => {
                let what = "the server requires a key or signature that this check can't verify";
                return Err(unsupported(what));
            }
            (Some(ServerChoice::Supported), HelloRefusal::Unspecified) | (None, _) => {}
        }
    }
    Err(handshake_error(&error))
}

async fn second_hello(route: DialRoute, host: &Host, deadline: Instant) -> Option<ServerChoice> {
    let mut connected = route.connect(deadline).await.ok()?;
    timeout_at(deadline, hello::send(&mut connected.stream, host)).await.ok().flatten()
}

/// Kind of refusal of a hello by a server that has sent nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HelloRefusal {
    /// It reports that the two have nothing in common.
    NothingInCommon,
    /// It gives little or no reason. Some servers close the connection if they have no suite in common.
    Unspecified,
}

impl HelloRefusal {
    fn of(error: &io::Error) -> Option<Self> {
        match tls_error(error) {
            Some(TlsError::AlertReceived(
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity,
            )) => Some(Self::NothingInCommon),
            Some(TlsError::AlertReceived(
                AlertDescription::ProtocolVersion
                | AlertDescription::InternalError
                | AlertDescription::IllegalParameter
                | AlertDescription::DecodeError,
            )) => Some(Self::Unspecified),
            Some(_) => None,
            None => matches!(io_failure(error), Some(WireFailure::ClosedEarly | WireFailure::Reset))
                .then_some(Self::Unspecified),
        }
    }
}

/// Returns the agent's own fault: this TLS library lacks a feature that the server requires.
fn unsupported(what: &str) -> CheckError {
    CheckError::Own(WireOwnFault::unsupported_tls(ShortText::new(&format!("TLS can't be judged: {what}"))))
}

fn handshake_error(error: &io::Error) -> CheckError {
    match tls_error(error).and_then(explained) {
        Some(ChainFault::Unsupported(what)) => unsupported(what),
        Some(ChainFault::Issuer(_)) | None => {
            io_failure(error).unwrap_or_else(|| other_failure("handshake failed")).into()
        }
    }
}

/// Converts an explained error of a verifier.
pub(super) fn explained_error(error: &TlsError) -> CheckError {
    match explained(error) {
        Some(ChainFault::Unsupported(what)) => unsupported(what),
        Some(ChainFault::Issuer(_)) | None => tls_failure(error).into(),
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Returns the failure for a broken connection, TLS or not; `None` for an uninformative kind.
pub(super) fn io_failure(error: &io::Error) -> Option<WireFailure> {
    if let Some(tls) = tls_error(error) {
        return Some(tls_failure(tls));
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some(WireFailure::ClosedEarly),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some(WireFailure::Reset)
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(WireFailure::Unreachable),
        _ => None,
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, WireFailure> {
    match host {
        Host::Ip(ip) => Ok(ServerName::IpAddress((*ip).into())),
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned())
            .map_err(|_| bad_target("a certificate can't contain this host name")),
    }
}

/// Returns the failure for a TLS error.
pub(super) fn tls_failure(error: &TlsError) -> WireFailure {
    if let Some(ChainFault::Issuer(text) | ChainFault::Unsupported(text)) = explained(error) {
        return other_failure(text);
    }
    match error {
        TlsError::InvalidCertificate(fault) => certificate_failure(fault),
        // The library checks lengths only of valid TLS records: other data does not get this far.
        TlsError::InvalidMessage(
            InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
        ) => other_failure("the certificate chain, or another message of the handshake, is over 64 KiB"),
        TlsError::InvalidMessage(_) => other_failure("the server does not speak TLS"),
        TlsError::AlertReceived(AlertDescription::ProtocolVersion)
        | TlsError::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13 | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => other_failure("the server supports neither TLS 1.2 nor 1.3"),
        TlsError::AlertReceived(alert) => other_failure(&format!("the server sent the alert {alert:?}")),
        TlsError::PeerIncompatible(_) => other_failure("no common TLS version or cipher suite"),
        TlsError::NoCertificatesPresented => other_failure("the server sends no certificate"),
        // The library's enum may grow; its further variants don't help a customer.
        _ => other_failure("handshake failed"),
    }
}

fn certificate_failure(fault: &CertificateError) -> WireFailure {
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => WireFailure::TlsExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => WireFailure::TlsNotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            WireFailure::TlsNameMismatch
        }
        CertificateError::UnknownIssuer => WireFailure::TlsUnknownIssuer,
        CertificateError::Revoked => WireFailure::TlsRevoked,
        CertificateError::BadEncoding => other_failure("the certificate can't be read"),
        CertificateError::BadSignature => other_failure("a signature in the certificate chain is invalid"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            other_failure("the certificate is not for servers")
        }
        // Features that the library lacks were handled before.
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            other_failure("a signature in the certificate chain has an unsupported algorithm")
        }
        _ => other_failure("the certificate is not acceptable"),
    }
}

fn other_failure(detail: &str) -> WireFailure {
    WireFailure::TlsOther { detail: ShortText::new(detail) }
}

/// Counts the received bytes.
#[derive(Debug)]
pub(super) struct CountingStream<S> {
    inner: S,
    bytes: u64,
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let received = buf.filled().len().saturating_sub(before);
        self.bytes = self.bytes.saturating_add(u64::try_from(received).unwrap_or(u64::MAX));
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(error: TlsError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    #[test]
    fn each_certificate_error_has_its_failure() {
        for (fault, failure) in [
            (CertificateError::Expired, WireFailure::TlsExpired),
            (CertificateError::NotValidYet, WireFailure::TlsNotYetValid),
            (CertificateError::NotValidForName, WireFailure::TlsNameMismatch),
            (CertificateError::UnknownIssuer, WireFailure::TlsUnknownIssuer),
            (CertificateError::Revoked, WireFailure::TlsRevoked),
            (CertificateError::BadSignature, other_failure("a signature in the certificate chain is invalid")),
        ] {
            let error = wrapped(TlsError::InvalidCertificate(fault));
            assert_eq!(io_failure(&error), Some(failure));
        }
    }

    #[test]
    fn an_oversized_chain_is_not_reported_as_another_protocol() {
        let detail = |fault| tls_failure(&TlsError::InvalidMessage(fault)).to_string();
        assert!(detail(InvalidMessage::HandshakePayloadTooLarge).ends_with("is over 64 KiB"));
        assert!(detail(InvalidMessage::CertificatePayloadTooLarge).ends_with("is over 64 KiB"));
        assert!(detail(InvalidMessage::InvalidContentType).ends_with("does not speak TLS"));
    }

    #[test]
    fn connection_errors_are_distinguished_from_handshake_errors() {
        let kind = |kind: io::ErrorKind| io_failure(&io::Error::from(kind));
        assert_eq!(kind(io::ErrorKind::UnexpectedEof), Some(WireFailure::ClosedEarly));
        assert_eq!(kind(io::ErrorKind::ConnectionReset), Some(WireFailure::Reset));
        assert_eq!(kind(io::ErrorKind::Other), None);
    }
}
