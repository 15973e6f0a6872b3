//! Operator alerts about the mesh, the store and certificates: for example an agent in quarantine or a region
//! without agents.

use parallax_core::delivery::Mail;
use parallax_core::place::Region;
use parallax_core::time::Timestamp;
use serde::Serialize;

use super::PlaceName;
use super::mail::{Mood, Sheet};
use super::text;

/// An alert to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorNews {
    /// Problem.
    pub matter: Matter,
    /// True if the problem is resolved.
    pub ended: bool,
    /// Time when the problem began, or ended.
    pub at: Timestamp,
}

/// A problem that the operator can fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matter {
    /// The results of an agent contradict those of others.
    Quarantine {
        /// The agent.
        place: PlaceName,
        /// Its region.
        region: Region,
        /// Agents that contradict it, and how often; `None` if two hosts share its identity.
        found: Option<String>,
    },
    /// No agent of a region is connected; with `None`, no agent at all.
    NobodyConnected(Option<Region>),
    /// All working agents of a region are on one network; with `None`, those of the whole mesh.
    OneNetwork(Option<Region>),
    /// The store's disk is nearly full: free bytes.
    StoreLow(u64),
    /// An agent's or the authority's certificate expires soon.
    CertificateEnding {
        /// Agent's name; `None` for the authority.
        agent: Option<String>,
        /// Expiry.
        ends_at: Timestamp,
    },
    /// Number of the coordinator's tasks that crashed recently and were restarted.
    PartsBroken(u32),
    /// Certificates of hostnames expire soon and could not be renewed.
    HostsEnding {
        /// Hostname whose certificate expires first.
        first: String,
        /// Number of hostnames.
        count: u32,
        /// Expiry of the first.
        ends_at: Timestamp,
    },
    /// The certificate in the operator's files expires soon, at that time.
    OwnEnding(Timestamp),
    /// All connected agents of a region are in quarantine; with `None`, those of the whole mesh.
    Quarantined(Option<Region>),
    /// An agent's host is not fit to run checks.
    HostUnfit {
        /// The agent's name.
        agent: String,
        /// Faults of the host, as the agent reports them.
        faults: String,
    },
    /// Nearly all names fail to resolve on all agents.
    NamesFail,
    /// Only two networks have working agents.
    TwoNetworks,
    /// Other agents contradict an agent that stays active because too many would be in quarantine.
    Contradicted {
        /// The agent's name.
        agent: String,
        /// Agents that contradict it, and how often.
        by: String,
    },
    /// The coordinator can't read its host's own addresses, so only mail is delivered.
    DeliveriesBlocked,
}

impl Matter {
    /// All event names, in the order of the variants.
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

    /// Event name in messages and deliveries.
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

/// Signed JSON body. Times are milliseconds since the epoch.
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

/// Renders the operator's webhook body and mail. `installation` is the public host of this installation: one
/// mailbox may serve several.
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
    // A struct of strings and numbers always serializes.
    let json = serde_json::to_vec(&notice).unwrap_or_default();
    (json, mail(news, &message, installation))
}

