//! Redirects from the plain HTTP listener to HTTPS, except for ACME challenges and pings.

use ::http::header::{CACHE_CONTROL, HOST};
use ::http::{HeaderValue, Request, StatusCode};

use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::response::HttpResponse;
use crate::tls::{AcmeChallenges, CHALLENGE_PATH};

/// Prefix of ping URLs, which are not redirected: the secret has already been sent in the clear, and the HTTP clients
/// of many jobs follow no redirects, so a redirect would only lose the ping.
const PING_PREFIX: &str = "/ping/";

/// Returns the response of the plain listener, or `None` if the routes handle the request.
///
/// # Errors
/// [`ApiError::MisdirectedRequest`] for an unknown host, or an error of the store.
pub(super) fn plain_response<B>(
    context: &HttpContext,
    challenges: &AcmeChallenges,
    redirect: bool,
    request: &Request<B>,
) -> Result<Option<HttpResponse>, ApiError> {
    let path = request.uri().path();
    if let Some(token) = path.strip_prefix(CHALLENGE_PATH) {
        let reply = match challenges.proof(token) {
            Some(proof) => HttpResponse::bytes("application/octet-stream", proof)
                .with(CACHE_CONTROL, HeaderValue::from_static("no-store")),
            None => HttpResponse::empty(StatusCode::NOT_FOUND),
        };
        return Ok(Some(reply));
    }
    if !redirect || path.starts_with(PING_PREFIX) {
        return Ok(None);
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let Some(base) = context.service.hosts.https_origin(host)? else { return Err(ApiError::MisdirectedRequest) };
    let target = request.uri().path_and_query().map(|target| target.as_str());
    let target = target.filter(|target| target.starts_with('/')).unwrap_or("/");
    Ok(Some(HttpResponse::empty(StatusCode::PERMANENT_REDIRECT).with_location(&format!("{base}{target}"))))
}
