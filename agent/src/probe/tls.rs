//! TLS handshakes and the description of their failures.

mod explain;
mod hello;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parallax_dial::{Connected, Host, Route};
use parallax_protocol::{
    result::{Failure, OwnFault, Phase},
    text::Detail,
};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, InvalidMessage, PeerIncompatible,
};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(super) use self::explain::{chain, signature};
use self::{
    explain::{ChainFault, explained},
    hello::Choice,
};
use super::facts::{Trouble, bad_target};

/// Size of a record with an alert (RFC 8446, section 5.1): a server that sent no more has refused the first
/// hello.
const ALERT: u64 = 7;
/// Time limit for a second hello to a server that refused the first.
const SECOND_HELLO: Duration = Duration::from_secs(2);

/// The stream after a handshake.
pub(super) type Secret = TlsStream<Heard<TcpStream>>;

/// Performs a handshake as a client that expects the certificate of `host`. A server that refuses gets a
/// second hello over another connection to the same address, which shows its requirements.
///
/// # Errors
/// [`Failure::Timeout`] at `deadline`, or the failure's description; the agent's own fault if this TLS
/// library lacks a feature.
pub(super) async fn handshake(
    connected: Connected,
    config: Arc<ClientConfig>,
    host: &Host,
    deadline: Instant,
) -> Result<Secret, Trouble> {
    let name = server_name(host)?;
    // A handshake is several writes.
    connected.without_delay();
    let route = connected.route();
    let stream = Heard { inner: connected.stream, bytes: 0 };
    let shaking = TlsConnector::from(config).connect(name, stream).into_fallible();
    let (error, stream) = match timeout_at(deadline, shaking).await {
        Err(_) => return Err(Failure::Timeout { phase: Phase::Tls }.into()),
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(failed)) => failed,
    };
    let has_refused = stream.bytes <= ALERT;
    drop(stream);
    if has_refused && let Some(refusal) = Refusal::of(&error) {
        let again = Box::pin(second_hello(route, host, deadline.min(Instant::now() + SECOND_HELLO)));
        match (again.await, refusal) {
            (Some(Choice::Lacking(what)), _) => {
                return Err(lacking(&format!(
                    "the server requires {what}, which this check does not support"
                )));
            }
            (Some(Choice::Ours), Refusal::Terms) => {
                let what = "the server requires a key or signature that this check can't verify";
                return Err(lacking(what));
            }
            (Some(Choice::Ours), Refusal::Unsaid) | (None, _) => {}
        }
    }
    Err(trouble(&error))
}

async fn second_hello(route: Route, host: &Host, deadline: Instant) -> Option<Choice> {
    let mut connected = route.connect(deadline).await.ok()?;
    timeout_at(deadline, hello::ask(&mut connected.stream, host)).await.ok().flatten()
}

/// Kind of refusal of a hello by a server that has sent nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It reports that the two have nothing in common.
    Terms,
    /// It gives little or no reason. Some servers close the connection if they have no suite in common.
    Unsaid,
}

impl Refusal {
    fn of(error: &io::Error) -> Option<Self> {
        match tls_error(error) {
            Some(TlsError::AlertReceived(
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity,
            )) => Some(Self::Terms),
            Some(TlsError::AlertReceived(
                AlertDescription::ProtocolVersion
                | AlertDescription::InternalError
                | AlertDescription::IllegalParameter
                | AlertDescription::DecodeError,
            )) => Some(Self::Unsaid),
            Some(_) => None,
            None => matches!(io_failure(error), Some(Failure::ClosedEarly | Failure::Reset))
                .then_some(Self::Unsaid),
        }
    }
}

/// Returns the agent's own fault: this TLS library lacks a feature that the server requires.
fn lacking(what: &str) -> Trouble {
    Trouble::Own(OwnFault::tls(Detail::new(&format!("TLS can't be judged: {what}"))))
}

fn trouble(error: &io::Error) -> Trouble {
    match tls_error(error).and_then(explained) {
        Some(ChainFault::Lacking(what)) => lacking(what),
        Some(ChainFault::OfIssuer(_)) | None => {
            io_failure(error).unwrap_or_else(|| other("handshake failed")).into()
        }
    }
}

/// Converts an explained error of a verifier.
pub(super) fn verdict(error: &TlsError) -> Trouble {
    match explained(error) {
        Some(ChainFault::Lacking(what)) => lacking(what),
        Some(ChainFault::OfIssuer(_)) | None => tls_failure(error).into(),
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Returns the failure for a broken connection, TLS or not; `None` for an uninformative kind.
pub(super) fn io_failure(error: &io::Error) -> Option<Failure> {
    if let Some(tls) = tls_error(error) {
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
            .map_err(|_| bad_target("a certificate can't contain this host name")),
    }
}

/// Returns the failure for a TLS error.
pub(super) fn tls_failure(error: &TlsError) -> Failure {
    if let Some(ChainFault::OfIssuer(words) | ChainFault::Lacking(words)) = explained(error) {
        return other(words);
    }
    match error {
        TlsError::InvalidCertificate(fault) => certificate_failure(fault),
        // The library checks lengths only of valid TLS records: other data does not get this far.
        TlsError::InvalidMessage(
            InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
        ) => other("the certificate chain, or another message of the handshake, is over 64 KiB"),
        TlsError::InvalidMessage(_) => other("the server does not speak TLS"),
        TlsError::AlertReceived(AlertDescription::ProtocolVersion)
        | TlsError::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => other("the server supports neither TLS 1.2 nor 1.3"),
        TlsError::AlertReceived(alert) => other(&format!("the server sent the alert {alert:?}")),
        TlsError::PeerIncompatible(_) => other("no common TLS version or cipher suite"),
        TlsError::NoCertificatesPresented => other("the server sends no certificate"),
        // The library's enum may grow; its further variants don't help a customer.
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
        CertificateError::BadSignature => other("a signature in the certificate chain is invalid"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            other("the certificate is not for servers")
        }
        // Features that the library lacks were handled before.
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            other("a signature in the certificate chain has an unsupported algorithm")
        }
        _ => other("the certificate is not acceptable"),
    }
}

fn other(detail: &str) -> Failure {
    Failure::TlsOther { detail: Detail::new(detail) }
}

/// Counts the received bytes.
#[derive(Debug)]
pub(super) struct Heard<S> {
    inner: S,
    bytes: u64,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let came = buf.filled().len().saturating_sub(before);
        self.bytes = self.bytes.saturating_add(u64::try_from(came).unwrap_or(u64::MAX));
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
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
    fn each_fault_of_a_certificate_has_its_word() {
        for (fault, failure) in [
            (CertificateError::Expired, Failure::TlsExpired),
            (CertificateError::NotValidYet, Failure::TlsNotYetValid),
            (CertificateError::NotValidForName, Failure::TlsNameMismatch),
            (CertificateError::UnknownIssuer, Failure::TlsUnknownIssuer),
            (CertificateError::Revoked, Failure::TlsRevoked),
            (CertificateError::BadSignature, other("a signature in the certificate chain is invalid")),
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
