//! Texts of alerts, before each channel formats them.

use chrono_tz::Tz;
use parallax_core::event::AlertKind;
use parallax_core::flapping::{Aspect, Flapping, FlappingEnd, STABLE_AFTER};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{Region, RegionSet};

use super::alert_payload::AlertSubject;
use super::time_format::{format_duration, format_time};
use super::{Alert, alert_evidence, text};

/// Maximum length in UTF-16 units of a name, a reason, an address, and all evidence.
const MAX_NAME: usize = 100;
const MAX_REASON: usize = 400;
const MAX_ADDRESS: usize = 300;
const MAX_EVIDENCE: usize = 1_500;
/// Text of the link to the page with the evidence.
pub(super) const EVIDENCE_LABEL: &str = "Evidence";

/// Text of an alert. Every string is one bounded line without control characters, not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AlertText {
    /// `Down: Checkout (Shop)`.
    pub(super) headline: String,
    /// Labelled facts.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Evidence: one sentence per region.
    pub(super) evidence: Vec<String>,
    /// The page's name.
    pub(super) page: String,
    /// The monitor's name.
    pub(super) monitor: String,
    /// The page's URL.
    pub(super) page_url: String,
    /// URL of the page with the evidence, for alerts of outages to destinations that want it.
    pub(super) evidence_url: Option<String>,
    /// Severity.
    pub(super) severity: AlertSeverity,
    /// True if the problem has just begun; false for a reminder.
    pub(super) is_new: bool,
    /// Time of the event.
    pub(super) at: Timestamp,
}

/// Severity of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlertSeverity {
    /// An outage.
    Critical,
    /// Slow.
    Warning,
    /// Resolved.
    Resolved,
}

impl AlertText {
    /// Builds the text of an alert.
    pub(super) fn for_alert(alert: &Alert<'_>) -> Self {
        let prefix = if alert.is_test { "[Test] " } else { "" };
        let severity = match alert.kind {
            AlertKind::WentDown | AlertKind::StillDown => AlertSeverity::Critical,
            AlertKind::WentSlow => AlertSeverity::Warning,
            AlertKind::Recovered | AlertKind::BackToNormal => AlertSeverity::Resolved,
        };
        let alert_text = Self::new(alert.subject, &format!("{prefix}{}", title(alert.kind)), severity, alert.at);
        let is_new = alert.kind != AlertKind::StillDown;
        let evidence_url = alert.outage_evidence_url().map(|url| text::single_line(url, MAX_ADDRESS));
        Self { facts: facts(alert), evidence: evidence(alert), evidence_url, is_new, ..alert_text }
    }

    /// Builds the text of a monitor that has started flapping.
    pub(super) fn flapping(alert: &Alert<'_>, flapping: Flapping) -> Self {
        let aspect = Aspect::of(alert.kind);
        let alert_text = Self::new(alert.subject, "Flapping", AlertSeverity::of_aspect(aspect), alert.at);
        let mut facts = vec![
            ("Changes", changes(flapping, alert.zone)),
            ("Now", state_text(aspect, matches!(alert.kind, AlertKind::WentDown | AlertKind::WentSlow)).to_owned()),
        ];
        facts.extend(self::facts(alert).into_iter().filter(|(label, _)| FLAPPING_FACTS.contains(label)));
        let quiet_minutes = STABLE_AFTER.div_euclid(MINUTE);
        facts.push(("Next", format!("one message after {quiet_minutes} minutes without a change")));
        let evidence_url = alert.outage_evidence_url().map(|url| text::single_line(url, MAX_ADDRESS));
        Self { facts, evidence: evidence(alert), evidence_url, ..alert_text }
    }

    /// Builds the text of a monitor that is stable again.
    pub(super) fn stable(subject: &AlertSubject, end: &FlappingEnd, at: Timestamp, zone: Tz) -> Self {
        let state = state_text(end.aspect, end.is_bad);
        let (title, severity) = if end.is_bad {
            (format!("Stopped flapping, now {state}"), AlertSeverity::of_aspect(end.aspect))
        } else {
            ("Stable again".to_owned(), AlertSeverity::Resolved)
        };
        let alert_text = Self::new(subject, &title, severity, at);
        let now = format!("{state} since {}", format_time(end.last_change, zone));
        Self { facts: vec![("Now", now), ("Changes", changes(end.flapping, zone))], ..alert_text }
    }

    fn new(subject: &AlertSubject, title: &str, severity: AlertSeverity, at: Timestamp) -> Self {
        let page = text::single_line(&subject.page, MAX_NAME);
        let monitor = text::single_line(&subject.monitor, MAX_NAME);
        Self {
            headline: format!("{title}: {monitor} ({page})"),
            facts: Vec::new(),
            evidence: Vec::new(),
            page,
            monitor,
            page_url: text::single_line(&subject.page_url, MAX_ADDRESS),
            evidence_url: None,
            severity,
            is_new: true,
            at,
        }
    }

    /// Facts, followed by the evidence link if there is one: for channels that show URLs in text as links.
    pub(super) fn facts_with_link(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let link = self.evidence_url.as_deref().map(|url| (EVIDENCE_LABEL, url));
        self.facts.iter().map(|(label, value)| (*label, value.as_str())).chain(link)
    }

