//! Answers to checks that arrive region by region: a fragment of the screen for each change, then the whole screen.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{CACHE_CONTROL, HeaderValue};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::monitor::Monitor;
use parallax_core::plan::Plan;
use parallax_core::vantage::Region;
use parallax_service::monitors::CheckNowProgress;
use parallax_service::monitors::history::CheckNowResult;
use parallax_service::public_pages::explanation::labels;
use tokio::sync::watch;

use super::frame::query_param;
use super::{SignedIn, error_page, with_security_headers};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::response::{BodyStream, HttpResponse};
use crate::http::server::request_timeout;
use crate::views::dashboard::monitor::check_progress::CheckProgress;
use crate::views::dashboard::monitor::waterfall::RegionResult;

/// Parameter with which the script asks for an answer in fragments. Without it the answer is the screen alone.
const PARAM: &str = "fragments";
/// Media type of an answer in fragments, each an HTML document.
const MEDIA: &str = "application/x-html-fragments";
/// End of a fragment (ASCII, record separator), which no fragment contains.
const END: char = '\u{1e}';

/// Returns true if an answer is wanted in fragments.
pub(super) fn is_wanted(query: &str) -> bool {
    query_param(query, PARAM).is_some()
}

/// Section of a screen in which a check is shown while it runs.
#[derive(Debug, Clone)]
pub(super) struct ProgressSection {
    /// Id of the section.
    pub(super) id: &'static str,
    /// The monitor that is checked, saved or not.
    pub(super) monitor: Monitor,
    /// Plan of its account.
    pub(super) plan: Plan,
}

/// Replies with the section whenever a region answers, and at the end with the screen that `screen` makes of the check
/// to which it passes its sender. A screen that takes too long is an error page, as it is without fragments.
///
/// # Errors
/// If the person may not check monitors, or the store can't be read.
pub(super) async fn reply<F>(
    context: &Arc<HttpContext>,
    signed_in: &SignedIn,
    section: ProgressSection,
    screen: impl FnOnce(CheckNowProgress) -> F,
) -> HandlerResult
where
    F: Future<Output = HandlerResult> + Send + 'static,
{
    let agents = context.service.monitors.checking_agents(&signed_in.caller).await?;
    let labels = labels(&agents, signed_in.is_operator);
    let (progress, results) = watch::channel(Vec::new());
    let draw = move |outcomes: &[CheckNowResult]| {
        let ProgressSection { id, monitor, plan } = &section;
        let threshold = |region| threshold_ms(monitor, *plan, region);
        CheckProgress::new(id, &region_results(outcomes, true, threshold), &labels).html()
    };
    let fragments = Fragments::new(results, draw, screen(progress));
    let reply = HttpResponse::bytes(MEDIA, Bytes::new()).with_stream(fragments.stream());
    Ok(with_security_headers(reply).with(CACHE_CONTROL, HeaderValue::from_static("no-store")))
}

/// Results by region, with the slow threshold of each; of a check that is running, agents may still answer.
pub(super) fn region_results<'a>(
    outcomes: &'a [CheckNowResult],
    is_running: bool,
    threshold_ms: impl Fn(Region) -> Option<u32>,
) -> Vec<RegionResult<'a>> {
    let result = |it: &'a CheckNowResult| RegionResult {
        region: it.region,
        seen: it.observation.as_ref().map(|seen| (seen.vantage, &seen.outcome)),
        missing: match (it.vantage, &it.observation) {
            (None, _) if it.unsupported => Some("no agent in this region can run checks of this type"),
            (None, _) => Some("no agent in this region is in service"),
            (Some(_), None) if it.unanswered || !is_running => Some("the agent did not answer in time"),
            (Some(_), _) => None,
        },
        threshold_ms: threshold_ms(it.region),
    };
    outcomes.iter().map(result).collect()
}

/// Slow threshold of a monitor in a region, in milliseconds; none for a check without response times.
pub(super) fn threshold_ms(monitor: &Monitor, plan: Plan, region: Region) -> Option<u32> {
    monitor.slow_threshold(region, plan).filter(|_| monitor.check.kind().has_latency())
}

/// Draws the results of a check that is running.
type DrawFragment = Box<dyn Fn(&[CheckNowResult]) -> String + Send>;

struct Fragments {
    results: watch::Receiver<Vec<CheckNowResult>>,
    draw: DrawFragment,
    /// The screen with the result; none once it was sent. It runs the check.
    screen: Option<BoxFuture<'static, HttpResponse>>,
}

