//! Where a page's alerts go: one record for each destination, whatever the channel.

pub mod address;
pub mod edit;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::event::AlertKind;
use crate::flapping::Aspect;
use crate::id::{DestinationId, MonitorId, PageId};
use crate::time::{DAY, Timestamp};

/// Destinations of one page: at most so many.
pub const MAX_DESTINATIONS: usize = 20;
/// Milliseconds after which a new secret is active, if its owner does not activate it earlier.
pub const OLD_SECRET: i64 = DAY;
/// Milliseconds of nothing but failures after which a destination is switched off.
pub const GIVES_UP: i64 = 5 * DAY;
/// Permanent refusals of a mailbox in a row after which it is switched off.
pub const REFUSALS: u8 = 3;

/// A destination of a page's alerts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// The page whose alerts it gets.
    pub page: PageId,
    /// What its owner calls it.
    pub name: String,
    /// How it is reached.
    pub channel: Channel,
    /// Alerts that it gets; none means every kind.
    pub events: Option<Vec<AlertKind>>,
    /// Monitors whose alerts it gets; none means every one of the page.
    pub monitors: Option<Vec<MonitorId>>,
    /// Whether its owner wants it to be used.
    pub enabled: bool,
    /// How it fares.
    pub health: Health,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How a destination is reached. Variants are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// A mailbox.
    Email {
        /// Its address.
        to: String,
    },
    /// A signed POST of JSON.
    Webhook {
        /// Where to.
        url: String,
        /// What it is signed with.
        secret: Secrets,
    },
    /// An incoming webhook of Slack, or of Mattermost, which reads the same.
    Slack {
        /// The incoming webhook's address.
        url: String,
    },
    /// A webhook of Discord.
    Discord {
        /// The webhook's address.
        url: String,
    },
    /// A workflow's webhook of Microsoft Teams.
    Teams {
        /// The webhook's address.
        url: String,
    },
    /// A chat of Telegram.
    Telegram {
        /// The bot's token.
        token: String,
        /// The chat's id, or a channel's `@name`.
        chat: String,
    },
    /// A topic of ntfy.
    Ntfy {
        /// The topic's address, its last path segment being the topic.
        url: String,
        /// An access token, where the topic asks for one.
        token: Option<String>,
    },
    /// A service of PagerDuty (Events API v2).
    PagerDuty {
        /// The integration's routing key.
        key: String,
    },
}

/// A channel without what it needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelKind {
    /// A mailbox.
    Email,
    /// A signed POST of JSON.
    Webhook,
    /// Slack, or Mattermost.
    Slack,
    /// Discord.
    Discord,
    /// Microsoft Teams.
    Teams,
    /// Telegram.
    Telegram,
    /// ntfy.
    Ntfy,
    /// PagerDuty.
    PagerDuty,
}

impl ChannelKind {
    /// Every channel.
    pub const ALL: [Self; 8] = [
        Self::Email,
        Self::Webhook,
        Self::Slack,
        Self::Discord,
        Self::Teams,
        Self::Telegram,
        Self::Ntfy,
        Self::PagerDuty,
    ];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Teams => "teams",
            Self::Telegram => "telegram",
            Self::Ntfy => "ntfy",
            Self::PagerDuty => "pagerduty",
        }
    }

    /// True where people read it as it comes, one message below the other: of what flaps it gets two messages. Mailboxes
    /// and programs get one for each change.
    pub const fn is_chat(self) -> bool {
        match self {
            Self::Slack | Self::Discord | Self::Teams | Self::Telegram | Self::Ntfy => true,
            Self::Email | Self::Webhook | Self::PagerDuty => false,
        }
    }
}

impl Channel {
    /// Which one it is.
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

/// What a receiver's deliveries are signed with, each as it is shown: `whsec_` and base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The newest one. While there is one before it, it waits to be activated and signs beside it.
    pub present: String,
    /// The one before it, which stays the active one until that moment.
    pub before: Option<(String, Timestamp)>,
}

