//! Screen of a page's subscribers: numbers by channel, list, search, and the form that adds one.

use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::words;
use crate::views::assets;

/// A line of the list.
#[derive(Debug, Clone)]
pub(crate) struct SubscriberRow {
    /// Address of the form that removes it.
    pub remove: String,
    /// Icon.
    pub icon: &'static str,
    /// Address, masked where the reader may not see it.
    pub address: String,
    /// Channel.
    pub channel: &'static str,
    /// Updates that it gets.
    pub gets: String,
    /// State: CSS class with icon, words, and since when.
    pub state: (&'static str, &'static str, String),
    /// Request that asks it again; `None` if there is nothing to ask.
    pub ask: Option<AskAgain>,
}

/// Request that asks a mailbox again.
#[derive(Debug, Clone)]
pub(crate) struct AskAgain {
    /// Mailbox.
    pub email: String,
    /// Ids of the monitors that were chosen; none for the whole page.
    pub monitors: Vec<String>,
}

/// Subscribers of a page.
#[template_file("dashboard/subscribers.html")]
#[derive(Debug, Clone)]
pub(crate) struct SubscribersScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Numbers by channel, as a sentence.
    pub lead: String,
    /// Number of all subscribers.
    pub total: usize,
    /// States to filter by: address, text, true for the present one.
    pub states: Vec<(String, String, bool)>,
    /// Name of the present state; empty for all.
    pub state: String,
    /// Search; empty for all.
    pub search: String,
    /// True if the person may search, which would reveal masked addresses.
    pub may_search: bool,
    /// True if the person may export all addresses.
    pub may_export: bool,
    /// Lines, oldest first.
    pub rows: Vec<SubscriberRow>,
    /// Address of the next part.
    pub next: Option<String>,
    /// Form that adds a mailbox.
    pub form: FormView,
    /// Monitors of the page: id and name.
    pub monitors: Vec<(String, String)>,
    /// Public address of the page.
    pub page_url: String,
}

impl SubscribersScreen {
    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &[("email", "Email address"), ("monitorIds", "Monitors")]
    }

    const fn is_filtered(&self) -> bool {
        !self.state.is_empty() || !self.search.is_empty()
    }
}

/// Writes the numbers by channel: "214 by email, 6 by webhook."
pub(crate) fn lead(email: usize, webhook: usize) -> String {
    format!("{email} by email, {webhook} by webhook. They get incidents and maintenance, not every alert.")
}

/// Writes a day: "12 Mar 2026".
pub(crate) fn day(at: Timestamp) -> String {
    at.to_utc().map(|at| at.format("%-d %b %Y").to_string()).unwrap_or_default()
}

/// Writes what a subscriber gets: the names of up to three monitors.
pub(crate) fn gets(names: Option<&[&str]>) -> String {
    const NAMED: usize = 3;
    match names {
        None => "Whole page".to_owned(),
        Some([]) => "No monitor that still exists".to_owned(),
        Some(names) if names.len() <= NAMED => names.join(", "),
        Some(names) => words::count(names.len(), "monitor", "monitors"),
    }
}
