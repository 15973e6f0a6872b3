//! Extraction of a peer's identity from a leaf certificate that the handshake has already verified.

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::certificate_fields::{AGENT_PREFIX, COORDINATOR_NAME, CertificateSerial, Validity, agent_uri};
use crate::error::CertsError;

/// Identity of an agent in its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The agent's id: 1 to 64 ASCII letters, digits, `-` or `_`.
    pub agent: String,
    /// The certificate's serial number.
    pub serial: CertificateSerial,
    /// The certificate's validity period; the connection must end with it.
    pub validity: Validity,
}

impl AgentIdentity {
    /// Reads an agent's identity. The chain must already be verified: this checks no signature and no time.
    ///
    /// # Errors
    /// [`CertsError::Certificate`] unless the leaf is an agent's: `clientAuth` alone, not an authority, exactly
    /// one name, and that one an agent's URI.
    pub fn of_agent(leaf: &CertificateDer<'_>) -> Result<Self, CertsError> {
        let parsed = parse(leaf)?;
        let (client, server) = usages(&parsed)?;
        if !client || server {
            return Err(CertsError::Certificate("is not for client authentication alone"));
        }
        let GeneralName::URI(uri) = only_name(&parsed)? else {
            return Err(CertsError::Certificate("has no agent name"));
        };
        let agent = uri.strip_prefix(AGENT_PREFIX).ok_or(CertsError::Certificate("has no agent name"))?;
        agent_uri(agent).map_err(|_| CertsError::Certificate("has no agent name"))?;
        Ok(Self {
            agent: agent.to_owned(),
            serial: CertificateSerial::from_bytes(parsed.raw_serial())?,
            validity: Validity::of(&parsed),
        })
    }
}

/// Rejects a leaf that is not a coordinator's: `serverAuth` alone, not an authority, the one constant name.
pub(crate) fn require_coordinator(leaf: &CertificateDer<'_>) -> Result<(), CertsError> {
    let parsed = parse(leaf)?;
    let (client, server) = usages(&parsed)?;
    if !server || client {
        return Err(CertsError::Certificate("is not for server authentication alone"));
    }
    match only_name(&parsed)? {
        GeneralName::DNSName(name) if *name == COORDINATOR_NAME => Ok(()),
        _ => Err(CertsError::Certificate("does not have the coordinator's name")),
    }
}

fn parse<'a>(leaf: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, CertsError> {
    let (rest, parsed) = X509Certificate::from_der(leaf).map_err(|_| CertsError::Certificate("is not X.509"))?;
    if !rest.is_empty() {
        return Err(CertsError::Certificate("has trailing bytes"));
    }
    if parsed.is_ca() {
        return Err(CertsError::Certificate("is an authority's, not a leaf"));
    }
    Ok(parsed)
}

/// Returns whether the extended key usage contains client and server authentication; it must contain nothing
/// else.
fn usages(parsed: &X509Certificate<'_>) -> Result<(bool, bool), CertsError> {
    let usage = parsed
        .extended_key_usage()
        .map_err(|_| CertsError::Certificate("has a duplicate extended key usage"))?
        .ok_or(CertsError::Certificate("has no extended key usage"))?
        .value;
    let more = usage.any || usage.code_signing || usage.email_protection || usage.time_stamping || usage.ocsp_signing;
    if more || !usage.other.is_empty() {
        return Err(CertsError::Certificate("has an extended key usage that this authority never issues"));
    }
    Ok((usage.client_auth, usage.server_auth))
}

fn only_name<'a>(parsed: &'a X509Certificate<'_>) -> Result<&'a GeneralName<'a>, CertsError> {
    let names = parsed
        .subject_alternative_name()
        .map_err(|_| CertsError::Certificate("has duplicate alternative names"))?
        .ok_or(CertsError::Certificate("has no name"))?;
    match names.value.general_names.as_slice() {
        [name] => Ok(name),
        _ => Err(CertsError::Certificate("does not have exactly one name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::MeshAuthority;

    const NOW: i64 = 1_790_000_000;

    #[test]
    fn only_an_agents_leaf_has_an_agents_identity() {
        let authority = MeshAuthority::generate(NOW).unwrap();
        let coordinator = authority.issue_coordinator().unwrap();
        assert!(AgentIdentity::of_agent(&coordinator.chain()[0]).is_err());
        assert!(AgentIdentity::of_agent(authority.certificate()).is_err());
        assert!(AgentIdentity::of_agent(&CertificateDer::from(vec![1, 2, 3])).is_err());
        assert!(require_coordinator(&coordinator.chain()[0]).is_ok());
        assert!(require_coordinator(authority.certificate()).is_err());
    }
}
