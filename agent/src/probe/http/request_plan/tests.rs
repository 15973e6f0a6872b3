//! Tests of the requests that a check sends.

use super::*;
use parallax_protocol::{
    check::{WireHeader, WireKeywordMode},
    text::SecretText,
};

fn check(method: CheckMethod, url: &str, headers: &[(&str, &str)], body: Option<&str>) -> WireHttpCheck {
    WireHttpCheck {
        url: url.to_owned(),
        method,
        headers: headers
            .iter()
            .map(|(name, value)| WireHeader { name: (*name).to_owned(), value: SecretText::new(*value) })
            .collect(),
        body: body.map(SecretText::new),
        expect_status: None,
        keyword: None,
        keyword_mode: WireKeywordMode::Present,
    }
}

fn first(url: &str, headers: &[(&str, &str)]) -> Result<RequestPlan, WireFailure> {
    RequestPlan::from_check(&check(CheckMethod::Get, url, headers, None))
}

fn header_of(plan: &RequestPlan, name: &str) -> Option<String> {
    let text = String::from_utf8(plan.request_bytes().unwrap()).unwrap();
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines().filter_map(|line| line.split_once(": ")).filter(|(own, _)| *own == name);
    let value = lines.next().map(|(_, value)| value.to_owned());
    assert!(lines.next().is_none(), "{name} twice in {text}");
    value
}

#[test]
fn a_plain_check_sends_a_user_agent_and_accepts_no_coding() {
    let plan = first("http://example.com:8080/a?b=c#d", &[]).unwrap();
    assert!(header_of(&plan, "user-agent").unwrap().starts_with("Parallax/"));
    assert_eq!(header_of(&plan, "accept-encoding").unwrap(), "identity");
    assert_eq!(header_of(&plan, "host").unwrap(), "example.com:8080");
    assert!(plan.request_bytes().unwrap().starts_with(b"GET /a?b=c HTTP/1.1\r\nhost: "));
    let second = plan.request().unwrap();
    assert_eq!(second.uri(), "http://example.com:8080/a?b=c");
    assert!(!second.headers().contains_key("host"));
}

