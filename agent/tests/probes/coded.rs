//! The http probe and bodies in codings and characters.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use parallax_agent::probe::run;
use parallax_protocol::{
    check::KeywordMode,
    result::{Failure, Outcome},
};

use crate::world::{Reply, Server, keyword, net};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn coded(head: &str, body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\n{head}\r\ncontent-length: {}\r\n\r\n", body.len());
    let (first, second) = body.split_at(body.len() / 2);
    Reply::Pieces(vec![head.into_bytes(), first.to_vec(), second.to_vec()])
}

async fn outcome(reply: Reply, word: &str, mode: KeywordMode) -> Outcome {
    let server = Server::start(move |_| reply.clone()).await;
    run(&keyword(&server.url("/"), word, mode), &net()).await.outcome
}

#[tokio::test]
async fn a_coded_body_is_looked_through_as_its_text() {
    let body = [gzip(b"all is "), gzip(b"fine here")].concat();
    let reply = coded("content-encoding: gzip", &body);
    assert_eq!(outcome(reply.clone(), "is fine", KeywordMode::Present).await, Outcome::Passed);
    let there = Outcome::Failed(Failure::KeywordPresent);
    assert_eq!(outcome(reply.clone(), "is fine", KeywordMode::Absent).await, there);
    let missing = Outcome::Failed(Failure::KeywordMissing);
    assert_eq!(outcome(reply, "gzip", KeywordMode::Present).await, missing);
}

#[tokio::test]
async fn a_coding_that_can_not_be_undone_is_no_pass_in_either_mode() {
    for (head, body) in [("content-encoding: gzip", &gzip(b"fine")[..8]), ("content-encoding: exi", b"fine")]
    {
        for mode in [KeywordMode::Present, KeywordMode::Absent] {
            let failed = Outcome::Failed(Failure::BodyUndecodable);
            assert_eq!(outcome(coded(head, body), "fine", mode).await, failed, "{head}");
        }
    }
}

#[tokio::test]
async fn a_bomb_is_stopped() {
    let reply = coded("content-encoding: gzip", &gzip(&vec![b' '; 32 * 1024 * 1024]));
    let failed = Outcome::Failed(Failure::BodyUndecodable);
    assert_eq!(outcome(reply, "fine", KeywordMode::Present).await, failed);
}

#[tokio::test]
async fn the_characters_are_those_the_answer_names() {
    let named = coded("content-type: text/plain; charset=iso-8859-1", b"gr\xfc\xdfe");
    assert_eq!(outcome(named, "gr\u{fc}\u{df}e", KeywordMode::Present).await, Outcome::Passed);
    let within = coded("content-type: text/html", b"<meta charset=windows-1252><p>gr\xfc\xdfe");
    assert_eq!(outcome(within, "gr\u{fc}\u{df}e", KeywordMode::Present).await, Outcome::Passed);
}
