//! The event stream of a page: a line whenever something of it changed, for as long as its visitor reads.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderValue;
use ::http::header::CACHE_CONTROL;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use rand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::enter;
use crate::http::Context;
use crate::http::reply::{Parts, Reply};
use crate::http::route::{Answer, Call};
use crate::service::gate::Admitted;

/// How long a silent stream goes without a word; proxies end those that say nothing for a minute.
const WORD: Duration = Duration::from_secs(25);
/// How long a stream lasts; the browser opens another.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// After how many milliseconds a browser comes back whose stream has ended.
const BACK: RangeInclusive<u32> = 3000..=12_000;
/// Changes within this time are told as one.
const TOGETHER: Duration = Duration::from_millis(500);

/// `GET /p/{slug}/events`: server-sent events (WHATWG HTML, 9.2). Each says only that there is something new.
pub(super) async fn events(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let changes = context.boards.watch(page.page().id);
    let stopping = context.stopping();
    let rest = Stream { context, call, changes, stopping, end: Instant::now() + LIFE };
    let reply = Reply::bytes("text/event-stream; charset=utf-8", greeting())
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply.followed_by(rest.parts()))
}

/// The first words of a stream: after how many milliseconds its browser comes back. Each is told another time, so that after
/// a restart not all of them come at once.
fn greeting() -> String {
    format!("retry: {}\n\n", rand::rng().random_range(BACK))
}

struct Stream {
    context: Arc<Context>,
    /// What its visitor showed.
    call: Call<()>,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    end: Instant,
}

impl Stream {
    fn parts(self) -> Parts {
        stream::unfold(self, |mut it| async move {
            let part = it.next().await?;
            Some((Ok::<_, Infallible>(part), it))
        })
        .boxed()
    }

    /// The next words; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            () = told(&mut self.stopping) => None,
            () = sleep_until(self.end) => None,
            changed = self.changes.changed() => {
                changed.ok()?;
                sleep(TOGETHER).await;
                let seq = *self.changes.borrow_and_update();
                // What changed may be that this visitor may see it no more.
                let _page: Admitted = enter(&self.context, &self.call).ok()?;
                Some(Bytes::from(format!("data: {seq}\n\n")))
            }
            () = sleep(WORD) => Some(Bytes::from_static(b":\n\n")),
        }
    }
}

async fn told(stopping: &mut watch::Receiver<bool>) {
    // Who would tell is gone: that too is a reason to stop.
    let _ = stopping.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_to_come_back_at_different_times() {
        let told: Vec<u32> = (0..400)
            .map(|_| {
                let greeting = greeting();
                let millis = greeting.strip_prefix("retry: ").and_then(|rest| rest.strip_suffix("\n\n"));
                millis.unwrap().parse().unwrap()
            })
            .collect();
        assert!(told.iter().all(|millis| BACK.contains(millis)), "{told:?}");
        // Of nine seconds, each has some: all but once in 10^19 runs.
        for second in 3..12_u32 {
            assert!(told.iter().any(|millis| millis / 1000 == second), "{second}: {told:?}");
        }
    }
}
