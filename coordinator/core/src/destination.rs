//! Destinations of a page's alerts: one record for each, whatever the channel.

mod channel_kind;
pub mod delivery_url;
pub mod edit;
mod mask;

pub use channel_kind::ChannelKind;
pub use mask::{MASK, masked_email, masked_url};

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::compat;
use crate::event::AlertKind;
use crate::flapping::Aspect;
use crate::id::{DestinationId, MonitorId, PageId};
use crate::time::{DAY, Timestamp};

/// Maximum number of destinations of one page.
pub const MAX_DESTINATIONS: usize = 20;
/// Milliseconds after which a new secret becomes active if the owner does not activate it earlier.
pub const SECRET_OVERLAP: i64 = DAY;
/// Milliseconds of consecutive failures after which a destination is disabled.
pub const DISABLE_AFTER: i64 = 5 * DAY;
/// Consecutive permanent rejections by a mail server after which a mailbox is disabled.
pub const MAX_REJECTIONS: u8 = 3;

/// A destination of a page's alerts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// The page whose alerts it gets.
    pub page: PageId,
    /// Name given by its owner.
    pub name: String,
    /// Channel and its address.
    pub channel: Channel,
    /// Alerts that it receives; none means every kind.
    pub events: Option<Vec<AlertKind>>,
    /// Monitors whose alerts it receives; none means every monitor of the page.
    pub monitors: Option<Vec<MonitorId>>,
    /// True if its owner has it switched on.
    pub enabled: bool,
    /// Delivery health.
    pub health: DeliveryHealth,
    /// Creation time.
    pub created_at: Timestamp,
    /// True if alerts of outages carry a link to their evidence, which works without sign-in. Older records lack this
    /// field.
    #[serde(deserialize_with = "compat::or_default")]
    pub evidence_link: bool,
}

/// The channel of a destination with its parameters. New variants are added only at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// A mailbox.
    Email {
        /// Email address.
        to: String,
    },
    /// A signed POST of JSON.
    Webhook {
        /// Target URL.
        url: String,
        /// Signing secrets.
        secret: SigningSecrets,
    },
    /// An incoming webhook of Slack, or of Mattermost, which accepts the same format.
    Slack {
        /// URL of the incoming webhook.
        url: String,
    },
    /// A Discord webhook.
    Discord {
        /// URL of the webhook.
        url: String,
    },
    /// A workflow webhook of Microsoft Teams.
    Teams {
        /// URL of the webhook.
        url: String,
    },
    /// A Telegram chat.
    Telegram {
        /// Bot token.
        token: String,
        /// Chat id, or a channel's `@name`.
        chat: String,
    },
    /// An ntfy topic.
    Ntfy {
        /// URL of the topic; its last path segment is the topic.
        url: String,
        /// Access token, if the topic requires one.
        token: Option<String>,
    },
    /// A PagerDuty service (Events API v2).
    PagerDuty {
        /// Routing key of the integration.
        key: String,
    },
}

impl Channel {
    /// The kind of this channel.
    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Email { .. } => ChannelKind::Email,
            Self::Webhook { .. } => ChannelKind::Webhook,
            Self::Slack { .. } => ChannelKind::Slack,
            Self::Discord { .. } => ChannelKind::Discord,
            Self::Teams { .. } => ChannelKind::Teams,
            Self::Telegram { .. } => ChannelKind::Telegram,
            Self::Ntfy { .. } => ChannelKind::Ntfy,
            Self::PagerDuty { .. } => ChannelKind::PagerDuty,
        }
    }
}

/// Signing secrets of a receiver, each as displayed: `whsec_` and base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningSecrets {
    /// The newest secret. While an earlier one exists, this one is pending and deliveries carry both
    /// signatures.
    pub newest: String,
    /// The earlier secret, which stays active until that time.
    pub previous: Option<(String, Timestamp)>,
}

impl SigningSecrets {
    /// The secret with which receivers that hold only one verify a delivery.
    pub fn active(&self, now: Timestamp) -> &str {
        self.active_previous(now).map_or(self.newest.as_str(), |(before, _)| before)
    }

