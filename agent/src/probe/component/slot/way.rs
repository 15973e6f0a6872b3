//! Fetching of one page's documents.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue, header};
use parallax_protocol::result::Failure;
use tokio::time::Instant;

use super::unreadable;
use crate::probe::{
    facts::{Facts, Trouble},
    http::fetch::{self, Want, fetch},
    net::Net,
    vendor::{self, Format, Id},
};

/// Maximum size in bytes of a document that is read for a page's id.
const MAX_ID_DOCUMENT: usize = 1024 * 1024;

/// Reason why there is no document.
#[derive(Debug)]
pub(super) enum Miss {
    /// It is missing, or is another document.
    Document(String),
    /// The page as a whole is unreachable.
    Trouble(Trouble),
}

/// Shared context of all requests of one reading.
pub(super) struct Way<'a> {
    pub(super) base: &'a str,
    pub(super) net: &'a Net,
    pub(super) account: u32,
    pub(super) deadline: Instant,
    pub(super) facts: &'a mut Facts,
    pub(super) wanted: &'a BTreeSet<Option<String>>,
    /// Number of bytes of documents that may still be read.
    pub(super) left: usize,
}

impl Way<'_> {
    /// Returns the page's id, from its address or a document.
    pub(super) async fn id(&mut self, format: &Format) -> Result<String, Miss> {
        if let Some(id) = format.ids.iter().find_map(|id| id.of(self.base)) {
            return Ok(id);
        }
        self.left = MAX_ID_DOCUMENT * format.ids.len();
        for id in format.ids {
            let Id::In(path, read) = id else { continue };
            let Some(url) = vendor::place(path, self.base, None, 1) else { continue };
            let answer = match self.fetch(&url, Vec::new(), MAX_ID_DOCUMENT).await {
                Ok(answer) => answer,
                Err(Miss::Document(_)) => continue,
                Err(trouble) => return Err(trouble),
            };
            if let Some(id) = read(&answer.body).filter(|_| answer.status == 200) {
                return Ok(id);
            }
        }
        Err(Miss::Document("it has no page id".to_owned()))
    }

    /// Fetches a document with a size limit.
    pub(super) async fn fetch(
        &mut self,
        url: &str,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        most: usize,
    ) -> Result<fetch::Page, Miss> {
        headers.push((header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5")));
        let most = most.min(self.left);
        let want = Want { url, headers, most, account: self.account };
        match fetch(want, self.net, self.deadline, self.facts).await {
            // A fault of the server, or of this host, reveals nothing about the addresses.
            Ok(answer) if matches!(answer.status, 429 | 500..) => {
                Err(Miss::Trouble(unreadable(format!("it answers with status {}", answer.status))))
            }
            Ok(answer) => {
                self.left = self.left.saturating_sub(answer.body.len());
                Ok(answer)
            }
            // There is no document at this address; another one may have it.
            Err(Trouble::Target(
                failure @ (Failure::BodyTooLarge
                | Failure::BodyUndecodable
                | Failure::HeadTooLarge
                | Failure::TooManyRedirects
                | Failure::BadRedirect),
            )) => Err(Miss::Document(failure.to_string())),
            Err(Trouble::Target(failure)) => Err(Miss::Trouble(unreadable(failure.to_string()))),
            Err(own @ Trouble::Own(_)) => Err(Miss::Trouble(own)),
        }
    }
}
