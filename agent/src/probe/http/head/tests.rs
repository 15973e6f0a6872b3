//! Tests of valid and invalid heads.

use super::*;
use proptest::prelude::*;

fn whole(
    pieces: &[&[u8]],
    to_head: bool,
    keep: HeaderSelection,
) -> Result<Option<(ResponseHead, BodyFraming, String)>, WireFailure> {
    let mut reading = HeadReader::new(to_head, keep);
    for piece in pieces {
        if let Some((head, framing, read)) = reading.feed(piece)? {
            return Ok(Some((head, framing, String::from_utf8_lossy(&piece[read..]).into_owned())));
        }
    }
    Ok(None)
}

fn read(pieces: &[&[u8]], to_head: bool) -> Result<Option<u16>, WireFailure> {
    Ok(whole(pieces, to_head, HeaderSelection::Redirects)?.map(|(head, _, _)| head.status.as_u16()))
}

fn status(text: &str) -> Result<Option<u16>, WireFailure> {
    read(&[text.as_bytes()], false)
}

/// Returns the headers of a response with these lines, as `name: value`.
fn headers(lines: &[u8], keep: HeaderSelection) -> Result<Vec<String>, WireFailure> {
    let head = [b"HTTP/1.1 302 Found\r\n", lines, b"\r\n"].concat();
    let Some((head, _, _)) = whole(&[&head], false, keep)? else { panic!("no head") };
    let formatted =
        |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    Ok(head.headers.iter().map(formatted).collect())
}

