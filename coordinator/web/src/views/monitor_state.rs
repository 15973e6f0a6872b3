//! State of a monitor as text.

use parallax_core::event::MonitorStatus;
use parallax_core::page_view::MonitorView;
use parallax_i18n::page_messages::{PageMessages, fill};

/// State of a monitor as text, with CSS class and icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MonitorStateLabel {
    /// CSS class and icon.
    pub class: &'static str,
    /// Text.
    pub text: String,
}

impl MonitorStateLabel {
    /// Returns a monitor's state; `is_stale` if no agent is checking any more.
    pub(crate) fn of(view: &MonitorView, is_stale: bool, messages: &PageMessages) -> Self {
        let state = |class, text: &str| Self { class, text: text.to_owned() };
        if view.monitor.paused {
            return state("none", messages.state_paused);
        }
        if view.in_maintenance {
            return state("maint", messages.state_maintenance);
        }
        match (view.state.status, is_stale) {
            (MonitorStatus::Unknown, _) => state("none", messages.state_no_data),
            (MonitorStatus::Up, true) => state("none", messages.state_was_up),
            (MonitorStatus::Slow, true) => state("none", messages.state_was_slow),
            (MonitorStatus::Down, true) => state("none", messages.state_was_down),
            (MonitorStatus::Up, false) => state("up", messages.state_up),
            (MonitorStatus::Slow, false) => match view.state.slow_from {
                Some(regions) => {
                    let regions = messages.locale().regions(regions);
                    state("slow", &fill(messages.state_slow_from, &[&regions]))
                }
                None => state("slow", messages.state_slow),
            },
            (MonitorStatus::Down, false) => match view.state.down_from {
                Some(regions) => {
                    let regions = messages.locale().regions(regions);
                    Self { class: "part", text: fill(messages.state_down_from, &[&regions]) }
                }
                None => state("down", messages.state_down),
            },
        }
    }
}
