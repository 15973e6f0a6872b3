//! Screen that imports subscribers: the form, and the preview of what it would do.

use parallax_template::template_file;

use super::form::FormView;
use super::frame::Frame;
use super::words;
use crate::views::assets;

/// Import of subscribers.
#[template_file("dashboard/subscriber_import.html")]
#[derive(Debug, Clone)]
pub(crate) struct ImportScreen {
    /// Frame.
    pub frame: Frame,
    /// Address of this screen.
    pub href: String,
    /// Address of the list.
    pub back: String,
    /// The form with the text.
    pub form: FormView,
    /// Preview, if there is a text to import.
    pub preview: Option<ImportPreview>,
}

/// Numbers of an import that has not happened yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ImportPreview {
    /// Lines with an address or what should be one.
    pub lines: usize,
    /// New addresses.
    pub added: usize,
    /// Addresses that are on the page.
    pub known: usize,
    /// Repeated lines.
    pub repeated: usize,
    /// Addresses whose readers unsubscribed.
    pub opted_out: usize,
    /// Lines that break a rule.
    pub refused: usize,
    /// Reasons, each with its lines.
    pub reasons: Vec<(String, String)>,
}

impl ImportScreen {
    /// Labels of the fields, for the summary of faults.
    const fn labels(&self) -> &'static [(&'static str, &'static str)] {
        &[("file", "CSV file"), ("csv", "Addresses")]
    }
}

impl ImportPreview {
    /// Title of the preview.
    fn title(&self) -> String {
        format!("Import {}", words::count(self.lines, "line", "lines"))
    }

    /// Numbers with the class of their icon; those that are usually 0 only if they aren't.
    fn counts(&self) -> Vec<(&'static str, String)> {
        let is_shown = |number: usize| number > 0;
        let all = [
            (true, "part", format!("{} new", self.added)),
            (true, "up", format!("{} already there", self.known)),
            (is_shown(self.repeated), "none", format!("{} repeated", self.repeated)),
            (is_shown(self.opted_out), "none", format!("{} unsubscribed earlier, not asked", self.opted_out)),
            (is_shown(self.refused), "down", format!("{} refused", self.refused)),
        ];
        all.into_iter().filter(|(is_shown, ..)| *is_shown).map(|(_, class, text)| (class, text)).collect()
    }

    /// Text of the button.
    fn act(&self) -> String {
        format!("Ask {}", words::count(self.added, "person", "people"))
    }

    /// Number of refused lines that have no reason on the screen.
    fn unnamed(&self) -> usize {
        let named: usize = self.reasons.iter().map(|(_, lines)| lines.split(", ").count()).sum();
        self.refused.saturating_sub(named)
    }
}
