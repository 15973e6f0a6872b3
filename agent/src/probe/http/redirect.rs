//! Redirects, followed by hand: each target is parsed anew and dialled through the guard like the first.

use http::{HeaderMap, Method, StatusCode, header};
use parallax_protocol::result::Failure;

use super::plan::Plan;

/// The request that an answer redirects to, or `None` if the answer is final. The method changes as in RFC 9110,
/// section 15.4: 303 makes anything but HEAD a GET, 301 and 302 make a POST one.
///
/// # Errors
/// [`Failure::BadRedirect`] for a target that is no http or https URL with a host, or that leads from https
/// back to http: what was asked for in private is not asked for in the open.
pub(super) fn next(plan: &Plan, status: StatusCode, headers: &HeaderMap) -> Result<Option<Plan>, Failure> {
    if !is_redirect(status) {
        return Ok(None);
    }
    let Some(location) = headers.get(header::LOCATION) else {
        return Ok(None);
    };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| Failure::BadRedirect)?;
    let target = plan.url.join(location).map_err(|_| Failure::BadRedirect)?;
    if plan.is_https() && target.scheme() == "http" {
        return Err(Failure::BadRedirect);
    }
    let moved = plan.moved_to(target).map_err(|_| Failure::BadRedirect)?;
    Ok(Some(if becomes_get(status, &plan.method) { moved.into_get() } else { moved }))
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
    use http::HeaderValue;
    use parallax_protocol::{
        check::{Header, HttpCheck, KeywordMode, Method as CheckMethod},
        text::Secret,
    };

    fn plan(method: CheckMethod, url: &str) -> Plan {
        Plan::first(&HttpCheck {
            url: url.to_owned(),
            method,
            headers: ["Authorization", "Cookie", "X-Token", "Content-Type"]
                .map(|name| Header { name: name.to_owned(), value: Secret::new("secret") })
                .to_vec(),
            body: Some(Secret::new("body")),
            expect_status: None,
            keyword: None,
            keyword_mode: KeywordMode::Present,
        })
        .unwrap()
    }

    fn follow(plan: &Plan, status: u16, location: &str) -> Result<Option<Plan>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(location).unwrap());
        next(plan, StatusCode::from_u16(status).unwrap(), &headers)
    }

    fn followed(plan: &Plan, status: u16, location: &str) -> Plan {
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
    fn what_is_no_web_address_is_a_bad_redirect() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        for location in
            ["ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "http://", "http://a b"]
        {
            assert_eq!(follow(&from, 302, location).err(), Some(Failure::BadRedirect), "{location}");
        }
        let private = plan(CheckMethod::Get, "https://example.com/");
        assert_eq!(follow(&private, 302, "http://example.com/").err(), Some(Failure::BadRedirect));
    }

    #[test]
    fn the_customers_headers_stay_with_their_origin() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        assert_eq!(followed(&from, 302, "/same").own_headers.len(), 4);
        for other in ["http://example.com:81/", "https://example.com/", "http://a.example.com/"] {
            assert!(followed(&from, 302, other).own_headers.is_empty(), "{other}");
        }
    }

    #[test]
    fn the_method_changes_by_the_book() {
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
            if then == Method::GET {
                assert!(!next.own_headers.contains_key(header::CONTENT_TYPE));
            }
        }
    }

    #[test]
    fn other_answers_are_final() {
        let from = plan(CheckMethod::Get, "http://example.com/");
        for status in [200, 300, 304, 404] {
            assert!(follow(&from, status, "/x").unwrap().is_none(), "{status}");
        }
        assert!(next(&from, StatusCode::FOUND, &HeaderMap::new()).unwrap().is_none());
    }
}
