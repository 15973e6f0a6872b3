//! Fields of a submitted form in its two encodings: names and values in the order in which they were sent.
//!
//! In a form with files (`multipart/form-data`, RFC 7578) a file becomes a `data:` URL, as the API takes pictures.

use std::borrow::Cow;
use std::convert::Infallible;

use ::http::HeaderMap;
use ::http::header::CONTENT_TYPE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use multer::Multipart;
use parallax_core::validation::ValidationErrors;
use url::form_urlencoded;

/// Maximum number of fields of a form: a page's monitors with two fields each, and some more.
pub(super) const MAX_FIELDS: usize = 4096;
/// Media type of a file that names none.
const UNKNOWN_MEDIA: &str = "application/octet-stream";

/// Parses the body of a form in the encoding that its headers name. Line breaks become LF.
///
/// # Errors
/// If it has more than [`MAX_FIELDS`] fields, or breaks the format.
pub(super) async fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Vec<(String, String)>, ValidationErrors> {
    let media = headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    match multer::parse_boundary(media) {
        Ok(boundary) => parse_multipart(boundary, body).await,
        Err(_) => parse_urlencoded(body),
    }
}

/// Parses a body or a query as `application/x-www-form-urlencoded` (URL standard).
///
/// # Errors
/// If it has more than [`MAX_FIELDS`] fields.
pub(super) fn parse_urlencoded(body: &[u8]) -> Result<Vec<(String, String)>, ValidationErrors> {
    let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.replace("\r\n", "\n"));
    let fields: Vec<_> = form_urlencoded::parse(body).map(owned).take(MAX_FIELDS + 1).collect();
    if fields.len() > MAX_FIELDS { Err(too_many()) } else { Ok(fields) }
}

/// Parses a form with files. A file input without a file is left out, which browsers send as an empty file without a
/// name. An empty file that was chosen stays, for its field to refuse.
async fn parse_multipart(boundary: String, body: &[u8]) -> Result<Vec<(String, String)>, ValidationErrors> {
    let chunk = Ok::<_, Infallible>(Bytes::copy_from_slice(body));
    let mut parts = Multipart::new(futures_util::stream::once(std::future::ready(chunk)), boundary);
    let mut fields = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|_| unreadable())? {
        if fields.len() == MAX_FIELDS {
            return Err(too_many());
        }
        let name = part.name().unwrap_or_default().to_owned();
        let Some(is_chosen) = part.file_name().map(|file| !file.is_empty()) else {
            let text = part.text().await.map_err(|_| unreadable())?;
            fields.push((name, text.replace("\r\n", "\n")));
            continue;
        };
        let media = part.headers().get("content-type").and_then(|media| media.to_str().ok());
        let media = media.unwrap_or(UNKNOWN_MEDIA).to_owned();
        let bytes = part.bytes().await.map_err(|_| unreadable())?;
        if is_chosen || !bytes.is_empty() {
            fields.push((name, format!("data:{media};base64,{}", STANDARD.encode(&bytes))));
        }
    }
    Ok(fields)
}

fn too_many() -> ValidationErrors {
    ValidationErrors::whole_request(format!("the form must have at most {MAX_FIELDS} fields"))
}

fn unreadable() -> ValidationErrors {
    ValidationErrors::whole_request("the form can't be read".to_owned())
}
