//! Acknowledgement of a running outage, as the headline shows it: who has it since when, and the button.

use parallax_core::machine::MachineView;
use parallax_core::monitor::Monitor;
use parallax_core::time::Timestamp;

use crate::views::dashboard::words;
use crate::views::format::FormattedTime;

/// Acknowledgement of a running outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcknowledgementView {
    /// Name, time and note of who has it; none if nobody has.
    pub(crate) by: Option<(String, FormattedTime, String)>,
    /// Button: address and text; none for those who may not acknowledge.
    pub(crate) button: Option<(String, &'static str)>,
    /// Token of the session, for the form.
    pub(crate) form_token: String,
    /// Idempotency key of the form.
    pub(crate) once: String,
}

impl AcknowledgementView {
    /// Describes the acknowledgement of a monitor's running outage; none while there is no outage, or nothing to show.
    pub(crate) fn of(
        (monitor, state): (&Monitor, &MachineView),
        (path, may_edit): (&str, bool),
        (form_token, once): (&str, String),
        now: Timestamp,
    ) -> Option<Self> {
        let outage = state.outage_since?;
        let by = monitor.acknowledgement_of(outage).map(|it| {
            let note = it.note.clone().unwrap_or_default();
            (it.by.to_string(), words::time(it.at, now), note)
        });
        let button = match &by {
            Some(_) => (format!("{path}/take-back"), "Take back"),
            None => (format!("{path}/acknowledge"), "I have it"),
        };
        let button = may_edit.then_some(button);
        (by.is_some() || button.is_some()).then(|| Self { by, button, form_token: form_token.to_owned(), once })
    }

    /// Sentence about who has an outage, for lists; none if nobody has.
    pub(crate) fn sentence(monitor: &Monitor, state: &MachineView, now: Timestamp) -> Option<String> {
        let it = monitor.acknowledgement_of(state.outage_since?)?;
        Some(format!("{} has it since {}.", it.by, words::time(it.at, now).text))
    }
}
