//! Bounds of text: one below each edge, the edge, one above.

use proptest::prelude::*;

use super::*;

#[test]
fn lines_are_bounded_in_characters_after_trimming() {
    for (text, fits) in [
        (String::new(), false),
        ("  ".to_owned(), false),
        ("a".to_owned(), true),
        ("é".repeat(80), true),
        (format!("  {}  ", "界".repeat(80)), true),
        ("é".repeat(81), false),
    ] {
        assert_eq!(line(&text, 1..=80).is_ok(), fits, "{text:?}");
    }
    assert_eq!(line("a\u{7}b", 1..=80), Err("must not contain control characters".to_owned()));
    assert_eq!(line("a\nb", 1..=80), Err("must not contain control characters".to_owned()));
    assert_eq!(optional_line(" ", 60), Ok(None));
    assert_eq!(optional_line(&"x".repeat(61), 60), Err("must be at most 60 characters".to_owned()));
}

#[test]
fn invisible_names_and_direction_overrides_are_rejected() {
    for name in
        ["\u{200d}", "\u{3164}", "\u{2800}\u{2800}", "\u{e0020}", "\u{ad}", "\u{200e}\u{200f}", "\u{fe0f}", "\u{115f}"]
    {
        assert_eq!(line(name, 1..=80), Err("must contain a visible character".to_owned()), "{name:?}");
        assert_eq!(optional_line(name, 80), Ok(None), "{name:?}");
        assert!(is_blank(name), "{name:?}");
    }
    for (name, number) in [("a\u{202e}b", "202E"), ("\u{2066}a", "2066"), ("a\u{206a}", "206A")] {
        let rule = format!("must not contain U+{number}, which changes the direction of text");
        assert_eq!(line(name, 1..=80), Err(rule), "{name:?}");
    }
    for sign in ['\u{1b}', '\n', '\u{9b}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{206f}'] {
        assert!(alters_layout(sign), "{sign:?}");
    }
    for sign in ['a', ' ', '\u{200d}', '\u{200e}', '\u{e9}', '\u{3042}', '\u{fe0f}'] {
        assert!(!alters_layout(sign), "{sign:?}");
    }
    assert_eq!(line("a\u{2028}b", 1..=80), Err("must not contain control characters".to_owned()));
    // A family emoji of three, a flag made of tags, Persian with a non-joiner, Arabic with a mark, Thai with
    // a word break.
    for kept in [
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
        "\u{628}\u{200f}!",
        "\u{e01}\u{200b}\u{e02}",
        "\u{2764}\u{fe0f}",
    ] {
        assert_eq!(line(kept, 1..=80), Ok(kept.to_owned()), "{kept:?}");
    }
    assert_eq!(line("\u{feff} Shop\u{200b} ", 1..=80), Ok("Shop".to_owned()), "invisible characters from copied text");
}

#[test]
fn a_text_from_outside_shows_what_would_alter_its_layout() {
    for (text, shown) in [
        ("Partial outage: \u{645}\u{6cc}\u{200c}\u{62e} \u{2764}\u{fe0f}", None),
        ("a\u{202e}b\u{2066}c", Some("a\u{fffd}b\u{fffd}c")),
        ("a\u{1b}[31m\nb\u{0}", Some("a\u{fffd}[31m\u{fffd}b\u{fffd}")),
    ] {
        assert_eq!(with_visible_controls(text), shown.unwrap_or(text), "{text:?}");
    }
}

#[test]
fn whole_numbers_are_bounded() {
    for (value, fits) in [(0, false), (1, true), (9999, true), (10_000, false), (i64::MIN, false)] {
        assert_eq!(integer::<u32>(value, 1..=9999).is_ok(), fits, "{value}");
    }
}

#[test]
fn hosts_are_names_or_canonical_addresses() {
    for (text, read) in [
        ("example.com", "example.com"),
        (" Example.COM. ", "example.com"),
        ("localhost", "localhost"),
        ("_sip._tcp.example.com", "_sip._tcp.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::7", "2001:db8::7"),
        ("::1", "::1"),
    ] {
        assert_eq!(host(text), Ok(read.to_owned()), "{text}");
    }
    for text in [
        "",
        ".",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "256.1.1.1",
        "１２７.０.０.１",
        "fe80::1%eth0",
        "[::1]",
        "host:80",
        "https://example.com",
        "example.com/path",
        "a b.example",
        "a..b",
        "-a.example",
        "user@host",
    ] {
        assert!(host(text).is_err(), "{text:?}");
    }
    assert!(host(&format!("{}.example", "a".repeat(63))).is_ok());
    assert!(host(&format!("{}.example", "a".repeat(64))).is_err());
    assert!(host(&format!("{}com", "abcdefghi.".repeat(25))).is_ok());
    assert!(host(&format!("{}comx", "abcdefghi.".repeat(25))).is_err());
    assert_eq!(ascii_host("b\u{fc}cher.example"), "xn--bcher-kva.example");
    assert_eq!(display_host("xn--bcher-kva.b\u{fc}cher.example"), Ok("xn--bcher-kva.xn--bcher-kva.example".to_owned()));
    assert_eq!((dns_record_name("."), dns_record_name("")), (Ok(".".to_owned()), host("")));
    assert!(domain("192.0.2.7").is_err() && domain("::1").is_err() && domain("example.com").is_ok());
}

