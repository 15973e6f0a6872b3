//! Access cookies of browsers (RFC 6265): bound to one host and hidden from scripts.

use ::http::header::COOKIE;
use ::http::{HeaderMap, HeaderValue};
use parallax_service::page_access::sign_in::BrowserId;

use crate::http::HttpContext;

/// Prefix of the names of the service's cookies.
const COOKIE_PREFIX: &str = "plx-";
/// Prefix of cookies that a browser accepts over https only, from this host, for all paths (RFC 6265bis, 4.1.3.2).
const HOST: &str = "__Host-";
/// Name of the cookie that identifies a browser.
const BROWSER: &str = "browser";
/// Cookies examined per request.
const MAX_COOKIES: usize = 64;

/// Returns true if browsers connect by https. Custom hosts are served like the base URL.
pub(in crate::http) fn is_https(context: &HttpContext) -> bool {
    context.service.base_url().starts_with("https://")
}

/// Returns the access tokens in the request's cookies, by name.
pub(super) fn access_tokens(headers: &HeaderMap, is_https: bool) -> Vec<(String, String)> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let own_cookies = pairs.filter_map(|(name, value)| {
        let name = if is_https { name.strip_prefix(HOST)? } else { name };
        Some((name.strip_prefix(COOKIE_PREFIX)?.to_owned(), value.to_owned()))
    });
    own_cookies.take(MAX_COOKIES).collect()
}

/// Returns the browser's id, if it has one.
pub(in crate::http) fn browser(headers: &HeaderMap, is_https: bool) -> Option<BrowserId> {
    let tokens = access_tokens(headers, is_https);
    let (_, value) = tokens.iter().find(|(name, _)| name == BROWSER)?;
    let is_ours = value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| u128::from_str_radix(value, 16).ok().map(u128::to_be_bytes))?
}

/// Formats a cookie that the browser keeps for that many seconds; 0 deletes it.
pub(super) fn set_cookie(name: &str, value: &str, seconds: i64, is_https: bool) -> Option<HeaderValue> {
    let (host, secure) = if is_https { (HOST, "; Secure") } else { ("", "") };
    let text =
        format!("{host}{COOKIE_PREFIX}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).ok()
}

/// Formats the cookie that identifies this browser for that many seconds.
pub(in crate::http) fn browser_cookie(browser: BrowserId, seconds: i64, is_https: bool) -> Option<HeaderValue> {
    set_cookie(BROWSER, &format!("{:032x}", u128::from_be_bytes(browser)), seconds, is_https)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (COOKIE, value.parse().unwrap())).collect()
    }

    #[test]
    fn over_https_only_cookies_with_the_host_prefix_count() {
        let header_map = headers(&["a=b; __Host-plx-one=1; plx-two=2", "__Host-plx-one=3; __Host-other=4; junk"]);
        let tokens = |is_https| {
            let tokens = access_tokens(&header_map, is_https);
            tokens.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((tokens(true), tokens(false)), ("one=1 one=3".to_owned(), "two=2".to_owned()));
        let set = set_cookie("one", "1", 60, true).unwrap();
        assert_eq!(set, "__Host-plx-one=1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(set_cookie("one", "", 0, false).unwrap(), "plx-one=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn a_browser_is_recognized_by_its_cookie() {
        let set = browser_cookie([7; 16], 60, false).unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(browser(&headers(&[&cookie]), false), Some([7; 16]));
        for invalid in ["plx-browser=", "plx-browser=07", "plx-browser=+0000000000000000000000000000007", "x=y"] {
            assert_eq!(browser(&headers(&[invalid]), false), None, "{invalid}");
        }
    }
}
