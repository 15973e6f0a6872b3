//! What people send to make or change a destination, settled into one that keeps every bound.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::address::{read_topic, read_url};
use super::{Channel, ChannelKind, Destination, Health, OffReason, Secrets};
use crate::account;
use crate::event::AlertKind;
use crate::given::Given;
use crate::id::{DestinationId, MonitorId, PageId};
use crate::incident::MAX_AFFECTED;
use crate::refusal::{Refusals, Rule};
use crate::text;
use crate::time::Timestamp;

/// Characters that a destination's name may have.
pub const MAX_NAME: usize = 80;
/// Characters that an address may have.
pub const MAX_URL: usize = 2000;
/// Characters that a mailbox may have (RFC 5321 section 4.5.3.1.3).
pub const MAX_EMAIL: usize = 254;
/// Characters that a token may have.
pub const MAX_TOKEN: usize = 200;
/// Characters that a chat's id or name may have.
pub const MAX_CHAT: usize = 64;
/// Characters of a routing key.
pub const KEY: usize = 32;
/// Stands for what a reader may not see. It is refused where it comes back.
pub const MASK: &str = "***";

/// A destination's fields, as they were sent. Fields of other types are not looked at.
#[derive(Debug, Clone, Default)]
pub struct DestinationEdit {
    /// What it is called.
    pub name: Given<String>,
    /// Its type, which can't be changed later.
    pub kind: Given<String>,
    /// Where to: of a webhook, most chats and ntfy.
    pub url: Given<String>,
    /// The mailbox.
    pub to: Given<String>,
    /// A Telegram bot's token, or one for ntfy.
    pub token: Given<String>,
    /// Telegram's chat.
    pub chat: Given<String>,
    /// PagerDuty's routing key.
    pub key: Given<String>,
    /// Alerts that it gets, by name.
    pub events: Given<Vec<String>>,
    /// Monitors whose alerts it gets, by id.
    pub monitor_ids: Given<Vec<String>>,
    /// Whether it is used.
    pub enabled: Given<bool>,
    /// Fields that were sent and that no edit changes, each with the rule that says so.
    pub refused: Refusals,
}

/// What a destination is settled by, beside what was sent.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The page's monitors.
    pub monitors: &'a BTreeSet<MonitorId>,
    /// The address of the page's account: the one mailbox whose reader need not be asked.
    pub owner: &'a str,
    /// Which addresses deliveries may not go to, each with the word for it: `loopback`.
    pub refused: &'a dyn Fn(IpAddr) -> Option<&'static str>,
}

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").field("monitors", &self.monitors).finish_non_exhaustive()
    }
}

