//! Validation of a destination as sent in a request.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::delivery_url::{read_topic, read_url};
use super::mask::unmasked;
use super::{Channel, ChannelKind, DeliveryHealth, Destination, DisableReason, SigningSecrets};
use crate::event::AlertKind;
use crate::id::{DestinationId, MonitorId, PageId};
use crate::incident::MAX_AFFECTED;
use crate::patch::PatchField;
use crate::text;
use crate::time::Timestamp;
use crate::validation::{Rule, ValidationErrors};

/// Maximum length of a destination's name, in characters.
pub const MAX_NAME: usize = 80;
/// Maximum length of a URL, in characters.
pub const MAX_URL: usize = 2000;
/// Maximum length of an email address, in characters (RFC 5321 section 4.5.3.1.3).
pub const MAX_EMAIL: usize = 254;
/// Maximum length of a token, in characters.
pub const MAX_TOKEN: usize = 200;
/// Maximum length of a chat's id or name, in characters.
pub const MAX_CHAT: usize = 64;
/// Length of a routing key, in characters.
pub const ROUTING_KEY_LENGTH: usize = 32;
/// A destination's fields, as sent. Fields of other types are ignored.
#[derive(Debug, Clone, Default)]
pub struct DestinationEdit {
    /// Name.
    pub name: PatchField<String>,
    /// Type, which can't be changed later.
    pub kind: PatchField<String>,
    /// URL: for webhooks, most chats and ntfy.
    pub url: PatchField<String>,
    /// Email address.
    pub to: PatchField<String>,
    /// Token of a Telegram bot, or for ntfy.
    pub token: PatchField<String>,
    /// Telegram chat.
    pub chat: PatchField<String>,
    /// PagerDuty routing key.
    pub key: PatchField<String>,
    /// Alerts that it receives, by name.
    pub events: PatchField<Vec<String>>,
    /// Monitors whose alerts it receives, by id.
    pub monitor_ids: PatchField<Vec<String>>,
    /// True to switch it on.
    pub enabled: PatchField<bool>,
    /// True to add a link to the evidence to alerts of outages.
    pub evidence_link: PatchField<bool>,
    /// Errors for fields that were sent and can't be edited.
    pub read_only_errors: ValidationErrors,
}

/// Context for validating a destination.
#[derive(Clone, Copy)]
pub struct DestinationContext<'a> {
    /// The page's monitors.
    pub monitors: &'a BTreeSet<MonitorId>,
    /// Address of the page's account: the only mailbox that needs no confirmation.
    pub account_email: &'a str,
    /// Addresses that deliveries may not go to: returns the kind of address, such as `loopback`.
    pub forbidden_address: &'a dyn Fn(IpAddr) -> Option<&'static str>,
}

impl std::fmt::Debug for DestinationContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DestinationContext").field("monitors", &self.monitors).finish_non_exhaustive()
    }
}

