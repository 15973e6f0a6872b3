//! The http probe: request, redirects, status, keyword.
//!
//! A check behaves like a first-time visitor: a new resolution, a new connection and a full handshake for
//! every hop, cookies for the duration of the check, no proxy, and no content coding requested (one that
//! comes is decoded). The latency is the time from the start of the check (redirects and name resolution
//! included) to the last byte that the verdict needed: the end of the response's head or, with a keyword, the
//! position in the body that decided it. The phases are those of the last hop.

mod body;
pub(super) mod budget;
mod charset;
mod coding;
mod cookies;
mod exchange;
pub(super) mod fetch;
mod framing;
mod head;
mod http1;
mod judge;
mod meter;
mod opening;
mod plan;
mod redirect;
mod scan;

use parallax_protocol::{
    check::HttpCheck,
    result::{Failure, Report},
};
use tokio::time::Instant;

pub(super) use self::opening::Kept;
use self::{judge::Seen, plan::Plan};
use super::{
    facts::{Facts, Trouble, micros},
    net::Net,
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Runs the check of an account. The first run fills the cache in `kept`.
pub(super) async fn run(check: &HttpCheck, kept: &Kept, account: u32, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let seen = visit(check, kept, account, net, &mut facts).await;
    if seen.is_ok() {
        facts.took = Some(started.elapsed());
    }
    facts.report(judge::judge(check, seen))
}

async fn visit(
    check: &HttpCheck,
    kept: &Kept,
    account: u32,
    net: &Net,
    facts: &mut Facts,
) -> Result<Seen, Trouble> {
    let deadline = net.deadline();
    let Some(opening) = kept.opening(check)? else {
        let first = Plan::first(check)?;
        return Box::pin(follow(check, first, MAX_REDIRECTS, deadline, (account, net), facts)).await;
    };
    let head = exchange::glance(check, opening, net, deadline, facts).await?;
    let status = head.status.as_u16();
    facts.status = Some(status);
    if judge::follows_redirects(check)
        && !head.headers.is_empty()
        && let Some(next) = redirect::next(&Plan::first(check)?, &head)?
    {
        return Box::pin(follow(check, next, MAX_REDIRECTS - 1, deadline, (account, net), facts)).await;
    }
    Ok(Seen { status, keyword: None })
}

/// Sends a request, and follows the redirects in its responses, at most `redirects`.
async fn follow(
    check: &HttpCheck,
    mut plan: Plan,
    redirects: usize,
    deadline: Instant,
    (account, net): (u32, &Net),
    facts: &mut Facts,
) -> Result<Seen, Trouble> {
    for _ in 0..=redirects {
        // The facts are those of the last hop.
        *facts = Facts::default();
        let answer = exchange::exchange(&plan, net, deadline, facts).await?;
        let status = answer.head.status.as_u16();
        facts.status = Some(status);
        if judge::follows_redirects(check)
            && let Some(next) = redirect::next(&plan, &answer.head)?
        {
            plan = next;
            continue;
        }
        let mut keyword = None;
        if let Some(word) = judge::keyword_needed(check, status) {
            let reading = Instant::now();
            keyword = Some(body::search(answer, word, deadline, &net.budget().share(account)).await?);
            facts.phases.transfer_us = Some(micros(reading.elapsed()));
        }
        return Ok(Seen { status, keyword });
    }
    Err(Failure::TooManyRedirects.into())
}
