//! Registries that publish no expiry date, neither by RDAP nor by WHOIS.

/// Top-level domains whose registry publishes none, or answers no strangers at all.
const UNPUBLISHED: [&str; 21] = [
    "ae", "at", "au", "ba", "bd", "be", "ch", "de", "es", "eu", "gr", "hu", "li", "lu", "lv", "nl", "no",
    "np", "pk", "sa", "vn",
];

/// The top-level domain of a host whose registry publishes no expiry date.
pub fn unpublished(host: &str) -> Option<&str> {
    let top = host.trim_end_matches('.').rsplit('.').next()?;
    UNPUBLISHED.iter().any(|known| known.eq_ignore_ascii_case(top)).then_some(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_known_by_the_last_label() {
        assert_eq!(unpublished("www.example.de"), Some("de"));
        assert_eq!(unpublished("example.COM.AU."), Some("AU"));
        for host in ["example.com", "de.example", "", "de.com"] {
            assert_eq!(unpublished(host), None, "{host}");
        }
    }
}
