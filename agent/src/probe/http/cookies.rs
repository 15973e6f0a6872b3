//! The cookies of one check (RFC 6265): set by its responses, sent with its next requests, and discarded at
//! its end.
//!
//! Many sites redirect a visitor to the same address until a cookie comes back; without cookies each of them
//! would be an endless redirect.

use std::time::UNIX_EPOCH;

use http::{HeaderMap, header};
use parallax_dial::Host;
use url::Url;

use crate::clock::AgentClock;

/// Maximum number of cookies; one more evicts the oldest.
const MAX_COOKIES: usize = 64;
/// Maximum length of one cookie's name and value in bytes, as in browsers.
const MAX_COOKIE: usize = 4096;
/// Maximum length of all cookies together in bytes; many servers refuse longer heads.
const MAX_BYTES: usize = 32 * 1024;
/// Maximum number of `Set-Cookie` lines of one response.
const MAX_LINES: usize = 64;

/// The cookies that a check has received so far.
#[derive(Clone, Default)]
pub(super) struct CookieJar(Vec<Cookie>);

#[derive(Clone)]
struct Cookie {
    name: String,
    value: String,
    /// Lower-case ASCII.
    domain: String,
    /// Sent to `domain` alone, not to its subdomains.
    is_host_only: bool,
    path: String,
    is_secure: bool,
}

impl CookieJar {
    /// Stores the cookies that a response from `url` sets (RFC 6265, section 5.3).
    pub(super) fn store(&mut self, url: &Url, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE).iter().take(MAX_LINES) {
            let line = String::from_utf8_lossy(line.as_bytes());
            let Some((cookie, is_over)) = Cookie::read(&line, url) else { continue };
            self.0.retain(|stored| !stored.is_same(&cookie));
            if is_over {
                continue;
            }
            self.0.push(cookie);
            while self.0.len() > MAX_COOKIES || self.0.iter().map(Cookie::len).sum::<usize>() > MAX_BYTES {
                self.0.remove(0);
            }
        }
    }

    /// Returns names and values for a request to `url`, longer paths first (RFC 6265, section 5.4).
    pub(super) fn sent_to(&self, url: &Url) -> Vec<(&str, &str)> {
        let mut fitting: Vec<&Cookie> = self.0.iter().filter(|cookie| cookie.matches_url(url)).collect();
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        fitting.into_iter().map(|cookie| (cookie.name.as_str(), cookie.value.as_str())).collect()
    }
}

impl Cookie {
    /// Parses a cookie, and whether the line only deletes it (RFC 6265, sections 5.2 and 5.3).
    fn read(line: &str, url: &Url) -> Option<(Self, bool)> {
        let mut parts = line.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let has_control = line.chars().any(|c| c.is_control() && c != '\t');
        if name.is_empty() || has_control || name.len() + value.len() > MAX_COOKIE {
            return None;
        }
        let host = url.host_str()?;
        let mut cookie = Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: host.to_owned(),
            is_host_only: true,
            path: default_path(url.path()).to_owned(),
            is_secure: false,
        };
        let (mut expired, mut max_age) = (false, None);
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match attribute.trim().to_ascii_lowercase().as_str() {
                "domain" if !value.trim_start_matches('.').is_empty() => {
                    (cookie.domain, cookie.is_host_only) = domain(value, host)?;
                }
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                "path" => default_path(url.path()).clone_into(&mut cookie.path),
                "secure" => cookie.is_secure = true,
                "max-age" => max_age = is_expired_age(value).or(max_age),
                "expires" => expired = is_past(value),
                _ => {}
            }
        }
        // A cookie set without TLS can't be secure (RFC 6265bis, section 5.7).
        if cookie.is_secure && url.scheme() != "https" {
            return None;
        }
        Some((cookie, max_age.unwrap_or(expired)))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.domain == other.domain && self.path == other.path
    }

    fn len(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }

    fn matches_url(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let is_host = host == self.domain || (!self.is_host_only && is_below(host, &self.domain));
        is_host && path_matches(url.path(), &self.path) && (!self.is_secure || url.scheme() == "https")
    }
}

/// Returns the domain of a `Domain` attribute, and whether the cookie is for that host alone; `None` if
/// `host` may not set it: a foreign domain, or a public suffix.
fn domain(attribute: &str, host: &str) -> Option<(String, bool)> {
    let attribute = attribute.strip_prefix('.').unwrap_or(attribute);
    let domain = match Host::parse(attribute).ok()? {
        // Handles internationalised names too.
        Host::Name(name) => name.as_str().to_owned(),
        Host::Ip(_) => attribute.to_owned(),
    };
    if domain == host {
        let is_suffix = psl::suffix_str(&domain).is_some_and(|suffix| suffix == domain);
        let is_address = !matches!(Host::parse(host), Ok(Host::Name(_)));
        return Some((domain, is_suffix || is_address));
    }
    let is_suffix = psl::suffix_str(&domain).is_none_or(|suffix| suffix == domain);
    (is_below(host, &domain) && !is_suffix).then_some((domain, false))
}

/// Returns true for a name below `domain` (RFC 6265, section 5.1.3).
fn is_below(host: &str, domain: &str) -> bool {
    let is_name = matches!(Host::parse(host), Ok(Host::Name(_)));
    is_name && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the path of a cookie without a `Path` attribute (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(at) if at > 0 => path.get(..at).unwrap_or("/"),
        Some(_) | None => "/",
    }
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

/// Returns true for a `Max-Freshness` below one, however long; `None` if it is not a number (RFC 6265, section
/// 5.2.2).
fn is_expired_age(age: &str) -> Option<bool> {
    let digits = age.strip_prefix('-').unwrap_or(age);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.len() < age.len() || digits.bytes().all(|byte| byte == b'0'))
}

