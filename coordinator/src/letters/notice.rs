//! What the operator is told of the mesh, the store and the certificates: a place in quarantine, a region without places.

use parallax_core::delivery::Mail;
use parallax_core::place::Region;
use parallax_core::time::Timestamp;
use serde::Serialize;

use super::PlaceName;
use super::mail::{Mood, Sheet};
use super::text;

/// News for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorNews {
    /// What it is about.
    pub matter: Matter,
    /// Whether it is over.
    pub ended: bool,
    /// When it began, or when it ended.
    pub at: Timestamp,
}

/// What an operator can mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matter {
    /// A place contradicts the others.
    Quarantine {
        /// Which.
        place: PlaceName,
        /// Where it stands.
        region: Region,
        /// The agents that contradict it, and how often; none where two hosts share its identity.
        found: Option<String>,
    },
    /// No agent of a region is connected; with none, no agent at all.
    NobodyConnected(Option<Region>),
    /// The region's working agents are on one network; with none, those of the whole mesh.
    OneNetwork(Option<Region>),
    /// The store's disk is nearly full: bytes that are free.
    StoreLow(u64),
    /// A certificate ends soon, at that moment: an agent's by its name, else the authority's.
    CertificateEnding {
        /// Whose.
        agent: Option<String>,
        /// When it ends.
        ends_at: Timestamp,
    },
    /// So many parts of the coordinator broke off lately, and were begun anew.
    PartsBroken(u32),
    /// Certificates of hostnames that end soon and could not be renewed.
    HostsEnding {
        /// Whose ends first.
        first: String,
        /// How many.
        count: u32,
        /// When the first of them ends.
        ends_at: Timestamp,
    },
    /// The certificate in the operator's files ends soon, at that moment.
    OwnEnding(Timestamp),
    /// All connected agents of a region are in quarantine; with none, all of the mesh.
    Quarantined(Option<Region>),
    /// An agent's host is not fit to check.
    HostUnfit {
        /// The agent's name.
        agent: String,
        /// The host's faults, in the agent's words.
        faults: String,
    },
    /// Nearly all names fail to resolve at all agents.
    NamesFail,
    /// Two networks have working agents.
    TwoNetworks,
    /// Others contradict an agent, which goes on since too many would be in quarantine.
    Contradicted {
        /// The agent's name.
        agent: String,
        /// The agents that contradict it, and how often.
        by: String,
    },
    /// The coordinator can't read its host's own addresses, so nothing is delivered but mail.
    DeliveriesBlocked,
}

impl Matter {
    /// Each name, in the order of the variants.
    pub const NAMES: [&'static str; 12] = [
        "place-quarantined",
        "region-stale",
        "second-network-missing",
        "store-low",
        "certificate-ending",
        "part-broken",
        "region-quarantined",
        "host-unfit",
        "names-failing",
        "third-network-missing",
        "place-contradicted",
        "deliveries-blocked",
    ];

    /// The name that letters and deliveries use.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Quarantine { .. } => "place-quarantined",
            Self::NobodyConnected(_) => "region-stale",
            Self::OneNetwork(_) => "second-network-missing",
            Self::StoreLow(_) => "store-low",
            Self::CertificateEnding { .. } | Self::HostsEnding { .. } | Self::OwnEnding(_) => {
                "certificate-ending"
            }
            Self::PartsBroken(_) => "part-broken",
            Self::Quarantined(_) => "region-quarantined",
            Self::HostUnfit { .. } => "host-unfit",
            Self::NamesFail => "names-failing",
            Self::TwoNetworks => "third-network-missing",
            Self::Contradicted { .. } => "place-contradicted",
            Self::DeliveriesBlocked => "deliveries-blocked",
        }
    }
}

/// The JSON that is posted, signed. Times are milliseconds since the epoch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Notice<'a> {
    event: &'static str,
    ended: bool,
    installation: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
    at: i64,
}

/// Renders the operator's webhook and mail. `installation` is the host that it is reached at: one mailbox may serve
/// several.
pub fn notice(news: &OperatorNews, installation: &str) -> (Vec<u8>, Mail) {
    let message = message(&news.matter, news.ended);
    let mut notice = Notice {
        event: news.matter.name(),
        ended: news.ended,
        installation,
        message: &message,
        place: None,
        network: None,
        region: None,
        free_bytes: None,
        agent: None,
        host: None,
        ends_at: None,
        at: news.at.as_millis(),
    };
    match &news.matter {
        Matter::Quarantine { place, region, .. } => {
            notice.place = Some(&place.name);
            notice.network = Some(&place.network);
            notice.region = Some(region.name());
        }
        Matter::NobodyConnected(region) | Matter::OneNetwork(region) | Matter::Quarantined(region) => {
            notice.region = region.map(Region::name);
        }
        Matter::HostUnfit { agent, .. } | Matter::Contradicted { agent, .. } => notice.agent = Some(agent),
        Matter::StoreLow(free) => notice.free_bytes = Some(*free),
        Matter::CertificateEnding { agent, ends_at } => {
            notice.agent = agent.as_deref();
            notice.ends_at = Some(ends_at.as_millis());
        }
        Matter::HostsEnding { first, count, ends_at } if *count > 0 => {
            notice.host = Some(first);
            notice.ends_at = Some(ends_at.as_millis());
        }
        Matter::OwnEnding(ends_at) => notice.ends_at = Some(ends_at.as_millis()),
        Matter::PartsBroken(_)
        | Matter::HostsEnding { .. }
        | Matter::NamesFail
        | Matter::TwoNetworks
        | Matter::DeliveriesBlocked => {}
    }
    // A struct of texts and numbers is always written.
    let json = serde_json::to_vec(&notice).unwrap_or_default();
    (json, mail(news, &message, installation))
}

