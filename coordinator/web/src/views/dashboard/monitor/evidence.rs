//! Evidence and steps of an explanation, ready to render.

use chrono_tz::Tz;
use parallax_core::explanation::{
    EvidenceRound, EvidenceRow, EvidenceVerdict, Explanation, ExplanationKind, ExplanationStep, StepLink, StepTone,
    capitalized, short_duration,
};
use parallax_core::observation::RoundOutcome;
use parallax_core::outage::Outage;
use parallax_core::rollup::day_of;
use parallax_core::time::Timestamp;

use super::outcome::{OutcomeWords, VantageLabels, short_outcome};
use crate::views::format::{self, FormattedTime};

/// Explanation, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExplanationView {
    /// Title of the card.
    pub card_title: String,
    /// Text beside the title; empty if there is none.
    pub aside: String,
    /// Sentence under the title; empty where the headline has it.
    pub sentence: String,
    /// Time of the first check of the region that decided.
    pub first_at: Option<FormattedTime>,
    /// Time of its second check.
    pub second_at: Option<FormattedTime>,
    /// Rows of the table.
    pub rows: Vec<EvidenceLine>,
    /// Steps.
    pub steps: Vec<StepView>,
}

/// A row of the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvidenceLine {
    /// Region.
    pub region: &'static str,
    /// Outcomes of the first check.
    pub first: Vec<OutcomeWords>,
    /// Note where there are none, or too few.
    pub first_note: &'static str,
    /// Outcomes of the second check.
    pub second: Vec<OutcomeWords>,
    /// Note where there are none.
    pub second_note: &'static str,
    /// CSS class, icon and word of the verdict.
    pub verdict: (&'static str, &'static str, &'static str),
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepView {
    /// CSS class.
    pub class: &'static str,
    /// True for the moment that decided.
    pub is_decisive: bool,
    /// Time.
    pub at: FormattedTime,
    /// First words.
    pub title: String,
    /// The rest.
    pub text: String,
    /// Address and text of a link.
    pub link: Option<(String, &'static str)>,
}

/// Places of other screens that steps link to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepPaths<'a> {
    /// Path of the monitor's screen.
    pub monitor: &'a str,
    /// Path of the page's screens.
    pub page: &'a str,
}

impl ExplanationView {
    /// Builds the card. While the monitor is up it is about the last outage, if there was one.
    pub(crate) fn new(
        explanation: &Explanation,
        last_outage: Option<&Outage>,
        labels: &VantageLabels,
        (now, zone): (Timestamp, Tz),
        paths: StepPaths<'_>,
    ) -> Self {
        let is_outage = explanation.kind.is_outage();
        let ended = last_outage.filter(|_| !is_outage);
        let (card_title, aside) = match (explanation.kind, ended) {
            (kind, _) if kind.is_outage() => ("Why it is down".to_owned(), alerted_text(explanation)),
            (ExplanationKind::Slow | ExplanationKind::VendorDegraded, _) => {
                ("Why it is slow".to_owned(), String::new())
            }
            (ExplanationKind::Unconfirmed, _) => ("Why it is not called down".to_owned(), String::new()),
            (ExplanationKind::Disputed | ExplanationKind::DisputedRound, _) => {
                ("What the networks saw".to_owned(), String::new())
            }
            (_, Some(outage)) => ("Last outage".to_owned(), outage_text(outage, now, zone)),
            (_, None) => ("No outage yet".to_owned(), String::new()),
        };
        let decided = explanation.evidence.iter().find(|row| row.first.is_some() && row.second.is_some());
        let time = |round: Option<&EvidenceRound>| round.map(|round| clock_time(round.started, now, zone));
        let rows = explanation.evidence.iter().filter(|row| row.first.is_some() || is_outage).map(line);
        Self {
            card_title,
            aside,
            sentence: if explanation.kind == ExplanationKind::DisputedRound {
                explanation.sentence()
            } else {
                String::new()
            },
            first_at: time(decided.and_then(|row| row.first.as_ref())),
            second_at: time(decided.and_then(|row| row.second.as_ref())),
            rows: worst_first(rows.map(|row| row(labels)).collect()),
            steps: explanation.steps.iter().map(|step| step_view(step, (now, zone), paths)).collect(),
        }
    }

    /// True if there is nothing to show but the title.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.steps.is_empty() && self.sentence.is_empty()
    }
}

