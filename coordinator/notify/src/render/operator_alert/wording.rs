//! Titles and sentences of operator alerts.

use super::*;

pub(super) fn title(problem: &ProblemDetails) -> String {
    match problem {
        ProblemDetails::AgentQuarantined { agent, .. } => format!("agent {} is in quarantine", agent.name),
        ProblemDetails::NoAgentConnected(None) => "no agent is connected".to_owned(),
        ProblemDetails::NoAgentConnected(Some(region)) => {
            format!("no agent in {} is connected", region.title())
        }
        ProblemDetails::SingleNetwork(None) => "no second network can confirm outages".to_owned(),
        ProblemDetails::SingleNetwork(Some(region)) => format!("{} has only one network", region.title()),
        ProblemDetails::DiskNearlyFull(_) => "the store is low on space".to_owned(),
        ProblemDetails::CertificateExpiring { agent: Some(agent), .. } => {
            format!("certificate of agent {agent} expires soon")
        }
        ProblemDetails::CertificateExpiring { agent: None, .. } => {
            "the authority's certificate expires soon".to_owned()
        }
        ProblemDetails::TasksCrashed(_) => "a task of the coordinator crashed".to_owned(),
        ProblemDetails::AcmeCertificatesExpiring { .. } => "certificates of hostnames expire soon".to_owned(),
        ProblemDetails::CertificateFileExpiring(_) => "the certificate in your files expires soon".to_owned(),
        ProblemDetails::AllQuarantined(None) => "all agents are in quarantine".to_owned(),
        ProblemDetails::AllQuarantined(Some(region)) => {
            format!("all agents in {} are in quarantine", region.title())
        }
        ProblemDetails::NameResolutionFails => "nearly all names fail to resolve".to_owned(),
        ProblemDetails::OnlyTwoNetworks => "only two networks have working agents".to_owned(),
        ProblemDetails::Contradicted { agent, .. } => format!("other agents contradict agent {agent}"),
        ProblemDetails::DeliveriesBlocked => "webhooks and chats are not delivered".to_owned(),
        ProblemDetails::UnfitHost { agent, .. } => {
            format!("the host of agent {agent} is not fit to run checks")
        }
    }
}