impl DestinationEdit {
    /// A new destination of the page. `secret` is what a webhook is signed with. A mailbox other than the account's own
    /// gets nothing before its reader, who is to be asked, says that he wants it.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn settle_new(
        &self,
        (id, page): (DestinationId, PageId),
        secret: String,
        around: &Around<'_>,
        now: Timestamp,
    ) -> Result<Destination, Refusals> {
        let mut faults = Refusals::none();
        let kind = self.kind.required("type", None, &mut faults, |kind| {
            text::one_of(kind, &ChannelKind::ALL, ChannelKind::name)
        });
        let known = Known { secret: Some(Secrets { present: secret, before: None }), ..Known::default() };
        let channel = kind.and_then(|kind| self.channel(kind, known, around, &mut faults));
        self.settled(channel, None, around, faults).map(|settled| Destination {
            id,
            page,
            health: fresh(&settled.channel, around, now),
            name: settled.name,
            channel: settled.channel,
            events: settled.events,
            monitors: settled.monitors,
            enabled: settled.enabled,
            created_at: now,
        })
    }

    /// The destination that comes of what stands and what was sent. One that we switched off is on again, and one that
    /// is reached in another way has its health before it. A mailbox whose reader was asked stays so.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn settle(
        &self,
        before: &Destination,
        around: &Around<'_>,
        now: Timestamp,
    ) -> Result<Destination, Refusals> {
        let mut faults = self.refused.clone();
        let kind = before.channel.kind();
        self.kind.required("type", Some(()), &mut faults, |sent| {
            if sent == kind.name() { Ok(()) } else { Err("can't be changed".to_owned()) }
        });
        let channel = self.channel(kind, Known::of(&before.channel), around, &mut faults);
        let settled = self.settled(channel, Some(before), around, faults)?;
        let health = if settled.channel != before.channel {
            fresh(&settled.channel, around, now)
        } else if before.health.off.is_none() || before.asked_at().is_some() {
            before.health.clone()
        } else {
            Health::default()
        };
        Ok(Destination {
            name: settled.name,
            channel: settled.channel,
            events: settled.events,
            monitors: settled.monitors,
            enabled: settled.enabled,
            health,
            ..before.clone()
        })
    }

    fn settled(
        &self,
        channel: Option<Channel>,
        before: Option<&Destination>,
        around: &Around<'_>,
        mut faults: Refusals,
    ) -> Result<Settled, Refusals> {
        let name = before.map(|before| before.name.clone());
        let name = self.name.required("name", name, &mut faults, |name| text::line(name, 1..=MAX_NAME));
        let events = before.and_then(|before| before.events.clone());
        let events = self.events.optional("events", events, &mut faults, |names| read_events(names));
        let of_before = before.and_then(|before| before.monitors.clone());
        let monitors = self.monitor_ids.optional("monitorIds", of_before.clone(), &mut faults, |ids| {
            read_monitors(ids, around.monitors, of_before.as_deref().unwrap_or_default())
        });
        let enabled = before.map(|before| before.enabled);
        let enabled = self.enabled.defaulted("enabled", enabled, true, &mut faults, |on| Ok(*on));
        match (name, channel, enabled) {
            (Some(name), Some(channel), Some(enabled)) if faults.is_empty() => {
                Ok(Settled { name, channel, events, monitors, enabled })
            }
            (_, _, _) => Err(faults),
        }
    }

    fn channel(
        &self,
        kind: ChannelKind,
        known: Known,
        around: &Around<'_>,
        faults: &mut Refusals,
    ) -> Option<Channel> {
        let url = |before: Option<String>, faults: &mut Refusals| {
            self.url.required("url", before, faults, |url| read_url(url, kind, around.refused))
        };
        match kind {
            ChannelKind::Email => {
                let to = self.to.required("to", known.to, faults, |to| whole(to).and_then(account::email))?;
                Some(Channel::Email { to })
            }
            ChannelKind::Webhook => {
                let url = url(known.url, faults)?;
                Some(Channel::Webhook { url, secret: known.secret? })
            }
            ChannelKind::Slack => Some(Channel::Slack { url: url(known.url, faults)? }),
            ChannelKind::Discord => Some(Channel::Discord { url: url(known.url, faults)? }),
            ChannelKind::Teams => Some(Channel::Teams { url: url(known.url, faults)? }),
            ChannelKind::Telegram => {
                let token = self.token.required("token", known.token, faults, |token| read_bot(token));
                let chat = self.chat.required("chat", known.chat, faults, |chat| read_chat(chat));
                Some(Channel::Telegram { token: token?, chat: chat? })
            }
            ChannelKind::Ntfy => {
                let url = self.url.required("url", known.url, faults, |url| {
                    read_url(url, kind, around.refused).and_then(read_topic)
                });
                let token = self.token.optional("token", known.token, faults, |token| read_token(token));
                Some(Channel::Ntfy { url: url?, token })
            }
            ChannelKind::PagerDuty => {
                let key = self.key.required("key", known.key, faults, |key| read_key(key))?;
                Some(Channel::PagerDuty { key })
            }
        }
    }
}

impl Destination {
    /// Secrets that its deliveries are signed with; none for one that is not signed.
    pub const fn secrets(&self) -> Option<&Secrets> {
        match &self.channel {
            Channel::Webhook { secret, .. } => Some(secret),
            _ => None,
        }
    }

    /// The same with a new secret, which signs beside the active one until it is activated, or for [`OLD_SECRET`]; none
    /// for one that is not signed.
    ///
    /// [`OLD_SECRET`]: super::OLD_SECRET
    pub fn rotated(&self, secret: String, now: Timestamp) -> Option<Self> {
        self.signed_by(self.secrets()?.rotated(secret, now))
    }

