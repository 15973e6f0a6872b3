//! Screen that puts a page's monitors into another order.

use parallax_core::id::MonitorId;
use parallax_template::template_file;

use super::frame::Frame;
use crate::views::assets;

/// A monitor on the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderRow {
    /// Its id.
    pub id: MonitorId,
    /// Its name.
    pub name: String,
    /// Its group; empty for none.
    pub group: String,
    /// Its position, as typed where that could not be read.
    pub number: String,
    /// True if that is no position.
    pub is_wrong: bool,
}

/// Form with the order of a page's monitors.
#[template_file("dashboard/monitor_order.html")]
#[derive(Debug, Clone)]
pub(crate) struct OrderScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of the list.
    pub path: String,
    /// Monitors, first to last.
    pub rows: Vec<OrderRow>,
    /// Fingerprint of the stored order.
    pub loaded: String,
    /// Idempotency key.
    pub idempotency_key: String,
    /// Reason that the order was not saved.
    pub problem: Option<String>,
}
