//! How a document of a page goes out: compressed as its reader likes it, with what browsers and caches must know.

use std::sync::{Arc, LazyLock};

use ::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL,
    CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderName, LINK, REFERRER_POLICY, VARY,
};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;

use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::{Reply, is_known, values};
use crate::http::route::{Answer, Call};
use crate::publish::Document;
use crate::service::gate::Admitted;
use crate::views::assets;

/// What a page may load and do: its own files alone, and nothing written into it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What a page asks no visitor for, whatever is loaded into it.
const PERMISSIONS: &str = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";
/// For how long an open page may be kept, and used while a new one is fetched or there is none to be had.
const OPEN: &str = "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400";
/// For how long the API's reference may be kept.
const REFERENCE: &str = "public, max-age=300, stale-while-revalidate=86400, stale-if-error=86400";
/// A file's name changes with what is in it.
pub(super) const FOREVER: &str = "public, max-age=31536000, immutable";

/// The answer with a document of a page that has let its visitor in.
pub(in crate::http) fn document(page: &Admitted, document: &Document, headers: &HeaderMap) -> Reply {
    let reply = if page.is_guarded() { whole(document, headers) } else { tagged(document, headers) };
    let reply = policed(reply);
    if page.is_guarded() {
        return guarded(reply);
    }
    let reply = reply.with(CACHE_CONTROL, HeaderValue::from_static(OPEN));
    if page.page().noindex {
        reply.with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
    } else {
        reply
    }
}

/// The answer with the API's reference, which is the same for everybody until the service is another one.
pub(in crate::http) fn reference(document: &Document, base_url: &str, headers: &HeaderMap) -> Reply {
    let reply = policed(tagged(document, headers)).with(CACHE_CONTROL, HeaderValue::from_static(REFERENCE));
    match HeaderValue::try_from(format!("<{base_url}/api/v1/openapi.json>; rel=\"service-desc\"")) {
        Ok(link) => reply.with(LINK, link),
        Err(_) => reply,
    }
}

/// The same, which may load and do no more than a page may.
fn policed(reply: Reply) -> Reply {
    reply
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        .with(HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS))
}

/// An answer of a page that not everybody may see: nobody keeps it, and no search finds it.
pub(super) fn guarded(reply: Reply) -> Reply {
    reply
        .with(CACHE_CONTROL, HeaderValue::from_static("private, no-store"))
        .with(VARY, HeaderValue::from_static("accept-encoding, cookie"))
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
}

/// The same for scripts of other sites, where everybody may see the page.
pub(in crate::http) fn shared(page: &Admitted, reply: Reply) -> Reply {
    if page.is_guarded() {
        return reply;
    }
    // A frame that is walled off has to know how old a copy is.
    reply
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
        .with(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("age, date"))
}

/// The same, which may be kept as that says where everybody may see the page.
pub(in crate::http) fn for_long(page: &Admitted, reply: Reply, fresh: HeaderValue) -> Reply {
    if page.is_guarded() { reply } else { reply.with(CACHE_CONTROL, fresh) }
}

/// `GET /assets/{name}`
pub(super) async fn asset(_context: Arc<Context>, call: Call<()>) -> Answer {
    static PRESSED: LazyLock<Vec<(&str, Document)>> = LazyLock::new(|| {
        let press = |asset: &'static assets::Asset| {
            (asset.name.as_str(), Document::press(asset.media, asset.text.as_bytes()))
        };
        assets::all().into_iter().map(press).collect()
    });
    let name = call.param("name")?;
    let (_, pressed) = PRESSED.iter().find(|(known, _)| *known == name).ok_or(Refused::Route)?;
    Ok(tagged(pressed, &call.headers).with(CACHE_CONTROL, HeaderValue::from_static(FOREVER)))
}

/// The document with its tag, or the tag alone where the reader has that document already: then none is unpacked.
pub(super) fn tagged(document: &Document, headers: &HeaderMap) -> Reply {
    let reply = if is_known(&document.tag, headers) {
        varied(Reply::bytes(document.media, Bytes::new()).unchanged())
    } else {
        whole(document, headers)
    };
    match HeaderValue::try_from(document.tag.as_str()) {
        Ok(tag) => reply.with(ETAG, tag),
        Err(_) => reply,
    }
}

fn whole(document: &Document, headers: &HeaderMap) -> Reply {
    let (body, encoding) = match encoding(values(headers, &ACCEPT_ENCODING)) {
        Encoding::Brotli => (document.brotli.clone(), Some("br")),
        Encoding::Gzip => (document.gzip.clone(), Some("gzip")),
        Encoding::Plain => (document.plain(), None),
    };
    let reply = varied(Reply::bytes(document.media, body)).shared();
    match encoding {
        Some(encoding) => reply.with(CONTENT_ENCODING, HeaderValue::from_static(encoding)),
        None => reply,
    }
}

fn varied(reply: Reply) -> Reply {
    reply.with(VARY, HeaderValue::from_static("accept-encoding"))
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
    Plain,
}

/// The smallest that a reader takes who sends these values of `accept-encoding` (RFC 9110, 12.5.3); a weight of nought
/// refuses.
pub(super) fn encoding<'a>(accepted: impl Iterator<Item = &'a str>) -> Encoding {
    let (mut brotli, mut gzip) = (false, false);
    for one in accepted.flat_map(|value| value.split(',')) {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        let is_taken = weight.is_ok_and(|weight| weight > 0.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("br") => brotli = is_taken,
            name if name.eq_ignore_ascii_case("gzip") => gzip = is_taken,
            _ => {}
        }
    }
    match (brotli, gzip) {
        (true, _) => Encoding::Brotli,
        (false, true) => Encoding::Gzip,
        (false, false) => Encoding::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_smallest_that_he_takes() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", Encoding::Brotli),
            ("GZIP;q=0.5", Encoding::Gzip),
            ("br;q=0, gzip", Encoding::Gzip),
            ("br; q=0.0", Encoding::Plain),
            ("identity", Encoding::Plain),
            ("gzip;q=x", Encoding::Plain),
            ("", Encoding::Plain),
        ] {
            assert_eq!(encoding([accepted].into_iter()), expected, "{accepted}");
        }
        assert_eq!(encoding([].into_iter()), Encoding::Plain);
        assert_eq!(encoding(["gzip", "br"].into_iter()), Encoding::Brotli);
    }
}
