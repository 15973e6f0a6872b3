//! Fetching a document for a probe of another type: a GET through the guard, redirects by hand, a bounded body.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::{
    check::{HttpCheck, KeywordMode, Method},
    result::{Failure, OwnFault},
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
    _held: Share,
}

/// Bytes that all documents of an agent may take together while they are read: one server, or a thousand, that sends long
/// ones must not take the host's memory.
#[derive(Debug, Default)]
pub(in crate::probe) struct Budget {
    used: AtomicUsize,
}

impl Budget {
    /// The most.
    const MOST: usize = 64 << 20;
}

/// One document's share of the budget, given back when it is dropped.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    fn grow(&mut self, by: usize) -> io::Result<()> {
        // Counted before it is compared: two at once can't both pass the bound.
        let used = self.budget.used.fetch_add(by, Ordering::Relaxed).saturating_add(by);
        self.bytes += by;
        if used > Budget::MOST { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
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
        return read(answer, want.most, net.budget(), deadline).await;
    }
    Err(Failure::TooManyRedirects.into())
}

async fn read(
    mut answer: Answer,
    most: usize,
    budget: &Arc<Budget>,
    deadline: Instant,
) -> Result<Page, Trouble> {
    let held = Share { budget: Arc::clone(budget), bytes: 0 };
    let kept = Kept { most, body: Arc::new(Mutex::new((Vec::new(), Some(held)))) };
    let mut first =
        coding::undo(&answer.head.headers, Box::new(kept.clone())).ok_or(Failure::BodyUndecodable)?;
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
    let held = held.unwrap_or(Share { budget: Arc::clone(budget), bytes: 0 });
    Ok(Page { status: answer.head.status.as_u16(), headers: answer.head.headers, body, _held: held })
}

fn failure(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Failure::BodyTooLarge.into(),
        io::ErrorKind::OutOfMemory => Trouble::Own(OwnFault::Overloaded),
        _ => Failure::BodyUndecodable.into(),
    }
}

/// The last stage: keeps the bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_share_a_bound_and_give_back_what_they_took() {
        let budget = Arc::new(Budget::default());
        let share = || Share { budget: Arc::clone(&budget), bytes: 0 };
        let (mut one, mut other) = (share(), share());
        one.grow(Budget::MOST - 10).unwrap();
        other.grow(10).unwrap();
        let error = share().grow(1).unwrap_err();
        assert_eq!(failure(&error), Trouble::Own(OwnFault::Overloaded));
        drop(one);
        share().grow(Budget::MOST - 10).unwrap();
        drop(other);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
