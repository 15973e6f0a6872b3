//! Alerts of a monitor: the deliveries with their results.

use chrono_tz::Tz;
use parallax_core::delivery::Delivery;
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::evidence::clock_time;
use super::heading::MonitorHeading;
use crate::views::assets;
use crate::views::dashboard::Frame;
use crate::views::dashboard::deliveries::delivery_state;
use crate::views::dashboard::delivery_text::{attempt_answer, delivery_event_text};
use crate::views::format::FormattedTime;

/// Screen with the alerts of a monitor.
#[template_file("dashboard/monitor_alerts.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorAlerts {
    pub(crate) frame: Frame,
    pub(crate) heading: MonitorHeading,
    /// The alerts, newest first.
    pub(crate) alerts: Vec<AlertRow>,
    /// Address of older ones.
    pub(crate) older: Option<String>,
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AlertRow {
    /// Address of its delivery.
    pub href: String,
    /// Time.
    pub at: FormattedTime,
    /// Event in words.
    pub event: String,
    /// Destination.
    pub destination: String,
    /// CSS class, icon and word of its state.
    pub state: (&'static str, &'static str, &'static str),
    /// Newest answer.
    pub answer: String,
}

impl AlertRow {
    /// Builds the row of a delivery to a destination of that name.
    pub(crate) fn of(delivery: &Delivery, destination: String, (now, zone): (Timestamp, Tz), page_path: &str) -> Self {
        let attempts = delivery.attempts.total();
        let answer = delivery.attempt_log.last().map(attempt_answer);
        let answer = answer.unwrap_or_else(|| "not attempted yet".to_owned());
        let (class, text) = delivery_state(delivery);
        Self {
            href: format!("{page_path}/deliveries/{}", delivery.id),
            at: clock_time(delivery.created_at, now, zone),
            event: delivery_event_text(&delivery.event),
            destination,
            state: (class, class, text),
            answer: if attempts > 1 { format!("{answer}, attempt {attempts}") } else { answer },
        }
    }
}
