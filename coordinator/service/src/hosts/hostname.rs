//! Hostnames as text: one normalized form, the host of a URL, and what is not a public name.

use std::net::IpAddr;

/// Returns the name in a URL such as `https://status.example:8443`; `None` if it has an IP address.
pub fn url_hostname(url: &str) -> Option<String> {
    url_host(url).filter(|host| !is_ip_or_localhost(host))
}

/// Returns the host in a URL in normalized form.
pub(crate) fn url_host(url: &str) -> Option<String> {
    let after = url.split_once("://").map_or("", |(_, rest)| rest);
    normalize_host(after.split('/').next().unwrap_or_default())
}

/// Normalizes a host: lowercase, without port and trailing dot. `None` for an invalid name.
pub(super) fn normalize_host(host: &str) -> Option<String> {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_sound = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
    (is_sound && !name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Returns true for an IP address or `localhost`, which are not public names.
pub(super) fn is_ip_or_localhost(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(host, |(inner, _)| inner);
    let name = bare.strip_suffix('.').unwrap_or(bare);
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_not_hostnames() {
        for host in ["127.0.0.1", "[::1]", "[::1]:80", "::1", "localhost", "a.localhost", "localhost."] {
            assert!(is_ip_or_localhost(host), "{host}");
        }
        for host in ["example.com", "localhost.example", "1.2.3.4.example"] {
            assert!(!is_ip_or_localhost(host), "{host}");
        }
    }

    #[test]
    fn hosts_are_compared_in_one_form() {
        assert_eq!(normalize_host("Shop.Example.:443").as_deref(), Some("shop.example"));
        assert_eq!(normalize_host("127.0.0.1:80").as_deref(), Some("127.0.0.1"));
        for invalid in ["", ".", "[::1]:80", "a b", "ex\u{e4}mple", "a/b"] {
            assert_eq!(normalize_host(invalid), None, "{invalid}");
        }
    }
}
