//! Lists of a monitor as screens of their own: finished rounds, and changes of its state.

use chrono_tz::Tz;
use parallax_core::event::{Event, EventKind, MonitorStatus, StatusChange};
use parallax_core::explanation::{EvidenceRound, capitalized, short_duration};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Region, RegionSet};
use parallax_template::template_file;

use super::evidence::clock_time;
use super::heading::MonitorHeading;
use super::outcome::{OutcomeWords, VantageLabels};
use super::rounds::{FilterChoice, RoundRow};
use crate::views::assets;
use crate::views::dashboard::Frame;
use crate::views::format::FormattedTime;

/// Screen with finished rounds.
#[template_file("dashboard/monitor_rounds.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorRounds {
    pub(crate) frame: Frame,
    pub(crate) heading: MonitorHeading,
    /// Filter by result.
    pub(crate) outcomes: Vec<FilterChoice>,
    /// Filter by region.
    pub(crate) regions: Vec<FilterChoice>,
    /// The rounds, newest first.
    pub(crate) rounds: Vec<RoundRow>,
    /// Address of older ones.
    pub(crate) older: Option<String>,
}

/// Screen with changes of state.
#[template_file("dashboard/monitor_events.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorEvents {
    pub(crate) frame: Frame,
    pub(crate) heading: MonitorHeading,
    /// The changes, newest first.
    pub(crate) changes: Vec<MonitorChangeRow>,
    /// Address of older ones.
    pub(crate) older: Option<String>,
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MonitorChangeRow {
    /// Time.
    pub at: FormattedTime,
    /// CSS class and icon.
    pub class: &'static str,
    /// Change in words.
    pub title: String,
    /// Why, or how long it was.
    pub text: String,
    /// Evidence: region, start, and what the agents saw.
    pub evidence: Vec<(String, FormattedTime, Vec<OutcomeWords>)>,
}

impl MonitorChangeRow {
    /// Builds the row of an event; none for a kind that isn't listed.
    pub(crate) fn of(event: &Event, labels: &VantageLabels, (now, zone): (Timestamp, Tz)) -> Option<Self> {
        let at = clock_time(event.at, now, zone);
        let row = |class, title: String, text: String| Self { at, class, title, text, evidence: Vec::new() };
        match &event.kind {
            EventKind::StatusChanged(change) => {
                let (class, title) = status_title(change);
                let evidence = change.evidence.iter().map(|report| {
                    let seen = EvidenceRound::of(report).seen.into_iter();
                    let words = seen.map(|it| OutcomeWords::of(it.vantage, &it.outcome, labels)).collect();
                    (report.region.title().to_owned(), clock_time(report.started, now, zone), words)
                });
                Some(Self { evidence: evidence.collect(), ..row(class, title, status_text(change)) })
            }
            EventKind::ScopeChanged(regions) => {
                let place = regions.map_or_else(|| "every region".to_owned(), names);
                Some(row("down", format!("Down from {place}"), "More or fewer regions see it down.".to_owned()))
            }
            EventKind::DeadlineExtended(extension) => {
                let away = short_duration(extension.away_until.since(extension.away_from));
                let by = clock_time(extension.deadline, now, zone).text;
                let text = format!("Pings may be lost: the service was away for {away}. The next is due by {by}.");
                Some(row("none", "More time for the ping".to_owned(), text))
            }
            _ => None,
        }
    }
}

fn status_title(change: &StatusChange) -> (&'static str, String) {
    match (change.to, change.from) {
        (MonitorStatus::Down, _) => {
            let place = change.down_from.map(|from| format!(" from {}", names(from))).unwrap_or_default();
            ("down", format!("Down{place}"))
        }
        (MonitorStatus::Slow, _) => ("slow", "Slow".to_owned()),
        (MonitorStatus::Up, MonitorStatus::Down) => ("up", "Up again".to_owned()),
        (MonitorStatus::Up, MonitorStatus::Slow) => ("up", "Back to normal".to_owned()),
        (MonitorStatus::Up, _) => ("up", "Up".to_owned()),
        (MonitorStatus::Unknown, _) => ("none", "No data".to_owned()),
    }
}

fn status_text(change: &StatusChange) -> String {
    let length = change.duration_ms.and_then(|it| i64::try_from(it).ok()).map(short_duration);
    match (change.to, length) {
        (MonitorStatus::Down, _) => change.reason.as_ref().map_or_else(String::new, |it| capitalized(&it.to_string())),
        (MonitorStatus::Slow, _) => match (change.latency_ms, change.threshold_ms) {
            (Some(latency), Some(threshold)) => format!("{latency} ms, threshold {threshold} ms"),
            _ => String::new(),
        },
        (MonitorStatus::Up | MonitorStatus::Unknown, Some(length)) => format!("after {length}"),
        (MonitorStatus::Up | MonitorStatus::Unknown, None) => String::new(),
    }
}

fn names(regions: RegionSet) -> String {
    regions.iter().map(Region::title).collect::<Vec<_>>().join(", ")
}
