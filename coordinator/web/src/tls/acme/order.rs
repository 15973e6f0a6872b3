//! Orders one certificate (RFC 8555) with an HTTP-01 challenge, served by the plain HTTP listener.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::renewal_plan::OrderFailure;
use crate::tls::AcmeChallenges;

/// Polling of the validation.
const VALIDATION_POLICY: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(Duration::from_secs(60));
/// Polling of the issuance: longer, since the certificate already counts against the limits of the ACME server.
const ISSUANCE_POLICY: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.25).timeout(Duration::from_secs(5 * 60));
/// Error type for an unknown account (RFC 8555, section 6.7).
const ACCOUNT_DOES_NOT_EXIST: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// Error of an order.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct OrderError {
    /// Message.
    message: String,
    /// Kind of failure, which determines when to retry.
    pub(super) failure: OrderFailure,
    /// True if the ACME server does not know the account.
    pub(super) is_account_unknown: bool,
}

/// Orders a certificate for one host. Returns the key and the chain, in PEM.
pub(super) async fn order_certificate(
    account: &Account,
    name: &str,
    challenges: &AcmeChallenges,
) -> Result<String, OrderError> {
    let names = [Identifier::Dns(name.to_owned())];
    let mut order = account.new_order(&NewOrder::new(&names)).await?;
    let mut tokens = Vec::new();
    let result = complete_order(&mut order, name, challenges, &mut tokens).await;
    for token in tokens {
        challenges.remove(&token);
    }
    result
}

async fn complete_order(
    order: &mut Order,
    name: &str,
    challenges: &AcmeChallenges,
    tokens: &mut Vec<String>,
) -> Result<String, OrderError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let Some(mut challenge) = authorization.challenge(ChallengeType::Http01) else {
            return Err(OrderError::rejected("the ACME server offers no HTTP-01 challenge"));
        };
        challenges.insert(&challenge.token, challenge.key_authorization().as_str());
        tokens.push(challenge.token.clone());
        challenge.set_ready().await?;
    }
    // From here on failures count against the limits of the ACME server, even if its response is lost.
    if order.poll_ready(&VALIDATION_POLICY).await.map_err(OrderError::after_validation)? != OrderStatus::Ready {
        return Err(OrderError::rejected(&validation_error(order).await));
    }
    let key = KeyPair::generate().map_err(|error| OrderError::rejected(&error.to_string()))?;
    let mut params =
        CertificateParams::new(vec![name.to_owned()]).map_err(|error| OrderError::rejected(&error.to_string()))?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(|error| OrderError::rejected(&error.to_string()))?;
    order.finalize_csr(request.der()).await.map_err(OrderError::after_validation)?;
    let chain = order.poll_certificate(&ISSUANCE_POLICY).await.map_err(OrderError::after_validation)?;
    Ok(format!("{}{chain}", key.serialize_pem()))
}

/// Reads the error of a failed validation.
async fn validation_error(order: &mut Order) -> String {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else { break };
        if let Ok(state) = authorization.refresh().await
            && let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref())
        {
            return problem.to_string();
        }
    }
    "the ACME server could not validate the challenge".to_owned()
}

impl OrderError {
    pub(super) fn rejected(message: &str) -> Self {
        Self { message: message.to_owned(), failure: OrderFailure::Rejected, is_account_unknown: false }
    }

    /// Creates the error for a host that points elsewhere, which its owner has to fix. Nothing was ordered.
    pub(super) fn points_elsewhere(message: &str) -> Self {
        Self { message: message.to_owned(), failure: OrderFailure::PointsElsewhere, is_account_unknown: false }
    }

    /// Creates the error for a failure on this side, before anything was ordered.
    pub(super) fn unreachable(message: &str) -> Self {
        Self { message: message.to_owned(), failure: OrderFailure::Unreachable, is_account_unknown: false }
    }

    /// Creates the error for a failure after the challenge was offered.
    fn after_validation(error: Error) -> Self {
        Self { failure: OrderFailure::Rejected, ..Self::from(error) }
    }
}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        let failure = match &error {
            Error::Api(_) | Error::Unsupported(_) => OrderFailure::Rejected,
            _ => OrderFailure::Unreachable,
        };
        let is_account_unknown =
            matches!(&error, Error::Api(problem) if problem.r#type.as_deref() == Some(ACCOUNT_DOES_NOT_EXIST));
        Self { message: error.to_string(), failure, is_account_unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api_error(kind: &str) -> Error {
        let problem = format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}"}}"#);
        Error::Api(serde_json::from_str(&problem).unwrap())
    }

    #[test]
    fn a_failure_after_the_challenge_counts_as_rejected() {
        let timeout = || Error::Timeout(None);
        assert_eq!(OrderError::from(timeout()).failure, OrderFailure::Unreachable);
        assert_eq!(OrderError::after_validation(timeout()).failure, OrderFailure::Rejected);
        assert_eq!(OrderError::from(api_error("rateLimited")).failure, OrderFailure::Rejected);
    }

    #[test]
    fn an_unknown_account_is_distinguished_from_other_errors() {
        assert!(OrderError::from(api_error("accountDoesNotExist")).is_account_unknown);
        assert!(!OrderError::from(api_error("unauthorized")).is_account_unknown);
        assert!(!OrderError::rejected("no").is_account_unknown);
    }
}