#[test]
fn own_headers_replace_ours_whatever_their_case() {
    let plan = first("http://example.com/", &[("USER-agent", "me"), ("hOST", "other.example")]).unwrap();
    assert_eq!(header_of(&plan, "user-agent").unwrap(), "me");
    assert_eq!(header_of(&plan, "host").unwrap(), "other.example");
    assert_eq!(plan.request().unwrap().uri(), "http://other.example/");
    assert_eq!(plan.host.to_string(), "example.com", "the connection goes to the URL's host");
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
fn connection_headers_are_refused() {
    for name in ["Connection", "Transfer-Encoding", "content-length", "TE", "Proxy-Authorization", "Upgrade"] {
        assert!(matches!(first("http://example.com/", &[(name, "x")]), Err(WireFailure::BadTarget { .. })), "{name}");
    }
    assert!(first("http://example.com/", &[("Host", "a"), ("host", "b")]).is_err());
    assert!(first("http://example.com/", &[("a b", "x")]).is_err());
    assert!(first("http://example.com/", &[("a", "x\r\ny: z")]).is_err());
}

#[test]
fn invalid_http_urls_are_refused() {
    for url in
        ["ftp://example.com/", "file:///etc/passwd", "example.com", "http://", "http://example.com:0/", "http://a b/"]
    {
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
        let plan = RequestPlan::from_check(&check(method, "http://example.com/", &[], Some("{}"))).unwrap();
        assert_eq!(!plan.body.is_empty(), sent, "{method:?}");
        assert_eq!(header_of(&plan, "content-length").as_deref(), sent.then_some("2"), "{method:?}");
        let bare = RequestPlan::from_check(&check(method, "http://example.com/", &[], None)).unwrap();
        let says_none = sent && method != CheckMethod::Delete;
        assert_eq!(header_of(&bare, "content-length").as_deref(), says_none.then_some("0"), "{method:?}");
    }
}

#[test]
fn addresses_keep_their_brackets_in_the_host_header() {
    let plan = first("http://[2001:db8::1]:81/", &[]).unwrap();
    assert_eq!(header_of(&plan, "host").unwrap(), "[2001:db8::1]:81");
}

/// Returns a check with a header of each kind, after a redirect to this address.
fn moved(from: &str, to: &[&str]) -> RequestPlan {
    let headers = [
        ("User-Agent", "me"),
        ("Accept", "text/html"),
        ("Accept-Language", "de"),
        ("Referer", "http://start.example/"),
        ("Authorization", "Bearer secret"),
        ("Cookie", "own=secret"),
        ("X-Token", "secret"),
        ("Host", "inner.example"),
    ];
    let first = first(from, &headers).unwrap();
    to.iter().fold(first, |plan, to| plan.redirected_to(Url::parse(to).unwrap()).unwrap())
}

#[test]
fn secrets_stay_with_their_host_and_within_tls() {
    for (from, to, goes) in [
        ("http://a.example/", &["http://a.example/x"] as &[&str], true),
        ("http://a.example/", &["https://a.example/"], true),
        ("http://a.example/", &["https://a.example:8443/"], true),
        ("https://a.example/", &["https://a.example:8443/"], true),
        ("https://a.example/", &["http://a.example/"], false),
        ("https://a.example/", &["http://a.example/", "https://a.example/"], true),
        ("http://a.example/", &["https://a.example/", "http://a.example/"], false),
        ("http://a.example/", &["http://www.a.example/"], false),
        ("http://a.example/", &["http://b.example/", "http://a.example/"], true),
        ("http://192.0.2.1/", &["http://192.0.2.2/"], false),
    ] {
        let plan = moved(from, to);
        for name in ["authorization", "cookie", "x-token"] {
            assert_eq!(header_of(&plan, name).is_some(), goes, "{name} from {from} to {to:?}");
        }
        for (name, value) in [
            ("user-agent", "me"),
            ("accept", "text/html"),
            ("accept-language", "de"),
            ("referer", "http://start.example/"),
        ] {
            assert_eq!(header_of(&plan, name).as_deref(), Some(value), "{name} from {from} to {to:?}");
        }
        let is_home = to.last().is_some_and(|to| to.contains("//a.example"));
        assert_eq!(header_of(&plan, "host").as_deref() == Some("inner.example"), is_home, "{to:?}");
    }
}

#[test]
fn a_body_and_its_description_stay_on_their_host() {
    let post =
        check(CheckMethod::Post, "http://a.example/", &[("Content-Type", "text/x"), ("X-Token", "y")], Some("{}"));
    let at = |url: &str| RequestPlan::from_check(&post).unwrap().redirected_to(Url::parse(url).unwrap()).unwrap();
    let home = at("http://a.example/x");
    assert!(!home.exposes_body());
    assert_eq!(header_of(&home, "content-type").as_deref(), Some("text/x"));
    assert_eq!(header_of(&home, "content-length").as_deref(), Some("2"));
    let away = at("http://b.example/");
    assert!(away.exposes_body());
    assert_eq!(header_of(&away, "content-type"), None);
    assert_eq!(header_of(&away, "x-token"), None);
}

#[test]
fn cookies_of_answers_join_the_customers() {
    let mut plan = first("http://a.example/", &[("Cookie", "own=1; both=own")]).unwrap();
    let mut headers = HeaderMap::new();
    for line in ["both=set; Path=/", "other=2; Path=/"] {
        headers.append(header::SET_COOKIE, HeaderValue::from_static(line));
    }
    plan.cookies.store(&Url::parse("http://a.example/").unwrap(), &headers);
    assert_eq!(header_of(&plan, "cookie").as_deref(), Some("own=1; both=set; other=2"));
    assert_eq!(plan.request().unwrap().headers()["cookie"], "own=1; both=set; other=2");
    let mut plan = first("http://a.example/", &[("Cookie", "own=caf\u{e9}; both=own")]).unwrap();
    plan.cookies.store(&Url::parse("http://a.example/").unwrap(), &headers);
    assert_eq!(header_of(&plan, "cookie").as_deref(), Some("own=caf\u{e9}; both=set; other=2"));
    let away = plan.redirected_to(Url::parse("http://b.example/").unwrap()).unwrap();
    assert_eq!(header_of(&away, "cookie"), None);
}
