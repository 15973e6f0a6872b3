//! Attribution of chain errors to the certificate that causes them.
//!
//! The verifier reports the error but not the certificate, and calls a signature invalid that it only can't
//! verify.

use std::{error::Error, fmt, sync::Arc};

use rustls::{CertificateError, Error as TlsError, OtherError, client::verify_server_name, server::ParsedCertificate};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate, public_key::PublicKey};

/// An error that the verifier describes insufficiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChainFault {
    /// A fault of an issuer, as text.
    Issuer(String),
    /// Not the server's fault: a feature that this TLS library lacks, as text.
    Unsupported(String),
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issuer(text) | Self::Unsupported(text) => f.write_str(text),
        }
    }
}

impl Error for ChainFault {}

impl From<ChainFault> for TlsError {
    fn from(fault: ChainFault) -> Self {
        Self::Other(OtherError(Arc::new(fault)))
    }
}

/// Returns the fault in an error that [`chain`] or [`signature`] has explained.
pub(super) fn explained(error: &TlsError) -> Option<&ChainFault> {
    match error {
        TlsError::Other(OtherError(fault)) => fault.downcast_ref(),
        _ => None,
    }
}

/// Explains the verifier's error for a chain sent for `name`.
pub(super) fn chain(
    error: TlsError,
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    name: &ServerName<'_>,
    now: UnixTime,
) -> TlsError {
    let TlsError::InvalidCertificate(fault) = &error else { return error };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            issuer_outside_validity(leaf, others, "expired on", |it| Some(it.not_after).filter(|end| *end < now))
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            issuer_outside_validity(leaf, others, "is not valid before", |it| {
                Some(it.not_before).filter(|begin| *begin > now)
            })
        }
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            // The name is verified last: for another name, that is the error to report.
            match ParsedCertificate::try_from(leaf).and_then(|leaf| verify_server_name(&leaf, name)) {
                Err(error) => return error,
                Ok(()) => unsupported_on_path(leaf, others),
            }
        }
        _ => None,
    }
    .map_or(error, TlsError::from)
}

/// Explains the verifier's error for the server's proof that it has the key of `leaf`.
pub(super) fn signature(error: TlsError, leaf: &CertificateDer<'_>) -> TlsError {
    let key = parse_x509_certificate(leaf).ok().and_then(|(_, leaf)| unsupported_key(&leaf));
    key.map_or(error, |key| unsupported(&format!("its certificate has {key}")).into())
}

fn unsupported(what: &str) -> ChainFault {
    ChainFault::Unsupported(format!("{what}, which this check can't verify"))
}

/// Validity period of a certificate, epoch seconds.
struct Life {
    not_before: i64,
    not_after: i64,
}

/// Returns the issuer outside its validity period; `None` if it is the leaf.
fn issuer_outside_validity(
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    problem: &str,
    is_out: impl Fn(&Life) -> Option<i64>,
) -> Option<ChainFault> {
    let of = |read: &X509Certificate<'_>| {
        let life = read.validity();
        is_out(&Life { not_before: life.not_before.timestamp(), not_after: life.not_after.timestamp() })
    };
    let (_, leaf) = parse_x509_certificate(leaf).ok()?;
    if of(&leaf).is_some() {
        return None;
    }
    // The leaf's own issuer first.
    let mut issuers: Vec<_> = others.iter().filter_map(|other| Some(parse_x509_certificate(other).ok()?.1)).collect();
    issuers.sort_by_key(|issuer| issuer.subject() != leaf.issuer());
    issuers.iter().find_map(|issuer| {
        let date = chrono::DateTime::from_timestamp(of(issuer)?, 0)?.format("%Y-%m-%d");
        Some(ChainFault::Issuer(format!("the intermediate certificate \"{}\" {problem} {date}", name_of(issuer))))
    })
}

