//! Response times of a monitor by region, as series for charts.

use std::str::FromStr;
use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page_view::{LatencyChart, MAX_POINTS, TimeRange};
use parallax_service::Caller;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::HttpContext;
use crate::http::api::{enveloped, query_params};
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// Points of a line by default.
const DEFAULT_POINTS: usize = 96;

/// Response times in buckets of equal length, the last of which ends at `to`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Latency")]
pub(in crate::http) struct LatencyDocument {
    /// Requested range: 24h, 7d, 30d or 90d.
    #[schemars(with = "String")]
    range: &'static str,
    /// Start of the first bucket. A monitor that is younger than the range has a later one.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    from: String,
    /// End of the last bucket.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    to: String,
    /// Length of each bucket, in milliseconds; 0 without any.
    bucket_ms: i64,
    /// Regions with response times; none for a type without them.
    regions: Vec<LatencyLineDocument>,
}

/// Response times of one region. Each list has one value for each bucket; null without measurements.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LatencyLine")]
struct LatencyLineDocument {
    #[schemars(with = "value_schemas::Region")]
    region: &'static str,
    /// True if the region counts toward response times and slowness.
    counted: bool,
    /// Response time above which it is slow, in milliseconds; null without a threshold.
    threshold_ms: Option<u32>,
    /// Medians in milliseconds.
    median_ms: Vec<Option<u32>>,
    /// Lowest response times in milliseconds.
    min_ms: Vec<Option<u32>>,
    /// Highest response times in milliseconds.
    max_ms: Vec<Option<u32>>,
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}/latency`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    context.service.monitors.check_access(&call.caller, page, monitor)?;
    let range = query_params::value(&call.query, "range", "must be 24h, 7d, 30d or 90d", TimeRange::from_name)?;
    let read_points = |text: &str| usize::from_str(text).ok().filter(|points| (1..=MAX_POINTS).contains(points));
    let points = query_params::value(&call.query, "points", "must be a whole number from 1 to 720", read_points)?;
    let range = range.unwrap_or(TimeRange::Day);
    let points = points.unwrap_or(DEFAULT_POINTS);
    let chart = context.service.history.latency(&call.caller, (page, monitor), range, points).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("latency", &document(&chart, range))))
}

const _: () = assert!(MAX_POINTS == 720, "the rule states it");

fn document(chart: &LatencyChart, range: TimeRange) -> LatencyDocument {
    let buckets = i64::try_from(chart.buckets()).unwrap_or(i64::MAX);
    let regions = chart.regions.iter().map(|(region, medians)| {
        let bands = chart.bands.get(region).map(Vec::as_slice).unwrap_or_default();
        LatencyLineDocument {
            region: region.name(),
            counted: chart.counted.contains(*region),
            threshold_ms: chart.thresholds.get(region).copied(),
            median_ms: medians.clone(),
            min_ms: bands.iter().map(|band| band.map(|band| band.min)).collect(),
            max_ms: bands.iter().map(|band| band.map(|band| band.max)).collect(),
        }
    });
    LatencyDocument {
        range: range.name(),
        from: chart.from.to_string(),
        to: chart.to.to_string(),
        bucket_ms: chart.to.since(chart.from).checked_div(buckets).unwrap_or(0),
        regions: regions.collect(),
    }
}
