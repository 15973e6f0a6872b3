//! The dashboard as the party that passkeys are made for (the relying party of Web Authentication).

use webauthn_rs::prelude::Url;
use webauthn_rs::{Webauthn, WebauthnBuilder};

/// Name that browsers show beside the host.
const NAME: &str = "Parallax";

/// The dashboard's origin: passkeys are made for its host, and work at no other.
#[derive(Debug)]
pub(in crate::people) struct RelyingParty {
    host: String,
    pub(super) webauthn: Webauthn,
}

impl RelyingParty {
    /// Returns the party of a base URL; none where browsers have no passkeys: at an IP address, and over plain http except
    /// at localhost.
    pub(in crate::people) fn of(base_url: &str) -> Option<Self> {
        let origin = Url::parse(base_url).ok()?;
        let host = origin.domain()?.to_owned();
        let is_local = host == "localhost" || host.ends_with(".localhost");
        if origin.scheme() != "https" && !is_local {
            return None;
        }
        // Neither other ports nor subdomains, on which pages of customers may be.
        let webauthn = WebauthnBuilder::new(&host, &origin).ok()?.rp_name(NAME).build().ok()?;
        Some(Self { host, webauthn })
    }

    /// The host.
    pub(in crate::people) fn host(&self) -> &str {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_need_a_host_name_and_https_or_localhost() {
        for (base_url, host) in [
            ("https://status.example.com", Some("status.example.com")),
            ("https://status.example.com:8443", Some("status.example.com")),
            ("https://status", Some("status")),
            ("http://localhost:8080", Some("localhost")),
            ("http://plx.localhost:8080", Some("plx.localhost")),
            ("http://status.example.com", None),
            ("http://127.0.0.1:8080", None),
            ("https://192.0.2.7", None),
            ("https://[2001:db8::1]", None),
            ("not a URL", None),
        ] {
            let party = RelyingParty::of(base_url);
            assert_eq!(party.as_ref().map(RelyingParty::host), host, "{base_url}");
        }
    }
}
