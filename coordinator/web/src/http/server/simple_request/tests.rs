//! Tests of which requests the fast path accepts.

use super::*;

/// Looks up a request in a cache that has every document: path, host, length, and whether the connection closes.
fn parse(head: &str) -> Option<(String, String, usize, bool)> {
    let mut parsed = None;
    let respond = |request: &SimpleRequest<'_>| {
        parsed = Some((request.path.to_owned(), request.header_values("host").collect::<String>()));
        Some(())
    };
    let (_, length, closes) = look_up(head.as_bytes(), respond)?;
    parsed.map(|(path, host)| (path, host, length, closes))
}

#[test]
fn a_plain_request_is_accepted() {
    let head = "GET /p/shop?range=7d HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n";
    let expected = ("/p/shop?range=7d".to_owned(), "a.example".to_owned(), head.len(), false);
    assert_eq!(parse(head), Some(expected.clone()));
    // More bytes belong to the next request.
    assert_eq!(parse(&format!("{head}GET")), Some(expected));
    for (connection, closes) in [("keep-alive", false), ("Keep-Alive", false), ("close", true), ("CLOSE", true)] {
        let head = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: {connection}\r\n\r\n");
        assert_eq!(parse(&head).map(|parsed| parsed.3), Some(closes), "{connection}");
    }
}

#[test]
fn requests_beyond_the_simple_ones_are_left_to_hyper() {
    let many = "x: y\r\n".repeat(MAX_HEADERS);
    for head in [
        "",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "get / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: \u{e4}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"),
    ] {
        assert_eq!(parse(head), None, "{head:?}");
    }
}

#[test]
fn a_request_without_an_entry_is_left_to_hyper() {
    assert!(look_up(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", |_| None::<()>).is_none());
}
