//! SMTP client that runs the protocol step by step, so that a rejection is attributed to its step.
//! Connections are reused.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lettre::Address;
use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use parallax_core::delivery::AttemptOutcome;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::smtp_step::{self, SmtpStep};
use super::{MailError, SmtpConfig, SmtpTls, failed_result, truncated_reply};
use crate::deliver::outgoing_mail::SendResult;

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 4;
/// Idle time after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// A mail server.
pub(super) struct SmtpClient {
    config: SmtpConfig,
    tls: Option<TlsParameters>,
    permits: Semaphore,
    idle: Mutex<Vec<(AsyncSmtpConnection, Instant)>>,
}

impl fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl SmtpClient {
    /// Sets up TLS; doesn't connect.
    ///
    /// # Errors
    /// [`MailError::Tls`] if a certificate can't be parsed.
    pub(super) fn new(config: &SmtpConfig) -> Result<Self, MailError> {
        let tls = match config.tls {
            SmtpTls::Off => None,
            SmtpTls::StartTls | SmtpTls::Implicit => {
                let mut builder = TlsParametersBuilder::new(config.host.clone());
                if let Some(pem) = &config.trusted_certificates {
                    builder = builder.add_root_certificate(Certificate::from_pem(pem)?);
                }
                Some(builder.build_rustls()?)
            }
        };
        Ok(Self { config: config.clone(), tls, permits: Semaphore::new(MAX_CONNECTIONS), idle: Mutex::default() })
    }

    /// Attempts once to send a message.
    pub(super) async fn send(&self, envelope: &Envelope, message: &[u8]) -> SendResult {
        let Ok(_permit) = self.permits.acquire().await else {
            return smtp_step::step_timed_out(SmtpStep::Connect);
        };
        // The server may have closed an idle connection in the meantime; then no command has been sent on it.
        while let Some(mut connection) = self.take_idle_connection() {
            if self.start_transaction(&mut connection, envelope).await.is_ok() {
                return self.finish_transaction(connection, envelope, message).await;
            }
        }
        let mut connection = match self.connect().await {
            Ok(connection) => connection,
            Err(failure) => return failure,
        };
        match self.start_transaction(&mut connection, envelope).await {
            Ok(()) => self.finish_transaction(connection, envelope, message).await,
            Err(failure) => {
                self.quit(connection).await;
                failure
            }
        }
    }

    /// Runs the steps up to the sender (`MAIL FROM`).
    async fn start_transaction(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
    ) -> Result<(), SendResult> {
        let mut parameters = Vec::new();
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if !envelope.to().iter().chain(envelope.from()).all(is_ascii) {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                let error = "the mail server can't send to non-ASCII addresses (no SMTPUTF8)";
                return Err(failed_result(AttemptOutcome::Rejected, error, false));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = connection.command(Mail::new(envelope.from().cloned(), parameters));
        self.with_timeout(SmtpStep::Sender, from).await.map(|_| ())
    }

    /// Runs the steps from the recipient (`RCPT TO`) on.
    async fn finish_transaction(
        &self,
        mut connection: AsyncSmtpConnection,
        envelope: &Envelope,
        message: &[u8],
    ) -> SendResult {
        let result = match self.transfer(&mut connection, envelope, message).await {
            Ok(result) | Err(result) => result,
        };
        // After a reply the server waits for the next command; in any other case the connection's state is
        // unknown.
        let is_reusable = result.status.is_some()
            && (result.outcome == AttemptOutcome::Accepted
                || self.with_timeout(SmtpStep::Connect, connection.command(Rset)).await.is_ok());
        if is_reusable {
            self.idle_connections().push((connection, Instant::now()));
        } else {
            self.quit(connection).await;
        }
        result
    }

    async fn transfer(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
        message: &[u8],
    ) -> Result<SendResult, SendResult> {
        for to in envelope.to() {
            self.with_timeout(SmtpStep::Recipient, connection.command(Rcpt::new(to.clone(), Vec::new()))).await?;
        }
        self.with_timeout(SmtpStep::Content, connection.command(Data)).await?;
        let response = self.with_timeout(SmtpStep::Content, connection.message(message)).await?;
        let reply = response.message().collect::<Vec<_>>().join("\n");
        Ok(SendResult {
            status: Some(u16::from(response.code())),
            outcome: AttemptOutcome::Accepted,
            error: None,
            reply: truncated_reply(reply),
            is_our_fault: false,
        })
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, SendResult> {
        let (config, name) = (&self.config, ClientId::default());
        let server = (config.host.as_str(), config.port);
        let implicit_tls = self.tls.clone().filter(|_| config.tls == SmtpTls::Implicit);
        let connecting =
            AsyncSmtpConnection::connect_tokio1(server, Some(config.step_timeout), &name, implicit_tls, None);
        let mut connection = self.with_timeout(SmtpStep::Connect, connecting).await?;
        if let Some(tls) = self.tls.clone().filter(|_| config.tls == SmtpTls::StartTls) {
            self.with_timeout(SmtpStep::Connect, connection.starttls(tls, &name)).await?;
        }
        if let Some((user, password)) = &config.credentials {
            let credentials = Credentials::new(user.clone(), password.clone());
            self.with_timeout(SmtpStep::Login, connection.auth(DEFAULT_MECHANISMS, &credentials)).await?;
        }
        Ok(connection)
    }

    /// Takes a reusable connection that has not been idle for too long.
    fn take_idle_connection(&self) -> Option<AsyncSmtpConnection> {
        let mut idle = self.idle_connections();
        let now = Instant::now();
        // Dropping the others closes them.
        idle.retain(|(connection, since)| !connection.has_broken() && now - *since < IDLE_TIMEOUT);
        idle.pop().map(|(connection, _)| connection)
    }

    fn idle_connections(&self) -> std::sync::MutexGuard<'_, Vec<(AsyncSmtpConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn quit(&self, mut connection: AsyncSmtpConnection) {
        // Best effort: the server may not receive the QUIT.
        let _ = tokio::time::timeout(Duration::from_secs(1), connection.abort()).await;
    }

    async fn with_timeout<T>(
        &self,
        step: SmtpStep,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, SendResult> {
        let limit = match step {
            SmtpStep::Content => self.config.step_timeout.saturating_mul(4),
            SmtpStep::Connect | SmtpStep::Login | SmtpStep::Sender | SmtpStep::Recipient => self.config.step_timeout,
        };
        match tokio::time::timeout(limit, operation).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(smtp_step::step_failed(step, &error)),
            Err(_) => Err(smtp_step::step_timed_out(step)),
        }
    }
}