    /// The secret that also signs, and that will replace the active one.
    pub fn pending(&self, now: Timestamp) -> Option<&str> {
        self.active_previous(now).map(|_| self.newest.as_str())
    }

    /// Time at which the pending secret becomes active automatically.
    pub fn pending_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.active_previous(now).map(|(_, until)| until)
    }

    /// Returns the secrets with a new pending one, which replaces an earlier pending one.
    #[must_use]
    pub fn rotated(&self, secret: String, now: Timestamp) -> Self {
        Self { newest: secret, previous: Some((self.active(now).to_owned(), now + SECRET_OVERLAP)) }
    }

    /// Returns the newest secret alone.
    #[must_use]
    pub fn activated(&self) -> Self {
        Self { newest: self.newest.clone(), previous: None }
    }

    fn active_previous(&self, now: Timestamp) -> Option<(&str, Timestamp)> {
        let (before, until) = self.previous.as_ref()?;
        (now < *until).then_some((before.as_str(), *until))
    }
}

impl std::fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// Delivery health of a receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryHealth {
    /// Start of the current run of failures; none if the last delivery was accepted.
    pub failing_since: Option<Timestamp>,
    /// Consecutive permanent rejections.
    pub rejections: u8,
    /// Time and reason of being disabled by the service; the owner's edit enables it again.
    pub disabled: Option<(Timestamp, DisableReason)>,
}

/// The reason for which the service disabled a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisableReason {
    /// It responded with 410 Gone.
    Gone,
    /// Five days of consecutive failures.
    Failing,
    /// Its mail server rejected the address permanently, three times.
    Rejected,
    /// A confirmation request was sent to its mailbox at that time and has not been answered.
    Unconfirmed,
    /// The account's plan does not include its channel. Never stored: see [`Destination::on_plan`].
    Plan,
}

impl DisableReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Gone, Self::Failing, Self::Rejected, Self::Unconfirmed, Self::Plan];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Rejected => "refused",
            Self::Unconfirmed => "unconfirmed",
            Self::Plan => "plan",
        }
    }
}

impl Destination {
    /// Time of the last confirmation request to its mailbox; none if no confirmation is pending.
    pub fn confirmation_sent_at(&self) -> Option<Timestamp> {
        self.health.disabled.filter(|(_, reason)| *reason == DisableReason::Unconfirmed).map(|(at, _)| at)
    }

    /// Returns the destination as it is on an account's plan: disabled if the plan does not include its
    /// channel. This is computed from the plan on each use, so that it works again on a plan that includes
    /// the channel.
    #[must_use]
    pub fn on_plan(mut self, account: &Account) -> Self {
        if !account.plan.has_channel(self.channel.kind()) && self.health.disabled.is_none() {
            let since = account.plan_since.unwrap_or(self.created_at).max(self.created_at);
            self.health.disabled = Some((since, DisableReason::Plan));
        }
        self
    }

    /// The email address that it sends to.
    pub fn mailbox(&self) -> Option<&str> {
        match &self.channel {
            Channel::Email { to } => Some(to),
            _ => None,
        }
    }

    /// Returns true if it gets notices that a monitor flaps or is steady again: it receives alerts of one of
    /// the changes.
    pub fn receives_flapping(&self, aspect: Aspect, monitor: MonitorId) -> bool {
        let is_change = |kind: &AlertKind| Aspect::of(*kind) == aspect && *kind != AlertKind::StillDown;
        let mut kinds = AlertKind::ALL.into_iter().filter(is_change);
        self.channel.kind().is_chat() && kinds.any(|kind| self.receives(kind, monitor))
    }

    /// Returns true if it receives that kind of alert for that monitor.
    pub fn receives(&self, kind: AlertKind, monitor: MonitorId) -> bool {
        self.enabled
            && self.health.disabled.is_none()
            && self.events.as_ref().is_none_or(|events| events.contains(&kind))
            && self.monitors.as_ref().is_none_or(|monitors| monitors.contains(&monitor))
    }
}