fn mail(news: &OperatorNews, message: &str, installation: &str) -> Mail {
    let title = format!("{}{}", if news.ended { "Resolved: " } else { "" }, title(&news.matter));
    Sheet {
        title: text::line(&title, 200),
        subject: Some(text::line(&format!("[{installation}] {title}"), 200)),
        mood: if news.ended { Mood::Good } else { Mood::Warning },
        lead: vec![message.to_owned()],
        facts: vec![
            ("Installation", installation.to_owned()),
            (if news.ended { "Resolved" } else { "Since" }, super::words::moment(news.at, chrono_tz::UTC)),
        ],
        footer: vec![format!(
            "You received this email because your address is the operator's address of Parallax at {installation}."
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
        Matter::OneNetwork(None) => "outages can't be confirmed: only one network left".to_owned(),
        Matter::OneNetwork(Some(region)) => format!("{} has only one network", region.title()),
        Matter::StoreLow(_) => "the store is low on space".to_owned(),
        Matter::CertificateEnding { agent: Some(agent), .. } => {
            format!("certificate of agent {agent} expires soon")
        }
        Matter::CertificateEnding { agent: None, .. } => {
            "the authority's certificate expires soon".to_owned()
        }
        Matter::PartsBroken(_) => "a task of the coordinator crashed".to_owned(),
        Matter::HostsEnding { .. } => "certificates of hostnames expire soon".to_owned(),
        Matter::OwnEnding(_) => "the certificate in your files expires soon".to_owned(),
        Matter::Quarantined(None) => "all agents are in quarantine".to_owned(),
        Matter::Quarantined(Some(region)) => format!("all agents in {} are in quarantine", region.title()),
        Matter::NamesFail => "nearly all names fail to resolve".to_owned(),
        Matter::TwoNetworks => "only two networks have working agents".to_owned(),
        Matter::Contradicted { agent, .. } => format!("other agents contradict agent {agent}"),
        Matter::DeliveriesBlocked => "webhooks and chats are not delivered".to_owned(),
        Matter::HostUnfit { agent, .. } => format!("the host of agent {agent} is not fit to run checks"),
    }
}

fn message(matter: &Matter, ended: bool) -> String {
    let clean = |name: &str| text::line(name, 120);
    match (matter, ended) {
        (Matter::Quarantine { place, region, found }, false) => format!(
            "The agent {} ({}, {}) {}. Until it agrees with the others again, it runs only one round in ten, its results \
             don't count, and it confirms no failures.",
            clean(&place.name),
            region.title(),
            clean(&place.network),
            match found {
                Some(found) => format!("is contradicted by other networks: {}", text::line(found, 300)),
                None => "shares its identity with another host".to_owned(),
            }
        ),
        (Matter::Quarantine { place, .. }, true) => {
            format!("The agent {} agrees with the others again. Its results count.", clean(&place.name))
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
            "Only one network has working agents. Failures can't be confirmed, so no monitor is reported \
             down. Connect, repair or add an agent on another network. With agents on three networks, outages stay \
             confirmed even if one network fails."
                .to_owned()
        }
        (Matter::OneNetwork(None), true) => {
            "At least two networks have working agents again. Outages can be confirmed.".to_owned()
        }
        (Matter::OneNetwork(Some(region)), false) => format!(
            "The working agents in {} are on one network: only failures that other regions also see can be confirmed.",
            region.title()
        ),
        (Matter::OneNetwork(Some(region)), true) => {
            format!("At least two networks have working agents in {} again.", region.title())
        }
        (Matter::StoreLow(free), false) => format!(
            "The disk that holds the store has {} MiB left. When too little is left, writes are refused. Free up space or enlarge the disk.",
            free >> 20
        ),
        (Matter::StoreLow(free), true) => {
            format!("The disk that holds the store has {} MiB free again.", free >> 20)
        }
        (Matter::CertificateEnding { agent: Some(agent), .. }, false) => format!(
            "The certificate of the agent {} expires soon and was not renewed. Once it has expired, the agent must \
             join again.",
            clean(agent)
        ),
        (Matter::CertificateEnding { agent: Some(agent), .. }, true) => {
            format!("The agent {} has a new certificate.", clean(agent))
        }
        (Matter::CertificateEnding { agent: None, .. }, false) => {
            "The certificate of the mesh's authority expires soon. Replace it with `parallax mesh rotate`."
                .to_owned()
        }
        (Matter::CertificateEnding { agent: None, .. }, true) => {
            "The mesh's authority has a new certificate.".to_owned()
        }
        (Matter::PartsBroken(parts), false) => format!(
            "{} of the coordinator crashed within the last hour and {} restarted. This is a bug in Parallax; please report it. \
             The log has the details.",
            if *parts == 1 { "A task".to_owned() } else { format!("{parts} tasks") },
            if *parts == 1 { "was" } else { "were" },
        ),
        (Matter::HostsEnding { first, count, ends_at }, false) => format!(
            "{} could not be renewed. The certificate of {} expires first, at {}; from then on browsers show visitors a warning. \
             See the log for the reason.",
            if *count == 1 {
                "A hostname's certificate".to_owned()
            } else {
                format!("{count} hostnames' certificates")
            },
            clean(first),
            super::words::moment(*ends_at, chrono_tz::UTC),
        ),
        (Matter::HostsEnding { .. }, true) => {
            "All certificates of hostnames have been renewed.".to_owned()
        }
        (Matter::OwnEnding(ends_at), false) => format!(
            "The certificate in the files of [tls] expires at {}. Replace the files; the new certificate is loaded within a minute.",
            super::words::moment(*ends_at, chrono_tz::UTC)
        ),
        (Matter::OwnEnding(_), true) => "The files of [tls] contain a new certificate.".to_owned(),
        (Matter::Quarantined(None), false) => {
            "All connected agents are in quarantine, because other networks contradict \
                                               them: no check counts. See `parallax agent list`."
                .to_owned()
        }
        (Matter::Quarantined(None), true) => "At least one agent is no longer in quarantine.".to_owned(),
        (Matter::Quarantined(Some(region)), false) => format!(
            "All connected agents in {} are in quarantine, because other networks contradict them: no check from there \
             counts until they agree again. See `parallax agent list`.",
            region.title()
        ),
        (Matter::Quarantined(Some(region)), true) => {
            format!("At least one agent in {} is no longer in quarantine.", region.title())
        }
        (Matter::NamesFail, false) => "Nearly all names fail to resolve on all agents, across all domains. \
                                       Resolution failures don't count until names resolve again. \
                                       Check the agents' name servers."
            .to_owned(),
        (Matter::TwoNetworks, false) => "Only two networks have working agents. If they contradict each other, a \
                                         failure does not count: one agent behind a captive portal or an intercepting \
                                         proxy hides outages. Add an agent on a third network to decide."
            .to_owned(),
        (Matter::TwoNetworks, true) => "Working agents are no longer on two networks only.".to_owned(),
        (Matter::Contradicted { agent, by }, false) => format!(
            "The agent {} is contradicted by others: {}. It is not in quarantine, because no more than a third of the agents \
             may be. Look for the one that is wrong: a captive portal, an intercepting proxy or a resolver that answers \
             for every name.",
            clean(agent),
            text::line(by, 300)
        ),
        (Matter::Contradicted { agent, .. }, true) => {
            format!("The agent {} is no longer contradicted by others.", clean(agent))
        }
        (Matter::NamesFail, true) => "Names resolve again. Resolution failures count.".to_owned(),
        (Matter::DeliveriesBlocked, false) => "The coordinator can't read its host's own addresses, so it can't tell which \
                                               webhooks lead to the host itself: no webhooks and chat messages are \
                                               sent. Allow the service AF_NETLINK (RestrictAddressFamilies= in its \
                                               unit). Deliveries are retried automatically."
            .to_owned(),
        (Matter::DeliveriesBlocked, true) => "Webhooks and chats are delivered again.".to_owned(),
        (Matter::HostUnfit { agent, faults }, false) => format!(
            "The agent {} reports: {}. Its checks don't count until this is fixed.",
            clean(agent),
            text::line(faults, 300)
        ),
        (Matter::HostUnfit { agent, .. }, true) => {
            format!("The host of the agent {} is fit to run checks again.", clean(agent))
        }
        (Matter::PartsBroken(_), true) => {
            "No task of the coordinator has crashed within the last hour.".to_owned()
        }
    }
}
