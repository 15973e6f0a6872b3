//! Sends mails: by SMTP, or into a folder where somebody can read them, with the headers that mail programs go by.

mod folder;
mod smtp;
mod step;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use parallax_core::delivery::{ANSWER_READ, Outcome};

use self::smtp::Smtp;
use super::post::{Parcel, Post, Posted};

/// How long a mail server is waited for at one step, before it took the mail's text, unless set otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How mails leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailConfig {
    /// By what.
    pub transport: Transport,
    /// Who they are from: an address, or a name and an address in `<>`.
    pub from: String,
    /// Where answers go, where that is elsewhere.
    pub reply_to: Option<String>,
}

/// By what mails leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// They don't: every try fails and says so.
    None,
    /// Each is written into that folder as a file.
    Folder(PathBuf),
    /// By a mail server.
    Smtp(SmtpConfig),
}

/// How a mail server is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpConfig {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is kept private.
    pub tls: Tls,
    /// User name and password, where it asks for them.
    pub credentials: Option<(String, String)>,
    /// Certificates in PEM that are trusted beside the public ones.
    pub authority: Option<Vec<u8>>,
    /// How long it is waited for at one step; four times as long for its word on a mail that it has.
    pub patience: Duration,
}

/// How the connection to a mail server is kept private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// It begins in the clear and must turn to TLS before anything is said (RFC 3207).
    StartTls,
    /// TLS from the first byte (RFC 8314).
    Implicit,
    /// In the clear.
    Off,
}

impl fmt::Debug for SmtpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpConfig({}:{}, {:?})", self.host, self.port, self.tls)
    }
}

/// What can't be sent with.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// An address of ours is none.
    #[error("{0:?} is not a mail address")]
    Address(String),
    /// Certificates that can't be read, or TLS that can't be set up.
    #[error("TLS of the mail server can't be set up: {0}")]
    Tls(#[from] lettre::transport::smtp::Error),
}

/// Sends mails.
#[derive(Debug)]
pub struct Mailer {
    way: Way,
    from: Mailbox,
    reply_to: Option<Mailbox>,
}

#[derive(Debug)]
enum Way {
    None,
    Folder(PathBuf),
    Smtp(Smtp),
}

impl Mailer {
    /// A mailer that goes by these settings. Nothing is connected to yet.
    ///
    /// # Errors
    /// [`MailError`] for an address of ours that is none, and for certificates that can't be read.
    pub fn new(config: &MailConfig) -> Result<Self, MailError> {
        let mailbox = |text: &str| text.parse::<Mailbox>().map_err(|_| MailError::Address(text.to_owned()));
        Ok(Self {
            from: mailbox(&config.from)?,
            reply_to: config.reply_to.as_deref().map(mailbox).transpose()?,
            way: match &config.transport {
                Transport::None => Way::None,
                Transport::Folder(folder) => Way::Folder(folder.clone()),
                Transport::Smtp(smtp) => Way::Smtp(Smtp::new(smtp)?),
            },
        })
    }

    /// Whether mails leave at all.
    pub const fn is_set(&self) -> bool {
        !matches!(self.way, Way::None)
    }

    /// The message; the fault is the recipient's address, or one of ours.
    fn message(&self, parcel: &Parcel) -> Result<Message, Posted> {
        let refused = |_| failed(Outcome::Refused, "not a mail address", false);
        let to = Mailbox::new(None, parcel.to.parse().map_err(refused)?);
        let host = self.from.email.domain();
        let since = Duration::from_millis(parcel.date.as_millis().unsigned_abs());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .to(to)
            .date(SystemTime::UNIX_EPOCH + since)
            .message_id(Some(format!("<{}@{host}>", parcel.delivery)))
            .subject(parcel.mail.subject.replace(char::is_control, " "));
        if let Some(reply_to) = &self.reply_to {
            builder = builder.reply_to(reply_to.clone());
        }
        if let Some(thread) = parcel.thread.as_deref().filter(|thread| is_plain(thread)) {
            let root = format!("<{thread}@{host}>");
            builder = builder.in_reply_to(root.clone()).references(root);
        }
        if let Some(list) = parcel.list.as_deref().filter(|list| is_plain(list)) {
            builder = builder.raw_header(plain("List-Id", format!("<{list}.{host}>")));
        }
        // Nobody's out-of-office reply is wanted (RFC 3834).
        builder = builder.raw_header(plain("Auto-Submitted", "auto-generated".to_owned()));
        if let Some(url) = parcel.unsubscribe.as_deref().filter(|url| is_plain(url)) {
            // On one line: relays that fold it break its signature.
            builder = builder
                .raw_header(plain("List-Unsubscribe", format!("<{url}>")))
                .raw_header(plain("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
        let parts = MultiPart::alternative()
            .boundary(format!("part-{}", parcel.delivery))
            .build()
            .singlepart(SinglePart::plain(parcel.mail.text.clone()))
            .singlepart(SinglePart::html(parcel.mail.html.clone()));
        builder.multipart(parts).map_err(|error| failed(Outcome::NotNow(None), &error.to_string(), true))
    }
}

impl Post for Mailer {
    /// A server that took the mail and was lost before it said so gets it again, under the same `Message-ID`.
    fn post(&self, parcel: Parcel) -> BoxFuture<'_, Posted> {
        Box::pin(async move {
            let message = match self.message(&parcel) {
                Ok(message) => message,
                Err(posted) => return posted,
            };
            match &self.way {
                Way::None => {
                    failed(Outcome::NotNow(None), "our side: no mail server is set (mail.transport)", true)
                }
                Way::Folder(folder) => folder::keep(folder.clone(), &parcel, message.formatted()).await,
                Way::Smtp(smtp) => smtp.send(message.envelope(), &message.formatted()).await,
            }
        })
    }
}

fn failed(outcome: Outcome, error: &str, is_ours: bool) -> Posted {
    Posted { status: None, outcome, error: Some(error.to_owned()), answer: String::new(), is_ours }
}

/// Whether a text may stand in a header between `<` and `>` as it is.
fn is_plain(text: &str) -> bool {
    text.len() <= 500 && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\".contains(&byte))
}

/// A header that needs neither encoding nor folding.
fn plain(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.clone(), value)
}

/// The start of an answer, as much as is kept of it.
fn kept(mut answer: String) -> String {
    answer.truncate(answer.floor_char_boundary(ANSWER_READ));
    answer
}
