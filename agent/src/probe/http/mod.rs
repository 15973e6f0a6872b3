//! The http probe: request, redirects, status, keyword.
//!
//! A check behaves like a first-time visitor: a new resolution, a new connection and a full handshake for
//! every hop, cookies for the duration of the check, no proxy, and no content coding requested (one that
//! comes is decoded). The latency is the time from the start of the check (redirects and name resolution
//! included) to the last byte that the verdict needed: the end of the response's head or, with a keyword, the
//! position in the body that decided it. The phases are those of the last hop.

mod body;
mod byte_limit;
mod charset;
mod coding;
mod cookies;
mod exchange;
pub(super) mod fetch;
mod framing;
mod head;
mod http1;
mod judge;
mod keyword_search;
mod prepared_request;
mod redirect;
mod request_plan;

use parallax_protocol::{
    check::WireHttpCheck,
    result::{ProbeReport, WireFailure},
};
use tokio::time::Instant;

pub(super) use self::prepared_request::PreparedRequestCache;
use self::{judge::ResponseSummary, request_plan::RequestPlan};
use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, micros},
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Runs the check of an account. The first run fills `cache`.
pub(super) async fn run(
    check: &WireHttpCheck,
    cache: &PreparedRequestCache,
    account: u32,
    context: &ProbeContext,
) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let response = visit(check, cache, account, context, &mut facts).await;
    if response.is_ok() {
        facts.duration = Some(started.elapsed());
    }
    facts.report(judge::judge(check, response))
}

async fn visit(
    check: &WireHttpCheck,
    cache: &PreparedRequestCache,
    account: u32,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<ResponseSummary, CheckError> {
    let deadline = context.deadline();
    let Some(request) = cache.get(check)? else {
        let first = RequestPlan::from_check(check)?;
        return Box::pin(follow(check, first, MAX_REDIRECTS, deadline, (account, context), facts)).await;
    };
    let head = exchange::fetch_head(check, request, context, deadline, facts).await?;
    let status = head.status.as_u16();
    facts.status = Some(status);
    if judge::follows_redirects(check)
        && !head.headers.is_empty()
        && let Some(next) = redirect::next(&RequestPlan::from_check(check)?, &head)?
    {
        return Box::pin(follow(check, next, MAX_REDIRECTS - 1, deadline, (account, context), facts)).await;
    }
    Ok(ResponseSummary { status, keyword: None })
}

/// Sends a request, and follows the redirects in its responses, at most `redirects`.
async fn follow(
    check: &WireHttpCheck,
    mut plan: RequestPlan,
    redirects: usize,
    deadline: Instant,
    (account, context): (u32, &ProbeContext),
    facts: &mut CheckFacts,
) -> Result<ResponseSummary, CheckError> {
    for _ in 0..=redirects {
        // The facts are those of the last hop.
        *facts = CheckFacts::default();
        let answer = exchange::exchange(&plan, context, deadline, facts).await?;
        let status = answer.head.status.as_u16();
        facts.status = Some(status);
        if judge::follows_redirects(check)
            && let Some(next) = redirect::next(&plan, &answer.head)?
        {
            plan = next;
            continue;
        }
        let mut keyword = None;
        if let Some(text) = judge::keyword_needed(check, status) {
            let reading = Instant::now();
            keyword = Some(body::search(answer, text, deadline, &context.budget().share(account)).await?);
            facts.phases.transfer_us = Some(micros(reading.elapsed()));
        }
        return Ok(ResponseSummary { status, keyword });
    }
    Err(WireFailure::TooManyRedirects.into())
}
