//! Generators of what clients send: requests for known documents with all kinds of headers, joined, altered and cut.

use std::collections::BTreeMap;
use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Documents that the fast path knows: host and path.
pub(super) const PAGES: [(&str, &str); 8] = [
    ("status.example", "/p/shop"),
    ("status.example", "/p/shop?range=7d"),
    ("status.example", "/p/journal"),
    ("status.example", "/p/shop/history/2026-11"),
    ("shop.pages.example", "/"),
    ("shop.pages.example", "/history/2026-11"),
    ("journal.pages.example", "/?range=7d"),
    ("journal.pages.example", "/"),
];

/// Bytes on a connection, and how they are sent.
#[derive(Clone)]
pub(super) struct Conversation {
    bytes: Vec<u8>,
    /// Ends of the pieces, except for the last one.
    cuts: Vec<usize>,
    /// Set if the client ends its side after the last byte.
    pub(super) ends: bool,
}

impl Conversation {
    pub(super) fn new(bytes: Vec<u8>, mut cuts: Vec<usize>, ends: bool) -> Self {
        cuts.sort_unstable();
        cuts.dedup();
        Self { bytes, cuts, ends }
    }

    /// The pieces, in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        starts.zip(ends).map(|(start, end)| &self.bytes[start..end]).filter(|chunk| !chunk.is_empty())
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks: Vec<String> = self.chunks().map(|chunk| chunk.escape_ascii().to_string()).collect();
        f.debug_struct("Conversation").field("pieces", &chunks).field("ends", &self.ends).finish()
    }
}

