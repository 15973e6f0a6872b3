//! State of a monitor as text.

use parallax_core::event::MonitorStatus;
use parallax_core::page_view::MonitorView;

use super::messages::{PageMessages, fill};

/// State of a monitor as text, with CSS class and icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorStateLabel {
    /// CSS class and icon.
    pub class: &'static str,
    /// Text.
    pub text: String,
}

impl MonitorStateLabel {
    /// Returns a monitor's state; `is_stale` if no agent is checking any more.
    pub fn of(shown: &MonitorView, is_stale: bool, said: &PageMessages) -> Self {
        let state = |class, words: &str| Self { class, text: words.to_owned() };
        if shown.monitor.paused {
            return state("none", said.state_paused);
        }
        if shown.in_maintenance {
            return state("maint", said.state_maintenance);
        }
        match (shown.state.status, is_stale) {
            (MonitorStatus::Unknown, _) => state("none", said.state_no_data),
            (MonitorStatus::Up, true) => state("none", said.state_was_up),
            (MonitorStatus::Slow, true) => state("none", said.state_was_slow),
            (MonitorStatus::Down, true) => state("none", said.state_was_down),
            (MonitorStatus::Up, false) => state("up", said.state_up),
            (MonitorStatus::Slow, false) => match shown.state.slow_from {
                Some(regions) => {
                    let regions = said.locale().regions(regions);
                    state("slow", &fill(said.state_slow_from, &[&regions]))
                }
                None => state("slow", said.state_slow),
            },
            (MonitorStatus::Down, false) => match shown.state.down_from {
                Some(regions) => {
                    let regions = said.locale().regions(regions);
                    Self { class: "part", text: fill(said.state_down_from, &[&regions]) }
                }
                None => state("down", said.state_down),
            },
        }
    }
}
