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
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use parallax_core::delivery::Outcome;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::step::{self, Step};
use super::{MailError, SmtpConfig, Tls, failed, kept};
use crate::deliver::post::Posted;

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 4;
/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(20);

/// A mail server.
pub(super) struct Smtp {
    config: SmtpConfig,
    tls: Option<TlsParameters>,
    turns: Semaphore,
    idle: Mutex<Vec<(AsyncSmtpConnection, Instant)>>,
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl Smtp {
    /// Sets up TLS; doesn't connect.
    ///
    /// # Errors
    /// [`MailError::Tls`] if a certificate can't be parsed.
    pub(super) fn new(config: &SmtpConfig) -> Result<Self, MailError> {
        let tls = match config.tls {
            Tls::Off => None,
            Tls::StartTls | Tls::Implicit => {
                let mut builder = TlsParametersBuilder::new(config.host.clone());
                if let Some(pem) = &config.authority {
                    builder = builder.add_root_certificate(Certificate::from_pem(pem)?);
                }
                Some(builder.build_rustls()?)
            }
        };
        Ok(Self { config: config.clone(), tls, turns: Semaphore::new(CONNECTIONS), idle: Mutex::default() })
    }

    /// Attempts once to send a message.
    pub(super) async fn send(&self, envelope: &Envelope, message: &[u8]) -> Posted {
        let Ok(_turn) = self.turns.acquire().await else { return step::late(Step::Connect) };
        // The server may have closed an idle connection in the meantime; then no command has been sent on it.
        while let Some(mut connection) = self.waiting() {
            if self.begin(&mut connection, envelope).await.is_ok() {
                return self.hand_over(connection, envelope, message).await;
            }
        }
        let mut connection = match self.connect().await {
            Ok(connection) => connection,
            Err(sent) => return sent,
        };
        match self.begin(&mut connection, envelope).await {
            Ok(()) => self.hand_over(connection, envelope, message).await,
            Err(sent) => {
                self.leave(connection).await;
                sent
            }
        }
    }

    /// Runs the steps up to the sender (`MAIL FROM`).
    async fn begin(&self, connection: &mut AsyncSmtpConnection, envelope: &Envelope) -> Result<(), Posted> {
        let mut parameters = Vec::new();
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if !envelope.to().iter().chain(envelope.from()).all(is_ascii) {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                let error = "the mail server can't send to non-ASCII addresses (no SMTPUTF8)";
                return Err(failed(Outcome::Refused, error, false));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = connection.command(Mail::new(envelope.from().cloned(), parameters));
        self.within(Step::Sender, from).await.map(|_| ())
    }

    /// Runs the steps from the recipient (`RCPT TO`) on.
    async fn hand_over(
        &self,
        mut connection: AsyncSmtpConnection,
        envelope: &Envelope,
        message: &[u8],
    ) -> Posted {
        let sent = match self.transfer(&mut connection, envelope, message).await {
            Ok(sent) | Err(sent) => sent,
        };
        // After a reply the server waits for the next command; in any other case the connection's state is
        // unknown.
        let can_go_on = sent.status.is_some()
            && (sent.outcome == Outcome::Taken
                || self.within(Step::Connect, connection.command(Rset)).await.is_ok());
        if can_go_on {
            self.idle().push((connection, Instant::now()));
        } else {
            self.leave(connection).await;
        }
        sent
    }

    async fn transfer(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
        message: &[u8],
    ) -> Result<Posted, Posted> {
        for to in envelope.to() {
            self.within(Step::Recipient, connection.command(Rcpt::new(to.clone(), Vec::new()))).await?;
        }
        self.within(Step::Content, connection.command(Data)).await?;
        let reply = self.within(Step::Content, connection.message(message)).await?;
        let answer = reply.message().collect::<Vec<_>>().join("\n");
        Ok(Posted {
            status: Some(u16::from(reply.code())),
            outcome: Outcome::Taken,
            error: None,
            answer: kept(answer),
            is_ours: false,
        })
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Posted> {
        let (config, name) = (&self.config, ClientId::default());
        let server = (config.host.as_str(), config.port);
        let first = self.tls.clone().filter(|_| config.tls == Tls::Implicit);
        let connecting =
            AsyncSmtpConnection::connect_tokio1(server, Some(config.patience), &name, first, None);
        let mut connection = self.within(Step::Connect, connecting).await?;
        if let Some(tls) = self.tls.clone().filter(|_| config.tls == Tls::StartTls) {
            self.within(Step::Connect, connection.starttls(tls, &name)).await?;
        }
        if let Some((user, password)) = &config.credentials {
            let credentials = Credentials::new(user.clone(), password.clone());
            self.within(Step::Login, connection.auth(DEFAULT_MECHANISMS, &credentials)).await?;
        }
        Ok(connection)
    }

    /// Takes a reusable connection that has not been idle for too long.
    fn waiting(&self) -> Option<AsyncSmtpConnection> {
        let mut idle = self.idle();
        let now = Instant::now();
        // Dropping the others closes them.
        idle.retain(|(connection, since)| !connection.has_broken() && now - *since < IDLE);
        idle.pop().map(|(connection, _)| connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(AsyncSmtpConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn leave(&self, mut connection: AsyncSmtpConnection) {
        // Best effort: the server may not receive the QUIT.
        let _ = tokio::time::timeout(Duration::from_secs(1), connection.abort()).await;
    }

    async fn within<T>(
        &self,
        step: Step,
        doing: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Posted> {
        let patience = match step {
            Step::Content => self.config.patience.saturating_mul(4),
            Step::Connect | Step::Login | Step::Sender | Step::Recipient => self.config.patience,
        };
        match tokio::time::timeout(patience, doing).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(step::failed(step, &error)),
            Err(_) => Err(step::late(step)),
        }
    }
}