impl DestinationEdit {
    /// Validates a new destination of the page. `secret` signs a webhook's deliveries. A mailbox other than
    /// the account's own gets nothing until its owner confirms the request sent to it.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate_new(
        &self,
        (id, page): (DestinationId, PageId),
        secret: String,
        context: &DestinationContext<'_>,
        now: Timestamp,
    ) -> Result<Destination, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let kind = self
            .kind
            .required("type", None, &mut faults, |kind| text::one_of(kind, &ChannelKind::ALL, ChannelKind::name));
        let stored =
            StoredFields { secret: Some(SigningSecrets { newest: secret, previous: None }), ..StoredFields::default() };
        let channel = kind.and_then(|kind| self.channel(kind, stored, context, &mut faults));
        self.validate_common(channel, None, context, faults).map(|common| Destination {
            id,
            page,
            health: initial_health(&common.channel, context, now),
            name: common.name,
            channel: common.channel,
            events: common.events,
            monitors: common.monitors,
            enabled: common.enabled,
            evidence_link: common.evidence_link,
            created_at: now,
        })
    }

    /// Validates an edit of a destination. One that the service disabled is enabled again, and one with a new
    /// address starts with fresh health. A mailbox that awaits confirmation still awaits it.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate_edit(
        &self,
        before: &Destination,
        context: &DestinationContext<'_>,
        now: Timestamp,
    ) -> Result<Destination, ValidationErrors> {
        let mut faults = self.read_only_errors.clone();
        let kind = before.channel.kind();
        self.kind.required("type", Some(()), &mut faults, |sent| {
            if sent == kind.name() { Ok(()) } else { Err("can't be changed".to_owned()) }
        });
        let channel = self.channel(kind, StoredFields::of(&before.channel), context, &mut faults);
        let common = self.validate_common(channel, Some(before), context, faults)?;
        let health = if common.channel != before.channel {
            initial_health(&common.channel, context, now)
        } else if before.health.disabled.is_none() || before.confirmation_sent_at().is_some() {
            before.health.clone()
        } else {
            DeliveryHealth::default()
        };
        Ok(Destination {
            name: common.name,
            channel: common.channel,
            events: common.events,
            monitors: common.monitors,
            enabled: common.enabled,
            evidence_link: common.evidence_link,
            health,
            ..before.clone()
        })
    }

    fn validate_common(
        &self,
        channel: Option<Channel>,
        before: Option<&Destination>,
        context: &DestinationContext<'_>,
        mut faults: ValidationErrors,
    ) -> Result<CommonFields, ValidationErrors> {
        let name = before.map(|before| before.name.clone());
        let name = self.name.required("name", name, &mut faults, |name| text::line(name, 1..=MAX_NAME));
        let events = before.and_then(|before| before.events.clone());
        let events = self.events.optional("events", events, &mut faults, |names| read_events(names));
        let of_before = before.and_then(|before| before.monitors.clone());
        let monitors = self.monitor_ids.optional("monitorIds", of_before.clone(), &mut faults, |ids| {
            read_monitors(ids, context.monitors, of_before.as_deref().unwrap_or_default())
        });
        let enabled = before.map(|before| before.enabled);
        let enabled = self.enabled.defaulted("enabled", enabled, true, &mut faults, |on| Ok(*on));
        let with_link = before.map(|before| before.evidence_link);
        let with_link = self.evidence_link.defaulted("evidenceLink", with_link, false, &mut faults, |on| Ok(*on));
        match (name, channel, enabled, with_link) {
            (Some(name), Some(channel), Some(enabled), Some(evidence_link)) if faults.is_empty() => {
                Ok(CommonFields { name, channel, events, monitors, enabled, evidence_link })
            }
            (..) => Err(faults),
        }
    }

    fn channel(
        &self,
        kind: ChannelKind,
        stored: StoredFields,
        context: &DestinationContext<'_>,
        faults: &mut ValidationErrors,
    ) -> Option<Channel> {
        let url = |before: Option<String>, faults: &mut ValidationErrors| {
            let stored = before.clone();
            self.url.required("url", before, faults, |url| {
                kept_or_read(url, stored, |url| read_url(url, kind, context.forbidden_address))
            })
        };
        match kind {
            ChannelKind::Email => {
                let to = self.to.required("to", stored.to, faults, |to| unmasked(to).and_then(text::parse_email))?;
                Some(Channel::Email { to })
            }
            ChannelKind::Webhook => {
                let url = url(stored.url, faults)?;
                Some(Channel::Webhook { url, secret: stored.secret? })
            }
            ChannelKind::Slack => Some(Channel::Slack { url: url(stored.url, faults)? }),
            ChannelKind::Discord => Some(Channel::Discord { url: url(stored.url, faults)? }),
            ChannelKind::Teams => Some(Channel::Teams { url: url(stored.url, faults)? }),
            ChannelKind::Telegram => {
                let token = self.token.required("token", stored.token, faults, |token| read_bot_token(token));
                let chat = self.chat.required("chat", stored.chat, faults, |chat| read_chat_id(chat));
                Some(Channel::Telegram { token: token?, chat: chat? })
            }
            ChannelKind::Ntfy => {
                let before = stored.url.clone();
                let url = self.url.required("url", stored.url, faults, |url| {
                    kept_or_read(url, before, |url| read_url(url, kind, context.forbidden_address).and_then(read_topic))
                });
                let token = self.token.optional("token", stored.token, faults, |token| read_token(token));
                Some(Channel::Ntfy { url: url?, token })
            }
            ChannelKind::PagerDuty => {
                let key = self.key.required("key", stored.key, faults, |key| read_routing_key(key))?;
                Some(Channel::PagerDuty { key })
            }
        }
    }
}

impl Destination {
    /// Signing secrets; none for a channel that does not sign.
    pub const fn secrets(&self) -> Option<&SigningSecrets> {
        match &self.channel {
            Channel::Webhook { secret, .. } => Some(secret),
            _ => None,
        }
    }

    /// Returns the destination with a new secret, which signs together with the active one until it is
    /// activated, or for [`SECRET_OVERLAP`]; none for a channel that does not sign.
    ///
    /// [`SECRET_OVERLAP`]: super::SECRET_OVERLAP
    pub fn rotated(&self, secret: String, now: Timestamp) -> Option<Self> {
        self.with_secret(self.secrets()?.rotated(secret, now))
    }

    /// Returns the destination with its newest secret alone; none for a channel that does not sign.
    pub fn activated(&self) -> Option<Self> {
        self.with_secret(self.secrets()?.activated())
    }

    fn with_secret(&self, secret: SigningSecrets) -> Option<Self> {
        let Channel::Webhook { url, .. } = &self.channel else { return None };
        Some(Self { channel: Channel::Webhook { url: url.clone(), secret }, ..self.clone() })
    }
}

/// Health of a receiver without deliveries so far.
fn initial_health(channel: &Channel, context: &DestinationContext<'_>, now: Timestamp) -> DeliveryHealth {
    let needs_confirmation =
        matches!(channel, Channel::Email { to } if !to.eq_ignore_ascii_case(context.account_email));
    DeliveryHealth {
        disabled: needs_confirmation.then_some((now, DisableReason::Unconfirmed)),
        ..DeliveryHealth::default()
    }
}

