//! Which authorities a client trusts, told in its first message (RFC 8446, 4.2.4), so that a coordinator with two
//! certificates shows the one that the client can judge.

use std::fmt::Write as _;
use std::sync::Arc;

use rustls::DistinguishedName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// DER of a name with one attribute, a common name (2.5.4.3) that is a UTF-8 string of 64 bytes, without the outermost
/// sequence: SET, SEQUENCE, OBJECT IDENTIFIER, UTF8String.
const NAME: [u8; 11] = [0x31, 0x49, 0x30, 0x47, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x40];

/// The name that stands for an authority: the SHA-256 of its public key in hexadecimal. A joining host knows no more
/// of it, and a token is enough to ask for the right one.
pub(crate) fn of(key_hash: &[u8; 32]) -> DistinguishedName {
    let mut hex = String::with_capacity(64);
    for byte in key_hash {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    DistinguishedName::in_sequence(&[NAME.as_slice(), hex.as_bytes()].concat())
}

/// Shows the first certificate of an authority that the client names, else the first of all.
#[derive(Debug)]
pub(crate) struct ByHint(pub(crate) Vec<(Option<DistinguishedName>, Arc<CertifiedKey>)>);

impl ResolvesServerCert for ByHint {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.certificate_authorities().unwrap_or_default();
        let is_named = |name: &DistinguishedName| named.iter().any(|one| one.as_ref() == name.as_ref());
        let found =
            self.0.iter().find(|(name, _)| name.as_ref().is_some_and(is_named)).or_else(|| self.0.first());
        found.map(|(_, key)| Arc::clone(key))
    }
}
