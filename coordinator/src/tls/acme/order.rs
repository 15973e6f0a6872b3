//! Orders one certificate (RFC 8555) with an HTTP-01 challenge, served by the plain HTTP listener.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::plan::Failure;
use crate::tls::Challenges;

/// Polling of the validation.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(60));
/// Polling of the issuance: longer, since the certificate already counts against the limits of the ACME server.
const PATIENCE_TO_SIGN: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.25)
    .timeout(Duration::from_secs(5 * 60));
/// Error type for an unknown account (RFC 8555, section 6.7).
const NO_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// Error of an order.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(super) struct Failed {
    /// Message.
    words: String,
    /// Kind of failure, which determines when to retry.
    pub(super) failure: Failure,
    /// True if the ACME server does not know the account.
    pub(super) is_unknown: bool,
}

/// Orders a certificate for one host. Returns the key and the chain, in PEM.
pub(super) async fn order(account: &Account, name: &str, challenges: &Challenges) -> Result<String, Failed> {
    let names = [Identifier::Dns(name.to_owned())];
    let mut order = account.new_order(&NewOrder::new(&names)).await?;
    let mut open = Vec::new();
    let issued = fulfil(&mut order, name, challenges, &mut open).await;
    for token in open {
        challenges.take(&token);
    }
    issued
}

async fn fulfil(
    order: &mut Order,
    name: &str,
    challenges: &Challenges,
    open: &mut Vec<String>,
) -> Result<String, Failed> {
    let mut all = order.authorizations();
    while let Some(one) = all.next().await {
        let mut one = one?;
        if one.status == AuthorizationStatus::Valid {
            continue;
        }
        let Some(mut challenge) = one.challenge(ChallengeType::Http01) else {
            return Err(Failed::refused("the ACME server offers no HTTP-01 challenge"));
        };
        challenges.put(&challenge.token, challenge.key_authorization().as_str());
        open.push(challenge.token.clone());
        challenge.set_ready().await?;
    }
    // From here on failures count against the limits of the ACME server, even if its response is lost.
    if order.poll_ready(&PATIENCE).await.map_err(Failed::counted)? != OrderStatus::Ready {
        return Err(Failed::refused(&why_not(order).await));
    }
    let key = KeyPair::generate().map_err(|error| Failed::refused(&error.to_string()))?;
    let mut params =
        CertificateParams::new(vec![name.to_owned()]).map_err(|error| Failed::refused(&error.to_string()))?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(|error| Failed::refused(&error.to_string()))?;
    order.finalize_csr(request.der()).await.map_err(Failed::counted)?;
    let chain = order.poll_certificate(&PATIENCE_TO_SIGN).await.map_err(Failed::counted)?;
    Ok(format!("{}{chain}", key.serialize_pem()))
}

/// Reads the error of a failed validation.
async fn why_not(order: &mut Order) -> String {
    let mut all = order.authorizations();
    while let Some(one) = all.next().await {
        let Ok(mut one) = one else { break };
        if let Ok(state) = one.refresh().await
            && let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref())
        {
            return problem.to_string();
        }
    }
    "the ACME server could not validate the challenge".to_owned()
}

impl Failed {
    pub(super) fn refused(words: &str) -> Self {
        Self { words: words.to_owned(), failure: Failure::Refused, is_unknown: false }
    }

    /// Creates the error for a host that points elsewhere, which its owner has to fix. Nothing was ordered.
    pub(super) fn astray(words: &str) -> Self {
        Self { words: words.to_owned(), failure: Failure::Astray, is_unknown: false }
    }

    /// Creates the error for a failure on this side, before anything was ordered.
    pub(super) fn unreached(words: &str) -> Self {
        Self { words: words.to_owned(), failure: Failure::Unreached, is_unknown: false }
    }

    /// Creates the error for a failure after the challenge was offered.
    fn counted(error: Error) -> Self {
        Self { failure: Failure::Refused, ..Self::from(error) }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let failure = match &error {
            Error::Api(_) | Error::Unsupported(_) => Failure::Refused,
            _ => Failure::Unreached,
        };
        let is_unknown =
            matches!(&error, Error::Api(problem) if problem.r#type.as_deref() == Some(NO_ACCOUNT));
        Self { words: error.to_string(), failure, is_unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: &str) -> Error {
        let problem = format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}"}}"#);
        Error::Api(serde_json::from_str(&problem).unwrap())
    }

    #[test]
    fn a_failure_after_the_proof_counts_as_a_refusal() {
        let lost = || Error::Timeout(None);
        assert_eq!(Failed::from(lost()).failure, Failure::Unreached);
        assert_eq!(Failed::counted(lost()).failure, Failure::Refused);
        assert_eq!(Failed::from(refusal("rateLimited")).failure, Failure::Refused);
    }

    #[test]
    fn an_unknown_account_is_told_from_other_refusals() {
        assert!(Failed::from(refusal("accountDoesNotExist")).is_unknown);
        assert!(!Failed::from(refusal("unauthorized")).is_unknown);
        assert!(!Failed::refused("no").is_unknown);
    }
}
