//! Operator alerts about the mesh, the store and certificates: for example an agent in quarantine or a region
//! without agents.

mod wording;

use parallax_core::delivery::MailMessage;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use serde::Serialize;

use super::mail::{HeadingColor, MailContent};
use super::{AgentLabel, text, time_format};
use wording::{message, title};

/// An alert to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatorNotification {
    /// Problem.
    pub problem: ProblemDetails,
    /// True if the problem is resolved.
    pub has_ended: bool,
    /// Time when the problem began, or ended.
    pub at: Timestamp,
}

/// A problem that the operator can fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProblemDetails {
    /// The results of an agent contradict those of others.
    AgentQuarantined {
        /// The agent.
        agent: AgentLabel,
        /// Its region.
        region: Region,
        /// Agents that contradict it, and how often; `None` if two hosts share its identity.
        contradicted_by: Option<String>,
    },
    /// No agent of a region is connected; with `None`, no agent at all.
    NoAgentConnected(Option<Region>),
    /// All working agents of a region are on one network; with `None`, those of the whole mesh.
    SingleNetwork(Option<Region>),
    /// The store's disk is nearly full: free bytes.
    DiskNearlyFull(u64),
    /// An agent's or the authority's certificate expires soon.
    CertificateExpiring {
        /// Agent's name; `None` for the authority.
        agent: Option<String>,
        /// Expiry.
        ends_at: Timestamp,
    },
    /// Number of the coordinator's tasks that crashed recently and were restarted.
    TasksCrashed(u32),
    /// Certificates of hostnames expire soon and could not be renewed.
    AcmeCertificatesExpiring {
        /// Hostname whose certificate expires first.
        first: String,
        /// Number of hostnames.
        count: u32,
        /// Expiry of the first.
        ends_at: Timestamp,
    },
    /// The certificate in the operator's files expires soon, at that time.
    CertificateFileExpiring(Timestamp),
    /// All connected agents of a region are in quarantine; with `None`, those of the whole mesh.
    AllQuarantined(Option<Region>),
    /// An agent's host is not fit to run checks.
    UnfitHost {
        /// The agent's name.
        agent: String,
        /// Faults of the host, as the agent reports them.
        faults: String,
    },
    /// Nearly all names fail to resolve on all agents.
    NameResolutionFails,
    /// Only two networks have working agents.
    OnlyTwoNetworks,
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

impl ProblemDetails {
    /// Event name in messages and deliveries.
    pub(crate) const fn event_name(&self) -> &'static str {
        match self {
            Self::AgentQuarantined { .. } => "place-quarantined",
            Self::NoAgentConnected(_) => "region-stale",
            Self::SingleNetwork(_) => "second-network-missing",
            Self::DiskNearlyFull(_) => "store-low",
            Self::CertificateExpiring { .. }
            | Self::AcmeCertificatesExpiring { .. }
            | Self::CertificateFileExpiring(_) => "certificate-ending",
            Self::TasksCrashed(_) => "part-broken",
            Self::AllQuarantined(_) => "region-quarantined",
            Self::UnfitHost { .. } => "host-unfit",
            Self::NameResolutionFails => "names-failing",
            Self::OnlyTwoNetworks => "third-network-missing",
            Self::Contradicted { .. } => "place-contradicted",
            Self::DeliveriesBlocked => "deliveries-blocked",
        }
    }
}

/// Signed JSON body. Times are milliseconds since the epoch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperatorAlertPayload<'a> {
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
pub(crate) fn render_operator_alert(notification: &OperatorNotification, installation: &str) -> (Vec<u8>, MailMessage) {
    let message = message(&notification.problem, notification.has_ended);
    let mut payload = OperatorAlertPayload {
        event: notification.problem.event_name(),
        ended: notification.has_ended,
        installation,
        message: &message,
        place: None,
        network: None,
        region: None,
        free_bytes: None,
        agent: None,
        host: None,
        ends_at: None,
        at: notification.at.as_millis(),
    };
    match &notification.problem {
        ProblemDetails::AgentQuarantined { agent, region, .. } => {
            payload.place = Some(&agent.name);
            payload.network = Some(&agent.network);
            payload.region = Some(region.name());
        }
        ProblemDetails::NoAgentConnected(region)
        | ProblemDetails::SingleNetwork(region)
        | ProblemDetails::AllQuarantined(region) => {
            payload.region = region.map(Region::name);
        }
        ProblemDetails::UnfitHost { agent, .. } | ProblemDetails::Contradicted { agent, .. } => {
            payload.agent = Some(agent)
        }
        ProblemDetails::DiskNearlyFull(free) => payload.free_bytes = Some(*free),
        ProblemDetails::CertificateExpiring { agent, ends_at } => {
            payload.agent = agent.as_deref();
            payload.ends_at = Some(ends_at.as_millis());
        }
        ProblemDetails::AcmeCertificatesExpiring { first, count, ends_at } if *count > 0 => {
            payload.host = Some(first);
            payload.ends_at = Some(ends_at.as_millis());
        }
        ProblemDetails::CertificateFileExpiring(ends_at) => payload.ends_at = Some(ends_at.as_millis()),
        ProblemDetails::TasksCrashed(_)
        | ProblemDetails::AcmeCertificatesExpiring { .. }
        | ProblemDetails::NameResolutionFails
        | ProblemDetails::OnlyTwoNetworks
        | ProblemDetails::DeliveriesBlocked => {}
    }
    // A struct of strings and numbers always serializes.
    let json = serde_json::to_vec(&payload).unwrap_or_default();
    (json, mail(notification, &message, installation))
}

fn mail(notification: &OperatorNotification, message: &str, installation: &str) -> MailMessage {
    let title = format!("{}{}", if notification.has_ended { "Resolved: " } else { "" }, title(&notification.problem));
    MailContent {
        title: text::single_line(&title, 200),
        subject: Some(text::single_line(&format!("[{installation}] {title}"), 200)),
        heading_color: if notification.has_ended { HeadingColor::Resolved } else { HeadingColor::Warning },
        paragraphs: vec![message.to_owned()],
        facts: vec![
            ("Installation", installation.to_owned()),
            (
                if notification.has_ended { "Resolved" } else { "Since" },
                time_format::format_time(notification.at, chrono_tz::UTC),
            ),
        ],
        footer: vec![format!(
            "You received this email because your address is the operator's address of Parallax at {installation}."
        )],
        ..MailContent::default()
    }
    .render()
}