impl Secrets {
    /// The secret by which receivers that know one alone check a delivery.
    pub fn active(&self, now: Timestamp) -> &str {
        self.replaced(now).map_or(self.present.as_str(), |(before, _)| before)
    }

    /// The secret that signs beside the active one and is to replace it.
    pub fn pending(&self, now: Timestamp) -> Option<&str> {
        self.replaced(now).map(|_| self.present.as_str())
    }

    /// The moment at which the pending secret becomes the active one by itself.
    pub fn pending_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.replaced(now).map(|(_, until)| until)
    }

    /// The same with a new secret that waits to be activated, in the place of one that waits already.
    #[must_use]
    pub fn rotated(&self, secret: String, now: Timestamp) -> Self {
        Self { present: secret, before: Some((self.active(now).to_owned(), now + OLD_SECRET)) }
    }

    /// The same with its newest secret alone.
    #[must_use]
    pub fn activated(&self) -> Self {
        Self { present: self.present.clone(), before: None }
    }

    fn replaced(&self, now: Timestamp) -> Option<(&str, Timestamp)> {
        let (before, until) = self.before.as_ref()?;
        (now < *until).then_some((before.as_str(), *until))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// How a receiver fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Since when nothing but failures came of it; none while the last delivery was taken.
    pub failing_since: Option<Timestamp>,
    /// Permanent refusals in a row.
    pub refusals: u8,
    /// Since when it is switched off by us, and why; its owner's edit switches it on again.
    pub off: Option<(Timestamp, OffReason)>,
}

/// Why we switched a receiver off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OffReason {
    /// It answered 410.
    Gone,
    /// Five days of nothing but failures.
    Failing,
    /// Its mail server refused the address for good, three times.
    Refused,
    /// Its mailbox's reader was asked, then, whether he wants it, and has not said so.
    Unconfirmed,
    /// The account's plan does not have its channel. Never stored: see [`Destination::within`].
    Plan,
}

impl OffReason {
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::Gone, Self::Failing, Self::Refused, Self::Unconfirmed, Self::Plan];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Refused => "refused",
            Self::Unconfirmed => "unconfirmed",
            Self::Plan => "plan",
        }
    }
}

impl Destination {
    /// When its mailbox's reader was last asked whether he wants alerts; none where nobody is asked, or he said so.
    pub fn asked_at(&self) -> Option<Timestamp> {
        self.health.off.filter(|(_, reason)| *reason == OffReason::Unconfirmed).map(|(at, _)| at)
    }

    /// The same as its owner sees it on an account's plan: switched off where the plan does not have its channel. This
    /// follows from the plan each time it is looked at, so that it works again with the next one that has.
    #[must_use]
    pub fn within(mut self, account: &Account) -> Self {
        if !account.plan.has_channel(self.channel.kind()) && self.health.off.is_none() {
            let since = account.plan_since.unwrap_or(self.created_at).max(self.created_at);
            self.health.off = Some((since, OffReason::Plan));
        }
        self
    }

    /// The mailbox that it writes to.
    pub fn mailbox(&self) -> Option<&str> {
        match &self.channel {
            Channel::Email { to } => Some(to),
            _ => None,
        }
    }

    /// True where it is to hear that a monitor flaps, or is steady again: it hears of one of the changes.
    pub fn hears_of(&self, aspect: Aspect, monitor: MonitorId) -> bool {
        let is_change = |kind: &AlertKind| Aspect::of(*kind) == aspect && *kind != AlertKind::StillDown;
        let mut kinds = AlertKind::ALL.into_iter().filter(is_change);
        self.channel.kind().is_chat() && kinds.any(|kind| self.hears(kind, monitor))
    }

    /// Whether it is to hear of that kind of alert of that monitor.
    pub fn hears(&self, kind: AlertKind, monitor: MonitorId) -> bool {
        self.enabled
            && self.health.off.is_none()
            && self.events.as_ref().is_none_or(|events| events.contains(&kind))
            && self.monitors.as_ref().is_none_or(|monitors| monitors.contains(&monitor))
    }
}
