//! Fetching a document for a probe of another type: a GET through the guard, redirects by hand, a bounded body.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::{
    check::{HttpCheck, KeywordMode, Method},
    result::Failure,
};
use tokio::time::Instant;

use super::{
    coding::{self, Stage},
    exchange::{self, Answer},
    plan::Plan,
    redirect,
};
use crate::probe::{
    facts::{Facts, Trouble},
    net::Net,
};

/// Redirects followed at most.
const MAX_REDIRECTS: usize = 3;

/// What to fetch.
#[derive(Debug)]
pub(in crate::probe) struct Want<'a> {
    pub(in crate::probe) url: &'a str,
    /// Beside those of every request; none is a secret.
    pub(in crate::probe) headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes of the body at most, as sent and as undone.
    pub(in crate::probe) most: usize,
}

/// The last answer.
#[derive(Debug)]
pub(in crate::probe) struct Page {
    pub(in crate::probe) status: u16,
    pub(in crate::probe) headers: HeaderMap,
    /// Without its content codings.
    pub(in crate::probe) body: Vec<u8>,
}

/// Fetches it by `deadline`; the facts are those of the last hop.
///
/// # Errors
/// Whatever kept the whole answer from coming.
pub(in crate::probe) async fn fetch(
    want: Want<'_>,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Page, Trouble> {
    let plan = Plan::first(&HttpCheck {
        url: want.url.to_owned(),
        method: Method::Get,
        headers: Vec::new(),
        body: None,
        expect_status: None,
        keyword: None,
        keyword_mode: KeywordMode::Present,
    })?;
    let codings = HeaderValue::from_static("gzip, deflate, br");
    let headers = want.headers.into_iter().chain([(header::ACCEPT_ENCODING, codings)]);
    let mut plan = plan.with_headers(headers);
    for _ in 0..=MAX_REDIRECTS {
        *facts = Facts::default();
        let answer = exchange::exchange(&plan, net, deadline, facts).await?;
        if let Some(next) = redirect::next(&plan, &answer.head)? {
            plan = next;
            continue;
        }
        facts.status = Some(answer.head.status.as_u16());
        return Ok(read(answer, want.most, deadline).await?);
    }
    Err(Failure::TooManyRedirects.into())
}

async fn read(mut answer: Answer, most: usize, deadline: Instant) -> Result<Page, Failure> {
    let kept = Kept { most, bytes: Arc::default() };
    let mut first =
        coding::undo(&answer.head.headers, Box::new(kept.clone())).ok_or(Failure::BodyUndecodable)?;
    let mut sent = 0;
    while let Some(data) = answer.piece(deadline).await? {
        sent += data.len();
        if sent > most {
            return Err(Failure::BodyTooLarge);
        }
        first.write_all(&data).map_err(|error| failure(&error))?;
    }
    if sent > 0 {
        first.end().map_err(|error| failure(&error))?;
    }
    let body = std::mem::take(&mut *kept.bytes.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Page { status: answer.head.status.as_u16(), headers: answer.head.headers, body })
}

fn failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::FileTooLarge { Failure::BodyTooLarge } else { Failure::BodyUndecodable }
}

/// The last stage: keeps the bytes.
#[derive(Clone)]
struct Kept {
    most: usize,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Write for Kept {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() + piece.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        bytes.extend(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stage for Kept {
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
