//! Top-level domains whose registries publish no expiry date, by RDAP or by WHOIS.

/// Top-level domains whose registry publishes no expiry date, or answers only registered clients.
const UNPUBLISHED: [&str; 21] = [
    "ae", "at", "au", "ba", "bd", "be", "ch", "de", "es", "eu", "gr", "hu", "li", "lu", "lv", "nl", "no", "np", "pk",
    "sa", "vn",
];

/// Returns the top-level domain of a host if its registry publishes no expiry date.
pub fn domain_without_expiry(host: &str) -> Option<&str> {
    let top = host.trim_end_matches('.').rsplit('.').next()?;
    UNPUBLISHED.iter().any(|known| known.eq_ignore_ascii_case(top)).then_some(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_known_by_the_last_label() {
        assert_eq!(domain_without_expiry("www.example.de"), Some("de"));
        assert_eq!(domain_without_expiry("example.COM.AU."), Some("AU"));
        for host in ["example.com", "de.example", "", "de.com"] {
            assert_eq!(domain_without_expiry(host), None, "{host}");
        }
    }
}