pub(super) fn message(problem: &ProblemDetails, has_ended: bool) -> String {
    let clean = |name: &str| text::single_line(name, 120);
    match (problem, has_ended) {
        (ProblemDetails::AgentQuarantined { agent, region, contradicted_by }, false) => format!(
            "The agent {} ({}, {}) {}. Until it agrees with the others again, it runs only one round in ten, its results \
             don't count, and it confirms no failures.",
            clean(&agent.name),
            region.title(),
            clean(&agent.network),
            match contradicted_by {
                Some(contradicted_by) =>
                    format!("is contradicted by other networks: {}", text::single_line(contradicted_by, 300)),
                None => "shares its identity with another host".to_owned(),
            }
        ),
        (ProblemDetails::AgentQuarantined { agent, .. }, true) => {
            format!("The agent {} agrees with the others again. Its results count.", clean(&agent.name))
        }
        (ProblemDetails::NoAgentConnected(None), false) => "No agent is connected: nothing is checked.".to_owned(),
        (ProblemDetails::NoAgentConnected(None), true) => "Agents are connected again.".to_owned(),
        (ProblemDetails::NoAgentConnected(Some(region)), false) => {
            format!("No agent in {} is connected: nothing is checked from there.", region.title())
        }
        (ProblemDetails::NoAgentConnected(Some(region)), true) => {
            format!("An agent in {} is connected again.", region.title())
        }
        (ProblemDetails::SingleNetwork(None), false) => {
            "Only one network has working agents. No second one can confirm failures, so no monitor is reported down, \
             unless `confirmation` is set to `repeat`. Connect, repair or add an agent on another network. With agents \
             on three networks, outages stay confirmed even if one network fails."
                .to_owned()
        }
        (ProblemDetails::SingleNetwork(None), true) => {
            "At least two networks have working agents again. Outages can be confirmed.".to_owned()
        }
        (ProblemDetails::SingleNetwork(Some(region)), false) => format!(
            "The working agents in {} are on one network: only failures that other regions also see can be confirmed.",
            region.title()
        ),
        (ProblemDetails::SingleNetwork(Some(region)), true) => {
            format!("At least two networks have working agents in {} again.", region.title())
        }
        (ProblemDetails::DiskNearlyFull(free), false) => format!(
            "The disk that holds the store has {} MiB left. When too little is left, writes are refused. Free up space or enlarge the disk.",
            free >> 20
        ),
        (ProblemDetails::DiskNearlyFull(free), true) => {
            format!("The disk that holds the store has {} MiB free again.", free >> 20)
        }
        (ProblemDetails::CertificateExpiring { agent: Some(agent), .. }, false) => format!(
            "The certificate of the agent {} expires soon and was not renewed. Once it has expired, the agent must \
             join again.",
            clean(agent)
        ),
        (ProblemDetails::CertificateExpiring { agent: Some(agent), .. }, true) => {
            format!("The agent {} has a new certificate.", clean(agent))
        }
        (ProblemDetails::CertificateExpiring { agent: None, .. }, false) => {
            "The certificate of the mesh's authority expires soon. Replace it with `parallax mesh rotate`.".to_owned()
        }
        (ProblemDetails::CertificateExpiring { agent: None, .. }, true) => {
            "The mesh's authority has a new certificate.".to_owned()
        }
        (ProblemDetails::TasksCrashed(tasks), false) => format!(
            "{} of the coordinator crashed within the last hour and {} restarted. This is a bug in Parallax; please report it. \
             The log has the details.",
            if *tasks == 1 { "A task".to_owned() } else { format!("{tasks} tasks") },
            if *tasks == 1 { "was" } else { "were" },
        ),
        (ProblemDetails::AcmeCertificatesExpiring { first, count, ends_at }, false) => format!(
            "{} could not be renewed. The certificate of {} expires first, at {}; from then on browsers show visitors a warning. \
             See the log for the reason.",
            if *count == 1 {
                "A hostname's certificate".to_owned()
            } else {
                format!("{count} hostnames' certificates")
            },
            clean(first),
            super::super::time_format::format_time(*ends_at, chrono_tz::UTC),
        ),
        (ProblemDetails::AcmeCertificatesExpiring { .. }, true) => {
            "All certificates of hostnames have been renewed.".to_owned()
        }
        (ProblemDetails::CertificateFileExpiring(ends_at), false) => format!(
            "The certificate in the files of [tls] expires at {}. Replace the files; the new certificate is loaded within a minute.",
            super::super::time_format::format_time(*ends_at, chrono_tz::UTC)
        ),
        (ProblemDetails::CertificateFileExpiring(_), true) => {
            "The files of [tls] contain a new certificate.".to_owned()
        }
        (ProblemDetails::AllQuarantined(None), false) => {
            "All connected agents are in quarantine, because other networks contradict \
                                               them: no check counts. See `parallax agent list`."
                .to_owned()
        }
        (ProblemDetails::AllQuarantined(None), true) => "At least one agent is no longer in quarantine.".to_owned(),
        (ProblemDetails::AllQuarantined(Some(region)), false) => format!(
            "All connected agents in {} are in quarantine, because other networks contradict them: no check from there \
             counts until they agree again. See `parallax agent list`.",
            region.title()
        ),
        (ProblemDetails::AllQuarantined(Some(region)), true) => {
            format!("At least one agent in {} is no longer in quarantine.", region.title())
        }
        (ProblemDetails::NameResolutionFails, false) => {
            "Nearly all names fail to resolve on all agents, across all domains. \
                                       Resolution failures don't count until names resolve again. \
                                       Check the agents' name servers."
                .to_owned()
        }
        (ProblemDetails::OnlyTwoNetworks, false) => {
            "Only two networks have working agents. If they contradict each other, a \
                                         failure does not count: one agent behind a captive portal or an intercepting \
                                         proxy hides outages. Add an agent on a third network to decide."
                .to_owned()
        }
        (ProblemDetails::OnlyTwoNetworks, true) => "Working agents are no longer on two networks only.".to_owned(),
        (ProblemDetails::Contradicted { agent, by }, false) => format!(
            "The agent {} is contradicted by others: {}. It is not in quarantine, because no more than a third of the agents \
             may be. Look for the one that is wrong: a captive portal, an intercepting proxy or a resolver that answers \
             for every name.",
            clean(agent),
            text::single_line(by, 300)
        ),
        (ProblemDetails::Contradicted { agent, .. }, true) => {
            format!("The agent {} is no longer contradicted by others.", clean(agent))
        }
        (ProblemDetails::NameResolutionFails, true) => "Names resolve again. Resolution failures count.".to_owned(),
        (ProblemDetails::DeliveriesBlocked, false) => {
            "The coordinator can't read its host's own addresses, so it can't tell which \
                                               webhooks lead to the host itself: no webhooks and chat messages are \
                                               sent. Allow the service AF_NETLINK (RestrictAddressFamilies= in its \
                                               unit). Deliveries are retried automatically."
                .to_owned()
        }
        (ProblemDetails::DeliveriesBlocked, true) => "Webhooks and chats are delivered again.".to_owned(),
        (ProblemDetails::UnfitHost { agent, faults }, false) => format!(
            "The agent {} reports: {}. Its checks don't count until this is fixed.",
            clean(agent),
            text::single_line(faults, 300)
        ),
        (ProblemDetails::UnfitHost { agent, .. }, true) => {
            format!("The host of the agent {} is fit to run checks again.", clean(agent))
        }
        (ProblemDetails::TasksCrashed(_), true) => {
            "No task of the coordinator has crashed within the last hour.".to_owned()
        }
    }
}
