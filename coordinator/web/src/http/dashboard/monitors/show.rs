//! Summary of a monitor, and its check on request.

use std::sync::Arc;

use parallax_core::check::CheckKind;
use parallax_core::event::RoundReport;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page_view::{self, TimeRange};
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;
use parallax_service::ServiceError;
use parallax_service::monitors::{CheckNowProgress, CheckNowReport};
use parallax_service::public_pages::explanation::labels;

use super::super::SignedIn;
use super::super::check_progress::{self, ProgressSection, region_results, threshold_ms};
use super::super::forms::{FormRefusal, FormStatus, SubmittedForm};
use super::heartbeat;
use super::screen::{self, MonitorCall};
use super::zoom;
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::monitor::heading::MonitorTab;
use crate::views::dashboard::monitor::settings_words::CheckPlan;
use crate::views::dashboard::monitor::summary::{CheckNowView, MonitorSummary, SummaryInput};

/// Newest rounds on the summary.
const NEWEST_ROUNDS: usize = 8;

/// `GET /app/pages/{page}/monitors/{monitor}`
pub(super) async fn summary(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    show(&context, &call, None).await
}

/// `POST /app/pages/{page}/monitors/{monitor}/check`
///
/// It changes nothing that a reload would repeat but the check itself, which has a limit of its own, so it answers with
/// the screen.
pub(super) async fn check_now(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    if !check_progress::is_wanted(&call.query) {
        return checked(&context, &call, CheckNowProgress::default()).await;
    }
    let (service, caller) = (&context.service, &call.caller.caller);
    let monitor = service.monitors.get(caller, call.page, call.monitor_id()?).await?.monitor;
    let section = ProgressSection { id: "check", monitor, plan: service.accounts.plan(caller)? };
    let (own, caller) = (Arc::clone(&context), call.caller.clone());
    let screen = |progress| async move { checked(&own, &call, progress).await };
    check_progress::reply(&context, &caller, section, screen).await
}

/// Checks the monitor and draws the screen with the result.
async fn checked(context: &HttpContext, call: &MonitorCall, progress: CheckNowProgress) -> HandlerResult {
    let id = (call.page, call.monitor_id()?);
    let checked = match context.service.monitors.check_now(&call.caller.caller, id, progress).await {
        Ok(report) => Ok(report),
        Err(error @ (ServiceError::CheckNowTooSoon { .. } | ServiceError::CheckNowLimit { .. })) => {
            Err(FormRefusal::of(error)?)
        }
        Err(error) => return Err(error.into()),
    };
    let at = context.service.now();
    show(context, call, Some(RequestedCheck { at, checked })).await
}

/// A check that was requested: its time, and its report or the reason for which it was refused.
struct RequestedCheck {
    at: Timestamp,
    checked: Result<CheckNowReport, FormRefusal>,
}

impl RequestedCheck {
    fn view(self, monitor: &Monitor, plan: Plan, signed_in: &SignedIn) -> (CheckNowView, FormStatus) {
        let at = screen::clock(self.at);
        match self.checked {
            Ok(report) => {
                let labels = labels(&report.agents, signed_in.is_operator);
                let threshold = |region| threshold_ms(monitor, plan, region);
                let results = region_results(&report.outcomes, false, threshold);
                (CheckNowView::new(at, &results, &labels), FormStatus::OK)
            }
            Err(refusal) => (CheckNowView::refused(at, refusal.problem.unwrap_or_default()), refusal.status),
        }
    }
}

async fn show(context: &HttpContext, call: &MonitorCall, requested: Option<RequestedCheck>) -> HandlerResult {
    let (page, id) = (call.page, call.monitor_id()?);
    let (service, signed_in) = (&context.service, &call.caller);
    let range = screen::param(&call.query, "range").and_then(|name| TimeRange::from_name(&name));
    let range = range.unwrap_or(TimeRange::Day);
    let zoom = zoom::zoom(&call.query, service.now()).map_err(ServiceError::from)?;
    let detail = service.public_pages.managed_monitor_detail(&signed_in.caller, page, id, Some(range)).await?;
    let explained = service.public_pages.explain(&detail, signed_in.is_operator).await?;
    let view = &detail.monitor;
    let plan = service.accounts.plan(&signed_in.caller)?;
    let (check, status) = match requested {
        Some(requested) => {
            let (view, status) = requested.view(&view.monitor, plan, signed_in);
            (Some(view), status)
        }
        None => (None, FormStatus::OK),
    };
    let checked = CheckPlan { interval_ms: explained.interval_ms, regions: explained.checked };
    let frame = screen::frame(context, signed_in, page, &call.query).await?;
    let heading = screen::heading(&view.monitor, checked, MonitorTab::Summary, signed_in);
    let is_heartbeat = view.monitor.check.kind() == CheckKind::Heartbeat;
    let rounds: Vec<(Reading, Option<RoundReport>)> = if is_heartbeat {
        Vec::new()
    } else {
        let slice = service.history.checks(&signed_in.caller, (page, id), None, NEWEST_ROUNDS).await?;
        slice.items.into_iter().map(|it| (it.reading, it.report)).collect()
    };
    let chart = match zoom {
        Some(zoom) if !is_heartbeat => {
            Some(service.history.latency_between(&signed_in.caller, (page, id), zoom, zoom::POINTS).await?)
        }
        _ => None,
    };
    let input = SummaryInput {
        page: &detail.page,
        plan,
        view,
        checked,
        now: detail.now,
        is_stale: page_view::is_stale(detail.regions, std::iter::once(view.monitor_and_state()), detail.now),
        range,
        zoom: zoom.zip(chart.as_ref()),
        outages: &detail.outages,
        deploys: &detail.deploys,
        explanation: &explained.explanation,
        labels: &explained.agents,
        rounds: &rounds,
    };
    if is_heartbeat {
        return heartbeat::reply(context, call, (frame, heading), (input, explained.deadline)).await;
    }
    screen::reply_with(&MonitorSummary::new(frame, heading, input, check), status)
}
