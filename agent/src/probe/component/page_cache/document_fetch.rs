//! Fetching of one page's documents.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue, header};
use parallax_protocol::result::WireFailure;
use tokio::time::Instant;

use super::unreadable;
use crate::probe::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts},
    http::fetch::{self, FetchRequest, fetch},
    vendor::{self, PageIdSource, VendorFormat},
};

/// Maximum size in bytes of a document that is read for a page's id.
const MAX_ID_DOCUMENT: usize = 1024 * 1024;

/// Reason why there is no document.
#[derive(Debug)]
pub(super) enum DocumentMiss {
    /// It is missing, or is another document.
    Document(String),
    /// The page as a whole is unreachable.
    Unreachable(CheckError),
}

/// Shared context of all requests of one reading.
pub(super) struct DocumentFetcher<'a> {
    pub(super) base: &'a str,
    pub(super) context: &'a ProbeContext,
    pub(super) account: u32,
    pub(super) deadline: Instant,
    pub(super) facts: &'a mut CheckFacts,
    pub(super) requested: &'a BTreeSet<Option<String>>,
    /// Number of bytes of documents that may still be read.
    pub(super) remaining_bytes: usize,
}

impl DocumentFetcher<'_> {
    /// Returns the page's id, from its address or a document.
    pub(super) async fn id(&mut self, format: &VendorFormat) -> Result<String, DocumentMiss> {
        if let Some(id) = format.ids.iter().find_map(|id| id.in_address(self.base)) {
            return Ok(id);
        }
        self.remaining_bytes = MAX_ID_DOCUMENT * format.ids.len();
        for id in format.ids {
            let PageIdSource::In(path, read) = id else { continue };
            let Some(url) = vendor::expand_address(path, self.base, None, 1) else { continue };
            let response = match self.fetch(&url, Vec::new(), MAX_ID_DOCUMENT).await {
                Ok(response) => response,
                Err(DocumentMiss::Document(_)) => continue,
                Err(error) => return Err(error),
            };
            if let Some(id) = read(&response.body).filter(|_| response.status == 200) {
                return Ok(id);
            }
        }
        Err(DocumentMiss::Document("it has no page id".to_owned()))
    }

    /// Fetches a document with a size limit.
    pub(super) async fn fetch(
        &mut self,
        url: &str,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        most: usize,
    ) -> Result<fetch::FetchedPage, DocumentMiss> {
        headers.push((header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5")));
        let most = most.min(self.remaining_bytes);
        let request = FetchRequest { url, headers, max_bytes: most, account: self.account };
        match fetch(request, self.context, self.deadline, self.facts).await {
            // A fault of the server, or of this host, reveals nothing about the addresses.
            Ok(answer) if matches!(answer.status, 429 | 500..) => {
                Err(DocumentMiss::Unreachable(unreadable(format!("it answers with status {}", answer.status))))
            }
            Ok(answer) => {
                self.remaining_bytes = self.remaining_bytes.saturating_sub(answer.body.len());
                Ok(answer)
            }
            // There is no document at this address; another one may have it.
            Err(CheckError::Target(
                failure @ (WireFailure::BodyTooLarge
                | WireFailure::BodyUndecodable
                | WireFailure::HeadTooLarge
                | WireFailure::TooManyRedirects
                | WireFailure::BadRedirect),
            )) => Err(DocumentMiss::Document(failure.to_string())),
            Err(CheckError::Target(failure)) => Err(DocumentMiss::Unreachable(unreadable(failure.to_string()))),
            Err(own @ CheckError::Own(_)) => Err(DocumentMiss::Unreachable(own)),
        }
    }
}
