//! Waterfall of checks: the phases of each on one scale, with the threshold of its region.

use parallax_core::explanation::capitalized;
use parallax_core::observation::{PhaseDurations, ProbeOutcome};
use parallax_core::vantage::{Region, VantageNo};

use super::outcome::{self, VantageLabels};

/// Smallest length of the scale, in milliseconds.
const MIN_SCALE_MS: f64 = 10.0;
/// Smallest width of a phase, in percent, so that it is seen.
const MIN_WIDTH: f64 = 0.3;

/// Phases in their order: CSS class and name.
pub(crate) const PHASES: [(&str, &str); 5] =
    [("ph-dns", "DNS"), ("ph-con", "Connect"), ("ph-tls", "TLS"), ("ph-ttfb", "First byte"), ("ph-xfer", "Transfer")];

/// Result of a check in one region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionResult<'a> {
    /// The region.
    pub region: Region,
    /// The agent and its outcome.
    pub seen: Option<(VantageNo, &'a ProbeOutcome)>,
    /// Reason that there is none; none while the agent is asked.
    pub missing: Option<&'static str>,
    /// Slow threshold there, in milliseconds.
    pub threshold_ms: Option<u32>,
}

/// A line of the waterfall.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaterfallLine {
    /// Region.
    pub region: &'static str,
    /// Agent and network; empty without one.
    pub agent: String,
    /// CSS class and icon of the result.
    pub class: &'static str,
    /// Status code, or a word.
    pub code: String,
    /// Phases in words, for screen readers.
    pub summary: String,
    /// Phases: CSS class, position and width in percent.
    pub bars: Vec<(&'static str, String, String)>,
    /// Position of the threshold in percent, if it is on the scale.
    pub limit: Option<String>,
    /// Whole time.
    pub time: String,
    /// Reason and details under the line; empty if all is well.
    pub why: String,
    /// Address that was checked.
    pub address: Option<String>,
}

