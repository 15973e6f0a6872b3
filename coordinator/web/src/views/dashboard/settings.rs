//! Settings of a status page: seven sections with addresses of their own, and the form of a new page.

mod access;
mod address;
#[cfg(test)]
mod tests;

use parallax_core::page::branding::{Language, Theme};
use parallax_core::page::edit::MAX_DESCRIPTION;
use parallax_core::time::{DAY, MINUTE, SECOND};
use parallax_core::vantage::Region;
use parallax_template::template_file;

pub(crate) use self::access::{VisitorAccess, VisitorAccessForm};
pub(crate) use self::address::{AddressForm, DomainRecord, DomainStatus};
use super::form::FormView;
use super::frame::Frame;
use super::settings;
use crate::views::assets;
use crate::views::embed_snippets::Snippets;

/// Labels of the fields, for the summary of faults.
const LABELS: [(&str, &str); 20] = [
    ("name", "Name"),
    ("description", "Description"),
    ("supportUrl", "Support link"),
    ("accentColor", "Accent colour"),
    ("theme", "Colours"),
    ("logo", "Logo"),
    ("favicon", "Browser icon"),
    ("showLocations", "Show each region"),
    ("showDeploys", "Show deploys"),
    ("noindex", "Hide from search engines"),
    ("slug", "Address"),
    ("customDomain", "Own domain"),
    ("password", "Password"),
    ("allowedPeople", "People"),
    ("allowedDomains", "Email domains"),
    ("uptimeTarget", "Target"),
    ("uptimeRegions", "Regions that count for uptime"),
    ("latencyLocations", "Regions that count for response times"),
    ("timezone", "Time zone"),
    ("language", "Language"),
];

/// Days over which a target is explained.
const TARGET_DAYS: i64 = 30;

/// Returns the labels of fields, for templates.
pub(crate) const fn labels() -> &'static [(&'static str, &'static str)] {
    &LABELS
}

/// A section of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsSection {
    /// Name, texts, colors and pictures.
    Look,
    /// Slug and own domain.
    Address,
    /// Visitors who may see it.
    Access,
    /// Target and counted regions.
    Uptime,
    /// Language and time zone.
    Language,
    /// Badges and embeds.
    Badges,
    /// Deletion.
    Delete,
}

impl SettingsSection {
    /// Every section, in the order of the tabs.
    pub(crate) const ALL: [Self; 7] =
        [Self::Look, Self::Address, Self::Access, Self::Uptime, Self::Language, Self::Badges, Self::Delete];

    /// Last part of its address.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Address => "address",
            Self::Access => "access",
            Self::Uptime => "uptime",
            Self::Language => "language",
            Self::Badges => "badges",
            Self::Delete => "delete",
        }
    }

    /// Title of its tab.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Look => "Look",
            Self::Address => "Address",
            Self::Access => "Access",
            Self::Uptime => "Uptime and regions",
            Self::Language => "Language and zone",
            Self::Badges => "Badges and embeds",
            Self::Delete => "Delete",
        }
    }
}

/// Heading and tabs of every section.
#[derive(Debug, Clone)]
pub(crate) struct SettingsHead {
    /// Section.
    pub section: SettingsSection,
    /// Address of the page's screens.
    pub base: String,
    /// Name of the page.
    pub name: String,
    /// Address for visitors.
    pub url: String,
    /// The same without the scheme.
    pub address: String,
    /// Visitors who may see it.
    pub access: VisitorAccess,
    /// True if the person may change the section.
    pub may_change: bool,
    /// Tabs: address, text, and true for the present one.
    pub tabs: Vec<(String, &'static str, bool)>,
}

impl SettingsHead {
    /// Address of the section's form.
    pub(crate) fn href(&self) -> String {
        format!("{}/settings/{}", self.base, self.section.path())
    }

    /// Address that looks up the records of an own domain.
    pub(crate) fn check_href(&self) -> String {
        format!("{}/settings/address/check", self.base)
    }

    /// Returns true if everyone may see the page.
    pub(crate) const fn is_public(&self) -> bool {
        matches!(self.access, VisitorAccess::Public)
    }

    /// Returns the tabs: address, text, and true for the present one. Only those who may delete the page see that tab.
    pub(crate) fn tabs(base: &str, section: SettingsSection, may_delete: bool) -> Vec<(String, &'static str, bool)> {
        let shown = SettingsSection::ALL.into_iter().filter(|it| *it != SettingsSection::Delete || may_delete);
        shown.map(|it| (format!("{base}/settings/{}", it.path()), it.title(), it == section)).collect()
    }
}

/// Form of the page's look, with a preview.
#[template_file("dashboard/settings_look.html")]
#[derive(Debug, Clone)]
pub(crate) struct LookForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
    /// Address of the stored logo.
    pub logo: Option<String>,
    /// Address of the stored browser icon.
    pub icon: Option<String>,
}

