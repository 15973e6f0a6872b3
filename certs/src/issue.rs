//! Issuing of the two kinds of leaf certificates that an authority signs: the coordinator's and an agent's.

use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType, SerialNumber, SubjectPublicKeyInfo,
};
use rustls_pki_types::CertificateDer;

use crate::authority::MeshAuthority;
use crate::certificate_fields::{BACKDATE, COORDINATOR_NAME, CertificateSerial, Validity, agent_uri, offset_date_time};
use crate::credentials::Credentials;
use crate::csr;
use crate::error::CertsError;

/// Validity of an agent's certificate in seconds: 30 days.
pub const AGENT_VALIDITY: i64 = 30 * 86_400;

/// A newly issued agent certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its serial number.
    pub serial: CertificateSerial,
    /// First and last valid second.
    pub validity: Validity,
}

impl MeshAuthority {
    /// Creates a key and a certificate for the coordinator, for the rest of the authority's validity. The
    /// chain sent to peers is leaf and authority, since a joining agent compares the authority with its
    /// token.
    ///
    /// # Errors
    /// [`CertsError::Random`] or [`CertsError::Sign`].
    pub fn issue_coordinator(&self) -> Result<Credentials, CertsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let name = SanType::DnsName(text(COORDINATOR_NAME)?);
        let profile = Profile {
            common_name: COORDINATOR_NAME,
            name,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            validity: self.validity(),
            serial: CertificateSerial::random()?,
        };
        let leaf = profile.params()?.signed_by(&key, &self.issuer()?)?.der().clone();
        Credentials::new(vec![leaf, self.certificate().clone()], key.serialize_der())
    }

    /// Signs an agent's certificate for the key in `request` (DER, PKCS#10) under the id `agent`, valid from
    /// an hour before `now` for `seconds`, but not beyond the authority's own end.
    ///
    /// Only the key is taken from the request, after its signature has proven possession of the private key;
    /// names, usages and everything else in it are ignored.
    ///
    /// # Errors
    /// [`CertsError::Request`] for a request that is not ECDSA P-256 PKCS#10 or is not signed by its key,
    /// [`CertsError::AgentId`] for an invalid id, [`CertsError::Time`] for an out-of-range `now`.
    pub fn issue_agent(
        &self,
        request: &[u8],
        agent: &str,
        now: i64,
        seconds: i64,
    ) -> Result<IssuedCertificate, CertsError> {
        let key: SubjectPublicKeyInfo = csr::verified_key(request)?;
        let uri = agent_uri(agent)?;
        let validity = Validity {
            not_before: now.saturating_sub(BACKDATE),
            not_after: now.saturating_add(seconds).min(self.validity().not_after),
        };
        let serial = CertificateSerial::random()?;
        let profile = Profile {
            common_name: agent,
            name: SanType::URI(text(&uri)?),
            usage: ExtendedKeyUsagePurpose::ClientAuth,
            validity,
            serial,
        };
        let certificate = profile.params()?.signed_by(&key, &self.issuer()?)?.der().clone();
        Ok(IssuedCertificate { certificate, serial, validity })
    }
}

/// Fields that differ between the two kinds of leaf.
struct Profile<'a> {
    common_name: &'a str,
    name: SanType,
    usage: ExtendedKeyUsagePurpose,
    validity: Validity,
    serial: CertificateSerial,
}

impl Profile<'_> {
    fn params(self) -> Result<CertificateParams, CertsError> {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, self.common_name);
        let mut params = CertificateParams::default();
        params.distinguished_name = subject;
        params.subject_alt_names = vec![self.name];
        params.not_before = offset_date_time(self.validity.not_before)?;
        params.not_after = offset_date_time(self.validity.not_after)?;
        params.serial_number = Some(SerialNumber::from_slice(self.serial.as_bytes()));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![self.usage];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

fn text(value: &str) -> Result<Ia5String, CertsError> {
    Ok(Ia5String::try_from(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::AgentKey;
    use crate::identity::AgentIdentity;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn an_agents_certificate_contains_what_the_coordinator_decided() {
        let authority = MeshAuthority::generate(NOW).unwrap();
        let request = AgentKey::generate().unwrap().request().unwrap();
        let issued = authority.issue_agent(&request, "agt_1-x", NOW, AGENT_VALIDITY).unwrap();
        let identity = AgentIdentity::of_agent(&issued.certificate).unwrap();
        assert_eq!(identity.agent, "agt_1-x");
        assert_eq!(identity.serial, issued.serial);
        assert_eq!(identity.validity, Validity { not_before: NOW - 3_600, not_after: NOW + 2_592_000 });
    }

    #[test]
    fn an_agents_certificate_never_outlives_its_authority() {
        let authority = MeshAuthority::generate(NOW).unwrap();
        let request = AgentKey::generate().unwrap().request().unwrap();
        let late = authority.validity().not_after - 10;
        let issued = authority.issue_agent(&request, "a", late, AGENT_VALIDITY).unwrap();
        assert_eq!(issued.validity.not_after, authority.validity().not_after);
    }

    #[test]
    fn impossible_ids_are_refused() {
        let authority = MeshAuthority::generate(NOW).unwrap();
        let request = AgentKey::generate().unwrap().request().unwrap();
        for id in ["", "a/b", "a b", "é", &"x".repeat(65)] {
            assert!(
                matches!(authority.issue_agent(&request, id, NOW, AGENT_VALIDITY), Err(CertsError::AgentId)),
                "{id}"
            );
        }
    }
}
