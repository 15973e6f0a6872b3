//! Form that changes many monitors.

use parallax_core::id::MonitorId;
use parallax_core::vantage::Region;
use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::words;
use crate::views::assets;

/// Fields that are set on many monitors.
#[template_file("dashboard/bulk_edit.html")]
#[derive(Debug, Clone)]
pub(crate) struct BulkEditScreen {
    frame: Frame,
    path: String,
    form: FormView,
    /// Chosen monitors.
    monitors: Vec<(MonitorId, String)>,
}

impl BulkEditScreen {
    /// Builds the form for those monitors.
    pub(crate) fn new(frame: Frame, monitors: Vec<(MonitorId, String)>, form: FormView) -> Self {
        Self { path: frame.path("monitors"), frame, form, monitors }
    }

    fn title(&self) -> String {
        format!("Edit {}", words::count(self.monitors.len(), "monitor", "monitors"))
    }

    fn names(&self) -> String {
        const NAMED: usize = 5;
        let names: Vec<&str> = self.monitors.iter().take(NAMED).map(|(_, name)| name.as_str()).collect();
        let others = self.monitors.len().saturating_sub(NAMED);
        let rest = if others > 0 { format!(" and {others} more") } else { String::new() };
        format!("{}{rest}.", names.join(", "))
    }

    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("slowThresholdMs", "Slow above"),
            ("pinnedRegion", "Check from"),
            ("latencyLocations", "Response time counts from"),
            ("groupName", "Group"),
        ]
    }

    /// Regions: value and text.
    fn regions(&self) -> [(&'static str, &'static str); 6] {
        Region::ALL.map(|region| (region.name(), region.title()))
    }

    /// Choices of the region to check from.
    fn pinned(&self) -> Vec<(&'static str, String)> {
        let only = self.regions().map(|(value, text)| (value, format!("{text} only")));
        [("", "Leave as it is".to_owned()), ("every", "Every region".to_owned())].into_iter().chain(only).collect()
    }
}