impl Fragments {
    /// The time limit of the request ends with its headers, so the screen has its own.
    fn new(
        results: watch::Receiver<Vec<CheckNowResult>>,
        draw: impl Fn(&[CheckNowResult]) -> String + Send + 'static,
        screen: impl Future<Output = HandlerResult> + Send + 'static,
    ) -> Self {
        let screen = request_timeout::with_timeout(request_timeout::CHECK_TIMEOUT, None, screen);
        let screen = screen.map(|reply| reply.unwrap_or_else(error_page)).boxed();
        Self { results, draw: Box::new(draw), screen: Some(screen) }
    }

    fn stream(self) -> BodyStream {
        stream::unfold(self, |mut it| async move {
            let mut fragment = it.next().await?.replace(END, "");
            fragment.push(END);
            Some((Ok::<_, Infallible>(Bytes::from(fragment)), it))
        })
        .boxed()
    }

    /// Returns the next fragment; none at the end.
    async fn next(&mut self) -> Option<String> {
        let screen = self.screen.as_mut()?;
        tokio::select! {
            biased;
            reply = screen => {
                self.screen = None;
                Some(String::from_utf8_lossy(reply.body()).into_owned())
            }
            Ok(()) = self.results.changed() => Some((self.draw)(&self.results.borrow_and_update())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use parallax_core::observation::{Measurements, Observation, ProbeOutcome};
    use parallax_core::time::Timestamp;
    use parallax_core::vantage::{NetworkNo, VantageNo};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;

    /// Result of a region: its agent answered, won't, or still may.
    fn result(region: Region, answer: Option<bool>) -> CheckNowResult {
        let (vantage, at) = (VantageNo(1), Timestamp::from_millis(0));
        let observation = Observation {
            revision: 0,
            region,
            vantage,
            network: NetworkNo(0),
            round: None,
            started: at,
            ended: at,
            outcome: ProbeOutcome::Passed(Measurements::default()),
        };
        let observation = (answer == Some(true)).then_some(observation);
        let unanswered = answer == Some(false);
        CheckNowResult { region, vantage: Some(vantage), unsupported: false, unanswered, observation }
    }

    #[tokio::test]
    async fn each_answer_is_a_fragment_and_the_screen_is_the_last() {
        let (progress, results) = watch::channel(Vec::new());
        let (done, end) = oneshot::channel();
        let draw =
            |outcomes: &[CheckNowResult]| format!("{}", outcomes.iter().filter(|it| it.observation.is_some()).count());
        let screen = async move {
            end.await.unwrap();
            Ok(HttpResponse::html(format!("scr{END}een")))
        };
        let mut fragments = Fragments::new(results, draw, screen).stream();
        for count in 0..2 {
            let europe = result(Region::Europe, (count > 0).then_some(true));
            progress.send_replace(vec![europe, result(Region::Asia, None)]);
            assert_eq!(fragments.next().await.unwrap().unwrap(), format!("{count}{END}"));
        }
        // A check whose driver is gone still ends with its screen.
        drop(progress);
        done.send(()).unwrap();
        assert_eq!(fragments.next().await.unwrap().unwrap(), format!("screen{END}"));
        assert!(fragments.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_screen_that_takes_too_long_is_an_error_page() {
        let (progress, results) = watch::channel(Vec::new());
        let began = Instant::now();
        let mut fragments = Fragments::new(results, |_| "waits".to_owned(), pending()).stream();
        progress.send_replace(vec![result(Region::Europe, None)]);
        assert_eq!(fragments.next().await.unwrap().unwrap(), format!("waits{END}"));
        let last = fragments.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&last).contains("<main"), "{last:?}");
        assert_eq!(began.elapsed(), request_timeout::CHECK_TIMEOUT);
        assert!(fragments.next().await.is_none());
    }

    #[test]
    fn an_agent_that_may_answer_is_missing_only_at_the_end() {
        let outcomes = [result(Region::Europe, None), result(Region::Asia, Some(false))];
        let missing = |is_running| -> Vec<_> {
            region_results(&outcomes, is_running, |_| None).into_iter().map(|it| it.missing).collect()
        };
        let late = Some("the agent did not answer in time");
        assert_eq!((missing(true), missing(false)), (vec![None, late], vec![late, late]));
    }
}