#[test]
fn informational_responses_are_skipped() {
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    assert_eq!(status(early), Ok(None));
    assert_eq!(status(&format!("{early}HTTP/1.1 204 None\r\n\r\n")), Ok(Some(204)));
    let last = "HTTP/1.1 200 OK\r\n\r\n";
    assert_eq!(read(&[early.as_bytes(), last.as_bytes()], false), Ok(Some(200)));
    assert_eq!(status("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Ok(Some(101)));
    let many = format!("{}{last}", "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM + 1));
    assert_eq!(status(&many), Err(WireFailure::HeadTooLarge));
}

#[test]
fn an_invalid_head_is_refused_at_its_first_bytes() {
    for text in ["SSH-2.0-thing\r\n", "<html>", "220 mail.example ESMTP\r\n", "H2", "\r\n\r\nnothing"] {
        assert_eq!(status(text), Err(WireFailure::HttpMalformed), "{text}");
    }
    for text in ["HTTP/1.1 2x0 OK", "HTTP/1.1 OK", "HTTP/1.1 2000 OK", "HTTP/x 200 OK", "HTTP/1.1", "HTTP/ 200"] {
        assert_eq!(status(&format!("{text}\r\n\r\n")), Err(WireFailure::HttpMalformed), "{text}");
    }
}

#[test]
fn malformed_status_lines_are_read() {
    for line in [
        "HTTP/1.1 200\r\n",
        "HTTP/1.1 200 \r\n",
        "HTTP/1.1  200   OK\r\n",
        "HTTP/1.1\t200\tOK\r\n",
        "HTTP/1.1 200OK\r\n",
        "HTTP/1.1 200 \x01\r\n",
        "HTTP/1.0 200 OK\n",
        "HTTP/2 200\r\n",
        "HTTP/2.0 200 OK\r\n",
        "http/1.1 200 ok\r\n",
        "ICY 200 OK\r\n",
        "\r\n\r\nHTTP/1.1 200 OK\r\n",
        "\n\nHTTP/1.1  200 OK\n",
    ] {
        assert_eq!(status(&format!("{line}\r\n")), Ok(Some(200)), "{line:?}");
        assert_eq!(status(&format!("{line}a: b\n\n")), Ok(Some(200)), "{line:?}");
    }
}

#[test]
fn malformed_lines_are_repaired_or_skipped() {
    for (lines, kept) in [
        (b"a: 1\r\nb: 2\r\n".as_slice(), &["a: 1", "b: 2"] as &[&str]),
        (b"a: 1\nb:2\n", &["a: 1", "b: 2"]),
        (b"Server : x\r\nb\t: 2\r\n", &["server: x", "b: 2"]),
        (b"a: 1\r\n 2\r\n\t3 \r\nb: 4\r\n", &["a: 1 2 3", "b: 4"]),
        (b" folded: from nothing\r\na: 1\r\n", &["a: 1"]),
        (b"a: 1\r\nno colon\r\n folded: from it\r\nb: 2\r\n", &["a: 1", "b: 2"]),
        (b"a b: 1\r\n: 2\r\n\xe4: 3\r\n\"c\": 4\r\nd: 5\r\n", &["d: 5"]),
        (b"Set-Cookie: a=b\x01c\r\nSet-Cookie: d=e\r\n", &["set-cookie: d=e"]),
        (b"Location: /a\x01b\r\n", &["location: /a%01b"]),
        (b"a: \x01b\x1b[0m\x7f \r\n", &["a: b[0m"]),
        (b"a: \xe4\r\n", &["a: \u{fffd}"]),
    ] {
        let text = String::from_utf8_lossy(lines).into_owned();
        let kept: Vec<String> = kept.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(headers(lines, HeaderSelection::All).as_ref(), Ok(&kept), "{text:?}");
        let followed = |line: &&String| line.starts_with("location") || line.starts_with("set-cookie");
        let followed = kept.iter().filter(followed).cloned().collect();
        assert_eq!(headers(lines, HeaderSelection::Redirects), Ok(followed), "{text:?}");
    }
    for lines in [b"a: b\0c\r\n".as_slice(), b"a: b\rc\r\n", b"a b\0: c\r\n", b"a\r: b\r\n"] {
        for keep in [HeaderSelection::All, HeaderSelection::Redirects] {
            let text = String::from_utf8_lossy(lines);
            assert_eq!(headers(lines, keep), Err(WireFailure::HttpMalformed), "{text:?}");
        }
    }
}

#[test]
fn a_body_has_one_length() {
    for (lines, expected) in [
        ("", Ok(BodyFraming::UntilClose)),
        ("content-length: 5\r\n", Ok(BodyFraming::Length(5))),
        ("Content-Length : 5\r\n", Ok(BodyFraming::Length(5))),
        ("content-length:\r\n 5\r\n", Ok(BodyFraming::Length(5))),
        ("Content-Length: 5, 5\r\ncontent-length: 05\r\n", Ok(BodyFraming::Length(5))),
        ("content-length: 5\r\ncontent-length: 6\r\n", Err(WireFailure::HttpMalformed)),
        ("content-length: 5\r\ncontent-length : 6\r\n", Err(WireFailure::HttpMalformed)),
        ("content-length: 5\r\ncontent-length: x\r\n", Err(WireFailure::HttpMalformed)),
        ("content-length: +5\r\n", Ok(BodyFraming::UntilClose)),
        ("content-length: -1\r\n", Ok(BodyFraming::UntilClose)),
        ("content-length:\r\n", Ok(BodyFraming::UntilClose)),
        ("content-length: 99999999999999999999\r\n", Ok(BodyFraming::UntilClose)),
        ("transfer-encoding: chunked\r\n", Ok(BodyFraming::Chunked)),
        ("Transfer-Encoding : gzip, Chunked\r\n", Ok(BodyFraming::Chunked)),
        ("transfer-encoding: chunked\r\ncontent-length: x\r\n", Ok(BodyFraming::Chunked)),
        ("transfer-encoding: identity\r\ncontent-length: 5\r\n", Ok(BodyFraming::Length(5))),
    ] {
        for version in ["1.1", "1.0"] {
            let head = format!("HTTP/{version} 200 OK\r\n{lines}\r\n");
            for keep in [HeaderSelection::All, HeaderSelection::Redirects] {
                let framing = whole(&[head.as_bytes()], false, keep).map(|read| read.unwrap().1);
                assert_eq!(framing, expected, "{lines}");
            }
            let to_head = whole(&[head.as_bytes()], true, HeaderSelection::All).unwrap().unwrap();
            assert_eq!(to_head.1, BodyFraming::Empty, "HEAD has no body: {lines}");
        }
    }
}

#[test]
fn a_head_ends_somewhere() {
    let line = [b'a'; 100];
    let mut pieces: Vec<&[u8]> = vec![b"HTTP/1.1 200 OK\r\nx: "];
    pieces.extend(vec![line.as_slice(); 700]);
    assert_eq!(read(&pieces, false), Err(WireFailure::HeadTooLarge));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
    assert_eq!(status(&many), Err(WireFailure::HeadTooLarge));
    let too_many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a : b\r\n".repeat(MAX_HEADERS + 1));
    assert_eq!(status(&too_many), Err(WireFailure::HeadTooLarge));
}

#[test]
fn a_redirects_target_is_retained() {
    let text = b"HTTP/1.1 302 Found\r\nLOCATION: /a\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n";
    let (head, _, _) = whole(&[text], false, HeaderSelection::Redirects).unwrap().unwrap();
    assert_eq!(head.headers[header::LOCATION], "/a");
}

const CUT: [&[u8]; 2] = [
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\nserver: x\r\ncontent-length: 3\r\n\r\nbye",
    b"HTTP/1.1 100 Continue\n\nHTTP/1.1  404\r\nServer : x\r\n more\r\na: b\x01\nContent-Length: 3\n\r\nbye",
];

proptest! {
    #[test]
    fn any_split_gives_the_same_head(cuts in prop::collection::vec(0usize..120, 0..6)) {
        for text in CUT {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts
                .windows(2)
                .map(|pair| &text[pair[0]..pair[1]])
                .filter(|piece| !piece.is_empty())
                .collect();
            let (head, framing, rest) = whole(&pieces, false, HeaderSelection::All).unwrap().unwrap();
            prop_assert_eq!((head.status.as_u16(), framing), (404, BodyFraming::Length(3)));
            prop_assert!("bye".starts_with(&rest));
        }
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200), cut in 1_usize..50) {
        for start in [b"".as_slice(), b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1  200\r\na : b\r\n"] {
            let text = [start, &noise, b"\r\n\r\n"].concat();
            let pieces: Vec<&[u8]> = text.chunks(cut).collect();
            let one = read(&pieces, false);
            prop_assert_eq!(whole(&pieces, false, HeaderSelection::All).map(|head| head.map(|head| head.0.status.as_u16())), one);
        }
    }
}
