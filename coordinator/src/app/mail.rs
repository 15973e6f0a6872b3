//! Builds the mailer from the settings.

use std::path::Path;

use parallax_notify::deliver::mail::{DEFAULT_STEP_TIMEOUT, MailBackend, MailConfig, Mailer, SmtpConfig, SmtpTls};

use super::AppError;
use crate::config::{self, MailTls, MailTransport};

/// Maximum size of a CA certificate file, in bytes.
const MAX_CA: u64 = 1 << 20;
/// Default sender of mails written to a folder.
const DEFAULT_FROM: &str = "Parallax <parallax@localhost>";

/// Builds the mailer. Connects to nothing yet.
///
/// # Errors
/// [`AppError::Mail`] if certificates can't be read.
pub(super) fn mailer(mail: &config::OutgoingMailConfig) -> Result<Mailer, AppError> {
    let transport = match (mail.transport, &mail.host, &mail.folder) {
        (MailTransport::Smtp, Some(host), _) => MailBackend::Smtp(SmtpConfig {
            host: host.clone(),
            port: mail.port(),
            tls: match mail.tls {
                MailTls::StartTls => SmtpTls::StartTls,
                MailTls::Implicit => SmtpTls::Implicit,
                MailTls::None => SmtpTls::Off,
            },
            credentials: mail.username.clone().zip(mail.password.clone()),
            trusted_certificates: mail.ca.as_deref().map(certificates).transpose()?,
            step_timeout: DEFAULT_STEP_TIMEOUT,
        }),
        (MailTransport::Folder, _, Some(folder)) => MailBackend::Folder(folder.clone()),
        (MailTransport::None | MailTransport::Smtp | MailTransport::Folder, _, _) => MailBackend::None,
    };
    let from = mail.from.clone().unwrap_or_else(|| DEFAULT_FROM.to_owned());
    let config = MailConfig { backend: transport, from, reply_to: mail.reply_to.clone() };
    Mailer::new(&config).map_err(|error| AppError::Mail(error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<u8>, AppError> {
    let fault = |text: String| AppError::Mail(format!("ca {}: {text}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
    if size > MAX_CA {
        return Err(fault(format!("is longer than {MAX_CA} bytes")));
    }
    std::fs::read(path).map_err(|error| fault(error.to_string()))
}
