//! Problems of the mesh in words, each with its remedy.

use std::collections::BTreeMap;

use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::operator_alert::OperatorProblem;

use super::AgentRow;

/// Maximum number of agents that one notice names.
const MAX_NAMED: usize = 3;

/// A problem for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeshNotice {
    /// CSS class.
    pub class: &'static str,
    /// Problem, as a sentence.
    pub what: String,
    /// Remedy first, then what follows.
    pub why: String,
    /// Address of the remedy; empty if it is elsewhere.
    pub href: String,
    /// Text of the remedy's link.
    pub action: &'static str,
}

/// Address of the form that adds an agent.
const ADD: &str = "/app/mesh/agents/new";

/// Problems of the mesh as a whole. Those of single agents are with the agents.
pub(crate) fn problem_notices(problems: &[OperatorProblem], confirming: &ConfirmingNetworks) -> Vec<MeshNotice> {
    problems.iter().filter_map(|problem| problem_notice(problem, confirming)).collect()
}

fn problem_notice(problem: &OperatorProblem, confirming: &ConfirmingNetworks) -> Option<MeshNotice> {
    let notice = |class, what: String, why: &str, action: &'static str| {
        let href = if action.is_empty() { String::new() } else { ADD.to_owned() };
        Some(MeshNotice { class, what, why: why.to_owned(), href, action })
    };
    match problem {
        OperatorProblem::NoAgentConnected(None) => notice(
            "down",
            "No agent is connected.".to_owned(),
            "Start an agent or add one. Until then nothing is checked and no state changes.",
            "Add agent",
        ),
        OperatorProblem::NoAgentConnected(Some(region)) => notice(
            "slow",
            format!("No agent in {} is connected.", region.title()),
            "Check that its hosts are up, or add an agent there. Until then nothing is checked from that region.",
            "Add agent",
        ),
        OperatorProblem::AllQuarantined(None) => notice(
            "down",
            "All connected agents are in quarantine.".to_owned(),
            "See below which networks contradict them. Until they agree again no check counts.",
            "",
        ),
        OperatorProblem::AllQuarantined(Some(region)) => notice(
            "slow",
            format!("All connected agents in {} are in quarantine.", region.title()),
            "See below which networks contradict them. Until they agree again no check from there counts.",
            "",
        ),
        OperatorProblem::SingleNetwork(None) if confirming.policy == ConfirmationPolicy::Repeat => notice(
            "slow",
            "Only one network has working agents.".to_owned(),
            "Add an agent on another network. A failed check is repeated from the same network until a second one \
             connects.",
            "Add agent",
        ),
        OperatorProblem::SingleNetwork(None) => notice(
            "down",
            "Outages can’t be confirmed.".to_owned(),
            "Add an agent on another network, or repair one. Only one network works, so no monitor is called down.",
            "Add agent",
        ),
        OperatorProblem::SingleNetwork(Some(region)) => notice(
            "slow",
            match confirming.in_region(*region) {
                0 => format!("No agent in {} can confirm.", region.title()),
                _ => format!("{} has only one network.", region.title()),
            },
            "Add an agent on another network there. Outages that only this region sees can’t be confirmed.",
            "Add agent",
        ),
        OperatorProblem::OnlyTwoNetworks => notice(
            "slow",
            "Only two networks have working agents.".to_owned(),
            "Add an agent on a third network. Where two contradict each other, a failure is not counted.",
            "Add agent",
        ),
        OperatorProblem::NameResolutionFails => notice(
            "slow",
            "Nearly all names fail to resolve on all agents.".to_owned(),
            "Check the name servers of the agents’ hosts. Such failures don’t count until names resolve again.",
            "",
        ),
        OperatorProblem::DiskNearlyFull(_)
        | OperatorProblem::AgentCertificateExpiring { .. }
        | OperatorProblem::AuthorityExpiring(_)
        | OperatorProblem::TasksCrashed(_)
        | OperatorProblem::AcmeCertificatesExpiring { .. }
        | OperatorProblem::CertificateFileExpiring(_)
        | OperatorProblem::UnfitHost { .. }
        | OperatorProblem::Contradicted { .. }
        | OperatorProblem::DeliveriesBlocked => None,
    }
}

