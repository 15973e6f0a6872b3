//! The cookie of a signed-in browser, and what a request says about the browser.

use ::http::header::{HeaderValue, SET_COOKIE, USER_AGENT};
use ::http::{HeaderMap, header::COOKIE};
use parallax_service::people::{BrowserInfo, NewSession, PENDING_SECONDS, SessionToken};

use crate::http::HttpContext;
use crate::http::public::is_https;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip;

/// Name of the cookie over https: browsers accept it from this host alone, for all paths (RFC 6265bis, 4.1.3.2).
const SECURE_NAME: &str = "__Host-plx";
/// Name over plain http, as on loopback.
const LOCAL_NAME: &str = "plx-local";
/// Names of the cookie of a sign-in that waits for the code of a second factor, likewise.
const PENDING_NAMES: [&str; 2] = ["__Host-plx-code", "plx-code-local"];
/// Cookies examined per request.
const MAX_COOKIES: usize = 64;

/// Returns the secret in the session cookie of a request. Of two cookies the first counts.
pub(super) fn session_token(context: &HttpContext, headers: &HeaderMap) -> Option<SessionToken> {
    token_named(cookie_name(is_https(context)), headers)
}

/// Returns the secret of the sign-in that waits for its code at the browser.
pub(super) fn pending_token(context: &HttpContext, headers: &HeaderMap) -> Option<SessionToken> {
    token_named(pending_name(is_https(context)), headers)
}

fn token_named(name: &str, headers: &HeaderMap) -> Option<SessionToken> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).take(MAX_COOKIES);
    pairs.find_map(|cookie| {
        let (key, value) = cookie.trim().split_once('=')?;
        (key == name).then(|| SessionToken::parse(value))?
    })
}

/// Describes the browser of a request.
pub(super) fn browser_info<C>(context: &HttpContext, call: &RoutedRequest<C>) -> BrowserInfo {
    let address = client_ip::client_address(call.peer, &call.headers);
    let user_agent = call.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    BrowserInfo::new(address, user_agent, session_token(context, &call.headers))
}

/// Gives the browser its session.
pub(super) fn with_session(context: &HttpContext, reply: HttpResponse, new: &NewSession) -> HttpResponse {
    let is_https = is_https(context);
    with_cookie(reply, &cookie_text(cookie_name(is_https), is_https, new.token.reveal(), new.session.cookie_seconds()))
}

/// Gives the browser the secret of a sign-in that waits for its code.
pub(super) fn with_pending(context: &HttpContext, reply: HttpResponse, token: &SessionToken) -> HttpResponse {
    let is_https = is_https(context);
    with_cookie(reply, &cookie_text(pending_name(is_https), is_https, token.reveal(), Some(PENDING_SECONDS)))
}

/// Takes the session from the browser.
pub(super) fn without_session(context: &HttpContext, reply: HttpResponse) -> HttpResponse {
    let is_https = is_https(context);
    with_cookie(reply, &cookie_text(cookie_name(is_https), is_https, "", Some(0)))
}

fn with_cookie(reply: HttpResponse, cookie: &str) -> HttpResponse {
    match HeaderValue::try_from(cookie) {
        Ok(cookie) => reply.with(SET_COOKIE, cookie),
        Err(_) => reply,
    }
}

const fn cookie_name(is_https: bool) -> &'static str {
    if is_https { SECURE_NAME } else { LOCAL_NAME }
}

const fn pending_name(is_https: bool) -> &'static str {
    let [secure, local] = PENDING_NAMES;
    if is_https { secure } else { local }
}

/// Writes a cookie for that many seconds; without a number until the browser is closed.
fn cookie_text(name: &str, is_https: bool, value: &str, seconds: Option<i64>) -> String {
    let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let secure = if is_https { "; Secure" } else { "" };
    format!("{name}={value}; Path=/{age}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_bound_to_the_host_and_hidden_from_scripts() {
        let text = |is_https, value, seconds| cookie_text(cookie_name(is_https), is_https, value, seconds);
        assert_eq!(text(true, "a", None), "__Host-plx=a; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(text(false, "", Some(0)), "plx-local=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
