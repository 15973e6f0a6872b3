//! A second hello to a server that refused the first, to find out what it requires.
//!
//! The TLS library has no CBC suites, no RSA key exchange and no P-521. A server that supports nothing else
//! refuses it but serves browsers. So one hello that offers all of that is sent, and never continued: the
//! server's choice shows what it requires.

use parallax_dial::Host;
use rustls::{CipherSuite, NamedGroup};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum number of bytes of the response: a `ServerHello` is among the first.
const MAX_RESPONSE: usize = 4 * 1024;

/// Suites of the TLS library, by their numbers (IANA).
const SUPPORTED_SUITES: [u16; 9] = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xc02f, 0xc030, 0xcca8, 0xcca9];

/// Suites that browsers or curl support and the TLS library lacks: ECDHE with CBC, RSA key exchange, DHE,
/// CCM.
const UNSUPPORTED_SUITES: [u16; 26] = [
    0xc009, 0xc00a, 0xc013, 0xc014, 0xc023, 0xc024, 0xc027, 0xc028, 0x009c, 0x009d, 0x002f, 0x0035, 0x003c, 0x003d,
    0x009e, 0x009f, 0x0033, 0x0039, 0x0067, 0x006b, 0xccaa, 0xc0ac, 0xc0ad, 0xc09c, 0xc09d, 0x1304,
];

const X25519: u16 = 0x001d;
const P256: u16 = 0x0017;
const P384: u16 = 0x0018;
const P521: u16 = 0x0019;
/// Offered groups; X448 and the first three of ffdhe have no key share.
const GROUPS: [u16; 8] = [X25519, P256, P384, P521, 0x001e, 0x0100, 0x0101, 0x0102];

/// Signature schemes, both supported and unsupported ones.
const SCHEMES: [u16; 16] = [
    0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0804, 0x0805, 0x0806, 0x0809, 0x080a, 0x080b, 0x0401, 0x0501, 0x0601,
    0x0201, 0x0203,
];

/// Keys that every implementation accepts: the curves' base points (RFC 7748; SEC 2). No secret is ever
/// derived from them.
const P256_BASE: &str = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce\
    33576b315ececbb6406837bf51f5";
const P384_BASE: &str = "04aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7\
    3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f";
const P521_BASE: &str = "0400c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dbaa14b5e77efe75928fe1dc127a2\
    ffa8de3348b3c1856a429bf97e7e31c2e5bd66011839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662c97ee72995ef42640c5\
    50b9013fad0761353c7086a272c24088be94769fd16650";

/// A server's response to the second hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerChoice {
    /// It requires a feature that the library lacks, by the registered name.
    Unsupported(String),
    /// It accepts a suite and group that the library supports.
    Supported,
}

/// Sends the hello and reads the server's choice; `None` if it refuses this one too.
pub(super) async fn send<S>(stream: &mut S, host: &Host) -> Option<ServerChoice>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&hello(host)?).await.ok()?;
    stream.flush().await.ok()?;
    let mut answer = Vec::new();
    while answer.len() < MAX_RESPONSE {
        match parse_response(&answer) {
            ParsedHello::More => {}
            ParsedHello::Refusal => return None,
            ParsedHello::Choice(choice) => return Some(choice),
        }
        if stream.read_buf(&mut answer).await.ok()? == 0 {
            return None;
        }
    }
    None
}