/// A change of the bytes; its places are relative, since the length varies.
#[derive(Debug, Clone)]
enum Mutation {
    Truncate(Index),
    Replace(Index, u8),
    Insert(Index, u8),
    Delete(Index),
    /// Removes the carriage return of one line ending.
    BareLineFeed(Index),
    /// Continues a header on the next line, as obsolete clients did.
    Fold(Index),
    /// Repeats a part.
    Repeat(Index, Index),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let line_endings = |bytes: &[u8]| -> Vec<usize> {
            (0..bytes.len().saturating_sub(1)).filter(|at| bytes[*at..].starts_with(b"\r\n")).collect()
        };
        match self {
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len()) + 1),
            Self::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Self::Delete(at) => {
                bytes.remove(at.index(bytes.len()));
            }
            Self::BareLineFeed(at) => {
                let ends = line_endings(bytes);
                if !ends.is_empty() {
                    bytes.remove(*at.get(&ends));
                }
            }
            Self::Fold(at) => {
                let ends = line_endings(bytes);
                if !ends.is_empty() {
                    bytes.splice(*at.get(&ends)..*at.get(&ends), *b"\r\n folded");
                }
            }
            Self::Repeat(from, to) => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(from.max(to)..from.max(to), part);
            }
        }
    }
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let index = any::<Index>;
    let byte = || prop_oneof![select(b"\0\r\n\t :/?#%,;=*aGH\x7f\x80\xff".to_vec()), any::<u8>()];
    let mutation = prop_oneof![
        index().prop_map(Mutation::Truncate),
        (index(), byte()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (index(), byte()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        index().prop_map(Mutation::Delete),
        index().prop_map(Mutation::BareLineFeed),
        index().prop_map(Mutation::Fold),
        (index(), index()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
    ];
    prop_oneof![2 => Just(Vec::new()), 1 => vec(mutation, 1..4)]
}

/// A header name in several spellings.
fn header_names(name: &'static str) -> impl Strategy<Value = String> {
    let title_case = name.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect::<Vec<_>>().join("-");
    select(vec![name.to_owned(), title_case.clone(), title_case, name.to_uppercase()])
}

/// A header of that name with one of the values.
fn header(name: &'static str, values: &[&str]) -> BoxedStrategy<Vec<u8>> {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    let (before, after) = (select(vec![" ", " ", " ", "", "\t ", "  "]), select(vec!["", "", "", " ", "\t"]));
    let parts = (header_names(name), before, select(values), after);
    parts.prop_map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n").into_bytes()).boxed()
}

/// Headers that a client may send for a page with that tag; none of them makes a browser's request unusual.
fn usual_headers(tag: &str) -> BoxedStrategy<Vec<u8>> {
    let weak = format!("W/{}", tag.trim_start_matches("W/"));
    let strong = tag.trim_start_matches("W/").to_owned();
    let entity_tags = format!("\"other\", {tag}");
    let tags =
        [tag, &weak, &strong, &entity_tags, "*", "\"other\"", "W/\"other\", W/\"more\"", "", ",,", " * ", "\"x\", *"];
    prop_oneof![
        4 => header("accept-encoding", &[
            "gzip", "br", "gzip, deflate, br, zstd", "GZIP", "br;q=0, gzip", "gzip, br;q=0.5", "br ; q=1", "gzip;q=0",
            "gzip;q=x", "identity", "*", "", "gzip,,br", "gzip;q=0.001", "x-gzip", "br;q=NaN", "gzip;q=-1",
        ]),
        2 => header("accept", &[
            "*/*", "text/html", "text/html,application/xhtml+xml,*/*;q=0.8", "text/markdown", "application/json",
            "text/html;q=0.5, text/markdown", "text/markdown;q=0", "", "text/html, text/markdown;q=0.8", ";;",
        ]),
        3 => header("if-none-match", &tags),
        1 => header("user-agent", &["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)", "caf\u{e9}", ""]),
        1 => header("cookie", &["a=b", "__Host-parallax=x", ""]),
        1 => header("cache-control", &["no-cache", "max-age=0"]),
        1 => header("if-modified-since", &["Sun, 06 Nov 1994 08:49:37 GMT", "x"]),
        1 => header("range", &["bytes=0-3", "bytes=9-"]),
        1 => header("x-forwarded-for", &["192.0.2.7", "x"]),
        1 => header("x-forwarded-proto", &["https"]),
        1 => header("origin", &["https://elsewhere.example", "null"]),
        1 => header("authorization", &["Bearer plx_none", "Basic eDp4"]),
        1 => header("keep-alive", &["timeout=5"]),
        1 => header("last-event-id", &["7"]),
    ]
    .boxed()
}

/// Headers that change how a request is read, or that no browser sends.
fn unusual_headers() -> BoxedStrategy<Vec<u8>> {
    let too_long = (10..20_000_usize).prop_map(|length| format!("X-Long: {}\r\n", "y".repeat(length)).into_bytes());
    let many = (20..80_usize).prop_map(|count| "x-many: y\r\n".repeat(count).into_bytes());
    let raw: Vec<&[u8]> = vec![
        b"X-Folded: a\r\n b\r\n",
        b"\r\n",
        b"X Y: z\r\n",
        b"X: a\0b\r\n",
        b"X: \xff\xfe\r\n",
        b"Accept-Encoding: gzip\xff\r\n",
        b"If-None-Match: *\xff\r\n",
        b": empty\r\n",
        b"no colon\r\n",
        b"X-Bare: a\n",
        b"X-Return: a\rb\r\n",
        b"Host : status.example\r\n",
    ];
    prop_oneof![
        4 => header("connection", &[
            "close", "keep-alive", "Close", "KEEP-ALIVE", "close, keep-alive", "keep-alive, close", "upgrade", "te",
            "close, te", "", "keep-alive,", "Upgrade, HTTP2-Settings", "x",
        ]),
        1 => header("proxy-connection", &["close", "keep-alive"]),
        1 => header("upgrade", &["h2c", "websocket", ""]),
        1 => header("http2-settings", &["AAMAAABkAARAAAAAAAIAAAAA"]),
        1 => header("te", &["trailers", "gzip"]),
        1 => header("expect", &["100-continue", "x"]),
        1 => header("content-length", &["0", "3", "03", "+3", "3, 3", "x", "", "18446744073709551616"]),
        1 => header("transfer-encoding", &["chunked", "identity", "gzip, chunked", "chunked, gzip", ""]),
        1 => header("x-http-method-override", &["HEAD"]),
        1 => header("trailer", &["x"]),
        1 => header("host", &["status.example", "a", ""]),
        1 => too_long,
        1 => many,
        2 => select(raw).prop_map(<[u8]>::to_vec),
    ]
    .boxed()
}

/// Request lines without a line ending, for a page at that path.
fn request_lines(path: &'static str, host: &'static str) -> BoxedStrategy<Vec<u8>> {
    let targets: Vec<String> = [
        format!("http://{host}{path}"),
        format!("https://{host}{path}"),
        "http://elsewhere.example/".to_owned(),
        format!("{path}#x"),
        format!("{path}?"),
        format!("{path}/"),
        format!("{path}?x=1"),
        format!("/{path}"),
        format!("{path}%00"),
        format!("{path}\u{e4}"),
        "*".to_owned(),
        "/none".to_owned(),
        "/status.json".to_owned(),
        "/p/shop/status.json".to_owned(),
        "/p/none".to_owned(),
        host.to_owned(),
        String::new(),
    ]
    .to_vec();
    let target = prop_oneof![14 => Just(path.to_owned()), 1 => select(targets)];
    let method = prop_oneof![
        40 => Just("GET"),
        1 => select(vec!["HEAD", "get", "POST", "OPTIONS", "CONNECT", "GETS", "", "G\u{e4}T"]),
    ];
    let version =
        prop_oneof![40 => Just("HTTP/1.1"), 1 => select(vec!["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", ""])];
    let space = || prop_oneof![80 => Just(" "), 1 => select(vec!["  ", "\t", ""])];
    (method, space(), target, space(), version)
        .prop_map(|(method, first, target, second, version)| {
            format!("{method}{first}{target}{second}{version}\r\n").into_bytes()
        })
        .boxed()
}

/// Host headers for a page on that host.
fn hosts(host: &'static str) -> BoxedStrategy<Vec<u8>> {
    let upper = host.to_uppercase();
    let own_host = [host, host, host, host, host, host].map(str::to_owned).to_vec();
    let unusual = [
        upper,
        format!("{host}:443"),
        format!("{host}:"),
        format!("{host}."),
        format!("{host}:x"),
        format!("user@{host}"),
        "none.pages.example".to_owned(),
        "elsewhere.example".to_owned(),
        String::new(),
        format!("{host}, {host}"),
    ];
    let values: Vec<String> = own_host.into_iter().chain(unusual).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    prop_oneof![
        16 => header("host", &[host]),
        3 => header("host", &values),
        1 => Just(Vec::new()),
    ]
    .boxed()
}

/// One request as bytes.
fn requests(tags: &BTreeMap<(&'static str, &'static str), String>) -> BoxedStrategy<Vec<u8>> {
    let of_page = |(host, path): (&'static str, &'static str)| {
        let unusual = prop_oneof![5 => Just(Vec::new()), 2 => vec(unusual_headers(), 1..4)];
        let gzip = prop_oneof![9 => Just(&b"Accept-Encoding: gzip\r\n"[..]), 1 => Just(&b""[..])];
        let body =
            prop_oneof![20 => Just(&b""[..]), 1 => select(vec![&b"abc"[..], b"3\r\nabc\r\n0\r\n\r\n", b"\r\n", b"\0"])];
        let headers = (hosts(host), vec(usual_headers(&tags[&(host, path)]), 0..4), unusual, gzip);
        let headers =
            headers.prop_map(|(host, usual, unusual, gzip)| [vec![host, gzip.to_vec()], usual, unusual].concat());
        (request_lines(path, host), headers.prop_shuffle(), body)
            .prop_map(|(line, headers, body)| [line, headers.concat(), b"\r\n".to_vec(), body.to_vec()].concat())
    };
    let of_pages = PAGES.map(|page| of_page(page).boxed());
    let unusual_hosts: Vec<&[u8]> =
        vec![b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n", b"\n", b"\x16\x03\x01\x02\0\x01", b"QUIT\r\n"];
    prop_oneof![20 => proptest::strategy::Union::new(of_pages), 1 => select(unusual_hosts).prop_map(<[u8]>::to_vec)]
        .boxed()
}

/// Conversations: a few requests, joined, altered, and cut into pieces.
pub(super) fn conversations(
    tags: &BTreeMap<(&'static str, &'static str), String>,
) -> impl Strategy<Value = Conversation> + use<> {
    let requests = prop_oneof![3 => vec(requests(tags), 1..2), 2 => vec(requests(tags), 2..5)];
    let cuts = prop_oneof![2 => Just(Vec::new()), 1 => vec(any::<Index>(), 1..5)];
    (requests, mutations(), cuts, prop::bool::weighted(0.2)).prop_map(|(requests, mutations, cuts, ends)| {
        let mut bytes = requests.concat();
        for mutation in &mutations {
            mutation.apply(&mut bytes);
        }
        let cuts = cuts.iter().filter(|_| !bytes.is_empty()).map(|cut| cut.index(bytes.len())).collect();
        Conversation::new(bytes, cuts, ends)
    })
}