/// Troubles of one agent, as the mesh reports them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentTrouble<'a> {
    /// True if two hosts use its identity.
    pub is_shared: bool,
    /// True if its rounds do not count.
    pub is_quarantined: bool,
    /// Agents that contradict it, and how often.
    pub contradicted: Option<&'a str>,
}

/// Faults of hosts: agents with the same fault share a notice, since its cause is usually the same.
pub(crate) fn fault_notices<'a>(agents: impl IntoIterator<Item = (&'a AgentRow, &'a [String])>) -> Vec<MeshNotice> {
    let mut by_fault: BTreeMap<&str, Vec<&AgentRow>> = BTreeMap::new();
    for (agent, faults) in agents {
        for fault in faults {
            by_fault.entry(fault).or_default().push(agent);
        }
    }
    let notice = |(fault, agents): (&str, Vec<&AgentRow>)| match agents.as_slice() {
        [agent] => MeshNotice {
            class: "slow",
            what: format!("The host of {} has a fault.", agent.name),
            why: format!("Repair it: {fault}."),
            href: agent.href.clone(),
            action: "Show agent",
        },
        agents => MeshNotice {
            class: "slow",
            what: format!("{} agents: {fault}.", agents.len()),
            why: format!("Repair the hosts of {}.", names(agents)),
            href: String::new(),
            action: "",
        },
    };
    by_fault.into_iter().map(notice).collect()
}

/// Lists the names of agents, up to [`MAX_NAMED`]: "fra1, lhr1, sin1 and 9 more".
fn names(agents: &[&AgentRow]) -> String {
    let mut names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let more = names.len().saturating_sub(MAX_NAMED);
    let last = if more > 0 {
        names.truncate(MAX_NAMED);
        format!("{more} more")
    } else {
        names.pop().unwrap_or_default().to_owned()
    };
    format!("{} and {last}", names.join(", "))
}

/// Problems of one agent, without the faults of its host.
pub(crate) fn agent_notices(agent: &AgentRow, trouble: AgentTrouble<'_>) -> Vec<MeshNotice> {
    let mut notices = Vec::new();
    let mut add = |class, what: String, why: String| {
        notices.push(MeshNotice { class, what, why, href: agent.href.clone(), action: "Show agent" });
    };
    let name = &agent.name;
    if trouble.is_shared {
        add(
            "down",
            format!("Two hosts use the identity of {name}."),
            "Stop one of them and let it join with an invitation of its own. Its results don’t count.".to_owned(),
        );
    } else if trouble.is_quarantined {
        let by = trouble.contradicted.map(|by| format!(" Contradicted by {by}.")).unwrap_or_default();
        add(
            "slow",
            format!("{name} is in quarantine."),
            format!("Check its host’s network and name servers.{by} It confirms nothing until it agrees again."),
        );
    } else if let Some(by) = trouble.contradicted {
        add("slow", format!("Other networks contradict {name}."), format!("Check its host’s network: {by}."));
    }
    if agent.is_clock_off {
        add(
            "slow",
            format!("The clock of {name} is {} off.", agent.clock),
            "Run a time service on its host.".to_owned(),
        );
    }
    if agent.dropped > 0 {
        let why = "Its disk was full while it was not connected. Give it more space.".to_owned();
        add("slow", format!("{name} lost {} results.", agent.dropped), why);
    }
    if !agent.certificate.0.is_empty() && !agent.is_revoked {
        let why = format!("Its renewal fails: {} left. Check that it is connected.", agent.certificate.1);
        add(agent.certificate.0, format!("The certificate of {name} was not renewed."), why);
    }
    notices
}