/// Builds a `ClientHello` of TLS 1.3 and 1.2 in one record (RFC 8446, section 4.1.2).
fn hello(host: &Host) -> Option<Vec<u8>> {
    let to_bytes = |to_bytes: &[u16]| -> Vec<u8> { to_bytes.iter().flat_map(|value| value.to_be_bytes()).collect() };
    let mut shares = Vec::new();
    let mut base = [0; 32];
    base[0] = 9;
    for (group, key) in [
        (X25519, Some(base.to_vec())),
        (P256, hex::decode(P256_BASE).ok()),
        (P384, hex::decode(P384_BASE).ok()),
        (P521, hex::decode(P521_BASE).ok()),
    ] {
        shares.extend(group.to_be_bytes());
        shares.extend(with_length::<2>(&key?)?);
    }
    let mut extensions = Vec::new();
    let mut add = |kind: u16, data: Vec<u8>| -> Option<()> {
        extensions.extend(kind.to_be_bytes());
        extensions.extend(with_length::<2>(&data)?);
        Some(())
    };
    if let Host::Name(name) = host {
        let entry = [&[0], with_length::<2>(name.as_str().as_bytes())?.as_slice()].concat();
        add(0, with_length::<2>(&entry)?)?;
    }
    add(0x000a, with_length::<2>(&to_bytes(&GROUPS))?)?;
    add(0x000b, vec![1, 0])?;
    add(0x000d, with_length::<2>(&to_bytes(&SCHEMES))?)?;
    // Extended master secret, and no renegotiation.
    add(0x0017, Vec::new())?;
    add(0xff01, vec![0])?;
    add(0x002b, with_length::<1>(&to_bytes(&[0x0304, 0x0303]))?)?;
    add(0x002d, vec![1, 1])?;
    add(0x0033, with_length::<2>(&shares)?)?;

    let (random, session): ([u8; 32], [u8; 32]) = (rand::random(), rand::random());
    let mut body = vec![3, 3];
    body.extend(random);
    body.extend(with_length::<1>(&session)?);
    body.extend(with_length::<2>(&to_bytes(&[SUPPORTED_SUITES.as_slice(), &UNSUPPORTED_SUITES].concat()))?);
    body.extend([1, 0]);
    body.extend(with_length::<2>(&extensions)?);
    let message = [&[1], with_length::<3>(&body)?.as_slice()].concat();
    Some([&[22, 3, 1], with_length::<2>(&message)?.as_slice()].concat())
}

/// Prefixes the data with its length in this many bytes.
fn with_length<const BYTES: usize>(data: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(data.len()).ok()?.to_be_bytes();
    let (over, length) = length.split_at(4_usize.checked_sub(BYTES)?);
    over.iter().all(|byte| *byte == 0).then(|| [length, data].concat())
}

#[derive(Debug, PartialEq, Eq)]
enum ParsedHello {
    More,
    Refusal,
    Choice(ServerChoice),
}

/// Parses the start of a response: a `ServerHello` (RFC 8446, section 4.1.3) or something else.
fn parse_response(answer: &[u8]) -> ParsedHello {
    let (Some(kind), Some(message)) = (answer.first(), answer.get(5..)) else {
        return if answer.first().is_none_or(|kind| *kind == 22) { ParsedHello::More } else { ParsedHello::Refusal };
    };
    if *kind != 22 || message.first().is_some_and(|kind| *kind != 2) {
        return ParsedHello::Refusal;
    }
    let Some(&[_, high, middle, low]) = message.first_chunk::<4>() else { return ParsedHello::More };
    let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    if length > MAX_RESPONSE {
        return ParsedHello::Refusal;
    }
    match message.get(4..4 + length) {
        None => ParsedHello::More,
        Some(body) => parse_server_hello(body).map_or(ParsedHello::Refusal, ParsedHello::Choice),
    }
}

/// First bytes of the random of a `ServerHello` that only requests another key share (RFC 8446, section
/// 4.1.3).
const RETRY_RANDOM: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// Parses the choices in the body of a `ServerHello`; `None` for a version that browsers refuse too.
fn parse_server_hello(body: &[u8]) -> Option<ServerChoice> {
    let (version, rest) = body.split_first_chunk::<2>()?;
    let (random, rest) = rest.split_first_chunk::<32>()?;
    let (session, rest) = rest.split_first()?;
    let (suite, rest) = rest.get(usize::from(*session)..)?.split_first_chunk::<2>()?;
    let suite = u16::from_be_bytes(*suite);
    if u16::from_be_bytes(*version) < 0x0303 {
        return None;
    }
    if !SUPPORTED_SUITES.contains(&suite) {
        return Some(ServerChoice::Unsupported(named(CipherSuite::from(suite).as_str(), suite)));
    }
    match group(rest.get(3..).unwrap_or_default()) {
        Some(group) if ![X25519, P256, P384].contains(&group) => {
            Some(ServerChoice::Unsupported(named(NamedGroup::from(group).as_str(), group)))
        }
        // The server has not evaluated the rest of the hello yet.
        _ if random.starts_with(&RETRY_RANDOM) => None,
        _ => Some(ServerChoice::Supported),
    }
}