/// Builds the lines, in the given order.
pub(crate) fn waterfall(results: &[RegionResult<'_>], labels: &VantageLabels) -> Vec<WaterfallLine> {
    let longest = results.iter().map(total_ms).fold(MIN_SCALE_MS, f64::max);
    let limits = results.iter().filter_map(|it| it.threshold_ms).map(f64::from);
    // A threshold far beyond all times would squeeze the bars.
    let scale = limits.filter(|limit| *limit <= longest * 3.0).fold(longest, f64::max);
    results.iter().map(|result| line(result, scale, labels)).collect()
}

/// Takes an address that all lines share out of them; empty if they differ.
pub(crate) fn with_shared_address(mut lines: Vec<WaterfallLine>) -> (Vec<WaterfallLine>, String) {
    let mut addresses = lines.iter().filter_map(|line| line.address.clone());
    let first = addresses.next().unwrap_or_default();
    if first.is_empty() || addresses.any(|address| address != first) {
        return (lines, String::new());
    }
    lines.iter_mut().for_each(|line| line.address = None);
    (lines, first)
}

/// Number of regions in which a check passed, and of all, in words.
pub(super) fn passed_regions(results: &[RegionResult<'_>]) -> (usize, String) {
    let all = results.len();
    let passed = results.iter().filter(|it| matches!(it.seen, Some((_, ProbeOutcome::Passed(_))))).count();
    let noun = if all == 1 { "region" } else { "regions" };
    (passed, format!("{passed} of {all} {noun}"))
}

/// One sentence about all results: how many regions would be up.
pub(crate) fn verdict(results: &[RegionResult<'_>]) -> (&'static str, String) {
    let all = results.len();
    let (up, regions) = passed_regions(results);
    let class = match up {
        0 => "down",
        up if up == all => "up",
        _ => "part",
    };
    (class, format!("{regions} would be up"))
}

fn line(result: &RegionResult<'_>, scale: f64, labels: &VantageLabels) -> WaterfallLine {
    let region = result.region.title();
    let is_waiting = result.missing.is_none();
    let Some((vantage, seen)) = result.seen else {
        return WaterfallLine {
            region,
            agent: String::new(),
            class: "none",
            code: if is_waiting { "waits" } else { "none" }.to_owned(),
            summary: if is_waiting { "no answer yet" } else { "not checked" }.to_owned(),
            bars: Vec::new(),
            limit: None,
            time: "–".to_owned(),
            why: FieldlessReason(result.missing).to_string(),
            address: None,
        };
    };
    let facts = outcome::measurements(seen);
    let phases = facts.map(|facts| phases_ms(facts.phases)).unwrap_or_default();
    let latency = facts.and_then(|facts| facts.latency_ms);
    let is_slow = matches!(seen, ProbeOutcome::Passed(_))
        && result.threshold_ms.zip(latency).is_some_and(|(threshold, latency)| latency > threshold);
    let total = total_ms(result);
    let why = match seen {
        ProbeOutcome::Passed(_) if is_slow => {
            let threshold = result.threshold_ms.unwrap_or_default();
            format!("Slower than {threshold} ms: from here the monitor would be slow.")
        }
        ProbeOutcome::Passed(_) => String::new(),
        ProbeOutcome::Failed(..) | ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => {
            format!("{}.", capitalized(&outcome::outcome_text(seen)))
        }
    };
    WaterfallLine {
        region,
        agent: outcome::agent_text(vantage, labels),
        class: if is_slow { "slow" } else { outcome::outcome_class(seen) },
        code: match (facts.and_then(|facts| facts.status_code), seen) {
            (Some(status), _) => status.to_string(),
            (None, ProbeOutcome::Passed(_)) => "ok".to_owned(),
            (None, _) => "none".to_owned(),
        },
        summary: summary(phases, total),
        bars: bars(phases, total, scale),
        limit: result.threshold_ms.map(f64::from).filter(|limit| *limit <= scale).map(|it| percent(it / scale * 100.0)),
        time: if total > 0.0 { time_text(total) } else { "–".to_owned() },
        why,
        address: facts.and_then(|facts| facts.address).map(|address| address.to_string()),
    }
}

/// Reason that a region has no result, as a sentence.
struct FieldlessReason(Option<&'static str>);

impl std::fmt::Display for FieldlessReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(reason) => write!(f, "{}.", capitalized(reason)),
            None => Ok(()),
        }
    }
}

fn phases_ms(phases: PhaseDurations) -> [Option<f64>; 5] {
    let PhaseDurations { dns_us, connect_us, tls_us, first_byte_us, transfer_us } = phases;
    [dns_us, connect_us, tls_us, first_byte_us, transfer_us].map(|it| it.map(|it| f64::from(it) / 1000.0))
}

/// Whole time of a check in milliseconds; 0 if nothing was measured.
fn total_ms(result: &RegionResult<'_>) -> f64 {
    let facts = result.seen.and_then(|(_, seen)| outcome::measurements(seen));
    let Some(facts) = facts else { return 0.0 };
    let sum: f64 = phases_ms(facts.phases).iter().flatten().sum();
    facts.latency_ms.map_or(sum, |latency| f64::from(latency).max(sum))
}

fn bars(phases: [Option<f64>; 5], total: f64, scale: f64) -> Vec<(&'static str, String, String)> {
    let mut at = 0.0;
    let mut bars = Vec::new();
    for ((class, _), length) in PHASES.into_iter().zip(phases) {
        let Some(length) = length else { continue };
        bars.push((class, percent(at / scale * 100.0), percent((length / scale * 100.0).max(MIN_WIDTH))));
        at += length;
    }
    if bars.is_empty() && total > 0.0 {
        bars.push(("ph-ttfb", percent(0.0), percent(total / scale * 100.0)));
    }
    bars
}

fn summary(phases: [Option<f64>; 5], total: f64) -> String {
    let measured = PHASES.iter().zip(phases).filter_map(|((_, name), length)| Some((name, length?)));
    let parts: Vec<String> = measured.map(|(name, length)| format!("{name} {}", time_text(length))).collect();
    match (parts.is_empty(), total > 0.0) {
        (false, _) => parts.join(", "),
        (true, true) => time_text(total),
        (true, false) => "nothing measured".to_owned(),
    }
}

fn time_text(millis: f64) -> String {
    if millis >= 10_000.0 { format!("{:.0} s", millis / 1000.0) } else { format!("{:.0} ms", millis) }
}

fn percent(value: f64) -> String {
    format!("{:.2}%", value.clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{CheckPhase, Failure, Measurements};

    use super::*;

    fn passed(latency_ms: u32) -> ProbeOutcome {
        let phases = PhaseDurations { dns_us: Some(10_000), connect_us: Some(30_000), ..PhaseDurations::default() };
        let (latency_ms, status_code) = (Some(latency_ms), Some(200));
        ProbeOutcome::Passed(Measurements { latency_ms, status_code, phases, ..Measurements::default() })
    }

    #[test]
    fn lines_share_one_scale_and_mark_the_threshold() {
        let (fast, slow) = (passed(100), passed(400));
        let failed = ProbeOutcome::Failed(Measurements::default(), Failure::Timeout(CheckPhase::Connect));
        let result = |region, seen| RegionResult {
            region,
            seen: Some((VantageNo(1), seen)),
            missing: None,
            threshold_ms: Some(200),
        };
        let results = [
            result(Region::Europe, &fast),
            result(Region::Asia, &slow),
            result(Region::Africa, &failed),
            RegionResult {
                region: Region::Oceania,
                seen: None,
                missing: Some("no agent in this region is in service"),
                threshold_ms: None,
            },
        ];
        let lines = waterfall(&results, &VantageLabels::new());
        let column = |value: fn(&WaterfallLine) -> String| lines.iter().map(value).collect::<Vec<_>>();
        assert_eq!(column(|it| it.class.to_owned()), ["up", "slow", "down", "none"]);
        assert_eq!(column(|it| it.time.clone()), ["100 ms", "400 ms", "–", "–"]);
        assert_eq!(lines[0].bars[1], ("ph-con", "2.50%".to_owned(), "7.50%".to_owned()));
        assert_eq!(lines[0].limit.as_deref(), Some("50.00%"));
        assert_eq!(lines[0].summary, "DNS 10 ms, Connect 30 ms");
        assert_eq!(lines[2].why, "Timed out connecting.");
        assert_eq!(lines[3].why, "No agent in this region is in service.");
        assert_eq!(verdict(&results), ("part", "2 of 4 regions would be up".to_owned()));
        assert_eq!(verdict(&results[..1]), ("up", "1 of 1 region would be up".to_owned()));
    }
}
