//! Origin check of the MCP endpoints, against requests from other sites and DNS rebinding (MCP, "Transports",
//! "Security").

use ::http::HeaderMap;
use ::http::header::{HOST, ORIGIN};
use url::{Host, Url};

/// Checks that a request does not come from another site. Allowed origins are the base URL and the endpoint's own
/// addresses. An endpoint that allows any origin (`is_open`) serves only public data and accepts no credentials.
///
/// A service on loopback allows only loopback origins, and also checks the `Host` header, since an attacker's domain
/// may resolve to loopback (DNS rebinding).
///
/// # Errors
/// Message on the invalid header.
pub(super) fn check_origin(
    headers: &HeaderMap,
    base_url: &str,
    own_addresses: &[String],
    is_open: bool,
) -> Result<(), &'static str> {
    let Ok(base) = Url::parse(base_url) else { return Ok(()) };
    let is_local = is_loopback(&base);
    if is_open && !is_local {
        return Ok(());
    }
    let mut own_urls: Vec<Url> = own_addresses.iter().filter_map(|address| Url::parse(address).ok()).collect();
    own_urls.push(base);
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
        let is_allowed_origin = origin.is_some_and(|origin| {
            own_urls.iter().any(|url| url.origin() == origin.origin()) || (is_local && is_loopback(&origin))
        });
        if !is_allowed_origin {
            return Err("requests from this origin are not allowed");
        }
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let requested = host.and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let is_ours = |requested: &Url| is_loopback(requested) || own_urls.iter().any(|url| url.host() == requested.host());
    if is_local && !requested.as_ref().is_none_or(is_ours) {
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

    fn is_accepted(base: &str, origin: Option<&str>, host: &str) -> bool {
        is_allowed_at(&[], base, origin, host)
    }

    fn is_allowed_at(own_addresses: &[&str], base: &str, origin: Option<&str>, host: &str) -> bool {
        let mut headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let own_addresses: Vec<String> = own_addresses.iter().map(|address| (*address).to_owned()).collect();
        check_origin(&headers, base, &own_addresses, false).is_ok()
    }

    #[test]
    fn an_open_endpoint_accepts_every_site_unless_limited_to_its_own_host() {
        let is_allowed = |base: &str, origin: &str, host: &str| {
            let headers = [(HOST, host.parse().unwrap()), (ORIGIN, origin.parse().unwrap())];
            check_origin(&HeaderMap::from_iter(headers), base, &[], true).is_ok()
        };
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            assert!(is_allowed("https://status.example", origin, "status.example"), "{origin}");
        }
        let base = "http://127.0.0.1:8080";
        assert!(is_allowed(base, "http://localhost:3000", "127.0.0.1:8080"));
        assert!(!is_allowed(base, "http://evil.example", "127.0.0.1:8080"));
        assert!(!is_allowed(base, "http://evil.example:8080", "evil.example:8080"));
    }

    #[test]
    fn only_the_own_site_and_clients_without_origin_are_accepted() {
        let base = "https://status.example";
        assert!(is_accepted(base, None, "status.example"));
        assert!(is_accepted(base, None, "behind-a-proxy:8080"));
        assert!(is_accepted(base, Some("https://status.example"), "status.example"));
        for other in ["https://evil.example", "http://status.example", "null", "https://status.example:444"] {
            assert!(!is_accepted(base, Some(other), "status.example"), "{other}");
        }
    }

    #[test]
    fn a_service_on_loopback_accepts_only_loopback_hosts() {
        let base = "http://127.0.0.1:8080";
        assert!(is_accepted(base, None, "localhost:8080") && is_accepted(base, None, "[::1]:8080"));
        assert!(is_accepted(base, Some("http://localhost:3000"), "127.0.0.1:8080"));
        assert!(!is_accepted(base, None, "evil.example:8080"));
        assert!(!is_accepted(base, Some("http://evil.example"), "127.0.0.1:8080"));
    }

    #[test]
    fn an_endpoint_with_its_own_addresses_accepts_their_sites() {
        let (base, own_addresses) =
            ("https://status.example", ["https://shop.pages.example", "https://status.shop.example"]);
        for origin in
            [base, own_addresses[0], own_addresses[1], "https://STATUS.shop.example", "https://status.shop.example:443"]
        {
            assert!(is_allowed_at(&own_addresses, base, Some(origin), "shop.pages.example"), "{origin}");
        }
        for origin in [
            "https://other.pages.example",
            "https://pages.example",
            "http://shop.pages.example",
            "https://shop.pages.example:8443",
            "https://shop.pages.example.evil.example",
            "https://evil.shop.pages.example",
        ] {
            assert!(!is_allowed_at(&own_addresses, base, Some(origin), "shop.pages.example"), "{origin}");
        }
        let base = "http://127.0.0.1:8080";
        assert!(is_allowed_at(&own_addresses, base, None, "shop.pages.example"));
        assert!(!is_allowed_at(&own_addresses, base, None, "other.pages.example"));
    }
}
