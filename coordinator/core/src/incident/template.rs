//! Templates of updates: a first text and the status that goes with it.

use super::IncidentStatus;

/// Template of an update. Its text is in the catalogue of each language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateTemplate {
    /// The problem is being looked into.
    Investigating,
    /// The cause is known.
    Identified,
    /// A fix is being rolled out.
    FixInProgress,
    /// The fix is in place.
    Monitoring,
    /// The problem is solved.
    Resolved,
    /// A provider has an outage.
    VendorOutage,
}

impl UpdateTemplate {
    /// All templates, in the order in which they are used.
    pub const ALL: [Self; 6] = [
        Self::Investigating,
        Self::Identified,
        Self::FixInProgress,
        Self::Monitoring,
        Self::Resolved,
        Self::VendorOutage,
    ];

    /// Name in forms.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Investigating => "investigating",
            Self::Identified => "identified",
            Self::FixInProgress => "fix-in-progress",
            Self::Monitoring => "monitoring",
            Self::Resolved => "resolved",
            Self::VendorOutage => "vendor-outage",
        }
    }

    /// Status of an incident that goes with the text.
    pub const fn status(self) -> IncidentStatus {
        match self {
            Self::Investigating => IncidentStatus::Investigating,
            Self::Identified | Self::FixInProgress | Self::VendorOutage => IncidentStatus::Identified,
            Self::Monitoring => IncidentStatus::Monitoring,
            Self::Resolved => IncidentStatus::Resolved,
        }
    }

    /// Returns the template of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|template| template.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::edit::MAX_MESSAGE;
    use crate::locale::Locale;
    use crate::page::branding::Language;

    #[test]
    fn every_template_has_a_text_in_every_language() {
        for template in UpdateTemplate::ALL {
            assert_eq!(UpdateTemplate::of(template.name()), Some(template));
            for language in Language::ALL {
                let text = Locale::of(language).template(template, &["Shop", "Checkout"]);
                assert!(text.contains("Shop") && text.contains("Checkout"), "{text}");
                assert!(!text.contains('{') && text.len() < MAX_MESSAGE, "{text}");
            }
        }
        assert_eq!(UpdateTemplate::of("other"), None);
    }
}