/// Returns the group among the extensions; only TLS 1.3 has it.
fn group(mut extensions: &[u8]) -> Option<u16> {
    while let Some((&[kind_high, kind_low, high, low], rest)) = extensions.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        if u16::from_be_bytes([kind_high, kind_low]) == 0x0033 {
            return rest.get(..2).map(|group| group.iter().fold(0, |value, byte| value << 8 | u16::from(*byte)));
        }
        extensions = rest.get(length..)?;
    }
    None
}

fn named(name: Option<&str>, number: u16) -> String {
    name.map_or_else(|| format!("{number:#06x}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server_hello(version: u16, random: &[u8], suite: u16, extensions: &[u8]) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        body.extend(random);
        body.extend(vec![0; 32 - random.len()]);
        body.extend([0]);
        body.extend(suite.to_be_bytes());
        body.extend([0]);
        body.extend(with_length::<2>(extensions).unwrap());
        let message = [&[2], with_length::<3>(&body).unwrap().as_slice()].concat();
        [&[22, 3, 3], with_length::<2>(&message).unwrap().as_slice()].concat()
    }

    #[test]
    fn a_server_choice_is_supported_or_names_the_missing_feature() {
        let p521 = [0, 0x33, 0, 2, 0, 0x19];
        let x25519 = [0, 0x2b, 0, 2, 3, 4, 0, 0x33, 0, 4, 0, 0x1d, 0, 0];
        let lacking = |name: &str| ParsedHello::Choice(ServerChoice::Unsupported(name.to_owned()));
        for (answer, choice_of) in [
            (server_hello(0x0303, &[], 0x002f, &[]), lacking("TLS_RSA_WITH_AES_128_CBC_SHA")),
            (server_hello(0x0303, &[], 0xc013, &[0xff, 1, 0, 1, 0]), lacking("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA")),
            (server_hello(0x0303, &[], 0x1301, &p521), lacking("secp521r1")),
            (server_hello(0x0303, &RETRY_RANDOM, 0x1301, &p521), lacking("secp521r1")),
            (server_hello(0x0303, &[], 0x1301, &x25519), ParsedHello::Choice(ServerChoice::Supported)),
            (server_hello(0x0303, &[], 0xc02f, &[]), ParsedHello::Choice(ServerChoice::Supported)),
            (server_hello(0x0303, &RETRY_RANDOM, 0x1301, &x25519), ParsedHello::Refusal),
            (server_hello(0x0302, &[], 0x002f, &[]), ParsedHello::Refusal),
            (vec![21, 3, 3, 0, 2, 2, 40], ParsedHello::Refusal),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), ParsedHello::Refusal),
        ] {
            assert_eq!(parse_response(&answer), choice_of, "{answer:x?}");
            if choice_of != ParsedHello::Refusal {
                for cut in 0..answer.len() {
                    assert_eq!(parse_response(&answer[..cut]), ParsedHello::More, "{cut} of {answer:x?}");
                }
            }
        }
    }

    #[test]
    fn the_suites_are_those_of_the_library() {
        let provider = rustls::crypto::ring::default_provider();
        let suites: Vec<u16> = provider.cipher_suites.iter().map(|suite| suite.suite().into()).collect();
        assert!(
            suites.len() == SUPPORTED_SUITES.len() && suites.iter().all(|suite| SUPPORTED_SUITES.contains(suite)),
            "{suites:x?}"
        );
        let groups: Vec<u16> = provider.kx_groups.iter().map(|group| group.name().into()).collect();
        assert!(groups.iter().all(|group| [X25519, P256, P384].contains(group)), "{groups:x?}");
    }

    proptest! {
        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_response(&noise);
            let _ = parse_server_hello(&noise);
            let _ = parse_response(&server_hello(0x0303, &[], 0x1301, &noise));
        }
    }
}