impl LookForm {
    /// Characters of the description: "41 of 200".
    fn description_length(&self) -> String {
        format!("{} of {MAX_DESCRIPTION}", self.form.value("description").chars().count())
    }

    /// Choices of the color scheme.
    const fn themes() -> [(&'static str, &'static str); 3] {
        [(Theme::Auto.name(), "Visitor’s"), (Theme::Light.name(), "Light"), (Theme::Dark.name(), "Dark")]
    }

    /// Accent color to show beside its field, if it is one.
    fn swatch(&self) -> Option<String> {
        let color = parallax_core::page::branding::Color::read(self.form.value("accentColor")).ok()?;
        Some(color.to_string())
    }
}

/// Form of the uptime target and the counted regions.
#[template_file("dashboard/settings_uptime.html")]
#[derive(Debug, Clone)]
pub(crate) struct UptimeForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
}

impl UptimeForm {
    /// Regions: value and title.
    fn regions() -> [(&'static str, &'static str); 6] {
        Region::ALL.map(|region| (region.name(), region.title()))
    }

    /// Meaning of the target.
    fn meaning(&self) -> String {
        match self.form.value("uptimeTarget").trim().parse() {
            Ok(target) => target_meaning(target),
            Err(_) => "Without a target there is no error budget.".to_owned(),
        }
    }
}

/// Explains a target: "99.9 % allows 43 min of downtime in 30 days."
pub(crate) fn target_meaning(target: f64) -> String {
    // In thousandths of a percent, so that the figure is exact.
    let missing = (100_000.0 - target * 1_000.0).round().clamp(0.0, 100_000.0);
    #[allow(clippy::cast_possible_truncation, reason = "at most a hundred thousand")]
    let millis = TARGET_DAYS * DAY / 100_000 * missing as i64;
    let (minutes, seconds) = (millis / MINUTE, millis % MINUTE / SECOND);
    let length = match (minutes, seconds) {
        (0, seconds) => format!("{seconds} s"),
        (1..=4, seconds) if seconds > 0 => format!("{minutes} min {seconds} s"),
        _ => super::words::duration(millis),
    };
    format!("{target} % allows {length} of downtime in {TARGET_DAYS} days.")
}

/// Form of the page's language and time zone.
#[template_file("dashboard/settings_language.html")]
#[derive(Debug, Clone)]
pub(crate) struct LanguageForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
    /// Languages to choose from.
    pub languages: [(&'static str, &'static str); 6],
    /// Zones to choose from.
    pub zones: Vec<(&'static str, String)>,
}

impl LanguageForm {
    /// Languages, each in its own words.
    pub(crate) fn languages() -> [(&'static str, &'static str); 6] {
        Language::ALL.map(|language| {
            let name = match language {
                Language::En => "English",
                Language::De => "Deutsch",
                Language::Es => "Español",
                Language::Fr => "Français",
                Language::Pt => "Português",
                Language::Ja => "日本語",
            };
            (language.tag(), name)
        })
    }
}

/// Snippets to embed the page.
#[template_file("dashboard/settings_badges.html")]
#[derive(Debug, Clone)]
pub(crate) struct BadgesScreen {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Snippets.
    pub snippets: Snippets,
}

/// Question before a page is deleted.
#[template_file("dashboard/settings_delete.html")]
#[derive(Debug, Clone)]
pub(crate) struct DeleteForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
    /// Number of monitors on the page.
    pub monitors: usize,
}

impl DeleteForm {
    /// Monitors that are deleted with it: "3 monitors".
    fn monitors_text(&self) -> String {
        super::words::count(self.monitors, "monitor", "monitors")
    }
}

/// Form of a new page.
#[template_file("dashboard/page_new.html")]
#[derive(Debug, Clone)]
pub(crate) struct NewPageForm {
    /// Frame.
    pub frame: Frame,
    /// Form.
    pub form: FormView,
    /// Beginning and end of the addresses of pages, around the slug.
    pub around: (String, String),
    /// Zones to choose from.
    pub zones: Vec<(&'static str, String)>,
    /// Pages of the plan: "1 of 5 pages".
    pub used: String,
}
