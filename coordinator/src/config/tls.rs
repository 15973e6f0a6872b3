//! Settings of the coordinator's own TLS: the listening address, the certificate files, and ACME.

use std::net::SocketAddr;
use std::path::PathBuf;

use parallax_core::text;

use super::CoordinatorConfig;

/// Default ACME directory.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Maximum characters of a directory's URL.
const MAX_URL: usize = 2048;
/// Maximum number of name servers.
const MAX_RESOLVERS: usize = 8;

/// TLS for the API, the reference and pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Listening address; none: no TLS here, a proxy provides it.
    pub listen: Option<SocketAddr>,
    /// PEM file with the base host's certificate and its issuers.
    pub certificate: Option<PathBuf>,
    /// PEM file with its key.
    pub key: Option<PathBuf>,
    /// True if the plain listener redirects visitors to https.
    pub redirect: bool,
}

/// Certificates by ACME (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeConfig {
    /// True if certificates are ordered.
    pub enabled: bool,
    /// Directory URL of the certificate authority.
    pub directory: String,
    /// Contact email address for the certificate authority.
    pub contact: Option<String>,
    /// PEM file with certificates to trust in addition to the public ones when connecting to the authority.
    pub roots: Option<PathBuf>,
}

/// Checks of pages' custom domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainsConfig {
    /// Name servers to query; none: the host's.
    pub resolvers: Vec<SocketAddr>,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self { listen: None, certificate: None, key: None, redirect: true }
    }
}

impl Default for AcmeConfig {
    fn default() -> Self {
        Self { enabled: false, directory: LETS_ENCRYPT.to_owned(), contact: None, roots: None }
    }
}

impl TlsConfig {
    /// Returns a setting that the present ones require, with the rule.
    pub(super) fn missing(&self, acme: &AcmeConfig, base_url: Option<&str>) -> Option<(&'static str, &'static str)> {
        if self.listen.is_some() && base_url.is_some_and(|url| !url.starts_with("https://")) {
            // Visitors are redirected to the base URL, which would loop.
            return Some(("base_url", "must start with https:// if tls.listen is set"));
        }
        match (self.listen, &self.certificate, &self.key) {
            (_, Some(_), None) => Some(("tls.key", "is required with tls.certificate")),
            (_, None, Some(_)) => Some(("tls.certificate", "is required with tls.key")),
            (Some(_), None, None) if !acme.enabled => {
                Some(("tls.certificate", "is required with tls.listen unless acme.enabled is true"))
            }
            (None, _, _) if acme.enabled => Some(("tls.listen", "is required with acme.enabled")),
            _ => None,
        }
    }
}

pub(super) fn read_file(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() { Err("must be a file".to_owned()) } else { Ok(Some(PathBuf::from(text))) }
}

pub(super) fn read_directory(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let rule = || format!("must be an https:// URL of at most {MAX_URL} characters");
    let uri: http::Uri = text.parse().map_err(|_| rule())?;
    if uri.scheme_str() != Some("https") || text.chars().count() > MAX_URL {
        return Err(rule());
    }
    config.acme.directory = text.to_owned();
    Ok(())
}

pub(super) fn read_contact(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.acme.contact = Some(text::parse_email(text)?);
    Ok(())
}

pub(super) fn read_resolvers(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let rule =
        || format!("must be 1 to {MAX_RESOLVERS} IP addresses with ports, separated by spaces, such as 127.0.0.1:53");
    let all: Vec<SocketAddr> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| rule())?;
    if all.is_empty() || all.len() > MAX_RESOLVERS {
        return Err(rule());
    }
    config.domains.resolvers = all;
    Ok(())
}

pub(super) fn show_resolvers(config: &CoordinatorConfig) -> Option<String> {
    let all: Vec<String> = config.domains.resolvers.iter().map(SocketAddr::to_string).collect();
    (!all.is_empty()).then(|| all.join(" "))
}
