//! Checks built from requests: credentials, defaults and host names.

use super::*;

#[test]
fn basic_credentials_are_those_of_the_standard() {
    assert_eq!(basic_auth("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(basic_auth("a", "b"), "Basic YTpi");
    assert_eq!(basic_auth("ab", "c"), "Basic YWI6Yw==");
    assert_eq!(basic_auth("ab", "cd"), "Basic YWI6Y2Q=");
}

#[test]
fn user_info_of_a_url_becomes_a_secret_header() {
    let edit = CheckEdit {
        url: PatchField::Value("https://a:b@example.com/".to_owned()),
        headers: PatchField::Value(vec![("authorization".to_owned(), "Bearer x".to_owned())]),
        ..CheckEdit::default()
    };
    let mut faults = ValidationErrors::new();
    let Some(ValidatedCheck { check: Check::Http(http), .. }) = edit.validate(CheckKind::Http, None, "", &mut faults)
    else {
        panic!("{faults}")
    };
    assert_eq!(http.url, "https://example.com/");
    assert_eq!(http.sent_headers(), [("Authorization".to_owned(), "Basic YTpi".to_owned())]);
}

/// The Authorization header that is sent after some edits, each of a URL and of an Authorization among the
/// headers.
fn sent_after(edits: &[(Option<&str>, Option<&str>)]) -> Option<String> {
    let mut check = None;
    for (url, header) in edits {
        let edit = CheckEdit {
            url: url.map_or(PatchField::Absent, |url| PatchField::Value(url.to_owned())),
            headers: header.map_or(PatchField::Absent, |value| {
                PatchField::Value(vec![("authorization".to_owned(), value.to_owned())])
            }),
            ..CheckEdit::default()
        };
        let mut faults = ValidationErrors::new();
        check = edit.validate(CheckKind::Http, check.as_ref(), "", &mut faults).map(|valid| valid.check);
        assert!(faults.is_empty(), "{faults}");
    }
    let Some(Check::Http(http)) = check else { panic!("no http check") };
    http.sent_headers().into_iter().find(is_authorization).map(|(_, value)| value)
}

#[test]
fn credentials_of_an_address_stay_with_it() {
    let (with, plain, other) = (Some("https://a:b@a.example/"), Some("https://a.example/x"), Some("b.example"));
    let basic = || Some("Basic YTpi".to_owned());
    let own = || Some("Bearer x".to_owned());
    assert_eq!(sent_after(&[(with, None)]), basic());
    assert_eq!(sent_after(&[(with, None), (None, None)]), basic());
    assert_eq!(sent_after(&[(with, None), (other, None)]), None);
    assert_eq!(sent_after(&[(with, None), (plain, None)]), None);
    assert_eq!(sent_after(&[(with, Some("Bearer x")), (other, None)]), own());
    assert_eq!(sent_after(&[(with, None), (None, Some("Bearer x"))]), own());
    assert_eq!(sent_after(&[(plain, Some("Bearer x")), (with, None)]), basic());
}

#[test]
fn names_are_displayed_as_written_and_queried_in_ascii() {
    for (kind, field, sent, displayed, queried, target) in [
        (
            CheckKind::Dns,
            "host",
            "B\u{fc}cher.example.",
            "b\u{fc}cher.example",
            "xn--bcher-kva.example",
            "A b\u{fc}cher.example",
        ),
        (
            CheckKind::Dns,
            "host",
            "XN--bcher-kva.example",
            "xn--bcher-kva.example",
            "xn--bcher-kva.example",
            "A xn--bcher-kva.example",
        ),
        (CheckKind::Dns, "host", " . ", ".", ".", "A ."),
        (
            CheckKind::Ping,
            "host",
            "\u{65e5}\u{672c}\u{3002}jp",
            "\u{65e5}\u{672c}.jp",
            "xn--wgv71a.jp",
            "\u{65e5}\u{672c}.jp",
        ),
        (
            CheckKind::Certificate,
            "host",
            "b\u{fc}cher.example",
            "b\u{fc}cher.example",
            "xn--bcher-kva.example",
            "b\u{fc}cher.example:443",
        ),
        (
            CheckKind::Domain,
            "host",
            "stra\u{df}e.example",
            "stra\u{df}e.example",
            "xn--strae-oqa.example",
            "stra\u{df}e.example",
        ),
        (
            CheckKind::Http,
            "url",
            "https://a:b@B\u{fc}cher.example/\u{fc}",
            "b\u{fc}cher.example",
            "xn--bcher-kva.example",
            "https://b\u{fc}cher.example/%C3%BC",
        ),
        (
            CheckKind::Http,
            "url",
            "b\u{fc}cher.example",
            "b\u{fc}cher.example",
            "xn--bcher-kva.example",
            "https://b\u{fc}cher.example",
        ),
        (
            CheckKind::Http,
            "url",
            "https://xn--bcher-kva.example/\u{fc}",
            "xn--bcher-kva.example",
            "xn--bcher-kva.example",
            "https://xn--bcher-kva.example/\u{fc}",
        ),
    ] {
        let value = PatchField::Value(sent.to_owned());
        let edit = match field {
            "url" => CheckEdit { url: value, ..CheckEdit::default() },
            _ => CheckEdit { host: value, ..CheckEdit::default() },
        };
        let mut faults = ValidationErrors::new();
        let Some(ValidatedCheck { check, host }) = edit.validate(kind, None, "", &mut faults) else {
            panic!("{sent}: {faults}")
        };
        let seen = (host.as_deref(), check.host(), check.target());
        assert_eq!(seen, (Some(displayed), queried.to_owned(), target.to_owned()), "{sent}");
    }
    let mut faults = ValidationErrors::new();
    for kind in [CheckKind::Tcp, CheckKind::Ping, CheckKind::Certificate, CheckKind::Domain] {
        let root = CheckEdit { host: PatchField::Value(".".to_owned()), ..CheckEdit::default() };
        assert!(root.validate(kind, None, "", &mut faults).is_none(), "{kind}");
    }
}

#[test]
fn a_body_is_kept_as_it_is() {
    assert_eq!(read_body(" a\n"), Ok(Some(" a\n".to_owned())));
    assert!(read_body(&"é".repeat(10_000)).is_ok() && read_body(&" ".repeat(10_001)).is_err());
}
