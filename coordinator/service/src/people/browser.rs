//! The browser that signs in, and the secret that it gets.

use std::fmt;
use std::net::IpAddr;

use parallax_core::login_session::{LoginSessionId, cut_user_agent};
use parallax_core::one_time_link::LinkId;
use sha2::{Digest, Sha256};

use crate::client_network::{network_of, network_text};
use crate::secret_text;

/// A browser that signs in.
#[derive(Debug, Clone, Default)]
pub struct BrowserInfo {
    /// Its network, such as `192.0.2.0/24`; none if unknown.
    pub network: Option<String>,
    /// The same as a number, for limits.
    pub network_key: Option<u128>,
    /// Its `User-Agent`, cut to what is stored.
    pub user_agent: String,
    /// The session that it has already, which ends.
    pub old_session: Option<SessionToken>,
}

impl BrowserInfo {
    /// Describes a browser by its address and `User-Agent`: an IPv4 /24 or IPv6 /48, which one party may control.
    pub fn new(address: Option<IpAddr>, user_agent: &str, old_session: Option<SessionToken>) -> Self {
        let network = address.map(network_of);
        Self {
            network: address.map(network_text),
            network_key: network.map(|(block, _)| match block {
                IpAddr::V4(block) => u128::from(u32::from(block)),
                IpAddr::V6(block) => u128::from(block),
            }),
            user_agent: cut_user_agent(user_agent),
            old_session,
        }
    }
}

/// The secret of a session, as a browser's cookie holds it: 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken(String);

impl SessionToken {
    /// Makes a new secret.
    pub(super) fn random() -> Self {
        Self(secret_text::random_token(rand::random()))
    }

    /// Reads a cookie; none if it can't be a secret.
    pub fn parse(text: &str) -> Option<Self> {
        secret_text::is_token(text).then(|| Self(text.to_owned()))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The id under which the session is stored.
    pub fn id(&self) -> LoginSessionId {
        LoginSessionId(Sha256::digest(&self.0).into())
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

/// Returns the id of the link with that token.
pub(super) fn link_id(token: &str) -> LinkId {
    LinkId(Sha256::digest(token).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_described_by_its_network() {
        for (address, network) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ] {
            let browser = BrowserInfo::new(Some(address.parse().unwrap()), "agent\n", None);
            assert_eq!((browser.network.as_deref(), browser.user_agent.as_str()), (Some(network), "agent"));
        }
        assert_eq!(BrowserInfo::new(None, "", None).network_key, None);
    }

    #[test]
    fn a_token_reads_back_and_debug_output_hides_it() {
        let token = SessionToken::random();
        assert_eq!(SessionToken::parse(token.reveal()), Some(token.clone()));
        assert!(token.reveal().len() == 43 && !format!("{token:?}").contains(token.reveal()));
        for invalid in ["", "a", &"a".repeat(42), &"a".repeat(44), &format!("{}-", "a".repeat(42))] {
            assert_eq!(SessionToken::parse(invalid), None, "{invalid}");
        }
    }
}
