//! List of finished rounds: how each ended, what the agents saw, and the filter.

use chrono_tz::Tz;
use parallax_core::event::RoundReport;
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Region, VantageNo};

use super::evidence::clock_time;
use super::outcome::{OutcomeWords, VantageLabels, agent_text, round_label};
use crate::views::format::FormattedTime;

/// Filters of the list: name in the address, and text.
pub(crate) const FILTERS: [(&str, &str); 5] =
    [("", "All"), ("failed", "Failed"), ("disputed", "Disputed"), ("unconfirmed", "Not confirmed"), ("slow", "Slow")];

/// A finished round as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoundRow {
    /// Time.
    pub at: FormattedTime,
    /// Region.
    pub region: &'static str,
    /// CSS class, icon and word of the result.
    pub label: (&'static str, &'static str, &'static str),
    /// Outcomes at the agents, in words.
    pub words: String,
    /// Consequence; empty for a plain pass.
    pub note: String,
}

impl RoundRow {
    /// Builds the row of a round; `threshold_ms` is the slow threshold of its region.
    pub(crate) fn of(
        reading: &Reading,
        report: Option<&RoundReport>,
        threshold_ms: Option<u32>,
        labels: &VantageLabels,
        (now, zone): (Timestamp, Tz),
    ) -> Self {
        let is_slow = threshold_ms.zip(reading.latency_ms).is_some_and(|(limit, latency)| latency > limit);
        let (class, icon, word) = round_label(reading.outcome);
        Self {
            at: clock_time(reading.due, now, zone),
            region: reading.region.title(),
            label: if is_slow { ("slow", "slow", "slow") } else { (class, icon, word) },
            words: words(reading, report, labels),
            note: note(reading.outcome, report, labels),
        }
    }
}

fn words(reading: &Reading, report: Option<&RoundReport>, labels: &VantageLabels) -> String {
    let name = |vantage: VantageNo| match labels.get(&vantage) {
        Some(label) => format!("{} ({})", label.name, label.network),
        None => agent_text(vantage, labels),
    };
    match (report, reading.latency_ms) {
        (Some(report), _) => {
            let words = OutcomeWords::of(report.first_vantage, &report.first_outcome, labels);
            format!("{}: {}", name(report.first_vantage), words.text)
        }
        (None, Some(latency)) => format!("{}: {latency} ms", name(reading.vantage)),
        (None, None) => format!("{}: {}", name(reading.vantage), round_label(reading.outcome).2),
    }
}