    /// The same with its newest secret alone; none for one that is not signed.
    pub fn activated(&self) -> Option<Self> {
        self.signed_by(self.secrets()?.activated())
    }

    fn signed_by(&self, secret: Secrets) -> Option<Self> {
        let Channel::Webhook { url, .. } = &self.channel else { return None };
        Some(Self { channel: Channel::Webhook { url: url.clone(), secret }, ..self.clone() })
    }
}

/// How a receiver fares that was not written to yet.
fn fresh(channel: &Channel, around: &Around<'_>, now: Timestamp) -> Health {
    let is_asked = matches!(channel, Channel::Email { to } if !to.eq_ignore_ascii_case(around.owner));
    Health { off: is_asked.then_some((now, OffReason::Unconfirmed)), ..Health::default() }
}

/// What every destination has.
struct Settled {
    name: String,
    channel: Channel,
    events: Option<Vec<AlertKind>>,
    monitors: Option<Vec<MonitorId>>,
    enabled: bool,
}

/// What stands of the fields that belong to a type.
#[derive(Default)]
struct Known {
    url: Option<String>,
    to: Option<String>,
    token: Option<String>,
    chat: Option<String>,
    key: Option<String>,
    secret: Option<Secrets>,
}

impl Known {
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

fn read_events(names: &[String]) -> Result<Option<Vec<AlertKind>>, Rule> {
    if names.is_empty() {
        return Err("must name at least one alert, or be null for all".to_owned());
    }
    let kinds: Result<BTreeSet<AlertKind>, Rule> =
        names.iter().map(|name| text::one_of(name.trim(), &AlertKind::ALL, AlertKind::name)).collect();
    let kinds = kinds.map_err(|rule| format!("must be a list of alerts: each {rule}"))?;
    Ok(Some(kinds.into_iter().collect()))
}

/// Those that were named before may be named again, though they are gone.
fn read_monitors(
    ids: &[String],
    monitors: &BTreeSet<MonitorId>,
    before: &[MonitorId],
) -> Result<Option<Vec<MonitorId>>, Rule> {
    if ids.is_empty() {
        return Err("must name at least one monitor, or be null for all".to_owned());
    }
    let known =
        |id: &String| id.trim().parse().ok().filter(|id| monitors.contains(id) || before.contains(id));
    let named: Option<BTreeSet<MonitorId>> = ids.iter().map(known).collect();
    let named = named.ok_or_else(|| "must be monitors of this page".to_owned())?;
    if named.len() > MAX_AFFECTED {
        return Err(format!("must be at most {MAX_AFFECTED} monitors"));
    }
    Ok(Some(named.into_iter().collect()))
}

/// Text that is no mask of what a reader was not shown.
pub(super) fn whole(text: &str) -> Result<&str, Rule> {
    if text.contains(MASK) {
        return Err("is masked: send it whole, or leave it out to keep it".to_owned());
    }
    Ok(text.trim())
}

/// A bot's token, which stands in an address: a number, a colon, and letters, digits, `_` and `-`.
fn read_bot(token: &str) -> Result<String, Rule> {
    let token = text::line(whole(token)?, 1..=MAX_TOKEN)?;
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
        Some(_) | None => Err("must be a bot's token, such as 123456:ABC-def".to_owned()),
    }
}

/// A chat's number, or the name of a channel.
fn read_chat(chat: &str) -> Result<String, Rule> {
    let chat = text::line(whole(chat)?, 1..=MAX_CHAT)?;
    let is_name = chat.strip_prefix('@').is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    if is_name || chat.parse::<i64>().is_ok() {
        return Ok(chat);
    }
    Err("must be a chat's number, or a channel's @name".to_owned())
}

/// A token that stands in a header: visible ASCII.
fn read_token(token: &str) -> Result<Option<String>, Rule> {
    let Some(token) = text::optional_line(whole(token)?, MAX_TOKEN)? else { return Ok(None) };
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(token));
    }
    Err("must be letters, digits and signs of ASCII, without spaces".to_owned())
}

fn read_key(key: &str) -> Result<String, Rule> {
    let key = whole(key)?;
    if key.len() == KEY && key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(key.to_owned());
    }
    Err(format!("must be an integration key of {KEY} letters and digits"))
}

#[cfg(test)]
mod tests;
