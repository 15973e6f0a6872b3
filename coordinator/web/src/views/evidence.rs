//! Page with the evidence of one outage, for anyone who has its link: in English, as alerts are.

use askama::Template;
use parallax_core::check::Check;
use parallax_core::event::RoundReport;
use parallax_core::explanation::{EvidenceRound, VantageOutcome};
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::outage_evidence::{OutageEvidence, OutageProgress};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::vantage::{Region, VantageNo};
use parallax_i18n::page_messages::{PageLocale, in_english};
use parallax_template::template_file;
use url::Url;

use super::assets;
use super::format::{FormattedTime, format_clock, format_minutes, format_time};
use super::monitor_state::MonitorStateLabel;

/// The HTML document.
#[template_file("public/evidence.html")]
#[derive(Debug, Clone)]
pub(crate) struct EvidencePage {
    /// Path prefix of assets.
    base: String,
    /// The page's name.
    page: String,
    /// The monitor's name.
    monitor: String,
    state: MonitorStateLabel,
    /// The outage in one sentence.
    lead: &'static str,
    /// Labelled facts.
    facts: Vec<(&'static str, String)>,
    started_at: FormattedTime,
    ended_at: Option<FormattedTime>,
    /// Regions, those that failed first.
    regions: Vec<RegionEvidence>,
    /// True if another network saw each failure too.
    is_confirmed_elsewhere: bool,
    expires_at: FormattedTime,
}

/// Checks of one region, and their result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RegionEvidence {
    name: &'static str,
    first: CheckEvidence,
    second: Option<CheckEvidence>,
    verdict: &'static str,
}

/// A check of one region, by up to three networks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckEvidence {
    at: FormattedTime,
    /// A line for each network.
    networks: Vec<String>,
}

impl EvidencePage {
    /// Builds the page; `base` is the path prefix of assets.
    pub(crate) fn new(evidence: &OutageEvidence, base: &str) -> Self {
        let locale = PageLocale { zone: evidence.page.timezone, messages: in_english() };
        let ended_at = match evidence.progress {
            OutageProgress::Over(at) => at,
            OutageProgress::Lasting | OutageProgress::Unknown => None,
        };
        Self {
            base: base.to_owned(),
            page: evidence.page.name.clone(),
            monitor: evidence.monitor.name.clone(),
            state: state(evidence),
            lead: match evidence.progress {
                OutageProgress::Lasting => "The outage isn't over.",
                OutageProgress::Over(_) => "The outage is over.",
                OutageProgress::Unknown => "The monitor's state can't be read at the moment. Reload the page.",
            },
            facts: facts(evidence, ended_at, locale),
            started_at: format_time(evidence.started_at, locale),
            ended_at: ended_at.map(|at| format_time(at, locale)),
            regions: regions(evidence, locale),
            is_confirmed_elsewhere: is_confirmed_elsewhere(evidence),
            expires_at: format_time(evidence.expires_at, locale),
        }
    }

    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }
}

fn state(evidence: &OutageEvidence) -> MonitorStateLabel {
    let (class, text) = match (evidence.progress, evidence.down_from) {
        (OutageProgress::Lasting, None) => ("down", "Down".to_owned()),
        (OutageProgress::Lasting, Some(regions)) => {
            ("part", format!("Down from {}", in_english().locale().regions(regions)))
        }
        (OutageProgress::Over(_), _) => ("up", "Over".to_owned()),
        (OutageProgress::Unknown, _) => ("none", "Unknown".to_owned()),
    };
    MonitorStateLabel { class, text }
}

fn facts(evidence: &OutageEvidence, ended_at: Option<Timestamp>, locale: PageLocale) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |label, value: Option<String>| facts.extend(value.map(|value| (label, value)));
    add("Status page", Some(evidence.page.name.clone()));
    add("Checked", target_without_secrets(&evidence.monitor.check));
    add("Reason", evidence.reason.as_ref().map(ToString::to_string));
    if evidence.progress != OutageProgress::Unknown {
        let lasting = (evidence.progress == OutageProgress::Lasting).then_some(evidence.now);
        let end = ended_at.or(lasting);
        let minutes = |end: Timestamp| end.since(evidence.started_at).max(0) as f64 / MINUTE as f64;
        add("Duration", end.map(|end| format_minutes(minutes(end), locale.messages)));
    }
    let acknowledgement = match evidence.acknowledgement() {
        Some(acknowledgement) => {
            let at = format_time(acknowledgement.at, locale).text;
            let note = acknowledgement.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("By {}, {at}{note}", acknowledgement.by)
        }
        None => "No".to_owned(),
    };
    add("Acknowledged", Some(acknowledgement));
    facts
}

