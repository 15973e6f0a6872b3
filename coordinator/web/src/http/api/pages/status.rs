//! The status document of a page: what visitors may know, whatever the page's password.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::vantage::Region;
use parallax_service::monitors::MonitorWithState;
use parallax_service::{Caller, Services, public_pages::overview::PageOverview};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::http::HttpContext;
use crate::http::api::incidents::view::{self, PublicIncident};
use crate::http::api::to_json;
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/status`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let overview = context.service.public_pages.overview(&call.caller, call.page_id()?).await?;
    let document = document(&context.service, &overview);
    let bytes = to_json(&document);
    let undated = without_timestamp(&bytes);
    Ok(HttpResponse::json_bytes(StatusCode::OK, bytes).with_etag_source(undated))
}

/// Returns the document without `generatedAt`, the only part that differs between two reads. A string value can't
/// contain the searched name, since its quotes would be escaped.
fn without_timestamp(bytes: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"\"generatedAt\":";
    let Some(at) = bytes.windows(NAME.len()).rposition(|part| part == NAME) else {
        return bytes.to_vec();
    };
    let (before, after) = bytes.split_at(at);
    let rest = after.iter().skip(NAME.len()).skip_while(|byte| byte.is_ascii_digit());
    before.iter().chain(rest).copied().collect()
}

/// The state of a page, as visitors see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct StatusDocument {
    page: PublicPage,
    status: PageStatus,
    /// In page order.
    monitors: Vec<PublicMonitor>,
    /// Open incidents.
    incidents: Vec<PublicIncident>,
    /// Maintenance in progress, or planned within the next week.
    maintenance: Vec<PublicIncident>,
    /// End of the newest check that this document is based on.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    checked_at: Option<String>,
    /// Regions in service that contributed to this document in the last 24 hours.
    #[schemars(with = "Vec<value_schemas::Region>")]
    seen_from: Vec<&'static str>,
    /// True if the states of monitors may be out of date, because no region that could check them is connected.
    stale: bool,
    /// Time this was written, in milliseconds since the epoch.
    generated_at: i64,
}

/// A page, as visitors see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PublicPage {
    /// Page id.
    id: String,
    /// Shown in the headline.
    name: String,
    /// Public address of the page.
    url: String,
    /// Line of text under the headline.
    description: Option<String>,
    /// Link under the headline.
    support_url: Option<String>,
    /// IANA zone in which the page shows times.
    timezone: &'static str,
}

/// The headline of a page.
#[derive(Debug, Serialize, JsonSchema)]
struct PageStatus {
    #[schemars(with = "value_schemas::Indicator")]
    indicator: &'static str,
    /// The indicator in words.
    headline: String,
}

/// A monitor, as visitors see it, without what is checked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PublicMonitor {
    /// Monitor id.
    id: String,
    /// Shown on the page.
    name: String,
    /// Monitors with the same group are shown together.
    group: Option<String>,
    #[schemars(with = "value_schemas::MonitorType")]
    r#type: &'static str,
    /// Order on the page, from 0.
    position: u32,
    #[schemars(with = "value_schemas::MonitorStatus")]
    status: &'static str,
    /// Start of the current status.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    since: Option<String>,
    /// While down from some regions and up in others: those regions.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    down_from: Option<Vec<&'static str>>,
    /// Share of checks passed in the last 24 hours, in percent; null while paused.
    uptime24h: Option<f64>,
    /// Median response time over 24 hours, in milliseconds.
    latency_ms24h: Option<u32>,
}

/// Builds the document with the old names next to the new ones.
pub(in crate::http) fn to_value(service: &Services, overview: &PageOverview) -> Value {
    serde_json::from_slice(&to_json(&document(service, overview))).unwrap_or(Value::Null)
}

fn document(service: &Services, overview: &PageOverview) -> StatusDocument {
    let page = &overview.page;
    let url = service.pages.url(page);
    let incident = |detail| view::public(detail, &url);
    StatusDocument {
        page: PublicPage {
            id: page.id.to_string(),
            name: page.name.clone(),
            url: url.clone(),
            description: page.description.clone(),
            support_url: page.support_url.clone(),
            timezone: page.timezone.name(),
        },
        status: PageStatus { indicator: overview.indicator.name(), headline: overview.headline.clone() },
        monitors: overview.monitors.iter().map(monitor).collect(),
        incidents: overview.incidents.iter().map(incident).collect(),
        maintenance: overview.maintenance.iter().map(incident).collect(),
        checked_at: overview.last_checked().map(|at| at.to_string()),
        seen_from: overview.checked_regions().iter().map(Region::name).collect(),
        stale: overview.is_stale,
        generated_at: service.now().as_millis(),
    }
}

fn monitor(current: &MonitorWithState) -> PublicMonitor {
    let MonitorWithState { monitor, view, statistics, .. } = current;
    PublicMonitor {
        id: monitor.id.to_string(),
        name: monitor.name.clone(),
        group: monitor.group.clone(),
        r#type: monitor.check.kind().name(),
        position: monitor.position,
        status: view.status.name(),
        since: view.since.map(|since| since.to_string()),
        down_from: view.down_from.map(|regions| regions.iter().map(Region::name).collect()),
        uptime24h: statistics.uptime,
        latency_ms24h: statistics.latency_ms.filter(|_| monitor.check.kind().has_latency()),
    }
}