fn mail(news: &OperatorNews, message: &str, installation: &str) -> Mail {
    let title = format!("{}{}", if news.ended { "Over: " } else { "" }, title(&news.matter));
    Sheet {
        title: text::line(&title, 200),
        subject: Some(text::line(&format!("[{installation}] {title}"), 200)),
        mood: if news.ended { Mood::Good } else { Mood::Warning },
        lead: vec![message.to_owned()],
        facts: vec![
            ("Installation", installation.to_owned()),
            (if news.ended { "Over since" } else { "Since" }, super::words::moment(news.at, chrono_tz::UTC)),
        ],
        footer: vec![format!(
            "You get this because your address is set as the operator's of Parallax at {installation}."
        )],
        ..Sheet::default()
    }
    .mail()
}

fn title(matter: &Matter) -> String {
    match matter {
        Matter::Quarantine { place, .. } => format!("agent {} is in quarantine", place.name),
        Matter::NobodyConnected(None) => "no agent is connected".to_owned(),
        Matter::NobodyConnected(Some(region)) => format!("no agent in {} is connected", region.title()),
        Matter::OneNetwork(None) => "outages can't be confirmed: one network is left".to_owned(),
        Matter::OneNetwork(Some(region)) => format!("{} has one network", region.title()),
        Matter::StoreLow(_) => "the store is low on space".to_owned(),
        Matter::CertificateEnding { agent: Some(agent), .. } => {
            format!("certificate of agent {agent} ends soon")
        }
        Matter::CertificateEnding { agent: None, .. } => "the authority's certificate ends soon".to_owned(),
        Matter::PartsBroken(_) => "a part of the coordinator broke off".to_owned(),
        Matter::HostsEnding { .. } => "certificates of hostnames end soon".to_owned(),
        Matter::OwnEnding(_) => "the certificate in your files ends soon".to_owned(),
        Matter::Quarantined(None) => "all agents are in quarantine".to_owned(),
        Matter::Quarantined(Some(region)) => format!("all agents in {} are in quarantine", region.title()),
        Matter::NamesFail => "nearly all names fail to resolve".to_owned(),
        Matter::TwoNetworks => "only two networks have working agents".to_owned(),
        Matter::Contradicted { agent, .. } => format!("agents contradict agent {agent}"),
        Matter::DeliveriesBlocked => "webhooks and chats are not delivered".to_owned(),
        Matter::HostUnfit { agent, .. } => format!("the host of agent {agent} is not fit to check"),
    }
}

