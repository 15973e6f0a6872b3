//! Screen of a heartbeat.

use parallax_core::check::Check;
use parallax_core::time::Timestamp;

use super::screen::{self, MonitorCall};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::views::dashboard::Frame;
use crate::views::dashboard::monitor::heading::MonitorHeading;
use crate::views::dashboard::monitor::heartbeat::{self, HeartbeatScreen, PingRow};
use crate::views::dashboard::monitor::summary::{self, SummaryInput};

/// Replies with the screen. The address and the bodies of pings are only for those who may edit.
pub(super) async fn reply(
    context: &HttpContext,
    call: &MonitorCall,
    (frame, heading): (Frame, MonitorHeading),
    (input, deadline): (SummaryInput<'_>, Option<Timestamp>),
) -> HandlerResult {
    let monitor = &input.view.monitor;
    let Check::Heartbeat(check) = &monitor.check else {
        return Err(parallax_service::ServiceError::NotFound.into());
    };
    let caller = &call.caller.caller;
    let address = context.service.monitors.ping_url(caller, monitor);
    let pings = context.service.pings.list(caller, monitor.page, monitor.id).await?;
    let tool = screen::param(&call.query, "tool").unwrap_or_default();
    let when = (input.now, input.page.timezone);
    let view = HeartbeatScreen {
        headline: summary::headline(&input, (&heading, frame.path("").as_str()), frame.may_edit()),
        notices: summary::notices(&input),
        tools: heartbeat::tools(&heading.path, &tool),
        snippets: address.as_deref().map(|url| heartbeat::snippets(&tool, url)).unwrap_or_default(),
        address,
        timeline: heartbeat::timeline(check, (input.view.state.last_ping_at, deadline), when),
        facts: summary::facts(&input),
        pings: pings.iter().map(|ping| PingRow::of(ping, when)).collect(),
        frame,
        heading,
    };
    screen::reply(&view)
}
