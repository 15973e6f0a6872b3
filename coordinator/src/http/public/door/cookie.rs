//! Cookies by which a browser shows what lets it in (RFC 6265): its own host's alone, and no script's.

use ::http::header::COOKIE;
use ::http::{HeaderMap, HeaderValue};

use crate::service::sign_in::Browser;

/// What our cookies' names begin with.
const OURS: &str = "plx-";
/// What a browser takes over https alone, from this very host, for all of its paths (RFC 6265bis, 4.1.3.2).
const HOST: &str = "__Host-";
/// Name of the cookie that tells a browser from others.
const BROWSER: &str = "browser";
/// Cookies that are looked at.
const MOST: usize = 64;

/// The passes that a browser shows, by their names.
pub(in crate::http::public) fn passes(headers: &HeaderMap, is_https: bool) -> Vec<(String, String)> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let ours = pairs.filter_map(|(name, value)| {
        let name = if is_https { name.strip_prefix(HOST)? } else { name };
        Some((name.strip_prefix(OURS)?.to_owned(), value.to_owned()))
    });
    ours.take(MOST).collect()
}

/// The browser, where it is known.
pub(super) fn browser(headers: &HeaderMap, is_https: bool) -> Option<Browser> {
    let shown = passes(headers, is_https);
    let (_, value) = shown.iter().find(|(name, _)| name == BROWSER)?;
    let is_ours = value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| u128::from_str_radix(value, 16).ok().map(u128::to_be_bytes))?
}

/// A pass that the browser is to keep for so many seconds; none of them takes it away.
pub(super) fn kept(name: &str, value: &str, seconds: i64, is_https: bool) -> Option<HeaderValue> {
    let (host, secure) = if is_https { (HOST, "; Secure") } else { ("", "") };
    let text =
        format!("{host}{OURS}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).ok()
}

/// What tells this browser from others, to be kept by it for so many seconds.
pub(super) fn known(browser: Browser, seconds: i64, is_https: bool) -> Option<HeaderValue> {
    kept(BROWSER, &format!("{:032x}", u128::from_be_bytes(browser)), seconds, is_https)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (COOKIE, value.parse().unwrap())).collect()
    }

    #[test]
    fn over_https_only_a_cookie_of_this_very_host_counts() {
        let sent = headers(&["a=b; __Host-plx-one=1; plx-two=2", "__Host-plx-one=3; __Host-other=4; junk"]);
        let found = |is_https| {
            let found = passes(&sent, is_https);
            found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((found(true), found(false)), ("one=1 one=3".to_owned(), "two=2".to_owned()));
        let set = kept("one", "1", 60, true).unwrap();
        assert_eq!(set, "__Host-plx-one=1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(kept("one", "", 0, false).unwrap(), "plx-one=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn a_browser_is_known_by_what_it_was_given() {
        let set = known([7; 16], 60, false).unwrap();
        let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(browser(&headers(&[&pair]), false), Some([7; 16]));
        for bad in ["plx-browser=", "plx-browser=07", "plx-browser=+0000000000000000000000000000007", "x=y"] {
            assert_eq!(browser(&headers(&[bad]), false), None, "{bad}");
        }
    }
}