/// Returns the target of a check without credentials: user, password, query and fragment are cut from URLs. None for a
/// heartbeat, which has no target.
fn target_without_secrets(check: &Check) -> Option<String> {
    let cut = |url: &str| {
        let mut url = Url::parse(url).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        url.set_password(None).ok()?;
        url.set_username("").ok()?;
        Some(url.to_string())
    };
    match check {
        Check::Http(check) => cut(&check.url),
        Check::Component(check) => cut(&check.url),
        Check::Heartbeat(_) => None,
        Check::Tcp(_) | Check::Dns(_) | Check::Ping(_) | Check::Certificate(_) | Check::Domain(_) => {
            Some(check.target())
        }
    }
}

fn regions(evidence: &OutageEvidence, locale: PageLocale) -> Vec<RegionEvidence> {
    let mut rounds: Vec<&RoundReport> = evidence.rounds.iter().collect();
    rounds.sort_by_key(|round| round.started);
    let of_region = |region: Region| {
        let own: Vec<&RoundReport> = rounds.iter().copied().filter(|round| round.region == region).collect();
        let (first, last) = (*own.first()?, *own.last()?);
        let check = |round: &RoundReport| CheckEvidence {
            at: format_clock(round.started, evidence.now, locale),
            networks: networks(round, evidence),
        };
        let second = (own.len() > 1).then(|| check(last));
        Some((
            last.round_outcome,
            RegionEvidence { name: region.title(), first: check(first), second, verdict: verdict(last) },
        ))
    };
    let mut regions: Vec<_> = Region::ALL.into_iter().filter_map(of_region).collect();
    regions.sort_by_key(|(outcome, _)| *outcome != RoundOutcome::Failed);
    regions.into_iter().map(|(_, region)| region).collect()
}

const fn verdict(round: &RoundReport) -> &'static str {
    match round.round_outcome {
        RoundOutcome::Passed => "Up",
        RoundOutcome::Failed => "Failed",
        RoundOutcome::Disputed => "Disputed: networks disagree",
        RoundOutcome::Unconfirmed => "Failed, not confirmed",
        RoundOutcome::Inconclusive => "No result",
    }
}

/// Returns what each network saw. Vantages have numbers here, as in the API: the names of hosts are the operator's.
fn networks(round: &RoundReport, evidence: &OutageEvidence) -> Vec<String> {
    let line = |seen: VantageOutcome| {
        let network = evidence.networks.get(&seen.vantage).map_or("former agent", String::as_str);
        format!("{network} (agent {}): {}", seen.vantage.0, outcome_text(&seen.outcome))
    };
    EvidenceRound::of(round).seen.into_iter().map(line).collect()
}

/// Returns true if another network saw each failure too. A failure may also be confirmed by a repeated check from the
/// same network, and the network of a former agent is unknown.
fn is_confirmed_elsewhere(evidence: &OutageEvidence) -> bool {
    let is_confirmed = |round: &RoundReport| {
        let network = |vantage: VantageNo| evidence.networks.get(&vantage);
        let first = network(round.first_vantage);
        let others = EvidenceRound::of(round).seen.into_iter().skip(1);
        let mut failed = others.filter(|seen| matches!(seen.outcome, ProbeOutcome::Failed(..)));
        first.is_some() && failed.any(|seen| network(seen.vantage).is_some_and(|other| Some(other) != first))
    };
    let mut failed = evidence.rounds.iter().filter(|round| round.round_outcome == RoundOutcome::Failed).peekable();
    failed.peek().is_some() && failed.all(is_confirmed)
}

fn outcome_text(outcome: &ProbeOutcome) -> String {
    match outcome {
        ProbeOutcome::Passed(facts) => match facts.latency_ms {
            Some(latency) => format!("passed in {latency} ms"),
            None => "passed".to_owned(),
        },
        ProbeOutcome::Failed(_, failure) => failure.to_string(),
        ProbeOutcome::Inconclusive(reason) => format!("no result ({reason})"),
        ProbeOutcome::Pending => "no result yet".to_owned(),
    }
}

#[cfg(test)]
mod tests;
