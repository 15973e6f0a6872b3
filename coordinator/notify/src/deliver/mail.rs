//! Mail transport: sends by SMTP or writes to a folder, and sets the headers that mail programs use.

mod mail_folder;
mod smtp;
mod smtp_step;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use parallax_core::delivery::{AttemptOutcome, MAX_RESPONSE_BYTES};

use self::smtp::SmtpClient;
use super::outgoing_mail::{OutgoingMail, SendMail, SendResult};

/// Default timeout of each SMTP step before the server has accepted the message.
pub const DEFAULT_STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Mail configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailConfig {
    /// Transport.
    pub backend: MailBackend,
    /// Sender: an address, or a name and an address in `<>`.
    pub from: String,
    /// Reply address, if it is not the sender.
    pub reply_to: Option<String>,
}

/// Mail transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailBackend {
    /// No transport: every attempt fails with an error that says so.
    None,
    /// Writes each mail to a file in this folder.
    Folder(PathBuf),
    /// Sends by a mail server.
    Smtp(SmtpConfig),
}

/// Connection to a mail server.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpConfig {
    /// Host name or IP address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// TLS mode.
    pub tls: SmtpTls,
    /// User name and password, if the server requires them.
    pub credentials: Option<(String, String)>,
    /// Additional trusted certificates in PEM.
    pub trusted_certificates: Option<Vec<u8>>,
    /// Timeout of one step. The wait for the reply to a message's content is four times as long.
    pub step_timeout: Duration,
}

/// TLS mode of the connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// Starts in plain text and must upgrade to TLS before any other command (RFC 3207).
    StartTls,
    /// TLS from the first byte (RFC 8314).
    Implicit,
    /// Plain text.
    Off,
}

impl fmt::Debug for SmtpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpConfig({}:{}, {:?})", self.host, self.port, self.tls)
    }
}

/// Invalid mail configuration.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// A configured address is not valid.
    #[error("{0:?} is not an email address")]
    Address(String),
    /// Certificates can't be parsed, or TLS can't be set up.
    #[error("can't set up TLS for the mail server: {0}")]
    Tls(#[from] lettre::transport::smtp::Error),
}

/// Sends mails.
#[derive(Debug)]
pub struct Mailer {
    backend: ActiveBackend,
    from: Mailbox,
    reply_to: Option<Mailbox>,
}

#[derive(Debug)]
enum ActiveBackend {
    None,
    Folder(PathBuf),
    Smtp(SmtpClient),
}

impl Mailer {
    /// Creates a mailer from a configuration. Doesn't connect yet.
    ///
    /// # Errors
    /// [`MailError`] if a configured address is invalid or a certificate can't be parsed.
    pub fn new(config: &MailConfig) -> Result<Self, MailError> {
        let mailbox = |text: &str| text.parse::<Mailbox>().map_err(|_| MailError::Address(text.to_owned()));
        Ok(Self {
            from: mailbox(&config.from)?,
            reply_to: config.reply_to.as_deref().map(mailbox).transpose()?,
            backend: match &config.backend {
                MailBackend::None => ActiveBackend::None,
                MailBackend::Folder(folder) => ActiveBackend::Folder(folder.clone()),
                MailBackend::Smtp(smtp) => ActiveBackend::Smtp(SmtpClient::new(smtp)?),
            },
        })
    }

    /// Returns true if a mail transport is configured.
    pub const fn is_configured(&self) -> bool {
        !matches!(self.backend, ActiveBackend::None)
    }

    /// Builds the message; an error is about the recipient's address or a configured one.
    fn build_message(&self, mail: &OutgoingMail) -> Result<Message, SendResult> {
        let invalid = |_| failed_result(AttemptOutcome::Rejected, "not an email address", false);
        let to = Mailbox::new(None, mail.to.parse().map_err(invalid)?);
        let host = self.from.email.domain();
        let since_epoch = Duration::from_millis(mail.date.as_millis().unsigned_abs());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .to(to)
            .date(SystemTime::UNIX_EPOCH + since_epoch)
            .message_id(Some(format!("<{}@{host}>", mail.delivery)))
            .subject(mail.content.subject.replace(char::is_control, " "));
        if let Some(reply_to) = &self.reply_to {
            builder = builder.reply_to(reply_to.clone());
        }
        if let Some(thread) = mail.thread_id.as_deref().filter(|thread| is_header_safe(thread)) {
            let root = format!("<{thread}@{host}>");
            builder = builder.in_reply_to(root.clone()).references(root);
        }
        if let Some(list) = mail.list_id.as_deref().filter(|list| is_header_safe(list)) {
            builder = builder.raw_header(raw_header("List-Id", format!("<{list}.{host}>")));
        }
        // Suppresses automatic replies such as out-of-office messages (RFC 3834).
        builder = builder.raw_header(raw_header("Auto-Submitted", "auto-generated".to_owned()));
        if let Some(url) = mail.unsubscribe_url.as_deref().filter(|url| is_header_safe(url)) {
            // On one line: relays that refold this header break the DKIM signature.
            builder = builder
                .raw_header(raw_header("List-Unsubscribe", format!("<{url}>")))
                .raw_header(raw_header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
        let parts = MultiPart::alternative()
            .boundary(format!("part-{}", mail.delivery))
            .build()
            .singlepart(SinglePart::plain(mail.content.text.clone()))
            .singlepart(SinglePart::html(mail.content.html.clone()));
        builder
            .multipart(parts)
            .map_err(|error| failed_result(AttemptOutcome::Deferred(None), &error.to_string(), true))
    }
}

impl SendMail for Mailer {
    /// If the connection is lost after the server accepted the mail but before its reply arrived, the mail is
    /// sent again with the same `Message-ID`.
    fn send_mail(&self, mail: OutgoingMail) -> BoxFuture<'_, SendResult> {
        Box::pin(async move {
            let message = match self.build_message(&mail) {
                Ok(message) => message,
                Err(failure) => return failure,
            };
            match &self.backend {
                ActiveBackend::None => failed_result(
                    AttemptOutcome::Deferred(None),
                    "our side: no mail server is configured (mail.transport)",
                    true,
                ),
                ActiveBackend::Folder(folder) => {
                    mail_folder::store_mail(folder.clone(), &mail, message.formatted()).await
                }
                ActiveBackend::Smtp(smtp) => smtp.send(message.envelope(), &message.formatted()).await,
            }
        })
    }
}

fn failed_result(outcome: AttemptOutcome, error: &str, is_our_fault: bool) -> SendResult {
    SendResult { status: None, outcome, error: Some(error.to_owned()), reply: String::new(), is_our_fault }
}

/// Returns true if the text can be used unescaped between `<` and `>` in a header.
fn is_header_safe(text: &str) -> bool {
    text.len() <= 500 && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\".contains(&byte))
}

/// A header that needs neither encoding nor folding.
fn raw_header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.clone(), value)
}

/// Truncates a response to the length that is logged.
fn truncated_reply(mut reply: String) -> String {
    reply.truncate(reply.floor_char_boundary(MAX_RESPONSE_BYTES));
    reply
}
