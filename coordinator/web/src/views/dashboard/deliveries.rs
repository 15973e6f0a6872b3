//! The delivery log: lines, filters, the result of a test, and one delivery.

use parallax_core::delivery::{Delivery, DeliveryAttempt, DeliveryState, excerpt};
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::delivery_text::attempt_answer;
use super::form::FormView;
use super::frame::Frame;
use super::words;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// State of a delivery: CSS class with icon, and words.
pub(crate) fn delivery_state(delivery: &Delivery) -> (&'static str, &'static str) {
    match delivery.state {
        DeliveryState::Delivered(_) => ("up", "Delivered"),
        DeliveryState::Waiting(_) if delivery.attempt_log.is_empty() => ("none", "Waiting"),
        DeliveryState::Waiting(_) => ("slow", "Trying again"),
        DeliveryState::Failed(_) => ("down", "Failed"),
        DeliveryState::Dropped(_) => ("none", "Not sent"),
    }
}

/// A line of the delivery log.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryRow {
    /// Address of its screen.
    pub href: String,
    /// Creation time.
    pub at: FormattedTime,
    /// Name of the event.
    pub event: String,
    /// Monitor that it is about; empty if none.
    pub about: String,
    /// Receiver.
    pub to: String,
    /// State: CSS class with icon, and words.
    pub state: (&'static str, &'static str),
    /// Last answer.
    pub answer: String,
}

/// Filters of the delivery log.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveryFilters {
    /// States: address, text, true for the present one.
    pub states: Vec<(String, &'static str, bool)>,
    /// Name of the present state; empty for all.
    pub status: String,
    /// Destinations: id and name.
    pub destinations: Vec<(String, String)>,
    /// Chosen destination; empty for all.
    pub destination: String,
    /// Monitors: id and name.
    pub monitors: Vec<(String, String)>,
    /// Chosen monitor; empty for all.
    pub monitor: String,
    /// "true" for tests alone, "false" for all but tests; empty for both.
    pub test: String,
}

impl DeliveryFilters {
    /// Returns true if a filter is set.
    pub(super) fn is_set(&self) -> bool {
        !(self.status.is_empty() && self.destination.is_empty() && self.monitor.is_empty() && self.test.is_empty())
    }
}

/// Result of a test alert.
#[derive(Debug, Clone)]
pub(crate) struct TestResult {
    /// State: CSS class with icon, and words.
    pub state: (&'static str, String),
    /// Start of the receiver's answer.
    pub answer: String,
    /// Time.
    pub at: FormattedTime,
    /// Address of the delivery.
    pub href: String,
}

impl TestResult {
    /// Result of a delivery of a test.
    pub(crate) fn of(delivery: &Delivery, href: String, now: Timestamp) -> Self {
        let last = delivery.attempt_log.last();
        let (class, words) = delivery_state(delivery);
        let text = last.map_or_else(|| words.to_owned(), |last| format!("{words}: {}", attempt_answer(last)));
        Self {
            state: (class, text),
            answer: last.map(|last| excerpt(&last.response)).unwrap_or_default(),
            at: words::time(delivery.created_at, now),
            href,
        }
    }
}

/// An attempt of a delivery.
#[derive(Debug, Clone)]
pub(crate) struct AttemptLine {
    /// CSS class.
    pub class: &'static str,
    /// Time.
    pub at: FormattedTime,
    /// Answer.
    pub answer: String,
    /// Start of the receiver's text.
    pub text: String,
}

/// One delivery with its attempts and content.
#[template_file("dashboard/delivery.html")]
#[derive(Debug, Clone)]
pub(crate) struct DeliveryScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Line of the log.
    pub row: DeliveryRow,
    /// Id.
    pub id: String,
    /// Attempts, oldest first.
    pub attempts: Vec<AttemptLine>,
    /// Next attempt.
    pub next: Option<FormattedTime>,
    /// Subject of a mail.
    pub subject: Option<String>,
    /// Body as sent; `None` if it holds something that only its receiver may know, or if the reader's role shows no
    /// bodies.
    pub body: Option<String>,
    /// Size of the body.
    pub size: String,
    /// Command that sends the same; empty for those who may not see the address, and before they confirm.
    pub curl: String,
    /// Address of the confirmation that shows the command; empty if it is shown, or if there is none.
    pub confirm_href: String,
    /// Form of the button.
    pub form: FormView,
}

impl AttemptLine {
    /// Lines of the attempts of a delivery.
    pub(crate) fn list(delivery: &Delivery) -> Vec<Self> {
        let line = |attempt: &DeliveryAttempt| Self {
            class: if attempt.error.is_none() { "up on" } else { "slow" },
            at: words::clock(attempt.at),
            answer: attempt_answer(attempt),
            text: excerpt(&attempt.response),
        };
        delivery.attempt_log.iter().map(line).collect()
    }
}
