//! The `certificate_authorities` extension (RFC 8446, 4.2.4): a client names the authorities that it trusts,
//! so that a coordinator with two certificates presents one that the client can verify.

use std::sync::Arc;

use rustls::DistinguishedName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// DER of a name with one attribute, a common name (2.5.4.3) that is a UTF-8 string of 64 bytes, without the
/// outermost sequence: SET, SEQUENCE, OBJECT IDENTIFIER, UTF8String.
const NAME: [u8; 11] = [0x31, 0x49, 0x30, 0x47, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x40];

/// Returns the name for an authority in the extension: the SHA-256 of its public key in hexadecimal. A
/// joining host knows nothing else about it, so a token is enough to request the right certificate.
pub(crate) fn hint_name(key_hash: &[u8; 32]) -> DistinguishedName {
    DistinguishedName::in_sequence(&[NAME.as_slice(), hex::encode(key_hash).as_bytes()].concat())
}

/// Presents the first certificate of an authority that the client names, or else the first of all.
#[derive(Debug)]
pub(crate) struct HintedCertResolver(pub(crate) Vec<(Option<DistinguishedName>, Arc<CertifiedKey>)>);

impl ResolvesServerCert for HintedCertResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let requested = hello.certificate_authorities().unwrap_or_default();
        let is_named = |name: &DistinguishedName| requested.iter().any(|other| other.as_ref() == name.as_ref());
        let found = self.0.iter().find(|(name, _)| name.as_ref().is_some_and(is_named)).or_else(|| self.0.first());
        found.map(|(_, key)| Arc::clone(key))
    }
}