/// Fields common to all destinations.
struct CommonFields {
    name: String,
    channel: Channel,
    events: Option<Vec<AlertKind>>,
    monitors: Option<Vec<MonitorId>>,
    enabled: bool,
    evidence_link: bool,
}

/// Stored values of the fields that depend on the type.
#[derive(Default)]
struct StoredFields {
    url: Option<String>,
    to: Option<String>,
    token: Option<String>,
    chat: Option<String>,
    key: Option<String>,
    secret: Option<SigningSecrets>,
}

impl StoredFields {
    fn of(channel: &Channel) -> Self {
        let some = |text: &String| Some(text.clone());
        let none = Self::default();
        match channel {
            Channel::Email { to } => Self { to: some(to), ..none },
            Channel::Webhook { url, secret } => Self { url: some(url), secret: Some(secret.clone()), ..none },
            Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => {
                Self { url: some(url), ..none }
            }
            Channel::Telegram { token, chat } => Self { token: some(token), chat: some(chat), ..none },
            Channel::Ntfy { url, token } => Self { url: some(url), token: token.clone(), ..none },
            Channel::PagerDuty { key } => Self { key: some(key), ..none },
        }
    }
}

/// Returns the stored URL if it is sent again, and else reads the one that was sent. A stored URL was accepted under
/// the rules of its time, so a client that sends the whole destination back can edit its other fields.
fn kept_or_read(
    sent: &str,
    stored: Option<String>,
    read: impl FnOnce(&str) -> Result<String, Rule>,
) -> Result<String, Rule> {
    match stored.filter(|stored| stored == sent.trim()) {
        Some(stored) => Ok(stored),
        None => read(sent),
    }
}

fn read_events(names: &[String]) -> Result<Option<Vec<AlertKind>>, Rule> {
    if names.is_empty() {
        return Err("must name at least one alert, or be null for all".to_owned());
    }
    let kinds: Result<BTreeSet<AlertKind>, Rule> =
        names.iter().map(|name| text::one_of(name.trim(), &AlertKind::ALL, AlertKind::name)).collect();
    let kinds = kinds.map_err(|rule| format!("must be a list of alerts: each {rule}"))?;
    Ok(Some(kinds.into_iter().collect()))
}

/// Monitors that were already listed may be sent again even if they no longer exist.
fn read_monitors(
    ids: &[String],
    monitors: &BTreeSet<MonitorId>,
    before: &[MonitorId],
) -> Result<Option<Vec<MonitorId>>, Rule> {
    if ids.is_empty() {
        return Err("must name at least one monitor, or be null for all".to_owned());
    }
    let find = |id: &String| id.trim().parse().ok().filter(|id| monitors.contains(id) || before.contains(id));
    let named: Option<BTreeSet<MonitorId>> = ids.iter().map(find).collect();
    let named = named.ok_or_else(|| "must be monitors of this page".to_owned())?;
    if named.len() > MAX_AFFECTED {
        return Err(format!("must be at most {MAX_AFFECTED} monitors"));
    }
    Ok(Some(named.into_iter().collect()))
}

/// A bot token, which becomes part of a URL: a number, a colon, and letters, digits, `_` and `-`.
fn read_bot_token(token: &str) -> Result<String, Rule> {
    let token = text::line(unmasked(token)?, 1..=MAX_TOKEN)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match token.split_once(':') {
        Some((bot, rest))
            if !bot.is_empty()
                && bot.bytes().all(|byte| byte.is_ascii_digit())
                && !rest.is_empty()
                && rest.bytes().all(is_plain) =>
        {
            Ok(token)
        }
        Some(_) | None => Err("must be a bot token such as 123456:ABC-def".to_owned()),
    }
}

/// A chat id, or a channel's name.
fn read_chat_id(chat: &str) -> Result<String, Rule> {
    let chat = text::line(unmasked(chat)?, 1..=MAX_CHAT)?;
    let is_name = chat
        .strip_prefix('@')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    if is_name || chat.parse::<i64>().is_ok() {
        return Ok(chat);
    }
    Err("must be a chat id, or a channel's @name".to_owned())
}

/// A token for a header: visible ASCII.
fn read_token(token: &str) -> Result<Option<String>, Rule> {
    let Some(token) = text::optional_line(unmasked(token)?, MAX_TOKEN)? else { return Ok(None) };
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(token));
    }
    Err("must be printable ASCII characters without spaces".to_owned())
}

fn read_routing_key(key: &str) -> Result<String, Rule> {
    let key = unmasked(key)?;
    if key.len() == ROUTING_KEY_LENGTH && key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(key.to_owned());
    }
    Err(format!("must be an integration key of {ROUTING_KEY_LENGTH} letters and digits"))
}

#[cfg(test)]
mod tests;
