//! Tests of the http probe with content codings and character encodings.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use parallax_agent::probe::run;
use parallax_protocol::{
    check::WireKeywordMode,
    result::{WireFailure, WireOutcome},
};

use crate::harness::{ScriptedReply, ScriptedServer, keyword, probes};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn coded(head: &str, body: &[u8]) -> ScriptedReply {
    let head = format!("HTTP/1.1 200 OK\r\n{head}\r\ncontent-length: {}\r\n\r\n", body.len());
    let (first, second) = body.split_at(body.len() / 2);
    ScriptedReply::Pieces(vec![head.into_bytes(), first.to_vec(), second.to_vec()])
}

async fn outcome(reply: ScriptedReply, text: &str, mode: WireKeywordMode) -> WireOutcome {
    let server = ScriptedServer::start(move |_| reply.clone()).await;
    run(&keyword(&server.url("/"), text, mode), &probes()).await.outcome
}

#[tokio::test]
async fn a_coded_body_is_searched_after_decoding() {
    let body = [gzip(b"all is "), gzip(b"fine here")].concat();
    let reply = coded("content-encoding: gzip", &body);
    assert_eq!(outcome(reply.clone(), "is fine", WireKeywordMode::Present).await, WireOutcome::Passed);
    let there = WireOutcome::Failed(WireFailure::KeywordPresent);
    assert_eq!(outcome(reply.clone(), "is fine", WireKeywordMode::Absent).await, there);
    let missing = WireOutcome::Failed(WireFailure::KeywordMissing);
    assert_eq!(outcome(reply, "gzip", WireKeywordMode::Present).await, missing);
}

#[tokio::test]
async fn an_undecodable_body_passes_in_neither_keyword_mode() {
    for mode in [WireKeywordMode::Present, WireKeywordMode::Absent] {
        let failed = WireOutcome::Failed(WireFailure::BodyUndecodable);
        let cut_short = coded("content-encoding: gzip", &gzip(b"fine")[..8]);
        assert_eq!(outcome(cut_short, "fine", mode).await, failed);
        assert_eq!(outcome(coded("content-encoding: br", b"fine"), "fine", mode).await, failed);
    }
}

#[tokio::test]
async fn an_empty_coding_token_is_ignored() {
    for token in ["UTF-8", "none", "aws-chunked", "identity", "exi", "", "\"gzip\""] {
        let reply = coded(&format!("content-encoding: {token}"), b"all is fine");
        assert_eq!(outcome(reply, "fine", WireKeywordMode::Present).await, WireOutcome::Passed, "{token}");
    }
    let both = coded("content-encoding: aws-chunked, gzip", &gzip(b"all is fine"));
    assert_eq!(outcome(both, "fine", WireKeywordMode::Present).await, WireOutcome::Passed);
}

#[tokio::test]
async fn a_decompression_bomb_is_a_body_that_is_too_large() {
    let bomb = [b"start".as_slice(), &vec![b' '; 32 * 1024 * 1024], b"end"].concat();
    let reply = coded("content-encoding: gzip", &gzip(&bomb));
    assert_eq!(outcome(reply.clone(), "start", WireKeywordMode::Present).await, WireOutcome::Passed);
    let failed = WireOutcome::Failed(WireFailure::BodyTooLarge);
    assert_eq!(outcome(reply.clone(), "end", WireKeywordMode::Present).await, failed);
    assert_eq!(outcome(reply, "end", WireKeywordMode::Absent).await, WireOutcome::Passed);
}

#[tokio::test]
async fn the_responses_charset_is_used() {
    let named = coded("content-type: text/plain; charset=iso-8859-1", b"gr\xfc\xdfe");
    assert_eq!(outcome(named, "gr\u{fc}\u{df}e", WireKeywordMode::Present).await, WireOutcome::Passed);
    let within = coded("content-type: text/html", b"<meta charset=windows-1252><p>gr\xfc\xdfe");
    assert_eq!(outcome(within, "gr\u{fc}\u{df}e", WireKeywordMode::Present).await, WireOutcome::Passed);
}
