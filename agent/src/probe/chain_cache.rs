//! Cache of verified certificate chains, so that their issuers' signatures are not verified at every check.
//!
//! A chain's signatures, constraints and usages depend only on its exact bytes, so they are cached. Facts
//! that may change between checks are verified each time: the time, the name, and the server's proof of
//! possession of the key.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::tls::{self, WebVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use x509_parser::parse_x509_certificate;

/// Maximum number of cached chains, at 48 bytes each.
const MAX_CHAINS: usize = 16 * 1024;

/// Verifies certificates with `verifier`, and caches chains that it found valid.
#[derive(Debug)]
pub(super) struct ChainCache {
    verifier: WebVerifier,
    /// By the hash of their bytes: the period, in seconds since the epoch, in which every certificate is
    /// valid.
    verified: Mutex<BTreeMap<[u8; 32], (i64, i64)>>,
}

impl ChainCache {
    pub(super) fn new(verifier: WebVerifier) -> Self {
        Self { verifier, verified: Mutex::default() }
    }

    fn is_verified(&self, hash: &[u8; 32], now: UnixTime) -> bool {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        verified.get(hash).is_some_and(|&(from, until)| from <= now && now <= until)
    }

    fn insert(&self, hash: [u8; 32], validity: (i64, i64)) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= MAX_CHAINS {
            // Chains in use are verified and cached once more.
            verified.clear();
        }
        verified.insert(hash, validity);
    }
}

impl ServerCertVerifier for ChainCache {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let hash = hash(end_entity, intermediates);
        if self.is_verified(&hash, now) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let verdict = self.verifier.verify_chain(end_entity, intermediates, name, ocsp_response, now);
        // The name is verified last: a chain for another name is valid in itself.
        let is_valid = match &verdict {
            Ok(_) => true,
            Err(Error::InvalidCertificate(fault)) => {
                matches!(fault, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
            }
            Err(_) => false,
        };
        if is_valid && let Some(validity) = validity(end_entity, intermediates) {
            self.insert(hash, validity);
        }
        verdict.map_err(|error| tls::explained_chain_error(error, end_entity, intermediates, name, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Hashes each certificate's length and bytes, in the order received.
fn hash(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for certificate in std::iter::once(end_entity).chain(intermediates) {
        hasher.update(certificate.len().to_le_bytes());
        hasher.update(certificate);
    }
    hasher.finalize().into()
}

/// Returns the period in which all of them are valid, including superfluous ones; `None` if one can't be
/// read.
fn validity(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Option<(i64, i64)> {
    let mut common = (i64::MIN, i64::MAX);
    for certificate in std::iter::once(end_entity).chain(intermediates) {
        let (_, parsed) = parse_x509_certificate(certificate).ok()?;
        let validity = parsed.validity();
        common.0 = common.0.max(validity.not_before.timestamp());
        common.1 = common.1.min(validity.not_after.timestamp());
    }
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd};
    use rustls::RootCertStore;
    use std::{sync::Arc, time::Duration};

    /// 1 July 2026.
    const NOW: u64 = 1_782_864_000;

    fn authority() -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn leaf(issuer: &CertifiedIssuer<'static, KeyPair>) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2026, 6, 1);
        params.not_after = date_time_ymd(2026, 8, 1);
        params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
    }

    fn chains(root: &CertifiedIssuer<'static, KeyPair>) -> ChainCache {
        let mut roots = RootCertStore::empty();
        roots.add(root.der().clone()).unwrap();
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        ChainCache::new(WebVerifier::new(roots, &crypto).unwrap())
    }

    fn verify(chains: &ChainCache, leaf: &CertificateDer<'_>, name: &str, now: u64) -> Result<(), String> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let verdict = chains.verify_server_cert(leaf, &[], &name, &[], now);
        verdict.map(|_| ()).map_err(|error| format!("{error:?}"))
    }

    fn cached(chains: &ChainCache) -> usize {
        chains.verified.lock().unwrap().len()
    }

    #[test]
    fn a_cached_chain_is_still_verified_by_name_and_time() {
        let root = authority();
        let (chains, leaf) = (chains(&root), leaf(&root));
        for _ in 0..2 {
            assert_eq!(verify(&chains, &leaf, "a.example", NOW), Ok(()));
            assert_eq!(cached(&chains), 1);
        }
        let wrong_name = verify(&chains, &leaf, "b.example", NOW).unwrap_err();
        assert!(wrong_name.contains("NotValidForName"), "{wrong_name}");
        let late = verify(&chains, &leaf, "a.example", NOW + 90 * 86_400).unwrap_err();
        assert!(late.contains("Expired"), "{late}");
        let early = verify(&chains, &leaf, "a.example", NOW - 90 * 86_400).unwrap_err();
        assert!(early.contains("NotValidYet"), "{early}");
        assert_eq!(verify(&chains, &leaf, "a.example", NOW), Ok(()));
    }

    #[test]
    fn a_cached_chain_has_the_same_error_as_an_uncached_one() {
        let root = authority();
        let (fresh, leaf) = (chains(&root), leaf(&root));
        let first = verify(&fresh, &leaf, "b.example", NOW);
        assert_eq!(cached(&fresh), 1);
        assert_eq!(verify(&fresh, &leaf, "b.example", NOW), first);
        assert_eq!(verify(&fresh, &leaf, "a.example", NOW), Ok(()));
    }

    #[test]
    fn an_authority_used_as_a_site_certificate_is_an_unknown_issuer() {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let alone = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let error = verify(&chains(&authority()), alone.der(), "a.example", NOW).unwrap_err();
        assert_eq!(error, "InvalidCertificate(UnknownIssuer)");
    }

    #[test]
    fn only_valid_chains_are_cached() {
        let root = authority();
        let chains = chains(&root);
        let stranger = leaf(&authority());
        for _ in 0..2 {
            assert!(verify(&chains, &stranger, "a.example", NOW).is_err());
        }
        let mut broken = leaf(&root).to_vec();
        let last = broken.len() - 1;
        broken[last] ^= 1;
        assert!(verify(&chains, &CertificateDer::from(broken), "a.example", NOW).is_err());
        assert!(verify(&chains, &leaf(&root), "a.example", NOW + 90 * 86_400).is_err());
        assert_eq!(cached(&chains), 0);
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let root = authority();
        let chains = chains(&root);
        for n in 0..MAX_CHAINS {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&n.to_le_bytes());
            chains.insert(hash, (0, 1));
        }
        assert_eq!(verify(&chains, &leaf(&root), "a.example", NOW), Ok(()));
        assert_eq!(cached(&chains), 1);
    }
}