fn message(matter: &Matter, ended: bool) -> String {
    let clean = |name: &str| text::line(name, 120);
    match (matter, ended) {
        (Matter::Quarantine { place, region, found }, false) => format!(
            "The agent {} ({}, {}) {}. It runs one round in ten, none of which counts, and confirms nobody until it \
             agrees with the others again.",
            clean(&place.name),
            region.title(),
            clean(&place.network),
            match found {
                Some(found) => format!("is contradicted by other networks: {}", text::line(found, 300)),
                None => "shares its identity with another host".to_owned(),
            }
        ),
        (Matter::Quarantine { place, .. }, true) => {
            format!("The agent {} agrees with the others again: its rounds count.", clean(&place.name))
        }
        (Matter::NobodyConnected(None), false) => "No agent is connected: nothing is checked.".to_owned(),
        (Matter::NobodyConnected(None), true) => "Agents are connected again.".to_owned(),
        (Matter::NobodyConnected(Some(region)), false) => {
            format!("No agent in {} is connected: nothing is checked from there.", region.title())
        }
        (Matter::NobodyConnected(Some(region)), true) => {
            format!("An agent in {} is connected again.", region.title())
        }
        (Matter::OneNetwork(None), false) => {
            "Only one network has working agents. A failure that it sees can't be confirmed, so no monitor is called \
             down. Connect or repair agents on another network, or add one there. Agents on three networks keep outages \
             confirmed when one of them breaks."
                .to_owned()
        }
        (Matter::OneNetwork(None), true) => {
            "Agents on two networks or more work again: outages can be confirmed.".to_owned()
        }
        (Matter::OneNetwork(Some(region)), false) => format!(
            "The working agents in {} are on one network: it can confirm only what other regions see too.",
            region.title()
        ),
        (Matter::OneNetwork(Some(region)), true) => {
            format!("Agents on two networks or more work in {} again.", region.title())
        }
        (Matter::StoreLow(free), false) => format!(
            "The disk that holds the store has {} MiB left. Writes are refused once too little is free.",
            free >> 20
        ),
        (Matter::StoreLow(free), true) => {
            format!("The disk that holds the store has {} MiB free again.", free >> 20)
        }
        (Matter::CertificateEnding { agent: Some(agent), .. }, false) => format!(
            "The certificate of the agent {} ends soon and was not renewed. An agent whose certificate has ended must \
             join anew.",
            clean(agent)
        ),
        (Matter::CertificateEnding { agent: Some(agent), .. }, true) => {
            format!("The agent {} has a new certificate.", clean(agent))
        }
        (Matter::CertificateEnding { agent: None, .. }, false) => {
            "The certificate of the mesh's authority ends soon. Exchange it with `parallax mesh rotate`."
                .to_owned()
        }
        (Matter::CertificateEnding { agent: None, .. }, true) => {
            "The mesh's authority has a new certificate.".to_owned()
        }
        (Matter::PartsBroken(parts), false) => format!(
            "{} of the coordinator broke off within the last hour and {} begun anew: a fault of Parallax, please report it. \
             The log says which and why, in lines with \"broke off\".",
            if *parts == 1 { "A part".to_owned() } else { format!("{parts} parts") },
            if *parts == 1 { "was" } else { "were" },
        ),
        (Matter::HostsEnding { first, count, ends_at }, false) => format!(
            "{} could not be renewed. The first to end is that of {}, at {}: visitors are warned of the page from then on. \
             The log says why.",
            if *count == 1 {
                "A hostname's certificate".to_owned()
            } else {
                format!("{count} hostnames' certificates")
            },
            clean(first),
            super::words::moment(*ends_at, chrono_tz::UTC),
        ),
        (Matter::HostsEnding { .. }, true) => {
            "No certificate of a hostname is near its end unrenewed any more.".to_owned()
        }
        (Matter::OwnEnding(ends_at), false) => format!(
            "The certificate in the files of [tls] ends at {}. Put a new one in their place: it is read within a minute.",
            super::words::moment(*ends_at, chrono_tz::UTC)
        ),
        (Matter::OwnEnding(_), true) => "The files of [tls] hold a new certificate.".to_owned(),
        (Matter::Quarantined(None), false) => {
            "All connected agents are in quarantine, since other networks contradict \
                                               them: no check counts. See `parallax agent list`."
                .to_owned()
        }
        (Matter::Quarantined(None), true) => "Not all agents are in quarantine any more.".to_owned(),
        (Matter::Quarantined(Some(region)), false) => format!(
            "All connected agents in {} are in quarantine, since other networks contradict them: no check from there \
             counts until they agree again. See `parallax agent list`.",
            region.title()
        ),
        (Matter::Quarantined(Some(region)), true) => {
            format!("Not all agents in {} are in quarantine any more.", region.title())
        }
        (Matter::NamesFail, false) => "Nearly all names fail to resolve at all agents, whatever domain they are in. \
                                       Failures to resolve a name count for nothing until names resolve again. \
                                       Look at the agents' name servers."
            .to_owned(),
        (Matter::TwoNetworks, false) => "Only two networks have working agents. Where they contradict each other, the \
                                         failure does not count: one agent behind a captive portal or an intercepting \
                                         proxy hides outages. Add an agent on a third network, whose word decides."
            .to_owned(),
        (Matter::TwoNetworks, true) => "Working agents are not on two networks alone any more.".to_owned(),
        (Matter::Contradicted { agent, by }, false) => format!(
            "The agent {} is contradicted by others: {}. It is not in quarantine, since no more than a third of the agents \
             may be. Look for the one that is wrong: a captive portal, an intercepting proxy or a resolver that answers \
             for every name.",
            clean(agent),
            text::line(by, 300)
        ),
        (Matter::Contradicted { agent, .. }, true) => {
            format!("The agent {} is no longer contradicted by others.", clean(agent))
        }
        (Matter::NamesFail, true) => "Names resolve again: failures to resolve one count.".to_owned(),
        (Matter::DeliveriesBlocked, false) => "The coordinator can't read the addresses of its host, so it can't tell which \
                                               webhooks lead to the host itself: none is sent, and chats aren't \
                                               either. Allow the service AF_NETLINK (RestrictAddressFamilies= in its \
                                               unit). Deliveries are tried again by themselves."
            .to_owned(),
        (Matter::DeliveriesBlocked, true) => "Webhooks and chats are delivered again.".to_owned(),
        (Matter::HostUnfit { agent, faults }, false) => format!(
            "The agent {} reports: {}. Its checks say nothing about your monitors until that is mended.",
            clean(agent),
            text::line(faults, 300)
        ),
        (Matter::HostUnfit { agent, .. }, true) => {
            format!("The host of the agent {} is fit to check again.", clean(agent))
        }
        (Matter::PartsBroken(_), true) => {
            "No part of the coordinator has broken off within the last hour.".to_owned()
        }
    }
}
