//! Settings of the operator's own destination for operator alerts.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parallax_core::destination::SigningSecrets;
use parallax_core::text;

use super::CoordinatorConfig;

/// Maximum characters of a webhook's URL.
const MAX_URL: usize = 2048;
/// Prefix of a secret, before its base64.
const SECRET: &str = "whsec_";
/// Allowed bytes of a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Destination of operator alerts about agents, networks, disk space and certificates.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OperatorConfig {
    /// Email address.
    pub mail: Option<String>,
    /// URL of a signed webhook.
    pub webhook: Option<String>,
    /// Signing secret of the webhook: `whsec_` and base64.
    pub webhook_secret: Option<String>,
}

impl OperatorConfig {
    /// Returns the webhook's URL and signing secret, if it is set.
    pub fn signed_webhook(&self) -> Option<(String, SigningSecrets)> {
        let (url, present) = self.webhook.clone().zip(self.webhook_secret.clone())?;
        Some((url, SigningSecrets { newest: present, previous: None }))
    }

    /// Returns a setting that the present ones require, with the rule.
    pub(super) fn missing(&self) -> Option<(&'static str, String)> {
        let unsigned = self.webhook.is_some() && self.webhook_secret.is_none();
        unsigned.then(|| ("operator.webhook_secret", "is required with operator.webhook".to_owned()))
    }
}

impl fmt::Debug for OperatorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({:?}, {:?})", self.mail, self.webhook)
    }
}

pub(super) fn read_mail(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.operator.mail = Some(text::parse_email(text)?);
    Ok(())
}

pub(super) fn read_webhook(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let rule = || format!("must be an http:// or https:// URL of at most {MAX_URL} characters");
    let uri: http::Uri = text.parse().map_err(|_| rule())?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if !is_web || !is_plain || text.chars().count() > MAX_URL {
        return Err(rule());
    }
    config.operator.webhook = Some(text.to_owned());
    Ok(())
}

pub(super) fn read_secret(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let bytes = text.strip_prefix(SECRET).and_then(|rest| STANDARD.decode(rest).ok());
    if bytes.is_none_or(|bytes| !SECRET_BYTES.contains(&bytes.len())) {
        return Err("must be whsec_ and the base64 of 24 to 64 random bytes".to_owned());
    }
    config.operator.webhook_secret = Some(text.to_owned());
    Ok(())
}