fn alerted_text(explanation: &Explanation) -> String {
    explanation
        .alerted_after_ms
        .map(|millis| format!("{} from first failure to alert", short_duration(millis)))
        .unwrap_or_default()
}

fn outage_text(outage: &Outage, now: Timestamp, zone: Tz) -> String {
    let length = outage.to.map_or_else(
        || format!("lasting {} so far", short_duration(now.since(outage.from))),
        |to| short_duration(to.since(outage.from)),
    );
    let reason = outage.reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{length}, {}{reason}", clock_time(outage.from, now, zone).text)
}

/// Puts the regions that explain the state on top.
fn worst_first(mut rows: Vec<EvidenceLine>) -> Vec<EvidenceLine> {
    const ORDER: [&str; 4] = ["down", "part", "maint", "none"];
    rows.sort_by_key(|row| ORDER.iter().position(|class| *class == row.verdict.0).unwrap_or(ORDER.len()));
    rows
}

/// Builds the row of a region; the names of agents come last.
fn line(row: &EvidenceRow) -> impl FnOnce(&VantageLabels) -> EvidenceLine + '_ {
    move |labels| {
        let words = |round: Option<&EvidenceRound>| -> Vec<OutcomeWords> {
            let seen = round.map(|round| round.seen.as_slice()).unwrap_or_default();
            seen.iter()
                .map(|it| {
                    let words = OutcomeWords::of(it.vantage, &it.outcome, labels);
                    OutcomeWords { text: short_outcome(&it.outcome), ..words }
                })
                .collect()
        };
        EvidenceLine {
            region: row.region.title(),
            first: words(row.first.as_ref()),
            first_note: first_note(row),
            second: words(row.second.as_ref()),
            second_note: second_note(row),
            verdict: verdict(row.verdict),
        }
    }
}

fn first_note(row: &EvidenceRow) -> &'static str {
    match row.first.as_ref().map(|it| (it.outcome, it.seen.len())) {
        None => "no round reported",
        Some((RoundOutcome::Unconfirmed, 1)) => "no second network",
        Some(_) => "",
    }
}

const fn second_note(row: &EvidenceRow) -> &'static str {
    match (&row.second, row.verdict) {
        (Some(_), _) => "",
        (None, EvidenceVerdict::Up) => "not needed",
        (None, EvidenceVerdict::Unconfirmed) => "no second network",
        (None, _) => "–",
    }
}

const fn verdict(verdict: EvidenceVerdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        EvidenceVerdict::Up => ("up", "up", "Up"),
        EvidenceVerdict::Down => ("down", "down", "Down"),
        EvidenceVerdict::Unconfirmed => ("part", "part", "Not confirmed"),
        EvidenceVerdict::Disputed => ("maint", "split", "Disputed"),
        EvidenceVerdict::Suspected => ("part", "part", "Failing once"),
        EvidenceVerdict::Unknown => ("none", "none", "No data"),
    }
}

fn step_view(step: &ExplanationStep, (now, zone): (Timestamp, Tz), paths: StepPaths<'_>) -> StepView {
    StepView {
        class: match step.tone {
            StepTone::Bad => "down",
            StepTone::Good => "up",
            StepTone::Warning => "slow",
            StepTone::Plain => "none",
        },
        is_decisive: step.is_decisive,
        at: clock_time(step.at, now, zone),
        title: step.title.clone(),
        text: if step.title.is_empty() { capitalized(&step.text) } else { step.text.clone() },
        link: step.link.map(|link| match link {
            StepLink::Alerts => (format!("{}/alerts", paths.monitor), "All alerts"),
            StepLink::Incident(id) => (format!("{}/incidents/{id}", paths.page), "Open incident"),
        }),
    }
}

/// Formats a time to the second, with the date if it isn't today.
pub(crate) fn clock_time(at: Timestamp, now: Timestamp, zone: Tz) -> FormattedTime {
    let is_today = day_of(at, zone) == day_of(now, zone);
    let pattern = if is_today { "%H:%M:%S" } else { "%-d %b, %H:%M:%S" };
    FormattedTime { iso: at.to_string(), text: format::format_pattern(at, zone, pattern) }
}
