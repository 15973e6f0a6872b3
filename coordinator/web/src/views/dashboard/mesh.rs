//! Screens of the installation for its operators: the mesh, an agent, a new agent.

mod land;
mod notices;

use std::collections::BTreeSet;

use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::operator_alert::AUTHORITY_EXPIRES_WITHIN;
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::Region;
use parallax_template::template_file;

pub(crate) use self::notices::{AgentTrouble, MeshNotice, agent_notices, fault_notices, problem_notices};
use super::form::FormView;
use super::frame::Frame;
use super::{mesh, words};
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Milliseconds before the end of a certificate at which it is amber: renewal starts at ten days left, so that it
/// fails.
const CERTIFICATE_AMBER: i64 = 8 * DAY;
/// The same for red.
const CERTIFICATE_RED: i64 = 2 * DAY;

/// Labels of the fields, for the summary of faults.
const LABELS: [(&str, &str); 3] = [("name", "Name"), ("region", "Region"), ("network", "Network")];

/// Returns the labels of fields, for templates.
pub(crate) const fn labels() -> &'static [(&'static str, &'static str)] {
    &LABELS
}

/// An agent as the screens show it.
#[derive(Debug, Clone)]
pub(crate) struct AgentRow {
    /// Address of its screen.
    pub href: String,
    /// Name.
    pub name: String,
    /// Region.
    pub region: Region,
    /// Label of its network.
    pub network: String,
    /// CSS class with icon, word, and since when.
    pub state: (&'static str, &'static str, String),
    /// Version of its program.
    pub version: String,
    /// Difference of its clock; a dash if unknown.
    pub clock: String,
    /// True if its clock is off.
    pub is_clock_off: bool,
    /// Results received since the start.
    pub results: u64,
    /// Results that it dropped since the start.
    pub dropped: u64,
    /// CSS class and days of its certificate; a dash if unknown.
    pub certificate: (&'static str, String),
    /// True if it is connected.
    pub is_connected: bool,
    /// True if it is revoked.
    pub is_revoked: bool,
}

impl AgentRow {
    /// Number of its results with separators of thousands.
    pub(crate) fn results_text(&self) -> String {
        grouped(self.results)
    }
}

/// Formats a difference of clocks: "+2 ms", "-2.4 s", or a dash.
pub(crate) fn skew_text(skew_ms: Option<i64>) -> String {
    match skew_ms {
        None => "–".to_owned(),
        Some(ms) if ms.abs() < 1_000 => format!("{ms:+} ms"),
        Some(ms) => {
            let sign = if ms < 0 { '-' } else { '+' };
            format!("{sign}{}.{} s", ms.abs() / 1_000, ms.abs() % 1_000 / 100)
        }
    }
}

/// CSS class and days until the end of a certificate.
pub(crate) fn certificate_text(until: Option<Timestamp>, now: Timestamp) -> (&'static str, String) {
    let Some(left) = until.map(|until| until.since(now)) else { return ("", "–".to_owned()) };
    let class = match left {
        left if left < CERTIFICATE_RED => "down",
        left if left < CERTIFICATE_AMBER => "slow",
        _ => "",
    };
    (class, if left <= 0 { "ended".to_owned() } else { words::duration(left) })
}

/// CSS class and end of the certificate authority, which is renewed by hand: amber from the alert of the operator on, red
/// in the last third of that time.
pub(crate) fn authority_text(until: Timestamp, now: Timestamp) -> (&'static str, String) {
    let left = until.since(now);
    let class = match left {
        left if left < AUTHORITY_EXPIRES_WITHIN / 3 => "down",
        left if left < AUTHORITY_EXPIRES_WITHIN => "slow",
        _ => "",
    };
    let date = until.to_utc().map(|utc| utc.format("%-d %b %Y").to_string()).unwrap_or_default();
    match left {
        left if left <= 0 => (class, format!("ended on {date}")),
        left => (class, format!("ends on {date}, in {}", words::duration(left))),
    }
}

/// Formats a number with separators of thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A region with its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegionLine {
    /// Title.
    pub title: &'static str,
    /// Place on the map.
    pub at: (u32, u32),
    /// Number of its agents.
    pub agents: usize,
    /// Agents and networks in words.
    pub text: String,
    /// CSS class with icon, and word.
    pub state: (&'static str, &'static str),
}

/// Place of a region on the map, 1000 wide.
const fn place(region: Region) -> (u32, u32) {
    match region {
        Region::Europe => (486, 84),
        Region::NorthAmerica => (206, 112),
        Region::SouthAmerica => (312, 262),
        Region::Africa => (512, 216),
        Region::Asia => (748, 128),
        Region::Oceania => (838, 294),
    }
}