fn note(outcome: RoundOutcome, report: Option<&RoundReport>, labels: &VantageLabels) -> String {
    let others = report.map(|report| {
        let second = report.second.as_ref().map(|(vantage, seen)| (*vantage, seen));
        let third = report.third.as_deref().map(|(vantage, seen)| (*vantage, seen));
        let others = second.into_iter().chain(third).map(|(vantage, seen)| {
            let words = OutcomeWords::of(vantage, seen, labels);
            let region = labels.get(&vantage).map(|label| format!(", {}", label.region.title())).unwrap_or_default();
            format!("{}{region} checked at once: {}.", words.agent, words.text)
        });
        others.collect::<Vec<_>>().join(" ")
    });
    let others = others.unwrap_or_default();
    let consequence = match outcome {
        RoundOutcome::Passed => "",
        RoundOutcome::Failed if others.is_empty() => "While a region is down, failed rounds need no second network.",
        RoundOutcome::Failed => "Confirmed.",
        RoundOutcome::Disputed => "Counted as passed, nothing sent.",
        RoundOutcome::Unconfirmed => "No second network could check it in time. Not counted.",
        RoundOutcome::Inconclusive => "Says nothing about the target. Not counted.",
    };
    [others.as_str(), consequence].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A choice of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterChoice {
    /// Address.
    pub href: String,
    /// Text.
    pub text: &'static str,
    /// True for the present one.
    pub is_current: bool,
}

/// Choices of outcome and region, each with the other kept.
pub(crate) fn choices(path: &str, show: &str, region: Option<Region>) -> (Vec<FilterChoice>, Vec<FilterChoice>) {
    let address = |show: &str, region: Option<Region>| {
        let show = Some(show).filter(|it| !it.is_empty()).map(|it| format!("show={it}"));
        let region = region.map(|it| format!("region={}", it.name()));
        let query = show.into_iter().chain(region).collect::<Vec<_>>().join("&");
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    };
    let by_outcome =
        FILTERS.map(|(name, text)| FilterChoice { href: address(name, region), text, is_current: name == show });
    let regions = std::iter::once(None).chain(Region::ALL.map(Some));
    let by_region = regions.map(|it| FilterChoice {
        href: address(show, it),
        text: it.map_or("All regions", Region::title),
        is_current: it == region,
    });
    (by_outcome.into(), by_region.collect())
}

#[cfg(test)]
mod tests {
    use parallax_core::event::ProbeReason;
    use parallax_core::explanation::VantageLabel;
    use parallax_core::observation::{Failure, Measurements, ProbeOutcome};

    use super::*;
    use crate::views::tests::NOW;

    #[test]
    fn a_round_says_how_it_ended_and_why() {
        let label = |name: &str, network: &str, region| VantageLabel {
            name: name.to_owned(),
            network: network.to_owned(),
            region,
        };
        let labels = VantageLabels::from([
            (VantageNo(1), label("jnb1", "AS64501", Region::Africa)),
            (VantageNo(2), label("lhr1", "AS64497", Region::Europe)),
        ]);
        let reading = |outcome, latency_ms| Reading {
            slot: 1,
            region: Region::Africa,
            vantage: VantageNo(1),
            round: 7,
            due: NOW,
            outcome,
            latency_ms,
        };
        let passed = Measurements { latency_ms: Some(92), status_code: Some(200), ..Measurements::default() };
        let report = RoundReport {
            region: Region::Africa,
            reason: ProbeReason::Scheduled,
            round: Some(7),
            started: NOW,
            round_outcome: RoundOutcome::Disputed,
            first_vantage: VantageNo(1),
            first_outcome: ProbeOutcome::Failed(Measurements::default(), Failure::Refused),
            second: Some((VantageNo(2), ProbeOutcome::Passed(passed))),
            third: None,
        };
        let row = |reading: &Reading, report: Option<&RoundReport>| {
            let row = RoundRow::of(reading, report, Some(250), &labels, (NOW, Tz::UTC));
            (row.label.2, row.words, row.note)
        };
        for (outcome, latency, report, label, words, note) in [
            (RoundOutcome::Passed, Some(86), None, "passed", "jnb1 (AS64501): 86 ms", ""),
            (RoundOutcome::Passed, Some(251), None, "slow", "jnb1 (AS64501): 251 ms", ""),
            (
                RoundOutcome::Disputed,
                None,
                Some(&report),
                "disputed",
                "jnb1 (AS64501): connection refused",
                "lhr1 · AS64497, Europe checked at once: 200 in 92 ms. Counted as passed, nothing sent.",
            ),
            (
                RoundOutcome::Failed,
                None,
                None,
                "failed",
                "jnb1 (AS64501): failed",
                "While a region is down, failed rounds need no second network.",
            ),
        ] {
            let expected = (label, words.to_owned(), note.to_owned());
            assert_eq!(row(&reading(outcome, latency), report), expected);
        }
    }

    #[test]
    fn each_filter_keeps_the_other() {
        let (outcomes, regions) = choices("/x", "failed", Some(Region::Asia));
        let current = |list: &[FilterChoice]| list.iter().find(|it| it.is_current).unwrap().text;
        assert_eq!((current(&outcomes), current(&regions)), ("Failed", "Asia"));
        assert_eq!(outcomes[0].href, "/x?region=asia");
        assert_eq!(regions[0].href, "/x?show=failed");
        assert_eq!(choices("/x", "", None).0[0].href, "/x");
    }
}
