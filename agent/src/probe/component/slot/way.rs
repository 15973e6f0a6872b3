//! Fetching the documents of one page.

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

/// Bytes of a document that is read for a page's id.
const MAX_ID_DOCUMENT: usize = 1024 * 1024;

/// Why there is no document.
#[derive(Debug)]
pub(super) enum Miss {
    /// It isn't there, or is another one.
    Document(String),
    /// The page as a whole can't be reached.
    Trouble(Trouble),
}

/// How to fetch: what every request of one reading shares.
pub(super) struct Way<'a> {
    pub(super) base: &'a str,
    pub(super) net: &'a Net,
    pub(super) account: u32,
    pub(super) deadline: Instant,
    pub(super) facts: &'a mut Facts,
    pub(super) wanted: &'a BTreeSet<Option<String>>,
    /// Bytes of documents that may still be read.
    pub(super) left: usize,
}

impl Way<'_> {
    /// The page's id, out of its address or a document.
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
        Err(Miss::Document("its id is not there".to_owned()))
    }

    /// Asks for a document of so many bytes at most.
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
            // The server's own trouble, or ours with it, tells nothing of what lies where.
            Ok(answer) if matches!(answer.status, 429 | 500..) => {
                Err(Miss::Trouble(unreadable(format!("it answers with status {}", answer.status))))
            }
            Ok(answer) => {
                self.left = self.left.saturating_sub(answer.body.len());
                Ok(answer)
            }
            // What lies at this place is no document; another place may have one.
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