/// Returns true for a date in the past, in any of the usual forms. Many cookies have hyphens for the spaces
/// of RFC 9110.
fn is_past(date: &str) -> bool {
    let read = httpdate::parse_http_date(date).or_else(|_| httpdate::parse_http_date(&date.replace('-', " ")));
    read.is_ok_and(|date| match date.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).is_ok_and(|date| date <= AgentClock::new(0).wall_ms()),
        Err(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// Returns the cookies sent to `to` after `from` has set these.
    fn sent(from: &str, lines: &[&str], to: &str) -> String {
        let mut jar = CookieJar::default();
        take(&mut jar, from, lines);
        cookie_header(&jar, to)
    }

    fn take(jar: &mut CookieJar, from: &str, lines: &[&str]) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::SET_COOKIE, HeaderValue::from_str(line).unwrap());
        }
        jar.store(&url(from), &headers);
    }

    fn cookie_header(jar: &CookieJar, to: &str) -> String {
        let pairs: Vec<_> = jar.sent_to(&url(to)).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    #[test]
    fn a_cookie_goes_where_domain_path_and_secure_let_it() {
        for (from, line, to, goes) in [
            ("http://a.example/", "k=v", "http://a.example/x", true),
            ("http://a.example/", "k=v", "http://b.a.example/", false),
            ("http://a.example/", "k=v", "https://a.example:8443/", true),
            ("http://www.a.example/", "k=v; Domain=a.example", "http://b.a.example/", true),
            ("http://www.a.example/", "k=v; domain=.A.example", "http://a.example/", true),
            ("http://www.a.example/", "k=v; Domain=a.example", "http://nota.example/", false),
            ("http://www.a.example/", "k=v; Domain=b.example", "http://b.example/", false),
            ("http://www.a.example/", "k=v; Domain=example", "http://b.example/", false),
            ("http://a.co.uk/", "k=v; Domain=co.uk", "http://a.co.uk/", false),
            ("http://a.github.io/", "k=v; Domain=github.io", "http://b.github.io/", false),
            ("http://a.example/", "k=v; Domain=", "http://a.example/", true),
            ("http://b\u{fc}cher.example/", "k=v; Domain=b\u{fc}cher.example", "http://a.xn--bcher-kva.example/", true),
            ("http://localhost/", "k=v; Domain=localhost", "http://localhost/", true),
            ("http://192.0.2.1/", "k=v; Domain=192.0.2.1", "http://192.0.2.1:81/", true),
            ("http://192.0.2.1/", "k=v; Domain=0.2.1", "http://192.0.2.1/", false),
            ("http://[2001:db8::1]/", "k=v", "http://[2001:db8::1]/", true),
            ("http://a.example/dir/page", "k=v", "http://a.example/dir/other", true),
            ("http://a.example/dir/page", "k=v", "http://a.example/dir", true),
            ("http://a.example/dir/page", "k=v", "http://a.example/direct", false),
            ("http://a.example/dir/page", "k=v; Path=/", "http://a.example/", true),
            ("http://a.example/dir/page", "k=v; Path=x", "http://a.example/", false),
            ("http://a.example/", "k=v; Path=/a/", "http://a.example/a/b", true),
            ("http://a.example/", "k=v; Path=/a/", "http://a.example/a", false),
            ("https://a.example/", "k=v; Secure", "https://a.example/", true),
            ("https://a.example/", "k=v; Secure; HttpOnly", "http://a.example/", false),
            ("http://a.example/", "k=v; Secure", "https://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=0", "http://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=-1", "http://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=-99999999999999999999", "http://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=99999999999999999999", "http://a.example/", true),
            ("http://a.example/", "k=v; Max-Age=000", "http://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=-", "http://a.example/", true),
            ("http://a.example/", "k=v; Max-Age=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.example/", false),
            ("http://a.example/", "k=v; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.example/", true),
            ("http://a.example/", "k=v; Expires=Thu, 01-Jan-1970 00:00:00 GMT", "http://a.example/", false),
            ("http://a.example/", "k=v; Expires=Thursday, 01-Jan-70 00:00:01 GMT", "http://a.example/", false),
            ("http://a.example/", "k=v; Expires=never", "http://a.example/", true),
            ("http://a.example/", "=v", "http://a.example/", false),
            ("http://a.example/", "v", "http://a.example/", false),
        ] {
            assert_eq!(!sent(from, &[line], to).is_empty(), goes, "{line} of {from} to {to}");
        }
    }

    #[test]
    fn a_later_cookie_replaces_and_ends_an_earlier_one() {
        let mut jar = CookieJar::default();
        take(&mut jar, "http://a.example/", &["a=1", "b=2; Path=/x", "a=3"]);
        assert_eq!(cookie_header(&jar, "http://a.example/x"), "b=2; a=3");
        take(&mut jar, "http://a.example/", &["a=; Max-Age=0"]);
        assert_eq!(cookie_header(&jar, "http://a.example/x"), "b=2");
    }

    #[test]
    fn cookies_are_bounded() {
        let mut jar = CookieJar::default();
        for number in 0..100 {
            take(&mut jar, "http://a.example/", &[&format!("k{number}=v")]);
        }
        let pairs = cookie_header(&jar, "http://a.example/");
        assert_eq!(pairs.split("; ").count(), MAX_COOKIES);
        assert!(pairs.ends_with("k99=v") && !pairs.contains("k35="));
        let long = "x".repeat(4000);
        for number in 0..20 {
            take(&mut jar, "http://a.example/", &[&format!("l{number}={long}")]);
        }
        assert!(cookie_header(&jar, "http://a.example/").len() <= MAX_BYTES);
        assert_eq!(sent("http://a.example/", &[&format!("k={}", "x".repeat(4096))], "http://a.example/"), "");
    }
}
