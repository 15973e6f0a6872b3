//! Whose page may speak to this door: a browser on another site must not (DNS rebinding; MCP, "Transports", "Security").

use ::http::HeaderMap;
use ::http::header::{HOST, ORIGIN};
use url::{Host, Url};

/// Whether the request is not of another site's page.
///
/// A service on loopback also looks at the name that it was called by, since a stranger's name may lead there.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn judged(headers: &HeaderMap, base_url: &str) -> Result<(), &'static str> {
    let Ok(base) = Url::parse(base_url) else { return Ok(()) };
    let is_local = is_loopback(&base);
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
        let good = origin
            .is_some_and(|origin| origin.origin() == base.origin() || (is_local && is_loopback(&origin)));
        if !good {
            return Err("this origin may not speak to this address");
        }
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let called = host.and_then(|host| Url::parse(&format!("http://{host}")).ok());
    if is_local && !called.is_none_or(|called| is_loopback(&called) || called.host() == base.host()) {
        return Err("this host is not served here");
    }
    Ok(())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(base: &str, origin: Option<&str>, host: &str) -> bool {
        let mut headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        judged(&headers, base).is_ok()
    }

    #[test]
    fn only_its_own_site_and_clients_without_one_are_let_in() {
        let base = "https://status.example";
        assert!(is_let_in(base, None, "status.example"));
        assert!(is_let_in(base, None, "behind-a-proxy:8080"));
        assert!(is_let_in(base, Some("https://status.example"), "status.example"));
        for other in ["https://evil.example", "http://status.example", "null", "https://status.example:444"] {
            assert!(!is_let_in(base, Some(other), "status.example"), "{other}");
        }
    }

    #[test]
    fn a_service_on_loopback_answers_to_loopback_names_alone() {
        let base = "http://127.0.0.1:8080";
        assert!(is_let_in(base, None, "localhost:8080") && is_let_in(base, None, "[::1]:8080"));
        assert!(is_let_in(base, Some("http://localhost:3000"), "127.0.0.1:8080"));
        assert!(!is_let_in(base, None, "evil.example:8080"));
        assert!(!is_let_in(base, Some("http://evil.example"), "127.0.0.1:8080"));
    }
}
