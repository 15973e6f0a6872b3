//! Compression of documents with brotli and gzip; each compressed document is identified by an entity tag.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use parallax_core::time::Timestamp;
use sha2::{Digest, Sha256};

/// Compression levels: a document is compressed once for many readers, but the first of them waits for it.
const GZIP: u32 = 6;
const BROTLI: u32 = 7;
/// Brotli's window size, as a power of two.
const WINDOW: u32 = 20;

/// A document of a page.
#[derive(Debug)]
pub struct CompressedDocument {
    /// Its media type.
    pub media: &'static str,
    /// Compressed with brotli.
    pub brotli: Bytes,
    /// Compressed with gzip.
    pub gzip: Bytes,
    /// Entity tag (RFC 9110, 8.8.3): weak, since it is the same for each encoding, and does not depend on the
    /// time of rendering.
    pub tag: String,
    /// Time after which it may not be served, regardless of its age.
    pub expires_at: Option<Timestamp>,
    /// The uncompressed text, while it is being served: one copy for all readers.
    plain: Mutex<Weak<Vec<u8>>>,
}

/// The shared copy of a document's text.
struct SharedText(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl CompressedDocument {
    /// Compresses a document of that media type.
    pub fn compress(media: &'static str, text: &[u8]) -> Self {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP));
        // Writing to memory does not fail.
        let gzip = gzip.write_all(text).and_then(|()| gzip.finish()).unwrap_or_default();
        let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, BROTLI, WINDOW);
        let written = brotli.write_all(text);
        let brotli = written.map(|()| brotli.into_inner()).unwrap_or_default();
        Self {
            media,
            brotli: brotli.into(),
            gzip: gzip.into(),
            tag: tag(text),
            expires_at: None,
            plain: Mutex::default(),
        }
    }

    /// Returns the document with a tag of other bytes than its own: cached copies stay valid while those
    /// bytes are the same.
    #[must_use]
    pub(crate) fn with_tag_of(self, bytes: &[u8]) -> Self {
        Self { tag: tag(bytes), ..self }
    }

    /// Returns the document with an expiry.
    #[must_use]
    pub(super) fn expiring_at(self, expires_at: Option<Timestamp>) -> Self {
        Self { expires_at, ..self }
    }

    /// Decompresses the document, for the few clients that accept no compression.
    pub(crate) fn decompressed(&self) -> Bytes {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        let text = plain.upgrade().unwrap_or_else(|| {
            let mut text = Vec::with_capacity(self.gzip.len() * 8);
            // The data was compressed here, so decompression does not fail.
            let _ = flate2::read::GzDecoder::new(self.gzip.as_ref()).read_to_end(&mut text);
            text.shrink_to_fit();
            let text = Arc::new(text);
            *plain = Arc::downgrade(&text);
            text
        });
        Bytes::from_owner(SharedText(text))
    }

    /// Memory used, in bytes.
    pub const fn bytes(&self) -> usize {
        self.brotli.len() + self.gzip.len() + self.tag.len()
    }
}

fn tag(text: &[u8]) -> String {
    format!("W/\"{}\"", hex::encode(&Sha256::digest(text)[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_decompresses_to_its_original_text() {
        let text = "<p>all is well</p>".repeat(1000);
        let document = CompressedDocument::compress("text/html", text.as_bytes());
        assert_eq!(document.decompressed(), text.as_bytes());
        let mut decompressed = Vec::new();
        brotli::Decompressor::new(document.brotli.as_ref(), 4096).read_to_end(&mut decompressed).unwrap();
        assert_eq!(decompressed, text.as_bytes());
        assert!(document.brotli.len() < 200 && document.bytes() < 600, "{}", document.bytes());
        assert_eq!(document.tag, CompressedDocument::compress("x", text.as_bytes()).tag);
        assert_ne!(document.tag, CompressedDocument::compress("x", b"").tag);
        let (one, other) = (document.decompressed(), document.decompressed());
        assert_eq!(one.as_ptr(), other.as_ptr(), "all readers have one copy");
        drop((one, other));
        assert!(document.plain.lock().unwrap().upgrade().is_none(), "the copy is freed with its last reader");
    }
}
