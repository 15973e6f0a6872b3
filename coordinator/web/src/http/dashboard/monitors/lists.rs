//! Lists of a monitor: finished rounds, changes of state, alerts.

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::delivery::Recipient;
use parallax_core::id::DestinationId;
use parallax_core::observation::RoundOutcome;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use parallax_service::deliveries::DeliveryFilter;
use parallax_service::monitors::MonitorWithState;
use parallax_service::monitors::check_filter::CheckFilter;
use parallax_service::public_pages::explanation::labels;

use super::super::SignedIn;
use super::screen::{self, MonitorCall};
use crate::http::HttpContext;
use crate::http::api::monitors::history::read_cursor;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Frame;
use crate::views::dashboard::delivery_text::recipient_text;
use crate::views::dashboard::monitor::alerts::{AlertRow, MonitorAlerts};
use crate::views::dashboard::monitor::heading::{MonitorHeading, MonitorTab};
use crate::views::dashboard::monitor::lists::{MonitorChangeRow, MonitorEvents, MonitorRounds};
use crate::views::dashboard::monitor::rounds::{self, RoundRow};
use crate::views::dashboard::monitor::settings_words::CheckPlan;

/// Entries of a part of a list.
const LIMIT: usize = 50;

/// Everything that each list needs.
struct ListScreen {
    page: Page,
    current: MonitorWithState,
    frame: Frame,
    heading: MonitorHeading,
    now: Timestamp,
}

impl ListScreen {
    async fn read(context: &HttpContext, call: &MonitorCall, tab: MonitorTab) -> Result<Self, ApiError> {
        let (service, signed_in) = (&context.service, &call.caller);
        let page = service.pages.get(&signed_in.caller, call.page)?;
        let current = service.monitors.get(&signed_in.caller, page.id, call.monitor_id()?).await?;
        let frame = screen::frame(context, signed_in, page.id, &call.query).await?;
        let heading = screen::heading(&current.monitor, CheckPlan::default(), tab, signed_in);
        Ok(Self { page, current, frame, heading, now: service.now() })
    }
}

/// `GET /app/pages/{page}/monitors/{monitor}/checks`
pub(super) async fn rounds(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    let ListScreen { page, current, frame, heading, now } =
        ListScreen::read(&context, &call, MonitorTab::Rounds).await?;
    let (service, signed_in) = (&context.service, &call.caller);
    let plan = service.accounts.plan(&signed_in.caller)?;
    let show = screen::param(&call.query, "show").unwrap_or_default();
    let region = screen::param(&call.query, "region").and_then(|name| name.parse::<Region>().ok());
    let outcome = match show.as_str() {
        "failed" => Some(RoundOutcome::Failed),
        "disputed" => Some(RoundOutcome::Disputed),
        "unconfirmed" => Some(RoundOutcome::Unconfirmed),
        _ => None,
    };
    let filter = CheckFilter { outcome, only_slow: show == "slow", region };
    let after = screen::param(&call.query, "before").and_then(|cursor| read_cursor(&cursor));
    let ids = (page.id, current.monitor.id);
    let slice = service.history.filtered_checks(&signed_in.caller, ids, after, LIMIT, filter).await?;
    let labels = labels(&slice.agents, signed_in.is_operator);
    let path = format!("{}/checks", heading.path);
    let (outcomes, regions) = rounds::choices(&path, &show, region);
    let chosen = outcomes.iter().find(|it| it.is_current).map_or(path.as_str(), |it| it.href.as_str());
    let separator = if chosen.contains('?') { '&' } else { '?' };
    let older =
        slice.next.map(|(due, region)| format!("{chosen}{separator}before={}-{}", due.as_millis(), region.index()));
    let monitor = &current.monitor;
    let row = |check: &parallax_service::monitors::history::CheckRecord| {
        let threshold = monitor.slow_threshold(check.reading.region, plan);
        RoundRow::of(&check.reading, check.report.as_ref(), threshold, &labels, (now, page.timezone))
    };
    let rounds = slice.items.iter().map(row).collect();
    screen::reply(&MonitorRounds { frame, heading, outcomes, regions, rounds, older })
}

/// `GET /app/pages/{page}/monitors/{monitor}/events`
pub(super) async fn events(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    let ListScreen { page, current, frame, heading, now } =
        ListScreen::read(&context, &call, MonitorTab::Outages).await?;
    let signed_in = &call.caller;
    let before = screen::param(&call.query, "before").and_then(|seq| seq.parse().ok());
    let ids = (page.id, current.monitor.id);
    let slice = context.service.history.events(&signed_in.caller, ids, before, LIMIT).await?;
    let labels = labels(&slice.agents, signed_in.is_operator);
    let row = |event: &parallax_service::monitors::history::JournalEvent| {
        MonitorChangeRow::of(&event.event, &labels, (now, page.timezone))
    };
    let older = slice.next.map(|seq| format!("{}/events?before={seq}", heading.path));
    let changes = slice.items.iter().filter_map(row).collect();
    screen::reply(&MonitorEvents { frame, heading, changes, older })
}

/// `GET /app/pages/{page}/monitors/{monitor}/alerts`
pub(super) async fn alerts(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    let ListScreen { page, current, frame, heading, now } =
        ListScreen::read(&context, &call, MonitorTab::Alerts).await?;
    let (service, caller) = (&context.service, &call.caller.caller);
    let filter = DeliveryFilter {
        monitor: Some(current.monitor.id),
        before: screen::param(&call.query, "before").and_then(|id| id.parse().ok()),
        limit: LIMIT,
        ..DeliveryFilter::default()
    };
    let slice = service.deliveries.list(caller, page.id, filter).await?;
    let destinations = service.destinations.list(caller, page.id).await?;
    let names: BTreeMap<DestinationId, String> = destinations.into_iter().map(|it| (it.id, it.name)).collect();
    let name = |to: Recipient| {
        let destination = match to {
            Recipient::Destination(id) | Recipient::UnconfirmedDestination(id) => names.get(&id),
            _ => None,
        };
        recipient_text(to, destination.map(String::as_str))
    };
    let page_path = format!("/app/pages/{}", page.id);
    let row = |delivery: &parallax_core::delivery::Delivery| {
        AlertRow::of(delivery, name(delivery.to), (now, page.timezone), &page_path)
    };
    let older = slice.next.map(|id| format!("{}/alerts?before={id}", heading.path));
    let alerts = slice.deliveries.iter().map(row).collect();
    screen::reply(&MonitorAlerts { frame, heading, alerts, older })
}
