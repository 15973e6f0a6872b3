//! Settings of outgoing mail: the transport, its required settings, and hiding of secrets.

use std::fmt;
use std::path::PathBuf;

use parallax_core::text;

use super::CoordinatorConfig;

/// Maximum bytes of a user name and of a password.
const MAX_LOGIN: usize = 1_000;

/// Settings of outgoing mail.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OutgoingMailConfig {
    /// Transport.
    pub transport: MailTransport,
    /// smtp: host name or address of the server.
    pub host: Option<String>,
    /// smtp: port; none: 587 with starttls, 465 with implicit, 25 with none.
    pub port: Option<u16>,
    /// smtp: encryption of the connection.
    pub tls: MailTls,
    /// smtp: PEM file with certificates to trust in addition to the public ones.
    pub ca: Option<PathBuf>,
    /// smtp: user name, if the server requires a login.
    pub username: Option<String>,
    /// smtp: password.
    pub password: Option<String>,
    /// Sender: an address, or a name and an address in `<>`.
    pub from: Option<String>,
    /// Reply-to address.
    pub reply_to: Option<String>,
    /// folder: folder that mails are written to.
    pub folder: Option<PathBuf>,
}

/// Transport of outgoing mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MailTransport {
    /// Mail is disabled.
    #[default]
    None,
    /// A mail server.
    Smtp,
    /// Files in a folder.
    Folder,
}

/// Encryption of the connection to the mail server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MailTls {
    /// STARTTLS, required before any mail is sent.
    #[default]
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// No encryption.
    None,
}

impl fmt::Debug for OutgoingMailConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mail({:?}, {:?})", self.transport, self.host)
    }
}

impl MailTransport {
    /// Returns the value as written in a settings file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Smtp => "smtp",
            Self::Folder => "folder",
        }
    }
}

impl MailTls {
    /// Returns the value as written in a settings file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StartTls => "starttls",
            Self::Implicit => "implicit",
            Self::None => "none",
        }
    }
}

impl OutgoingMailConfig {
    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            MailTls::StartTls => 587,
            MailTls::Implicit => 465,
            MailTls::None => 25,
        })
    }

    /// Returns a setting of `[mail]` that is missing or conflicts with others, and the rule.
    pub(super) fn missing(&self) -> Option<(&'static str, String)> {
        let needed = |name, is_set: bool| {
            let with = self.transport.name();
            (!is_set).then(|| (name, format!("must be set with transport = {with:?}")))
        };
        match self.transport {
            MailTransport::None => None,
            MailTransport::Folder => needed("folder", self.folder.is_some()),
            MailTransport::Smtp => needed("host", self.host.is_some())
                .or_else(|| needed("from", self.from.is_some()))
                .or_else(|| self.incomplete_login()),
        }
    }

    fn incomplete_login(&self) -> Option<(&'static str, String)> {
        let is_near = matches!(self.host.as_deref(), Some("localhost" | "127.0.0.1" | "::1"));
        match (&self.username, &self.password) {
            (Some(_), None) => Some(("password", "must be set together with mail.username".to_owned())),
            (None, Some(_)) => Some(("username", "must be set together with mail.password".to_owned())),
            (Some(_), Some(_)) if self.tls == MailTls::None && !is_near => {
                Some(("tls", "must be \"starttls\" or \"implicit\" if a password is set".to_owned()))
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

pub(super) fn read_transport(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let all = [MailTransport::None, MailTransport::Smtp, MailTransport::Folder];
    let choice = all.into_iter().find(|it| it.name() == text);
    config.mail.transport = choice.ok_or("must be \"smtp\", \"folder\" or \"none\"")?;
    Ok(())
}

pub(super) fn read_tls(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let all = [MailTls::StartTls, MailTls::Implicit, MailTls::None];
    let choice = all.into_iter().find(|it| it.name() == text);
    config.mail.tls = choice.ok_or("must be \"starttls\", \"implicit\" or \"none\"")?;
    Ok(())
}

pub(super) fn read_host(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if !(1..=253).contains(&text.len()) || !text.bytes().all(is_host) {
        return Err("must be a host name or an IP address, without a port".to_owned());
    }
    config.mail.host = Some(text.to_owned());
    Ok(())
}

pub(super) fn read_ca(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.ca = Some(path(text)?);
    Ok(())
}

pub(super) fn read_folder(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.folder = Some(path(text)?);
    Ok(())
}

pub(super) fn read_username(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.username = Some(login(text)?);
    Ok(())
}

pub(super) fn read_password(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.password = Some(login(text)?);
    Ok(())
}

pub(super) fn read_from(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.from = Some(mailbox(text)?);
    Ok(())
}

pub(super) fn read_reply_to(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.mail.reply_to = Some(mailbox(text)?);
    Ok(())
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("must be a path".to_owned()) } else { Ok(PathBuf::from(text)) }
}

fn login(text: &str) -> Result<String, String> {
    if (1..=MAX_LOGIN).contains(&text.len()) && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be 1 to {MAX_LOGIN} bytes without control characters"))
    }
}

/// Reads an address, or a name and an address in `<>`.
fn mailbox(text: &str) -> Result<String, String> {
    let rule = || "must be an email address, or a name and an address: Status <status@example.com>".to_owned();
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, address)) => {
            let is_plain = |sign: char| !sign.is_control() && !"<>@,;:\\\"()[]".contains(sign);
            if name.trim().is_empty() || name.chars().count() > 100 || !name.chars().all(is_plain) {
                return Err(rule());
            }
            address
        }
        None => text,
    };
    text::parse_email(address).map_err(|_| rule())?;
    Ok(text.to_owned())
}
