//! The registrable part of a name, and its top-level domain.

/// Returns the name below the registry's suffix: `example.co.uk` of `www.example.co.uk`. Private suffixes on
/// the public suffix list don't count: `github.io` is a registration, `someone.github.io` is not. Returns
/// `None` for a suffix itself.
pub(super) fn of(name: &str) -> Option<String> {
    let mut at = name;
    loop {
        let suffix = psl::suffix(at.as_bytes())?;
        let is_private = suffix.typ() == Some(psl::Type::Private);
        let suffix = std::str::from_utf8(suffix.as_bytes()).ok()?;
        if !is_private {
            return psl::domain_str(at).map(str::to_owned);
        }
        // The registry's suffix is somewhere above the company's.
        let (_, parent) = suffix.split_once('.')?;
        if psl::domain_str(parent).is_none() {
            return Some(suffix.to_owned());
        }
        at = parent;
    }
}

/// Returns the top-level domain.
pub(super) fn top_level(domain: &str) -> &str {
    domain.rsplit('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_below_the_registrys_suffix_is_looked_up() {
        for (name, domain) in [
            ("example.com", Some("example.com")),
            ("a.b.example.com", Some("example.com")),
            ("www.example.co.uk", Some("example.co.uk")),
            ("someone.github.io", Some("github.io")),
            ("github.io", Some("github.io")),
            ("bucket.s3.eu-west-1.amazonaws.com", Some("amazonaws.com")),
            ("www.xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("co.uk", None),
            ("com", None),
        ] {
            assert_eq!(of(name).as_deref(), domain, "{name}");
        }
    }
}
