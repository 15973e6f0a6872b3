//! The plain listener where TLS is on: what it answers itself, and where it leads all else.

use ::http::header::{CACHE_CONTROL, HOST};
use ::http::{HeaderValue, Request, StatusCode};

use super::Context;
use super::error::Refused;
use super::reply::Reply;
use crate::tls::{CHALLENGE, Challenges};

/// A ping's secret has been sent by the time it is read, and many a job's client follows no redirect: to send it on would
/// only lose the ping.
const PING: &str = "/ping/";

/// The answer of the plain listener; none where the routes are asked.
///
/// # Errors
/// [`Refused::Elsewhere`] for a host that is nobody's here, or a fault of the store.
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
