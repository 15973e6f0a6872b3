//! Kinds of channels.

/// The kind of a channel, without its parameters.
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

    /// Returns true for chats, where messages appear one below the other: a flapping monitor posts two
    /// messages there. Mailboxes and programs get one for each change.
    pub const fn is_chat(self) -> bool {
        match self {
            Self::Slack | Self::Discord | Self::Teams | Self::Telegram | Self::Ntfy => true,
            Self::Email | Self::Webhook | Self::PagerDuty => false,
        }
    }
}
