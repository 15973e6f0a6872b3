//! Detection of the character encoding of a body.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use http::{HeaderMap, header};

/// Number of bytes of a document in which it may declare its own encoding (HTML standard, "prescan").
pub(super) const PRESCAN: usize = 1024;

/// Encoding declared by the head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredCharset {
    /// Declared in the head, or UTF-8 if the document can't declare one.
    Named(&'static Encoding),
    /// The document may declare it at its start.
    InDocument,
}

/// Reads the encoding from `Content-Type`.
pub(super) fn from_head(headers: &HeaderMap) -> DeclaredCharset {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return DeclaredCharset::InDocument };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let mut parts = kind.split(';');
    let essence = parts.next().unwrap_or_default().trim();
    let label =
        parts.find_map(|part| part.trim().strip_prefix("charset=").map(|label| label.trim_matches(['"', '\'', ' '])));
    match label.and_then(|label| Encoding::for_label(label.as_bytes())) {
        Some(encoding) => DeclaredCharset::Named(encoding),
        None if essence.is_empty() || essence.ends_with("html") || essence.ends_with("xml") => {
            DeclaredCharset::InDocument
        }
        None => DeclaredCharset::Named(UTF_8),
    }
}

/// Reads the encoding from the start of a document: `<meta charset>`, its older form, or the XML declaration;
/// else UTF-8.
pub(super) fn from_document(beginning: &[u8]) -> &'static Encoding {
    let text = String::from_utf8_lossy(beginning).to_ascii_lowercase();
    let named = if let Some(declaration) = text.strip_prefix("<?xml") {
        declaration.split("?>").next().and_then(|declaration| label_after(declaration, "encoding"))
    } else {
        text.split("<meta").skip(1).find_map(|tag| label_after(tag.split('>').next()?, "charset"))
    };
    match named {
        // The label was readable as ASCII, so the encoding is neither of these two.
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        Some(encoding) => encoding,
        None => UTF_8,
    }
}

fn label_after(text: &str, attribute: &str) -> Option<&'static Encoding> {
    let (_, rest) = text.split_once(attribute)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(rest.len());
    Encoding::for_label(rest.get(..end)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{ISO_8859_2, SHIFT_JIS, WINDOWS_1252};
    use http::HeaderValue;

    fn head(kind: &str) -> DeclaredCharset {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        from_head(&headers)
    }

    #[test]
    fn the_charset_is_read_from_the_head_or_the_document() {
        assert_eq!(head("text/html; charset=ISO-8859-1"), DeclaredCharset::Named(WINDOWS_1252));
        assert_eq!(head("text/plain;x=y; Charset=\"shift_jis\""), DeclaredCharset::Named(SHIFT_JIS));
        assert_eq!(head("application/json"), DeclaredCharset::Named(UTF_8));
        assert_eq!(head("text/plain; charset=none-such"), DeclaredCharset::Named(UTF_8));
        assert_eq!(head("text/html"), DeclaredCharset::InDocument);
        assert_eq!(head("application/rss+xml; charset=none-such"), DeclaredCharset::InDocument);
        assert_eq!(from_head(&HeaderMap::new()), DeclaredCharset::InDocument);
    }

    #[test]
    fn a_document_names_its_characters() {
        for (text, encoding) in [
            ("<!doctype html><META CHARSET='iso-8859-2'>", ISO_8859_2),
            ("<meta name=a><meta http-equiv=x content=\"text/html; charset = latin2\">", ISO_8859_2),
            ("<?xml version=\"1.0\" encoding='Shift_JIS'?><a/>", SHIFT_JIS),
            ("<meta charset=utf-16>", UTF_8),
            ("<meta charset=none-such>", UTF_8),
            ("<p>charset=iso-8859-2", UTF_8),
            ("", UTF_8),
        ] {
            assert_eq!(from_document(text.as_bytes()), encoding, "{text}");
        }
    }
}
