//! Tests of the http probe with responses that violate HTTP but that browsers accept.
//!
//! Each response is read twice: for its status alone, and for a keyword in its body.

use parallax_agent::probe::run;
use parallax_protocol::{
    check::{WireCheckSpec, WireKeywordMode},
    result::{WireFailure, WireOutcome},
};

use crate::harness::{ScriptedReply, ScriptedServer, get, keyword, probes};

/// Returns the outcomes of a check of the status and of one of the keyword `fine`, for the same response.
async fn both(answer: &[u8]) -> (WireOutcome, WireOutcome) {
    let reply = ScriptedReply::Pieces(vec![answer.to_vec()]);
    let server = ScriptedServer::start(move |_| reply.clone()).await;
    let url = server.url("/");
    let status = run(&WireCheckSpec::Http(get(&url)), &probes()).await.outcome;
    (status, run(&keyword(&url, "fine", WireKeywordMode::Present), &probes()).await.outcome)
}

#[tokio::test]
async fn a_malformed_head_is_no_outage() {
    for head in [
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\x01c".as_slice(),
        b"HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\n\tthree",
        b"HTTP/1.1 200 OK\r\nServer : x",
        b"HTTP/1.1 200 OK\r\nServer\t: x",
        b"HTTP/1.1 200 OK\r\nX (y): z",
        b"HTTP/1.1 200 OK\r\n: nameless",
        b"HTTP/1.1 200 OK\r\nno colon at all",
        b"HTTP/1.1 200 OK\r\n folded from nothing",
        b"HTTP/1.1 200 OK\r\nX-\xc3\xa4: \xe4",
        b"HTTP/1.1 200 OK\r\nX: \x02\x1b[1m\x7f",
        b"HTTP/1.1 200 OK\nX: y",
        b"HTTP/1.1 200 OK\r\nX: y\nZ: w",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 ",
        b"HTTP/1.1  200  OK",
        b"HTTP/1.1\t200 OK",
        b"HTTP/1.1 200 \x01",
        b"HTTP/1.1 200OK",
        b"HTTP/1.0 200 OK",
        b"HTTP/2 200 OK",
        b"http/1.1 200 ok",
        b"\r\nHTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Length: 8",
        b"HTTP/1.1 200 OK\r\nContent-Length: 8, 8",
        b"HTTP/1.1 200 OK\r\nContent-Length : 8",
        b"HTTP/1.1 200 OK\r\nContent-Length: +8",
        b"HTTP/1.1 200 OK\r\nContent-Length: eight",
        b"HTTP/1.1 200 OK\r\nContent-Length:",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: UTF-8",
    ] {
        let text = String::from_utf8_lossy(head);
        let answer = [head, b"\r\n\r\nall fine"].concat();
        assert_eq!(both(&answer).await, (WireOutcome::Passed, WireOutcome::Passed), "{text:?}");
    }
}

#[tokio::test]
async fn a_malformed_chunk_is_no_outage() {
    for body in [
        "8\r\nall fine\r\n0\r\n\r\n",
        "8\nall fine\n0\n\n",
        " 08 ; x=y\r\nall fine\r\n000\r\n\r\n",
        "4\r\nall \r\n4\r\nfine\r\n0\r\nServer : x\r\n\r\n",
        "4\r\nall \r\n4\r\nfine\r\n0\r\n",
    ] {
        for version in ["1.1", "1.0"] {
            let head = format!("HTTP/{version} 200 OK\r\nTransfer-Encoding : Chunked\r\n\r\n");
            let answer = [head.as_bytes(), body.as_bytes()].concat();
            assert_eq!(both(&answer).await, (WireOutcome::Passed, WireOutcome::Passed), "{body:?}");
        }
    }
    let broken = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nall fine";
    assert_eq!(both(broken).await, (WireOutcome::Passed, WireOutcome::Failed(WireFailure::HttpMalformed)));
}

#[tokio::test]
async fn ambiguous_framing_is_refused() {
    for head in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Length: 4".as_slice(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 8, 4",
        b"HTTP/1.1 200 OK\r\nX: a\0b",
        b"HTTP/1.1 200 OK\r\nX: a\rb",
        b"HTTP/1.1 OK",
        b"HTTP/1.1 20 OK",
        b"SSH-2.0-thing",
        b"<html>fine</html>",
    ] {
        let text = String::from_utf8_lossy(head);
        let answer = [head, b"\r\n\r\nall fine"].concat();
        let refused = WireOutcome::Failed(WireFailure::HttpMalformed);
        assert_eq!(both(&answer).await, (refused.clone(), refused), "{text:?}");
    }
}

#[tokio::test]
async fn a_cookie_that_comes_back_ends_a_redirect_to_itself() {
    let server = ScriptedServer::start(|request| {
        if request.contains("cookie: seen=yes\r\n") {
            return ScriptedReply::ok("all fine");
        }
        ScriptedReply::text(
            "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: seen=yes; HttpOnly\r\ncontent-length: 0\r\n\r\n",
        )
    })
    .await;
    let url = server.url("/");
    for spec in [WireCheckSpec::Http(get(&url)), keyword(&url, "fine", WireKeywordMode::Present)] {
        assert_eq!(run(&spec, &probes()).await.outcome, WireOutcome::Passed);
    }
    assert_eq!(server.requests().len(), 4, "each check begins without cookies");
}