#[test]
fn urls_get_a_scheme_and_are_kept_as_written() {
    for (text, url, at) in [
        ("https://example.com", "https://example.com", "example.com"),
        ("example.com", "https://example.com", "example.com"),
        ("example.com:8080/x?y=1", "https://example.com:8080/x?y=1", "example.com"),
        ("localhost:8080", "https://localhost:8080", "localhost"),
        (" HTTP://Example.com/A ", "HTTP://Example.com/A", "example.com"),
        ("http://[2001:db8::1]:81/", "http://[2001:db8::1]:81/", "2001:db8::1"),
        ("http://127.0.0.1/", "http://127.0.0.1/", "127.0.0.1"),
        ("example.com/a?to=http://other.example", "https://example.com/a?to=http://other.example", "example.com"),
    ] {
        let read = parse_web_url(text).unwrap();
        assert_eq!((read.url.as_str(), read.host.as_str()), (url, at), "{text}");
    }
    for text in [
        "",
        "ftp://example.com",
        "mailto:a@example.com",
        "javascript:alert(1)",
        "http:example.com",
        "http:/example.com",
        "https:///example.com",
        "https://example.com\\@other.example/",
        "example.com\\path",
        "//example.com",
        "/path",
        "https://",
        "https://exa mple.com",
        "https://a..b/",
        "https://example.com:70000",
        "https://example.com:0",
        "ht!tp://x",
        "https://exa\nmple.com",
    ] {
        assert!(parse_web_url(text).is_err(), "{text:?}");
    }
    let long = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
    assert!(parse_web_url(&long(2000)).is_ok() && parse_web_url(&long(2001)).is_err());
}

#[test]
fn user_info_is_removed_from_a_url() {
    let read = parse_web_url("https://us%40er:p%C3%A4ss@example.com/x").unwrap();
    assert_eq!(read.url, "https://example.com/x");
    assert_eq!(read.user_info, Some(("us@er".to_owned(), "päss".to_owned())));
    assert!(!format!("{read:?}").contains("us@er"));
}

#[test]
fn regions_are_named_exactly() {
    assert_eq!(region("asia"), Ok(Region::Asia));
    assert!(region("Asia").unwrap_err().starts_with("must be one of europe, north-america"));
    let list = |names: &[&str]| regions(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(list(&["asia", "asia"]), Ok(RegionSet::only(Region::Asia)));
    assert!(list(&[]).is_err());
    let rule = "must be a list of regions: each must be one of europe, ";
    assert!(list(&["asia", "mars"]).unwrap_err().starts_with(rule));
}

#[test]
fn headers_have_plain_names_and_bounded_size() {
    let one = |name: &str, value: &str| headers(&[(name.to_owned(), value.to_owned())]);
    assert_eq!(one("X-Token", " a b "), Ok(vec![("X-Token".to_owned(), "a b".to_owned())]));
    for name in ["", "X Token", "X_Token", "X-Tökén", "X:"] {
        assert!(one(name, "a").is_err(), "{name:?}");
    }
    for name in ["Content-Length", "transfer-encoding", "CONNECTION", "Upgrade", "TE", "Trailer", "Expect"] {
        assert!(one(name, "a").is_err(), "{name}");
    }
    assert!(one("Proxy-Authorization", "a").is_err());
    assert!(one("X", "a\r\nHost: b").is_err() && one("X", "a\u{0}").is_err());
    assert!(one("X", &"v".repeat(3999)).is_ok() && one("X", &"v".repeat(4000)).is_err());
    let pair = |name: &str| (name.to_owned(), "v".to_owned());
    assert!(headers(&[pair("X-A"), pair("x-a")]).is_err());
    let many = |count: usize| (0..count).map(|n| pair(&format!("X-{n}"))).collect::<Vec<_>>();
    assert!(headers(&many(64)).is_ok() && headers(&many(65)).is_err());
}

proptest! {
    #[test]
    fn parsing_a_parsed_host_changes_nothing(text in ".{0,40}|[a-z0-9.:-]{0,40}") {
        if let Ok(read) = host(&text) {
            prop_assert_eq!(host(&read), Ok(read));
        }
    }

    #[test]
    fn parsing_a_parsed_url_changes_nothing(text in ".{0,60}|[a-z]{0,6}(:|://)?[a-z0-9@:./%-]{0,40}") {
        if let Ok(read) = parse_web_url(&text) {
            let again = parse_web_url(&read.url).unwrap();
            prop_assert_eq!((&again.url, &again.host), (&read.url, &read.host));
            prop_assert_eq!(again.user_info, None);
        }
    }
}
