//! Sends mails: by SMTP, or into a folder where somebody can read them, with the headers that mail programs go by.

mod folder;
mod smtp;
mod step;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use parallax_core::delivery::{ANSWER_KEPT, Mail, Outcome};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;

use self::smtp::Smtp;

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

/// What a mail carries beside its words.
#[derive(Debug, Clone, Copy)]
pub struct Extra<'a> {
    /// The delivery's id, which makes the `Message-ID`: the same over all tries.
    pub id: DeliveryId,
    /// When the letter was made: its `Date`, over all tries.
    pub date: Timestamp,
    /// Where one click ends the subscription (RFC 8058): an https address of at most 500 characters.
    pub unsubscribe: Option<&'a str>,
    /// What the mail belongs to, by its id (`mon_…`, `inc_…`): mail programs show those of one together.
    pub thread: Option<&'a str>,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The server's reply code, where there was a reply.
    pub status: Option<u16>,
    /// What it means for the delivery.
    pub outcome: Outcome,
    /// Why it was not taken, and by whose fault.
    pub error: Option<String>,
    /// What the server said.
    pub answer: String,
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

    /// One try to send a mail to one address. A server that took the mail and was lost before it said so gets it again,
    /// under the same `Message-ID`.
    pub async fn send(&self, to: &str, mail: &Mail, extra: &Extra<'_>) -> Sent {
        let message = match self.message(to, mail, extra) {
            Ok(message) => message,
            Err(sent) => return sent,
        };
        match &self.way {
            Way::None => Sent::failed(Outcome::NotNow(None), "no mail transport is set (mail.transport)"),
            Way::Folder(folder) => folder::keep(folder.clone(), extra, message.formatted()).await,
            Way::Smtp(smtp) => smtp.send(message.envelope(), &message.formatted()).await,
        }
    }

    /// The message; the fault is the recipient's address, or one of ours.
    fn message(&self, to: &str, mail: &Mail, extra: &Extra<'_>) -> Result<Message, Sent> {
        let refused = |_| Sent::failed(Outcome::Refused, "not a mail address");
        let to = Mailbox::new(None, to.parse().map_err(refused)?);
        let host = self.from.email.domain();
        let date = SystemTime::UNIX_EPOCH + Duration::from_millis(extra.date.as_millis().unsigned_abs());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .to(to)
            .date(date)
            .message_id(Some(format!("<{}@{host}>", extra.id)))
            .subject(mail.subject.clone());
        if let Some(reply_to) = &self.reply_to {
            builder = builder.reply_to(reply_to.clone());
        }
        if let Some(thread) = extra.thread.filter(|thread| is_plain(thread)) {
            let root = format!("<{thread}@{host}>");
            builder = builder.in_reply_to(root.clone()).references(root);
        }
        // Nobody's out-of-office reply is wanted (RFC 3834).
        builder = builder.raw_header(plain("Auto-Submitted", "auto-generated".to_owned()));
        if let Some(url) = extra.unsubscribe.filter(|url| is_plain(url)) {
            // On one line: relays that fold it break its signature.
            builder = builder
                .raw_header(plain("List-Unsubscribe", format!("<{url}>")))
                .raw_header(plain("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
        let parts = MultiPart::alternative()
            .boundary(format!("part-{}", extra.id))
            .build()
            .singlepart(SinglePart::plain(mail.text.clone()))
            .singlepart(SinglePart::html(mail.html.clone()));
        builder.multipart(parts).map_err(|error| Sent::failed(Outcome::NotNow(None), &error.to_string()))
    }
}

impl Sent {
    fn failed(outcome: Outcome, error: &str) -> Self {
        Self { status: None, outcome, error: Some(error.to_owned()), answer: String::new() }
    }
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
    answer.truncate(answer.floor_char_boundary(ANSWER_KEPT));
    answer
}
