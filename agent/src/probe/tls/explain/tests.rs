//! Tests with chains whose keys the TLS library can't verify, and with an issuer outside its validity period.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
};
use rustls_pki_types::pem::PemObject;
use std::time::Duration;

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

/// 1 July 2027.
const NOW: u64 = 1_814_400_000;

/// Created with OpenSSL, since the TLS library makes no such keys: authorities with keys of P-256, P-521,
/// RSA-1024 and RSA-2048; leaves for `a.example` with keys of P-521 and RSA-1024 under the first, and P-256
/// under the others, the last by SHA-1.
fn certificates() -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(include_bytes!("odd.pem")).map(Result::unwrap).collect()
}

fn verdict(
    root: &CertificateDer<'static>,
    others: &[CertificateDer<'static>],
    leaf: &CertificateDer<'static>,
    name: &str,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let verdict = judge.verify_server_cert(leaf, others, &name, &[], now);
    verdict.map(drop).map_err(|error| match chain(error, leaf, others, &name, now) {
        error if explained(&error).is_some() => explained(&error).map(ToString::to_string).unwrap(),
        error => format!("{error:?}"),
    })
}

#[test]
fn an_unsupported_key_is_named() {
    let certificates = certificates();
    let [p256, p521, rsa1024, rsa2048, leaf_p521, leaf_rsa1024, by_p521, by_rsa1024, by_sha1] = &certificates[..]
    else {
        panic!("{}", certificates.len())
    };
    let of_issuer = |key: &str| Err(format!("an issuer of its certificate has {key}, which this check can't verify"));
    // With and without the issuer in the chain.
    for others in [vec![], vec![p521.clone()]] {
        assert_eq!(verdict(p521, &others, by_p521, "a.example"), of_issuer("a P-521 key"));
    }
    for others in [vec![], vec![rsa1024.clone()]] {
        assert_eq!(verdict(rsa1024, &others, by_rsa1024, "a.example"), of_issuer("a 1024-bit RSA key"));
    }
    let wrong_name = verdict(rsa1024, &[], by_rsa1024, "b.example").unwrap_err();
    assert!(wrong_name.contains("NotValidForName"), "{wrong_name}");
    // A leaf's own key is needed only for its proof of possession.
    for (leaf, key) in [(leaf_p521, "a P-521 key"), (leaf_rsa1024, "a 1024-bit RSA key")] {
        assert_eq!(verdict(p256, &[], leaf, "a.example"), Ok(()));
        let error = signature(CertificateError::BadSignature.into(), leaf);
        let text = format!("its certificate has {key}, which this check can't verify");
        assert_eq!(explained(&error), Some(&ChainFault::Unsupported(text)));
    }
    let wrong = signature(CertificateError::BadSignature.into(), by_p521);
    assert_eq!(wrong, CertificateError::BadSignature.into());
    // Browsers refuse SHA-1 too, and an unknown issuer.
    for others in [vec![], vec![rsa1024.clone()], vec![p521.clone(), rsa2048.clone(), rsa1024.clone()]] {
        let sha1 = verdict(rsa2048, &others, by_sha1, "a.example").unwrap_err();
        assert!(sha1.contains("UnsupportedSignatureAlgorithm"), "{sha1}");
    }
    // A certificate outside the leaf's path is no excuse.
    assert_eq!(unsupported_on_path(leaf_p521, &[p256.clone(), rsa1024.clone()]), None);
    assert!(unsupported_on_path(by_rsa1024, &[p256.clone(), rsa1024.clone()]).is_some());
    let stranger = verdict(p256, &[], by_rsa1024, "a.example").unwrap_err();
    assert!(stranger.contains("UnknownIssuer"), "{stranger}");
}

fn authority(name: &str, below: Option<&Authority>, (from, until): (i32, i32)) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 2, 3));
    let key = KeyPair::generate().unwrap();
    match below {
        None => CertifiedIssuer::self_signed(params, key).unwrap(),
        Some(issuer) => CertifiedIssuer::signed_by(params, key, issuer).unwrap(),
    }
}

fn leaf(issuer: &Authority, (from, until): (i32, i32)) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 2, 3));
    params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
}

#[test]
fn an_issuer_outside_its_validity_is_named_instead_of_the_leaf() {
    let root = authority("root", None, (2020, 2050));
    for (of_middle, of_leaf, text) in [
        ((2020, 2027), (2027, 2030), "the intermediate certificate \"R3\" expired on 2027-02-03"),
        ((2028, 2029), (2027, 2030), "the intermediate certificate \"R3\" is not valid before 2028-01-01"),
        ((2020, 2026), (2020, 2026), "ExpiredContext"),
        ((2028, 2030), (2028, 2030), "NotValidYetContext"),
    ] {
        let middle = authority("R3", Some(&root), of_middle);
        let others = [root.der().clone(), middle.der().clone()];
        let error = verdict(root.der(), &others, &leaf(&middle, of_leaf), "a.example").unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}
