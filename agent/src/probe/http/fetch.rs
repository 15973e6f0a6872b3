//! Fetches a document for other probes: a GET through the guard, with own redirect handling and a bounded
//! body.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::{
    check::{HttpCheck, KeywordMode, Method},
    result::{Failure, OwnFault},
};
use tokio::time::Instant;

use super::{
    budget::Share,
    coding::{self, Stage},
    exchange::{self, Answer},
    plan::Plan,
    redirect,
};
use crate::probe::{
    facts::{Facts, Trouble},
    net::Net,
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a body from another host than requested, in bytes: large documents are only expected from
/// hosts known to have them.
const MOST_ELSEWHERE: usize = 2 << 20;

/// Document to fetch.
#[derive(Debug)]
pub(in crate::probe) struct Want<'a> {
    pub(in crate::probe) url: &'a str,
    /// Additional headers; none is a secret.
    pub(in crate::probe) headers: Vec<(HeaderName, HeaderValue)>,
    /// Maximum size of the body in bytes, as sent and as decoded.
    pub(in crate::probe) most: usize,
    /// Account that is charged for the body's memory.
    pub(in crate::probe) account: u32,
}

/// The final response.
#[derive(Debug)]
pub(in crate::probe) struct Page {
    pub(in crate::probe) status: u16,
    pub(in crate::probe) headers: HeaderMap,
    /// Body after decoding.
    pub(in crate::probe) body: Vec<u8>,
    _held: Option<Share>,
}

/// Fetches it by `deadline`; the facts are those of the last hop.
///
/// # Errors
/// The reason why the complete response did not arrive.
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
    let asked = plan.host.clone();
    for _ in 0..=MAX_REDIRECTS {
        *facts = Facts::default();
        let answer = exchange::exchange(&plan, net, deadline, facts).await?;
        if let Some(next) = redirect::next(&plan, &answer.head)? {
            plan = next;
            continue;
        }
        facts.status = Some(answer.head.status.as_u16());
        let most = if plan.host == asked { want.most } else { want.most.min(MOST_ELSEWHERE) };
        return read(answer, most, net.budget().share(want.account), deadline).await;
    }
    Err(Failure::TooManyRedirects.into())
}

async fn read(mut answer: Answer, most: usize, held: Share, deadline: Instant) -> Result<Page, Trouble> {
    let kept = Kept { most, body: Arc::new(Mutex::new((Vec::new(), Some(held.another())))) };
    let mut first =
        coding::undo(&answer.head.headers, Box::new(kept.clone()), &held).ok_or(Failure::BodyUndecodable)?;
    let mut sent = 0;
    while let Some(data) = answer.piece(deadline).await? {
        sent += data.len();
        if sent > most {
            return Err(Failure::BodyTooLarge.into());
        }
        first.write_all(&data).map_err(|error| failure(&error))?;
    }
    if sent > 0 {
        first.end().map_err(|error| failure(&error))?;
    }
    let (body, held) = std::mem::take(&mut *kept.body.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Page { status: answer.head.status.as_u16(), headers: answer.head.headers, body, _held: held })
}

fn failure(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Failure::BodyTooLarge.into(),
        io::ErrorKind::OutOfMemory => Trouble::Own(OwnFault::Overloaded),
        _ => Failure::BodyUndecodable.into(),
    }
}

/// The last stage: collects the bytes.
#[derive(Clone)]
struct Kept {
    most: usize,
    body: Arc<Mutex<(Vec<u8>, Option<Share>)>>,
}

impl Write for Kept {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, held) = &mut *body;
        if bytes.len() + piece.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Some(held) = held {
            held.grow(piece.len())?;
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
