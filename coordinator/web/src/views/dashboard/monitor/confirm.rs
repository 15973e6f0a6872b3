//! Questions before a monitor is paused while it is down, and before it is deleted.

use parallax_template::template_file;

use crate::views::assets;
use crate::views::dashboard::Frame;
use crate::views::dashboard::form::FormView;

/// Question about a monitor.
#[template_file("dashboard/monitor_confirm.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorQuestion {
    pub(crate) frame: Frame,
    /// Name of the monitor.
    pub(crate) name: String,
    /// Path of the monitor.
    pub(crate) path: String,
    /// Address that the form is sent to.
    pub(crate) action: String,
    /// Question.
    pub(crate) title: String,
    /// Consequences.
    pub(crate) text: String,
    /// Address of a maintenance window instead; none if it isn't offered.
    pub(crate) maintenance: Option<String>,
    /// Tick that notifies subscribers: its text; none without an incident that ends.
    pub(crate) notify: Option<String>,
    /// True if the name must be typed.
    pub(crate) asks_name: bool,
    /// Text of the button.
    pub(crate) button: &'static str,
    /// The form as typed.
    pub(crate) form: FormView,
}