/// Returns a certificate's display name, at most 64 characters.
fn name_of(certificate: &X509Certificate<'_>) -> String {
    let subject = certificate.subject();
    let names = subject.iter_common_name().chain(subject.iter_organizational_unit()).chain(subject.iter_organization());
    let name = names.filter_map(|name| name.as_str().ok()).next().unwrap_or("unnamed");
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Finds a key or signature on the leaf's path that this TLS library can't verify: follows the issuers'
/// names, visits each certificate once, and ends at a signature that browsers refuse too.
fn unsupported_on_path(leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Option<ChainFault> {
    let (_, leaf) = parse_x509_certificate(leaf).ok()?;
    let mut unvisited: Vec<_> = others.iter().filter_map(|other| Some(parse_x509_certificate(other).ok()?.1)).collect();
    let mut path = vec![leaf];
    while let Some(certificate) = path.pop() {
        if is_outdated(&certificate) {
            continue;
        }
        let (issuers, rest): (Vec<_>, Vec<_>) =
            unvisited.into_iter().partition(|other| other.subject() == certificate.issuer());
        unvisited = rest;
        // For an issuer that was not sent, its signature shows the size.
        if let Some(feature) = issuers.iter().find_map(unsupported_key).or_else(|| unsupported_signature(&certificate))
        {
            return Some(unsupported(&format!("an issuer of its certificate has {feature}")));
        }
        // A root's signature is never verified.
        path.extend(issuers.into_iter().filter(|issuer| issuer.subject() != issuer.issuer()));
    }
    None
}

/// Returns true for signatures with MD2, MD4, MD5 or SHA-1.
fn is_outdated(certificate: &X509Certificate<'_>) -> bool {
    matches!(
        certificate.signature_algorithm.algorithm.to_id_string().as_str(),
        "1.2.840.113549.1.1.2"
            | "1.2.840.113549.1.1.3"
            | "1.2.840.113549.1.1.4"
            | "1.2.840.113549.1.1.5"
            | "1.3.14.3.2.29"
            | "1.2.840.10040.4.3"
            | "1.2.840.10045.4.1"
    )
}

const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

fn unsupported_key(certificate: &X509Certificate<'_>) -> Option<String> {
    let key = certificate.public_key();
    match key.parsed().ok()? {
        PublicKey::RSA(rsa) => unsupported_rsa_size(rsa.key_size()),
        PublicKey::EC(_) => {
            let curve = key.algorithm.parameters.as_ref()?.as_oid().ok()?.to_id_string();
            match curve.as_str() {
                "1.2.840.10045.3.1.7" | "1.3.132.0.34" => None,
                "1.3.132.0.35" => Some("a P-521 key".to_owned()),
                "1.3.132.0.10" => Some("a secp256k1 key".to_owned()),
                _ => Some("a key of an unusual curve".to_owned()),
            }
        }
        _ => match key.algorithm.algorithm.to_id_string().as_str() {
            "1.3.101.112" => None,
            "1.3.101.113" => Some("an Ed448 key".to_owned()),
            _ => Some("a key of an unusual kind".to_owned()),
        },
    }
}

fn unsupported_rsa_size(bits: usize) -> Option<String> {
    (!RSA_BITS.contains(&bits)).then(|| format!("a {bits}-bit RSA key"))
}

fn unsupported_signature(certificate: &X509Certificate<'_>) -> Option<String> {
    let algorithm = certificate.signature_algorithm.algorithm.to_id_string();
    match algorithm.as_str() {
        // PKCS #1 with SHA-2: a signature is as long as the key.
        "1.2.840.113549.1.1.11" | "1.2.840.113549.1.1.12" | "1.2.840.113549.1.1.13" => {
            unsupported_rsa_size(certificate.signature_value.data.len() * 8)
        }
        // ECDSA: two numbers of the curve's size, and up to nine bytes of encoding.
        _ if algorithm.starts_with("1.2.840.10045.4.") && certificate.signature_value.data.len() > 2 * 49 + 9 => {
            Some("a P-521 key".to_owned())
        }
        "1.3.101.113" => Some("an Ed448 key".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
