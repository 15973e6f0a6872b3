//! Settings of the coordinator's own TLS: where it listens, what it shows, and who issues certificates for it.

use std::net::SocketAddr;
use std::path::PathBuf;

use parallax_core::account;

use super::Config;

/// Where certificates are asked for unless told otherwise.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Characters of a directory's URL.
const MAX_URL: usize = 2048;
/// Name servers that can be named.
const MOST_RESOLVERS: usize = 8;

/// TLS for API, dashboard and pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Address listened on; none: no TLS here, a proxy does it.
    pub listen: Option<SocketAddr>,
    /// File of the base host's certificate and its issuers, in PEM.
    pub certificate: Option<PathBuf>,
    /// File of its key, in PEM.
    pub key: Option<PathBuf>,
    /// Whether the plain listener leads visitors to https.
    pub redirect: bool,
}

/// Certificates by ACME (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// Whether they are asked for.
    pub enabled: bool,
    /// The authority's directory.
    pub directory: String,
    /// Mailbox that the authority may write to.
    pub contact: Option<String>,
    /// File of certificates in PEM that are trusted beside the public ones when the authority is connected to.
    pub roots: Option<PathBuf>,
}

/// How the custom domains of pages are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domains {
    /// Name servers that are asked; none: the host's.
    pub resolvers: Vec<SocketAddr>,
}

impl Default for Tls {
    fn default() -> Self {
        Self { listen: None, certificate: None, key: None, redirect: true }
    }
}

impl Default for Acme {
    fn default() -> Self {
        Self { enabled: false, directory: LETS_ENCRYPT.to_owned(), contact: None, roots: None }
    }
}

impl Tls {
    /// The setting that is needed beside those that are there, with the rule.
    pub(super) fn missing(&self, acme: &Acme) -> Option<(&'static str, &'static str)> {
        match (self.listen, &self.certificate, &self.key) {
            (_, Some(_), None) => Some(("tls.key", "is needed with tls.certificate")),
            (_, None, Some(_)) => Some(("tls.certificate", "is needed with tls.key")),
            (Some(_), None, None) if !acme.enabled => {
                Some(("tls.certificate", "is needed with tls.listen unless acme.enabled is true"))
            }
            (None, _, _) if acme.enabled => Some(("tls.listen", "is needed with acme.enabled")),
            _ => None,
        }
    }
}

pub(super) fn read_file(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() { Err("must be a file".to_owned()) } else { Ok(Some(PathBuf::from(text))) }
}

pub(super) fn read_directory(config: &mut Config, text: &str) -> Result<(), String> {
    let rule = || format!("must be an https:// URL of at most {MAX_URL} characters");
    let uri: http::Uri = text.parse().map_err(|_| rule())?;
    if uri.scheme_str() != Some("https") || text.chars().count() > MAX_URL {
        return Err(rule());
    }
    config.acme.directory = text.to_owned();
    Ok(())
}

pub(super) fn read_contact(config: &mut Config, text: &str) -> Result<(), String> {
    config.acme.contact = Some(account::email(text)?);
    Ok(())
}

pub(super) fn read_resolvers(config: &mut Config, text: &str) -> Result<(), String> {
    let rule = || {
        format!(
            "must be 1 to {MOST_RESOLVERS} IP addresses with ports and spaces between, such as 127.0.0.1:53"
        )
    };
    let all: Vec<SocketAddr> =
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| rule())?;
    if all.is_empty() || all.len() > MOST_RESOLVERS {
        return Err(rule());
    }
    config.domains.resolvers = all;
    Ok(())
}

pub(super) fn show_resolvers(config: &Config) -> Option<String> {
    let all: Vec<String> = config.domains.resolvers.iter().map(SocketAddr::to_string).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
