//! Screens of alerts: destinations with their health in words, one destination, the delivery log, and settings.

use parallax_core::delivery::DeliveryAttempt;
use parallax_core::destination::{ChannelKind, Destination, DisableReason};
use parallax_core::event::AlertKind;
use parallax_core::time::{DAY, Timestamp};
use parallax_template::template_file;

use super::deliveries::{DeliveryFilters, DeliveryRow, TestResult};
use super::delivery_text::{attempt_answer, event_text};
use super::form::FormView;
use super::frame::Frame;
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Labels of the fields of destinations and settings, for the summary of faults.
const LABELS: [(&str, &str); 9] = [
    ("name", "Name"),
    ("url", "Address"),
    ("to", "Mailbox"),
    ("token", "Token"),
    ("chat", "Chat"),
    ("key", "Integration key"),
    ("events", "Alerts"),
    ("monitorIds", "Monitors"),
    ("repeatMinutes", "While an outage lasts"),
];

/// Texts about a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelCard {
    /// Name in forms.
    pub kind: &'static str,
    /// Icon.
    pub icon: &'static str,
    /// Name.
    pub text: &'static str,
    /// Alerts that arrive there.
    pub about: &'static str,
}

impl ChannelCard {
    /// Card of a channel.
    pub(crate) const fn of(kind: ChannelKind) -> Self {
        let (icon, text, about) = match kind {
            ChannelKind::Email => ("mail", "Email", "One mail an alert"),
            ChannelKind::Webhook => ("hook", "Webhook", "Signed JSON to your program"),
            ChannelKind::Slack => ("chat", "Slack", "Also Mattermost"),
            ChannelKind::Discord => ("chat", "Discord", "Message in a channel"),
            ChannelKind::Teams => ("chat", "Teams", "Message by a workflow"),
            ChannelKind::Telegram => ("chat", "Telegram", "Message of your bot"),
            ChannelKind::Ntfy => ("bell", "ntfy", "Push to your phone"),
            ChannelKind::PagerDuty => ("pager", "PagerDuty", "Opens and resolves an incident"),
        };
        Self { kind: kind.name(), icon, text, about }
    }

    /// Cards of all channels.
    pub(crate) fn all() -> [Self; 8] {
        ChannelKind::ALL.map(Self::of)
    }

    /// Fields that the channel asks for: name, label, and where to find the value.
    pub(crate) fn fields(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self.kind {
            "email" => &[("to", "Mailbox", "A mailbox other than the account’s own is asked first.")],
            "webhook" => &[("url", "URL", "Gets a POST of JSON, signed (Standard Webhooks).")],
            "slack" => &[("url", "Webhook URL", "In Slack: Apps, Incoming Webhooks, Add to a channel.")],
            "discord" => &[("url", "Webhook URL", "In Discord: Channel settings, Integrations, Webhooks.")],
            "teams" => &[(
                "url",
                "Workflow URL",
                "In Teams: Workflows, “Post to a channel when a webhook request is received”.",
            )],
            "telegram" => &[
                ("token", "Bot token", "From @BotFather, like 123456:ABC…"),
                ("chat", "Chat", "Id of the chat, or @name of a channel, with the bot in it."),
            ],
            "ntfy" => &[
                ("url", "Topic URL", "Like https://ntfy.sh/my-topic"),
                ("token", "Access token (optional)", "Only if the topic needs one."),
            ],
            _ => &[("key", "Integration key", "In PagerDuty: Service, Integrations, Events API v2.")],
        }
    }
}

/// Health of a destination, and the one act that helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DestinationHealth {
    /// CSS class and icon.
    pub class: &'static str,
    /// State.
    pub text: String,
    /// Since when, or why.
    pub why: String,
    /// Act that helps.
    pub act: DestinationAct,
}

/// The one button of a destination's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationAct {
    /// A test shows that it works.
    SendTest,
    /// Its mailbox may be asked again.
    AskAgain,
    /// It is off.
    SwitchOn,
    /// Nothing helps but another plan.
    None,
}

