//! Web URLs: http and https only, with `https://` as the default scheme.

use ::url::Url;
use parallax_primitives::host::Host;

use crate::validation::Rule;

/// Maximum length of a URL, in characters.
pub const MAX_URL: usize = 2000;

/// A parsed web URL.
#[derive(Clone, PartialEq, Eq)]
pub struct WebUrl {
    /// URL as entered, with an added scheme if it had none, and without user info.
    pub url: String,
    /// Host in lower case, without brackets; a name in the script in which it was entered.
    pub host: String,
    /// User name and password from the URL, decoded: a secret.
    pub user_info: Option<(String, String)>,
}

impl std::fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebUrl").field("host", &self.host).finish_non_exhaustive()
    }
}

/// Parses an http or https URL, adding `https://` if it has no scheme.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_web_url(text: &str) -> Result<WebUrl, Rule> {
    let text = super::line(text, 1..=MAX_URL)?;
    let no_url = || "must be an http or https URL".to_owned();
    // Parsers disagree on whether a backslash ends the host.
    if text.contains('\\') {
        return Err("must not contain backslashes".to_owned());
    }
    let text = match scheme(&text) {
        Scheme::Given => text,
        Scheme::Missing => format!("https://{text}"),
        Scheme::Other => return Err(no_url()),
    };
    let mut url = Url::parse(&text).map_err(|_| no_url())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(no_url());
    }
    let host = match Host::from_url(&url.host().ok_or_else(no_url)?).map_err(|_| no_url())? {
        Host::Name(name) => super::host::in_script_of(name.as_str(), authority(&text)),
        Host::Ip(address) => address.to_string(),
    };
    if url.port() == Some(0) {
        return Err(no_url());
    }
    if url.username().is_empty() && url.password().is_none() {
        return Ok(WebUrl { url: text, host, user_info: None });
    }
    let user_info = (percent_decode(url.username()), percent_decode(url.password().unwrap_or_default()));
    url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| no_url())?;
    let ascii = url.host_str().unwrap_or_default();
    // Only the scheme comes before the host, so that the first match is the host.
    let url = if host.is_ascii() { url.to_string() } else { url.as_str().replacen(ascii, &host, 1) };
    Ok(WebUrl { url, host, user_info: Some(user_info) })
}

/// The authority of a URL with a scheme: user, host and port.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

enum Scheme {
    Given,
    Missing,
    Other,
}

/// Classifies the scheme of a URL. `host:8080` has none though it looks like one; `mailto:x`, `http:x` and
/// `http:/x` are rejected rather than read as a host.
fn scheme(text: &str) -> Scheme {
    let is_scheme = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
    };
    if text.starts_with(['/', '?', '#']) {
        return Scheme::Other;
    }
    if let Some((_, rest)) = text.split_once("://").filter(|(name, _)| is_scheme(name)) {
        // Lenient parsers skip further slashes and read the path as the host.
        return if rest.starts_with('/') { Scheme::Other } else { Scheme::Given };
    }
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.split_once(':') {
        Some((name, rest)) if is_scheme(name) && !is_port(rest) => Scheme::Other,
        Some(_) | None => Scheme::Missing,
    }
}

/// Percent-decodes text (RFC 3986 section 2.1).
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let pair = after.get(..2).filter(|_| *first == b'%').and_then(|pair| {
            let high = char::from(*pair.first()?).to_digit(16)?;
            let low = char::from(*pair.get(1)?).to_digit(16)?;
            u8::try_from(high * 16 + low).ok()
        });
        bytes.push(pair.unwrap_or(*first));
        rest = if pair.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
