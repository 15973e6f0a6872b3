//! Redirects from the plain HTTP listener to HTTPS, except for ACME challenges and pings.

use ::http::header::{CACHE_CONTROL, HOST};
use ::http::{HeaderValue, Request, StatusCode};

use super::Context;
use super::error::Refused;
use super::reply::Reply;
use crate::tls::{CHALLENGE, Challenges};

/// Prefix of ping URLs, which are not redirected: the secret has already been sent in the clear, and the HTTP clients
/// of many jobs follow no redirects, so a redirect would only lose the ping.
const PING: &str = "/ping/";

/// Returns the response of the plain listener, or `None` if the routes handle the request.
///
/// # Errors
/// [`Refused::Elsewhere`] for an unknown host, or an error of the store.
pub(super) fn answer<B>(
    context: &Context,
    challenges: &Challenges,
    redirect: bool,
    request: &Request<B>,
) -> Result<Option<Reply>, Refused> {
    let path = request.uri().path();
    if let Some(token) = path.strip_prefix(CHALLENGE) {
        let reply = match challenges.answer(token) {
            Some(proof) => Reply::bytes("application/octet-stream", proof)
                .with(CACHE_CONTROL, HeaderValue::from_static("no-store")),
            None => Reply::empty(StatusCode::NOT_FOUND),
        };
        return Ok(Some(reply));
    }
    if !redirect || path.starts_with(PING) {
        return Ok(None);
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let Some(base) = context.service.secure_address(host)? else { return Err(Refused::Elsewhere) };
    let asked = request.uri().path_and_query().map(|asked| asked.as_str());
    let asked = asked.filter(|asked| asked.starts_with('/')).unwrap_or("/");
    Ok(Some(Reply::empty(StatusCode::PERMANENT_REDIRECT).at(&format!("{base}{asked}"))))
}