/// Sums the agents up by region: two networks that can confirm make a region that can confirm.
pub(crate) fn region_lines(agents: &[AgentRow], confirming: &ConfirmingNetworks) -> Vec<RegionLine> {
    let is_repeated = confirming.policy == ConfirmationPolicy::Repeat && !confirming.has_second();
    let line = |region: Region| {
        let members: Vec<&AgentRow> = agents.iter().filter(|it| it.region == region && !it.is_revoked).collect();
        let connected = members.iter().filter(|it| it.is_connected).count();
        let networks = confirming.in_region(region);
        let text = match members.len() {
            0 => "No agent".to_owned(),
            number => format!(
                "{}, {connected} connected, {}",
                words::count(number, "agent", "agents"),
                words::count(networks, "confirming network", "confirming networks")
            ),
        };
        let state = match (connected, networks) {
            (0, _) => ("none", "Not checked from"),
            (_, 1) if is_repeated => ("slow", "Repeats failed checks"),
            (_, 0 | 1) => ("slow", "Can’t confirm"),
            _ => ("up", "Can confirm"),
        };
        RegionLine { title: region.title(), at: place(region), agents: members.len(), text, state }
    };
    Region::ALL.map(line).into()
}

/// An invitation that was not used yet.
#[derive(Debug, Clone)]
pub(crate) struct InvitationLine {
    /// Address that revokes it.
    pub revoke: String,
    /// Name of the agent to be.
    pub name: String,
    /// Address of the agent's screen.
    pub href: String,
    /// Region and network.
    pub about: String,
    /// End of its validity.
    pub expires_at: FormattedTime,
}

/// The mesh.
#[template_file("dashboard/mesh.html")]
#[derive(Debug, Clone)]
pub(crate) struct MeshScreen {
    /// Frame.
    pub frame: Frame,
    /// Problems, the worst first.
    pub notices: Vec<MeshNotice>,
    /// Number of problems that are not listed.
    pub more: usize,
    /// Regions.
    pub regions: Vec<RegionLine>,
    /// Agents that are not revoked.
    pub agents: Vec<AgentRow>,
    /// Revoked agents that are still listed.
    pub revoked: Vec<AgentRow>,
    /// Open invitations.
    pub invitations: Vec<InvitationLine>,
    /// Figures of the installation: label, CSS class or nothing, text.
    pub installation: Vec<(&'static str, &'static str, String)>,
    /// Key of a form's repetition.
    pub once: String,
}

impl MeshScreen {
    /// Land of the map.
    const fn land(&self) -> &'static str {
        land::LAND
    }

    /// Agents, networks and regions in one line.
    fn lead(&self) -> String {
        let connected: Vec<&AgentRow> = self.agents.iter().filter(|it| it.is_connected).collect();
        let networks: BTreeSet<&str> = connected.iter().map(|it| it.network.as_str()).collect();
        let regions: BTreeSet<Region> = connected.iter().map(|it| it.region).collect();
        format!(
            "{} of {} connected, from {} and {}",
            connected.len(),
            words::count(self.agents.len(), "agent", "agents"),
            words::count(regions.len(), "region", "regions"),
            words::count(networks.len(), "network", "networks"),
        )
    }
}

/// One agent, or the invitation of one.
#[template_file("dashboard/agent.html")]
#[derive(Debug, Clone)]
pub(crate) struct AgentScreen {
    /// Frame.
    pub frame: Frame,
    /// Agent.
    pub agent: AgentRow,
    /// Problems of it.
    pub notices: Vec<MeshNotice>,
    /// Lines of facts: label and text.
    pub lines: Vec<(&'static str, String)>,
    /// Form that revokes or forgets it.
    pub form: FormView,
    /// True if the person must confirm first that it's them.
    pub asks_to_confirm: bool,
}

/// An agent that was invited and has not connected yet.
#[template_file("dashboard/agent_waiting.html")]
#[derive(Debug, Clone)]
pub(crate) struct WaitingScreen {
    /// Frame.
    pub frame: Frame,
    /// Invitation.
    pub invitation: InvitationLine,
    /// Command that joins the mesh, right after the invitation was made.
    pub commands: Vec<(&'static str, String)>,
    /// Key of a form's repetition.
    pub once: String,
}

/// Form of a new agent.
#[template_file("dashboard/agent_new.html")]
#[derive(Debug, Clone)]
pub(crate) struct NewAgentForm {
    /// Frame.
    pub frame: Frame,
    /// Form.
    pub form: FormView,
    /// Regions to choose from.
    pub regions: Vec<(&'static str, &'static str)>,
    /// Networks that each region has: title, networks.
    pub networks: Vec<(&'static str, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::dashboard::tests::NOW;

    #[test]
    fn figures_of_agents_are_written_for_people() {
        for (skew, expected) in [(None, "–"), (Some(2), "+2 ms"), (Some(-3), "-3 ms"), (Some(-2_449), "-2.4 s")] {
            assert_eq!(skew_text(skew), expected);
        }
        for (left, expected) in [
            (30 * DAY, ("", "30 days")),
            (7 * DAY, ("slow", "7 days")),
            (DAY, ("down", "1 day")),
            (-1, ("down", "ended")),
        ] {
            let (class, text) = certificate_text(Some(NOW + left), NOW);
            assert_eq!((class, text.as_str()), expected);
        }
        for (left, expected) in [
            (90 * DAY, ("", "ends on 27 Feb 2027, in 90 days")),
            (90 * DAY - 1, ("slow", "ends on 27 Feb 2027, in 89 days 23 h")),
            (30 * DAY - 1, ("down", "ends on 29 Dec 2026, in 29 days 23 h")),
            (0, ("down", "ended on 29 Nov 2026")),
        ] {
            let (class, text) = authority_text(NOW + left, NOW);
            assert_eq!((class, text.as_str()), expected);
        }
        assert_eq!([grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
