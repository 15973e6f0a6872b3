//! Redirects: each target is parsed and dialled through the guard like the first.

use std::borrow::Cow;

use http::{Method, StatusCode, header};
use parallax_protocol::result::WireFailure;
use percent_encoding::{AsciiSet, percent_encode};

use super::{head::ResponseHead, request_plan::RequestPlan};

/// Returns the request that a response redirects to, with the cookies that it sets, or `None` if the response
/// is final. The method changes as in RFC 9110, section 15.4: 303 turns anything but HEAD into a GET, 301 and
/// 302 a POST. A redirect from https to http is followed too, as in browsers, without secrets.
///
/// # Errors
/// [`WireFailure::BadRedirect`] for a target that is not an http or https URL with a host, or that would send the
/// customer's body to another host, or in plain text after it was sent over TLS.
pub(super) fn next(plan: &RequestPlan, head: &ResponseHead) -> Result<Option<RequestPlan>, WireFailure> {
    let Some(location) = head.headers.get(header::LOCATION).filter(|_| is_redirect(head.status)) else {
        return Ok(None);
    };
    // Browsers treat an empty one as absent.
    let location = readable(location.as_bytes().trim_ascii());
    if location.is_empty() {
        return Ok(None);
    }
    let target = plan.url.join(&location).map_err(|_| WireFailure::BadRedirect)?;
    let mut moved = plan.redirected_to(target).map_err(|_| WireFailure::BadRedirect)?;
    moved.cookies.store(&plan.url, &head.headers);
    if becomes_get(head.status, &plan.method) {
        moved = moved.into_get();
    }
    if moved.exposes_body() { Err(WireFailure::BadRedirect) } else { Ok(Some(moved)) }
}

/// Converts an address to text; invalid UTF-8 is escaped byte by byte.
fn readable(address: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(address) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => percent_encode(address, &AsciiSet::EMPTY).collect::<String>().into(),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};
    use parallax_protocol::{
        check::{WireHeader, WireHttpCheck, WireKeywordMode, WireMethod as CheckMethod},
        text::SecretText,
    };

    fn plan(method: CheckMethod, url: &str) -> RequestPlan {
        RequestPlan::from_check(&WireHttpCheck {
            url: url.to_owned(),
            method,
            headers: ["Authorization", "Cookie", "X-Token", "Content-Type"]
                .map(|name| WireHeader { name: name.to_owned(), value: SecretText::new("secret") })
                .to_vec(),
            body: Some(SecretText::new("body")),
            expect_status: None,
            keyword: None,
            keyword_mode: WireKeywordMode::Present,
        })
        .unwrap()
    }

    fn follow(plan: &RequestPlan, status: u16, location: &str) -> Result<Option<RequestPlan>, WireFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(location).unwrap());
        next(plan, &ResponseHead { status: StatusCode::from_u16(status).unwrap(), headers })
    }

    fn followed(plan: &RequestPlan, status: u16, location: &str) -> RequestPlan {
        follow(plan, status, location).unwrap().unwrap()
    }

    #[test]
    fn targets_are_read_against_the_url_they_came_from() {
        let from = plan(CheckMethod::Get, "http://example.com/a/b?c");
        for (location, url) in [
            ("/x", "http://example.com/x"),
            ("x", "http://example.com/a/x"),
            ("//other.example/", "http://other.example/"),
            ("https://example.com/#f", "https://example.com/"),
            ("http://u:p@example.com/", "http://example.com/"),
        ] {
            assert_eq!(followed(&from, 302, location).url.as_str(), url);
        }
    }

    #[test]
    fn an_invalid_redirect_target_is_a_bad_redirect() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        for location in ["ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "http://", "http://a b"] {
            assert_eq!(follow(&from, 302, location).err(), Some(WireFailure::BadRedirect), "{location}");
        }
    }

    #[test]
    fn a_body_neither_leaves_its_host_nor_tls() {
        let from = plan(CheckMethod::Post, "https://example.com/");
        assert_eq!(followed(&from, 302, "http://example.com/x").url.as_str(), "http://example.com/x");
        for status in [307, 308] {
            assert_eq!(follow(&from, status, "http://example.com/x").err(), Some(WireFailure::BadRedirect));
            assert_eq!(follow(&from, status, "https://other.example/").err(), Some(WireFailure::BadRedirect));
            assert!(!followed(&from, status, "https://example.com/x").body.is_empty());
        }
        assert!(followed(&from, 303, "https://other.example/").body.is_empty());
        let put = plan(CheckMethod::Put, "https://example.com/");
        assert_eq!(follow(&put, 302, "https://other.example/").err(), Some(WireFailure::BadRedirect));
        let bare = plan(CheckMethod::Get, "https://example.com/");
        assert!(followed(&bare, 307, "https://other.example/").body.is_empty());
    }

    #[test]
    fn an_address_with_unusual_bytes_is_parsed_as_in_browsers() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        for (location, url) in [
            (b"/caf\xe9 x".as_slice(), "http://example.com/caf%E9%20x"),
            (b"/caf\xc3\xa9", "http://example.com/caf%C3%A9"),
            (b" /x\t", "http://example.com/x"),
        ] {
            let headers = [(header::LOCATION, HeaderValue::from_bytes(location).unwrap())].into_iter().collect();
            let moved = next(&from, &ResponseHead { status: StatusCode::FOUND, headers }).unwrap().unwrap();
            assert_eq!(moved.url.as_str(), url);
        }
    }

    #[test]
    fn an_answer_sets_cookies_for_the_next_request() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        let headers = [(header::LOCATION, "/"), (header::SET_COOKIE, "seen=1")]
            .map(|(name, value)| (name, HeaderValue::from_static(value)));
        let headers: HeaderMap = headers.into_iter().collect();
        let moved = next(&from, &ResponseHead { status: StatusCode::FOUND, headers }).unwrap().unwrap();
        assert_eq!(moved.cookies.sent_to(&moved.url), [("seen", "1")]);
    }

    #[test]
    fn the_method_changes_as_rfc_9110_requires() {
        for (status, method, then) in [
            (301, CheckMethod::Post, Method::GET),
            (302, CheckMethod::Post, Method::GET),
            (302, CheckMethod::Put, Method::PUT),
            (303, CheckMethod::Put, Method::GET),
            (303, CheckMethod::Head, Method::HEAD),
            (307, CheckMethod::Post, Method::POST),
            (308, CheckMethod::Patch, Method::PATCH),
        ] {
            let next = followed(&plan(method, "http://example.com/"), status, "/x");
            assert_eq!(next.method, then, "{status} {method:?}");
            let keeps = then != Method::GET && then != Method::HEAD;
            assert_eq!(!next.body.is_empty(), keeps, "{status} {method:?}");
            let text = String::from_utf8(next.request_bytes().unwrap()).unwrap();
            assert_eq!(text.contains("content-type:"), then != Method::GET, "{status} {method:?}");
        }
    }

    #[test]
    fn other_answers_are_final() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        for status in [200, 300, 304, 404] {
            assert!(follow(&from, status, "/x").unwrap().is_none(), "{status}");
        }
        assert!(follow(&from, 302, "").unwrap().is_none());
        let bare = ResponseHead { status: StatusCode::FOUND, headers: HeaderMap::new() };
        assert!(next(&from, &bare).unwrap().is_none());
    }
}
