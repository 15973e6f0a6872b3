//! Screens of one monitor: summary with the explanation of its state, rounds, outages, alerts, forms.

pub(crate) mod acknowledgement;
pub(crate) mod alerts;
pub(crate) mod check_progress;
pub(crate) mod confirm;
pub(crate) mod edit_form;
mod evidence;
pub(crate) mod heading;
pub(crate) mod heartbeat;
pub(crate) mod lists;
pub(super) mod outcome;
mod response_chart;
pub(crate) mod rounds;
pub(crate) mod settings_words;
pub(crate) mod summary;
pub(crate) mod waterfall;

#[cfg(test)]
mod tests;