impl DestinationHealth {
    /// Health of a destination. `last` is its newest attempt.
    pub(crate) fn of(destination: &Destination, last: Option<&DeliveryAttempt>, now: Timestamp) -> Self {
        let health = |class, text: &str, why, act| Self { class, text: text.to_owned(), why, act };
        let day = |at: Timestamp| at.to_utc().map(|at| at.format("%-d %b").to_string()).unwrap_or_default();
        if let Some(at) = destination.confirmation_sent_at() {
            let why = if now.since(at) < DAY { "asked today".to_owned() } else { format!("asked on {}", day(at)) };
            return health("none", "Waiting for confirmation", why, DestinationAct::AskAgain);
        }
        if let Some((at, reason)) = destination.health.disabled {
            let (why, act) = match reason {
                DisableReason::Gone => (format!("answered 410 on {}", day(at)), DestinationAct::SwitchOn),
                DisableReason::Failing => ("nothing but failures for 5 days".to_owned(), DestinationAct::SwitchOn),
                DisableReason::Rejected => ("its mail server refuses the mailbox".to_owned(), DestinationAct::SwitchOn),
                DisableReason::Unconfirmed => ("not confirmed".to_owned(), DestinationAct::AskAgain),
                DisableReason::Plan => ("your plan does not include it".to_owned(), DestinationAct::None),
            };
            return health("down", "Switched off", why, act);
        }
        if !destination.enabled {
            return health("none", "Off", "switched off by hand".to_owned(), DestinationAct::SwitchOn);
        }
        let answer = last.map(attempt_answer).unwrap_or_default();
        match destination.health.failing_since {
            Some(since) => {
                let text = format!("Failing since {}", words::time(since, now).text);
                health("slow", &text, answer, DestinationAct::SendTest)
            }
            None if last.is_none() => health("up", "Ready", "nothing sent yet".to_owned(), DestinationAct::SendTest),
            None => health("up", "Working", answer, DestinationAct::SendTest),
        }
    }

    /// Returns true if it gets alerts and the last one arrived.
    pub(crate) fn is_good(&self) -> bool {
        self.class == "up"
    }
}

/// A line of the list of destinations.
#[derive(Debug, Clone)]
pub(crate) struct DestinationRow {
    /// Address of its screen.
    pub href: String,
    /// Name.
    pub name: String,
    /// Icon.
    pub icon: &'static str,
    /// Channel and address, masked where the reader may not use it.
    pub how: String,
    /// Alerts that it gets.
    pub gets: String,
    /// Health.
    pub health: DestinationHealth,
}

impl DestinationRow {
    /// True if its button sends a test.
    fn tests(&self) -> bool {
        self.health.act == DestinationAct::SendTest
    }

    /// Text of the button that saves it again; empty if that helps nothing.
    fn revive(&self) -> &'static str {
        match self.health.act {
            DestinationAct::AskAgain => "Ask again",
            DestinationAct::SwitchOn => "Switch on",
            DestinationAct::SendTest | DestinationAct::None => "",
        }
    }
}

/// Writes what a destination gets: "All alerts, 9 monitors".
pub(crate) fn gets(destination: &Destination) -> String {
    let events = match &destination.events {
        None => "All alerts".to_owned(),
        Some(kinds) => kinds.iter().map(|kind| event_text(*kind)).collect::<Vec<_>>().join(", "),
    };
    let monitors = match &destination.monitors {
        None => "all monitors".to_owned(),
        Some(ids) => words::count(ids.len(), "monitor", "monitors"),
    };
    format!("{events}; {monitors}")
}

/// Destinations, delivery log and settings of a page.
#[template_file("dashboard/alerts.html")]
#[derive(Debug, Clone)]
pub(crate) struct AlertsScreen {
    /// Frame.
    pub frame: Frame,
    /// Destinations, oldest first.
    pub destinations: Vec<DestinationRow>,
    /// Token and key for the buttons of the lines.
    pub buttons: FormView,
    /// Deliveries, newest first.
    pub log: Vec<DeliveryRow>,
    /// Filters of the log.
    pub filters: DeliveryFilters,
    /// Address of older deliveries.
    pub older: Option<String>,
    /// Form of the settings.
    pub settings: FormView,
    /// Choices of repeated alerts: minutes and text.
    pub repeats: Vec<(String, String)>,
}

