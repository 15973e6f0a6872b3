//! The alert's JSON: what a receiver of webhooks is told of a monitor's change of state, old name included.

use std::borrow::Cow;

use parallax_core::check::Check;
use parallax_core::event::AlertKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::place::Region;
use parallax_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::News;
use super::evidence::{self, Round};

/// The monitor that an alert is about, and its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The page.
    pub page_id: PageId,
    /// The page's name.
    pub page: String,
    /// The page's public address.
    pub page_url: String,
    /// The monitor.
    pub monitor_id: MonitorId,
    /// The monitor's name.
    pub monitor: String,
    /// http: the URL; component: the vendor's page; none for other types.
    pub url: Option<String>,
}

impl Subject {
    /// That monitor of that page, which is served at `page_url`.
    pub fn of(page: &Page, page_url: String, monitor: &Monitor) -> Self {
        let url = match &monitor.check {
            Check::Http(check) => Some(check.url.clone()),
            Check::Component(check) => Some(check.url.clone()),
            Check::Tcp(_)
            | Check::Dns(_)
            | Check::Ping(_)
            | Check::Certificate(_)
            | Check::Domain(_)
            | Check::Heartbeat(_) => None,
        };
        Self {
            page_id: page.id,
            page: page.name.clone(),
            page_url,
            monitor_id: monitor.id,
            monitor: monitor.name.clone(),
            url,
        }
    }
}

/// One change of a monitor's state. Times are milliseconds since the epoch, and so are lengths of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    #[schemars(with = "AlertEvent")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's id.
    page_id: String,
    /// The monitor's name.
    monitor: String,
    /// The monitor's name, for receivers that are older than this word.
    checkpoint: String,
    /// The monitor's id.
    monitor_id: String,
    /// http: the URL; component: the vendor's page; null for other types.
    url: Option<String>,
    /// The page's public address.
    page_url: String,
    /// Why it is down, or was in recovered; null where it is about speed.
    error: Option<String>,
    /// still-down, recovered: when the outage began; else null.
    down_since: Option<i64>,
    /// went-down, still-down: the regions that it is down from while others see it up; null where it is down from all,
    /// and in other events.
    #[schemars(with = "Option<Vec<RegionName>>")]
    down_from: Option<Vec<&'static str>>,
    /// went-slow, back-to-normal: the reading that decided, in milliseconds; recovered: that of the passing check, null
    /// if it has none; else null.
    latency_ms: Option<u32>,
    /// went-slow, back-to-normal: the threshold in milliseconds; else null.
    threshold_ms: Option<u32>,
    /// still-down: how long it has been down; recovered, back-to-normal: length of what ended; else null.
    duration_ms: Option<u64>,
    /// When it happened.
    at: i64,
    /// The rounds that led to it, in the order in which they began; empty for what is not decided by rounds.
    evidence: Vec<Round>,
    /// There, and true, only in a test: nothing happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    test: bool,
}

impl Alert {
    /// What is told of the news. A field that does not belong to the event is null, whatever the change holds.
    pub fn new(news: &News<'_>) -> Self {
        use AlertKind::{BackToNormal, Recovered, StillDown, WentDown, WentSlow};
        let News { kind, subject, change, at, .. } = *news;
        let is_one_of = |kinds: &[AlertKind]| kinds.contains(&kind);
        let down_since = change.down_since.filter(|_| is_one_of(&[StillDown, Recovered]));
        let lasted = down_since.and_then(|since| u64::try_from(at.since(since)).ok());
        Self {
            event: kind.name(),
            page: subject.page.clone(),
            page_id: subject.page_id.to_string(),
            monitor: subject.monitor.clone(),
            checkpoint: subject.monitor.clone(),
            monitor_id: subject.monitor_id.to_string(),
            url: subject.url.clone(),
            page_url: subject.page_url.clone(),
            error: change
                .reason
                .as_ref()
                .filter(|_| is_one_of(&[WentDown, StillDown, Recovered]))
                .map(ToString::to_string),
            down_since: down_since.map(Timestamp::as_millis),
            down_from: change
                .down_from
                .filter(|_| is_one_of(&[WentDown, StillDown]))
                .map(|regions| regions.iter().map(Region::name).collect()),
            latency_ms: change.latency_ms.filter(|_| is_one_of(&[Recovered, WentSlow, BackToNormal])),
            threshold_ms: change.threshold_ms.filter(|_| is_one_of(&[WentSlow, BackToNormal])),
            duration_ms: match kind {
                StillDown => lasted,
                Recovered | BackToNormal => change.duration_ms,
                WentDown | WentSlow => None,
            },
            at: at.as_millis(),
            evidence: evidence::rounds(&change.evidence, news.places),
            test: news.is_test,
        }
    }

    /// The bytes that are sent and signed: compact, in the order of the fields.
    pub fn bytes(&self) -> Vec<u8> {
        // A struct of texts and numbers is always written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Names of what alerts tell of, for a schema.
struct AlertEvent;

impl JsonSchema for AlertEvent {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("AlertEvent")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = AlertKind::ALL.map(AlertKind::name);
        json_schema!({ "type": "string", "enum": words, "description": "What happened to the monitor." })
    }
}

/// Names of regions, for a schema.
pub(super) struct RegionName;

impl JsonSchema for RegionName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("RegionName")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Region::ALL.map(Region::name) })
    }
}

#[cfg(test)]
mod tests;