    /// Facts and evidence as lines of plain text.
    pub(super) fn plain_text(&self) -> String {
        let facts = self.facts_with_link().map(|(label, value)| format!("{label}: {value}"));
        facts.chain(self.evidence.iter().cloned()).collect::<Vec<_>>().join("\n")
    }
}

impl AlertSeverity {
    /// Severity while this aspect has a problem.
    const fn of_aspect(aspect: Aspect) -> Self {
        match aspect {
            Aspect::Availability => Self::Critical,
            Aspect::Speed => Self::Warning,
        }
    }

    /// Color as RGB.
    pub(super) const fn rgb(self) -> u32 {
        match self {
            Self::Critical => 0x00C6_2828,
            Self::Warning => 0x00B2_6A00,
            Self::Resolved => 0x002E_7D32,
        }
    }

    /// Color in CSS notation.
    pub(super) fn hex(self) -> String {
        format!("#{:06X}", self.rgb())
    }
}

/// Facts of a change that a message about flapping includes.
const FLAPPING_FACTS: [&str; 3] = ["Reason", "Response time", "Checked"];

const fn state_text(aspect: Aspect, is_bad: bool) -> &'static str {
    match (aspect, is_bad) {
        (Aspect::Availability, true) => "down",
        (Aspect::Availability, false) => "up",
        (Aspect::Speed, true) => "slow",
        (Aspect::Speed, false) => "at normal speed",
    }
}

fn changes(flapping: Flapping, zone: Tz) -> String {
    format!("{} since {}", flapping.changes, format_time(flapping.since, zone))
}

const fn title(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::WentDown => "Down",
        AlertKind::StillDown => "Still down",
        AlertKind::Recovered => "Recovered",
        AlertKind::WentSlow => "Slow",
        AlertKind::BackToNormal => "Back to normal",
    }
}

fn facts(alert: &Alert<'_>) -> Vec<(&'static str, String)> {
    use AlertKind::{BackToNormal, Recovered, StillDown, WentDown, WentSlow};
    let change = alert.change;
    let since = change.down_since.unwrap_or(change.since);
    let duration = change.duration_ms.and_then(|millis| i64::try_from(millis).ok()).map(format_duration);
    let mut facts = Vec::new();
    let mut add = |label, value: Option<String>| facts.extend(value.map(|value| (label, value)));
    let reason = change.reason.as_ref().map(|reason| text::single_line(&reason.to_string(), MAX_REASON));
    match alert.kind {
        WentDown | StillDown => {
            add("Reason", reason);
            add("Down from", change.down_from.map(|regions| region_text(regions, change)));
            add("Since", Some(format_time(since, alert.zone)));
            if alert.kind == StillDown {
                add("Down for", Some(format_duration(alert.at.since(since))));
            }
        }
        Recovered => {
            add("Reason", reason);
            add("Down for", duration);
            add("Since", change.down_since.map(|since| format_time(since, alert.zone)));
            add("Until", Some(format_time(change.since, alert.zone)));
            add("Response time", change.latency_ms.map(|latency| format!("{latency} ms")));
        }
        WentSlow | BackToNormal => {
            add("Response time", latency_text(change.latency_ms, change.threshold_ms));
            let label = if alert.kind == WentSlow { "Since" } else { "Until" };
            add(label, Some(format_time(change.since, alert.zone)));
            if alert.kind == BackToNormal {
                add("Slow for", duration);
            }
        }
    }
    add(
        "Flapping",
        change
            .flapping
            .map(|flapping| format!("{} changes since {}", flapping.changes, format_time(flapping.since, alert.zone))),
    );
    add("Checked", alert.subject.url.as_ref().map(|url| text::single_line(url, MAX_ADDRESS)));
    if alert.is_test {
        add("Note", Some("This is a test alert. Nothing happened.".to_owned()));
    }
    facts
}

fn region_text(regions: RegionSet, change: &parallax_core::event::StatusChange) -> String {
    let down = regions.iter().map(Region::title).collect::<Vec<_>>().join(", ");
    let checked: RegionSet = change.evidence.iter().map(|report| report.region).collect();
    let up = checked.without(regions).iter().map(Region::title).collect::<Vec<_>>().join(", ");
    if up.is_empty() { down } else { format!("{down}; up from {up}") }
}

fn latency_text(latency: Option<u32>, threshold: Option<u32>) -> Option<String> {
    let latency = latency?;
    Some(match threshold {
        Some(threshold) => format!("{latency} ms (threshold {threshold} ms)"),
        None => format!("{latency} ms"),
    })
}

/// As many sentences as fit; the rest is counted.
fn evidence(alert: &Alert<'_>) -> Vec<String> {
    let all = alert_evidence::sentences(&alert.change.evidence, alert.agents);
    let count = all.len();
    let mut units_left = MAX_EVIDENCE;
    let mut sentences = Vec::new();
    for sentence in all {
        if units_left == 0 {
            break;
        }
        let sentence = text::truncate(&sentence, units_left);
        units_left = units_left.saturating_sub(sentence.encode_utf16().count());
        sentences.push(sentence);
    }
    if sentences.len() < count {
        sentences.push(format!("and {} more", count - sentences.len()));
    }
    sentences
}
