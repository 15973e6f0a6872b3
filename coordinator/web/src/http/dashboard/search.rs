//! Search over monitors, pages and sections; the palette shows the same results.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::dashboard::SearchMatch;

use super::frame::{FramePerson, query_param};
use super::{SignedIn, screen};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{self, MonitorStatusInput, SearchHit, SearchScreen, Section, StateText};

/// Maximum characters of a query that are used.
const MAX_QUERY: usize = 100;
/// Maximum monitors found.
const MAX_MONITORS: usize = 10;

/// Route of the search.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![("/app/search", vec![(Method::GET, signed_in_route(|context, call| search(context, call).boxed()))])]
}

/// `GET /app/search?q=`
async fn search(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let query: String = query_param(&call.query, "q").unwrap_or_default().chars().take(MAX_QUERY).collect();
    let (service, caller) = (&context.service, &call.caller);
    let found = service.dashboard.search(&caller.caller, &query, MAX_MONITORS).await?;
    let frame = FramePerson::of(caller, &call.query).frame_with(&context, &found.pages, (None, Section::Search));
    let hits = found.matches.iter().map(|it| hit(it, service.now())).collect();
    Ok(screen(dashboard::render(&SearchScreen::new(frame, query, hits))?))
}

fn hit(found: &SearchMatch, now: parallax_core::time::Timestamp) -> SearchHit {
    let state = StateText::of(MonitorStatusInput {
        monitor: &found.monitor,
        view: &found.view,
        condition: found.condition,
        maintenance_until: None,
        paused_by_plan: false,
        now,
    });
    SearchHit {
        class: state.class,
        icon: state.icon,
        href: format!("/app/pages/{}/monitors/{}", found.monitor.page, found.monitor.id),
        text: found.monitor.name.clone(),
        meta: format!("{} · {}", found.page, state.sentence()),
    }
}
