//! Check that is running: the regions that have answered, and those that are asked.

use parallax_template::template_file;

use super::outcome::VantageLabels;
use super::waterfall::{self, PHASES, RegionResult, WaterfallLine};
use crate::views::dashboard::render;

/// Section of a screen while its check runs; the script puts it in the place of the one with the result.
#[template_file("dashboard/check_progress.html")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckProgress {
    /// Id of the section.
    id: &'static str,
    /// Regions that have answered, and all that are asked.
    answered: usize,
    asked: usize,
    lines: Vec<WaterfallLine>,
}

impl CheckProgress {
    /// Builds the section with that id.
    pub(crate) fn new(id: &'static str, results: &[RegionResult<'_>], labels: &VantageLabels) -> Self {
        let mut lines = waterfall::waterfall(results, labels);
        // The result names the address once for all.
        lines.iter_mut().for_each(|line| line.address = None);
        Self {
            id,
            answered: results.iter().filter(|it| it.seen.is_some()).count(),
            asked: results.iter().filter(|it| it.missing.is_none()).count(),
            lines,
        }
    }

    /// Renders the section.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        render(self).unwrap_or_default()
    }

    fn title(&self) -> &'static str {
        if self.id == "test" { "Test" } else { "Checking now" }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::{Measurements, ProbeOutcome};
    use parallax_core::vantage::{Region, VantageNo};

    use super::*;

    #[test]
    fn regions_that_cannot_answer_are_not_counted() {
        let passed = ProbeOutcome::Passed(Measurements { status_code: Some(200), ..Measurements::default() });
        let result = |region, seen, missing| RegionResult { region, seen, missing, threshold_ms: None };
        let results = [
            result(Region::Europe, Some((VantageNo(1), &passed)), None),
            result(Region::Asia, None, None),
            result(Region::Africa, None, Some("no agent in this region is in service")),
        ];
        let shown = CheckProgress::new("check", &results, &VantageLabels::new());
        assert_eq!((shown.answered, shown.asked), (1, 2));
        let html = shown.html();
        for words in ["1 of 2 answered", "data-button=\"Checking 1 of 2\"", ">waits<", "No agent in this region"] {
            assert!(html.contains(words), "{words}: {html}");
        }
        assert_eq!(html.matches("<symbol").count(), 2, "a fragment brings its icons: {html}");
    }
}
