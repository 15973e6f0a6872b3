//! Answers to checks that arrive region by region: a fragment for each change, then the whole screen.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{CACHE_CONTROL, HeaderValue};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::monitor::Monitor;
use parallax_core::plan::Plan;
use parallax_service::monitors::CheckNowProgress;
use parallax_service::monitors::history::CheckNowResult;
use parallax_service::public_pages::explanation::labels;
use tokio::sync::watch;

use super::frame::query_param;
use super::{SignedIn, error_page, with_security_headers};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::response::{BodyStream, HttpResponse};
use crate::views::dashboard::monitor::check_progress::CheckProgress;
use crate::views::dashboard::monitor::waterfall::RegionResult;

/// Parameter with which the script asks for an answer in parts. Without it the answer is the screen alone.
const PARAM: &str = "parts";
/// Media type of an answer in parts, each an HTML document.
const MEDIA: &str = "application/x-html-parts";
/// End of a part (ASCII, record separator), which no part contains.
const END: char = '\u{1e}';

/// Returns true if an answer is wanted in parts.
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
/// to which it passes its sender.
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
        CheckProgress::new(id, &region_results(outcomes, true, (monitor, *plan)), &labels).html()
    };
    let screen = screen(progress).map(|reply| reply.unwrap_or_else(error_page)).boxed();
    let parts = Parts { results, draw: Box::new(draw), screen: Some(screen) };
    let reply = HttpResponse::bytes(MEDIA, Bytes::new()).with_stream(parts.stream());
    Ok(with_security_headers(reply).with(CACHE_CONTROL, HeaderValue::from_static("no-store")))
}

/// Results by region, with the thresholds of the monitor; of a check that is running, agents may still answer.
pub(super) fn region_results<'a>(
    outcomes: &'a [CheckNowResult],
    is_running: bool,
    (monitor, plan): (&Monitor, Plan),
) -> Vec<RegionResult<'a>> {
    let result = |it: &'a CheckNowResult| RegionResult {
        region: it.region,
        seen: it.observation.as_ref().map(|seen| (seen.vantage, &seen.outcome)),
        missing: match (it.vantage, &it.observation) {
            (None, _) if it.unsupported => Some("no agent in this region can run checks of this type"),
            (None, _) => Some("no agent in this region is in service"),
            (Some(_), None) if !is_running => Some("the agent did not answer in time"),
            (Some(_), _) => None,
        },
        threshold_ms: monitor.slow_threshold(it.region, plan).filter(|_| monitor.check.kind().has_latency()),
    };
    outcomes.iter().map(result).collect()
}

/// Draws the results of a check that is running.
type DrawPart = Box<dyn Fn(&[CheckNowResult]) -> String + Send>;

struct Parts {
    results: watch::Receiver<Vec<CheckNowResult>>,
    draw: DrawPart,
    /// The screen with the result; none once it was sent. It runs the check.
    screen: Option<BoxFuture<'static, HttpResponse>>,
}

impl Parts {
    fn stream(self) -> BodyStream {
        stream::unfold(self, |mut it| async move {
            let mut part = it.next().await?.replace(END, "");
            part.push(END);
            Some((Ok::<_, Infallible>(Bytes::from(part)), it))
        })
        .boxed()
    }

    /// Returns the next part; none at the end.
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
    use parallax_core::observation::{Measurements, Observation, ProbeOutcome};
    use parallax_core::time::Timestamp;
    use parallax_core::vantage::{NetworkNo, Region, VantageNo};
    use tokio::sync::oneshot;

    use super::*;

    fn result(region: Region, is_answered: bool) -> CheckNowResult {
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
        let observation = is_answered.then_some(observation);
        CheckNowResult { region, vantage: Some(vantage), unsupported: false, observation }
    }

    #[tokio::test]
    async fn each_answer_is_a_part_and_the_screen_is_the_last() {
        let (progress, results) = watch::channel(Vec::new());
        let (done, end) = oneshot::channel();
        let draw =
            |outcomes: &[CheckNowResult]| format!("{}", outcomes.iter().filter(|it| it.observation.is_some()).count());
        let screen = async move {
            end.await.unwrap();
            HttpResponse::html(format!("scr{END}een"))
        };
        let mut parts = Parts { results, draw: Box::new(draw), screen: Some(screen.boxed()) }.stream();
        for count in 0..2 {
            progress.send_replace(vec![result(Region::Europe, count > 0), result(Region::Asia, false)]);
            assert_eq!(parts.next().await.unwrap().unwrap(), format!("{count}{END}"));
        }
        // A check whose driver is gone still ends with its screen.
        drop(progress);
        done.send(()).unwrap();
        assert_eq!(parts.next().await.unwrap().unwrap(), format!("screen{END}"));
        assert!(parts.next().await.is_none());
    }

    #[test]
    fn an_agent_that_is_asked_is_missing_only_at_the_end() {
        let outcomes = [result(Region::Europe, false)];
        let monitor = parallax_store::samples::monitor(1, 1, 0);
        let missing = |is_running| region_results(&outcomes, is_running, (&monitor, Plan::Pro))[0].missing;
        assert_eq!((missing(true), missing(false)), (None, Some("the agent did not answer in time")));
    }
}
