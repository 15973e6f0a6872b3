//! Requests as they leave for a check.

use super::*;
use parallax_protocol::{
    check::{Header, KeywordMode},
    text::Secret,
};

fn check(method: CheckMethod, url: &str, headers: &[(&str, &str)], body: Option<&str>) -> HttpCheck {
    HttpCheck {
        url: url.to_owned(),
        method,
        headers: headers
            .iter()
            .map(|(name, value)| Header { name: (*name).to_owned(), value: Secret::new(*value) })
            .collect(),
        body: body.map(Secret::new),
        expect_status: None,
        keyword: None,
        keyword_mode: KeywordMode::Present,
    }
}

fn first(url: &str, headers: &[(&str, &str)]) -> Result<Plan, Failure> {
    Plan::first(&check(CheckMethod::Get, url, headers, None))
}

fn header_of(plan: &Plan, name: &str) -> Option<String> {
    let request = plan.request(Version::HTTP_11).unwrap();
    request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn a_plain_check_says_who_asks_and_wants_no_coding() {
    let plan = first("http://example.com:8080/a?b=c#d", &[]).unwrap();
    assert!(header_of(&plan, "user-agent").unwrap().starts_with("Parallax/"));
    assert_eq!(header_of(&plan, "accept-encoding").unwrap(), "identity");
    assert_eq!(header_of(&plan, "host").unwrap(), "example.com:8080");
    assert_eq!(plan.request(Version::HTTP_11).unwrap().uri(), "/a?b=c");
    let second = plan.request(Version::HTTP_2).unwrap();
    assert_eq!(second.uri(), "http://example.com:8080/a?b=c");
    assert!(!second.headers().contains_key("host"));
}

#[test]
fn own_headers_replace_ours_whatever_their_case() {
    let plan = first("http://example.com/", &[("USER-agent", "me"), ("hOST", "other.example")]).unwrap();
    assert_eq!(header_of(&plan, "user-agent").unwrap(), "me");
    assert_eq!(header_of(&plan, "host").unwrap(), "other.example");
    assert_eq!(plan.request(Version::HTTP_2).unwrap().uri(), "http://other.example/");
    assert_eq!(plan.host.to_string(), "example.com", "the connection goes where the URL says");
}

#[test]
fn user_info_becomes_basic_credentials_and_leaves_the_url() {
    let plan = first("http://us%65r:p%40ss@example.com/", &[]).unwrap();
    assert_eq!(header_of(&plan, "authorization").unwrap(), "Basic dXNlcjpwQHNz");
    assert_eq!(plan.url.as_str(), "http://example.com/");
    let own = first("http://user@example.com/", &[("Authorization", "Bearer x")]).unwrap();
    assert_eq!(header_of(&own, "authorization").unwrap(), "Bearer x");
}

#[test]
fn headers_of_the_connection_are_refused() {
    for name in ["Connection", "Transfer-Encoding", "content-length", "TE", "Proxy-Authorization", "Upgrade"]
    {
        assert!(
            matches!(first("http://example.com/", &[(name, "x")]), Err(Failure::BadTarget { .. })),
            "{name}"
        );
    }
    assert!(first("http://example.com/", &[("Host", "a"), ("host", "b")]).is_err());
    assert!(first("http://example.com/", &[("a b", "x")]).is_err());
    assert!(first("http://example.com/", &[("a", "x\r\ny: z")]).is_err());
}

#[test]
fn what_is_no_http_url_is_refused() {
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "example.com",
        "http://",
        "http://example.com:0/",
        "http://a b/",
    ] {
        assert!(first(url, &[]).is_err(), "{url}");
    }
}

#[test]
fn only_methods_that_take_a_body_send_one() {
    for (method, sent) in [
        (CheckMethod::Get, false),
        (CheckMethod::Head, false),
        (CheckMethod::Post, true),
        (CheckMethod::Put, true),
        (CheckMethod::Patch, true),
        (CheckMethod::Delete, true),
    ] {
        let plan = Plan::first(&check(method, "http://example.com/", &[], Some("{}"))).unwrap();
        assert_eq!(!plan.body.is_empty(), sent, "{method:?}");
    }
}

#[test]
fn addresses_keep_their_brackets_in_the_host_header() {
    let plan = first("http://[2001:db8::1]:81/", &[]).unwrap();
    assert_eq!(header_of(&plan, "host").unwrap(), "[2001:db8::1]:81");
}
