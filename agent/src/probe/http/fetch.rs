//! Fetches a document for other probes: a GET through the guard, with own redirect handling and a bounded
//! body.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use parallax_protocol::{
    check::{WireHttpCheck, WireKeywordMode, WireMethod},
    result::{WireFailure, WireOwnFault},
};
use tokio::time::Instant;

use super::{
    coding::{self, DecodeStage},
    exchange::{self, HopResponse},
    redirect,
    request_plan::RequestPlan,
};
use crate::probe::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts},
    memory_budget::MemoryShare,
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a body from another host than requested, in bytes: large documents are only expected from
/// hosts known to have them.
const MAX_BYTES_OTHER_HOST: usize = 2 << 20;

/// Document to fetch.
#[derive(Debug)]
pub(in crate::probe) struct FetchRequest<'a> {
    pub(in crate::probe) url: &'a str,
    /// Additional headers; none is a secret.
    pub(in crate::probe) headers: Vec<(HeaderName, HeaderValue)>,
    /// Maximum size of the body in bytes, as sent and as decoded.
    pub(in crate::probe) max_bytes: usize,
    /// Account that is charged for the body's memory.
    pub(in crate::probe) account: u32,
}

/// The final response.
#[derive(Debug)]
pub(in crate::probe) struct FetchedPage {
    pub(in crate::probe) status: u16,
    pub(in crate::probe) headers: HeaderMap,
    /// Body after decoding.
    pub(in crate::probe) body: Vec<u8>,
    _held: Option<MemoryShare>,
}

/// Fetches it by `deadline`; the facts are those of the last hop.
///
/// # Errors
/// The reason why the complete response did not arrive.
pub(in crate::probe) async fn fetch(
    request: FetchRequest<'_>,
    context: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<FetchedPage, CheckError> {
    let plan = RequestPlan::from_check(&WireHttpCheck {
        url: request.url.to_owned(),
        method: WireMethod::Get,
        headers: Vec::new(),
        body: None,
        expect_status: None,
        keyword: None,
        keyword_mode: WireKeywordMode::Present,
    })?;
    let codings = HeaderValue::from_static("gzip, deflate, br");
    let headers = request.headers.into_iter().chain([(header::ACCEPT_ENCODING, codings)]);
    let mut plan = plan.with_headers(headers);
    let requested_host = plan.host.clone();
    for _ in 0..=MAX_REDIRECTS {
        *facts = CheckFacts::default();
        let response = exchange::exchange(&plan, context, deadline, facts).await?;
        if let Some(next) = redirect::next(&plan, &response.head)? {
            plan = next;
            continue;
        }
        facts.status = Some(response.head.status.as_u16());
        let most =
            if plan.host == requested_host { request.max_bytes } else { request.max_bytes.min(MAX_BYTES_OTHER_HOST) };
        return read(response, most, context.budget().share(request.account), deadline).await;
    }
    Err(WireFailure::TooManyRedirects.into())
}

async fn read(
    mut response: HopResponse,
    most: usize,
    memory: MemoryShare,
    deadline: Instant,
) -> Result<FetchedPage, CheckError> {
    let buffer = BodyBuffer { most, body: Arc::new(Mutex::new((Vec::new(), Some(memory.sibling())))) };
    let mut first = coding::decoding_stages(&response.head.headers, Box::new(buffer.clone()), &memory)
        .ok_or(WireFailure::BodyUndecodable)?;
    let mut sent = 0;
    while let Some(data) = response.next_piece(deadline).await? {
        sent += data.len();
        if sent > most {
            return Err(WireFailure::BodyTooLarge.into());
        }
        first.write_all(&data).map_err(|error| failure(&error))?;
    }
    if sent > 0 {
        first.end().map_err(|error| failure(&error))?;
    }
    let (body, memory) = std::mem::take(&mut *buffer.body.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(FetchedPage { status: response.head.status.as_u16(), headers: response.head.headers, body, _held: memory })
}

fn failure(error: &io::Error) -> CheckError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => WireFailure::BodyTooLarge.into(),
        io::ErrorKind::OutOfMemory => CheckError::Own(WireOwnFault::Overloaded),
        _ => WireFailure::BodyUndecodable.into(),
    }
}

/// The last stage: collects the bytes.
#[derive(Clone)]
struct BodyBuffer {
    most: usize,
    body: Arc<Mutex<(Vec<u8>, Option<MemoryShare>)>>,
}

impl Write for BodyBuffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, memory) = &mut *body;
        if bytes.len() + piece.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Some(memory) = memory {
            memory.grow(piece.len())?;
        }
        bytes.extend(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DecodeStage for BodyBuffer {
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
