//! Forms with files (`multipart/form-data`, RFC 7578): a file becomes a `data:` URL, as the API takes pictures.

use std::convert::Infallible;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use multer::Multipart;
use parallax_core::validation::ValidationErrors;

use super::{Form, MAX_FIELDS};

/// Media type of a file that names none.
const UNKNOWN_MEDIA: &str = "application/octet-stream";

/// Parses the body. A file input without a file is left out.
///
/// # Errors
/// If it has more than [`MAX_FIELDS`] fields, or breaks the format.
pub(super) async fn parse(boundary: String, body: &[u8]) -> Result<Form, ValidationErrors> {
    let chunk = Ok::<_, Infallible>(Bytes::copy_from_slice(body));
    let mut parts = Multipart::new(futures_util::stream::once(std::future::ready(chunk)), boundary);
    let mut fields = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|_| unreadable())? {
        if fields.len() == MAX_FIELDS {
            return Err(ValidationErrors::whole_request(format!("the form must have at most {MAX_FIELDS} fields")));
        }
        let name = part.name().unwrap_or_default().to_owned();
        if part.file_name().is_none() {
            let text = part.text().await.map_err(|_| unreadable())?;
            fields.push((name, text.replace("\r\n", "\n")));
            continue;
        }
        let media = part.headers().get("content-type").and_then(|media| media.to_str().ok());
        let media = media.unwrap_or(UNKNOWN_MEDIA).to_owned();
        let bytes = part.bytes().await.map_err(|_| unreadable())?;
        if !bytes.is_empty() {
            fields.push((name, format!("data:{media};base64,{}", STANDARD.encode(&bytes))));
        }
    }
    Ok(Form(fields))
}

fn unreadable() -> ValidationErrors {
    ValidationErrors::whole_request("the form can't be read".to_owned())
}
