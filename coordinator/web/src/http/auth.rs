//! Authenticates API keys sent as bearer tokens (RFC 6750, section 2.1), limits failed attempts per address, and runs
//! the handlers that require a key.

use std::sync::Arc;

use ::http::HeaderMap;
use ::http::header::AUTHORIZATION;
use parallax_core::rate_limit::{KeyedRateLimit, RateLimitStatus};
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_service::secret_text::ApiKeyText;
use parallax_service::{Caller, ServiceError};

use super::error::{ApiError, HandlerResult};
use super::route::HttpRoute;
use super::routed_request::RoutedRequest;
use super::server::client_ip::{PeerAddress, address_key};
use super::{HttpContext, error_hints};

/// Authenticates the request. If the key is invalid, writes the address's remaining failed attempts to `allowance`.
pub(super) fn authenticate(
    context: &HttpContext,
    headers: &HeaderMap,
    peer: Option<PeerAddress>,
    allowance: &mut Option<RateLimitStatus>,
) -> Result<Caller, ApiError> {
    let token = bearer_token(headers);
    let key = token.ok_or(ServiceError::Unauthenticated);
    match key.and_then(|text| context.service.keys.authenticate(text)) {
        Ok(caller) => Ok(caller),
        Err(ServiceError::Unauthenticated) => {
            if let Some(PeerAddress(address)) = peer {
                admit_request(&context.failed_auth_limit, address_key(address), context.service.now(), allowance)?;
            }
            Err(ApiError::Unauthenticated(
                token.map_or_else(|| error_hints::missing_key(headers), |text| ApiKeyText::explain(text).into()),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// Runs the handler of an authenticated request that has been counted.
pub(super) async fn run_authenticated(
    context: &Arc<HttpContext>,
    route: HttpRoute,
    call: RoutedRequest<Caller>,
) -> HandlerResult {
    let HttpRoute::Authenticated(handler) = route else { return Err(ApiError::NoRoute) };
    if !call.method.is_safe() {
        call.caller.require(Permission::Edit)?;
    }
    let help = error_hints::invalid_id(context, &call);
    handler(Arc::clone(context), call).await.map_err(|error| error_hints::with_hint(help, error))
}

/// Counts a request and writes what is left to `allowance`; refuses requests over the limit.
pub(super) fn admit_request<K: Ord + Clone>(
    limit: &KeyedRateLimit<K>,
    key: K,
    now: Timestamp,
    allowance: &mut Option<RateLimitStatus>,
) -> Result<(), ApiError> {
    let admitted = limit.admit_many(key, 1, now);
    let (Ok(outcome) | Err(outcome)) = admitted;
    *allowance = Some(outcome);
    admitted.map(drop).map_err(ApiError::RateLimited)
}

/// Returns the bearer token; two `Authorization` headers are treated as none.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (values.next()?, values.next());
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (second.is_none() && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_well_formed_bearer_token_is_read() {
        let headers =
            |values: &[&str]| values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect::<HeaderMap>();
        assert_eq!(bearer_token(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer_token(&headers(&["bearer  abc"])), Some("abc"));
        for values in [&[][..], &["abc"], &["Bearer "], &["Basic abc"], &["Bearer"], &["Bearer a", "Bearer b"]] {
            assert_eq!(bearer_token(&headers(values)), None, "{values:?}");
        }
    }
}