impl AlertsScreen {
    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &LABELS
    }

    fn working(&self) -> usize {
        self.destinations.iter().filter(|row| row.health.is_good()).count()
    }

    /// Destinations whose deliveries fail.
    fn failing(&self) -> impl Iterator<Item = &DestinationRow> {
        self.destinations.iter().filter(|row| row.health.class == "slow")
    }
}

/// Returns the choices of repeated alerts, with the present one: minutes and text.
pub(crate) fn repeats(present: Option<u16>) -> Vec<(String, String)> {
    let mut choices = vec![(String::new(), "Alert once".to_owned())];
    let mut minutes = vec![10, 30, 60, 240, 1440];
    minutes.extend(present);
    minutes.sort_unstable();
    minutes.dedup();
    choices.extend(minutes.into_iter().map(|minutes| {
        let text = match minutes {
            60 => "Repeat every hour".to_owned(),
            1440 => "Repeat every day".to_owned(),
            hours if hours % 60 == 0 => format!("Repeat every {} h", hours / 60),
            minutes => format!("Repeat every {minutes} min"),
        };
        (minutes.to_string(), text)
    }));
    choices
}

/// Form of a new destination, or one destination.
#[template_file("dashboard/destination.html")]
#[derive(Debug, Clone)]
pub(crate) struct DestinationScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Name of the stored destination; `None` for a new one.
    pub stored: Option<DestinationRow>,
    /// Channel.
    pub card: ChannelCard,
    /// Form.
    pub form: FormView,
    /// Monitors of the page: id and name.
    pub monitors: Vec<(String, String)>,
    /// Address of the confirmation that shows secrets; empty while they are shown.
    pub confirm_href: String,
    /// Signing secret of a webhook; `None` for those who may not see it.
    pub secret: Option<String>,
    /// Until when the old secret is valid, while a new one waits.
    pub old_secret_until: Option<FormattedTime>,
    /// True for a webhook.
    pub is_signed: bool,
    /// Result of the last test.
    pub test: Option<TestResult>,
    /// Last deliveries.
    pub log: Vec<DeliveryRow>,
}

impl DestinationScreen {
    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &LABELS
    }

    fn cards(&self) -> [ChannelCard; 8] {
        ChannelCard::all()
    }

    fn events(&self) -> [(&'static str, &'static str); 5] {
        AlertKind::ALL.map(|kind| (kind.name(), event_text(kind)))
    }

    /// Hint under a field: of a secret that is stored and not shown, the effect of an empty field.
    fn hint_of<'a>(&self, name: &str, hint: &'a str) -> &'a str {
        let is_withheld = !self.confirm_href.is_empty() && ["url", "token", "key"].contains(&name);
        if is_withheld { "Stored, never shown. Leave it empty to keep it." } else { hint }
    }

    /// Input type of a field.
    fn input(name: &str) -> &'static str {
        match name {
            "url" => "url",
            "to" => "email",
            _ => "text",
        }
    }

    fn is_some_chosen(&self, name: &str) -> bool {
        self.form.values(name).any(|value| !value.is_empty())
    }
}

/// One question before something that can't be undone, or that cuts others off.
#[template_file("dashboard/question.html")]
#[derive(Debug, Clone)]
pub(crate) struct QuestionScreen {
    /// Frame.
    pub frame: Frame,
    /// Address that the form posts to.
    pub href: String,
    /// Address for those who change their mind.
    pub back: String,
    /// Question.
    pub title: String,
    /// Consequences.
    pub text: String,
    /// Text of the button, which names the act.
    pub act: &'static str,
    /// Text of the harmless way out.
    pub keep: &'static str,
    /// Form.
    pub form: FormView,
}
