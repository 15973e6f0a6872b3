//! Form of who may see a page.

use parallax_core::page::Page;
use parallax_template::template_file;

use super::SettingsHead;
use crate::views::assets;
use crate::views::dashboard::form::FormView;
use crate::views::dashboard::frame::Frame;
use crate::views::dashboard::{settings, words};

/// Visitors who may see a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitorAccess {
    /// Everyone.
    Public,
    /// Everyone who knows the password.
    Password,
    /// Listed people and everyone with an email address in a listed domain: their numbers.
    Private {
        /// People.
        people: usize,
        /// Domains.
        domains: usize,
    },
}

impl VisitorAccess {
    /// Returns who may see that page. A private page with a password counts as private.
    pub(crate) const fn of(page: &Page) -> Self {
        match (page.private, &page.password_hash) {
            (true, _) => Self::Private {
                people: page.allowed_visitors.people.len(),
                domains: page.allowed_visitors.domains.len(),
            },
            (false, Some(_)) => Self::Password,
            (false, None) => Self::Public,
        }
    }

    /// Value of the choice in the form.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Password => "password",
            Self::Private { .. } => "private",
        }
    }

    /// CSS class, icon and word.
    pub(crate) const fn state(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Public => ("up", "up", "Public"),
            Self::Password => ("maint", "key", "Password"),
            Self::Private { .. } => ("maint", "people", "Private"),
        }
    }

    /// Sentence about who can see the page.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Public => "Everyone can see the page.".to_owned(),
            Self::Password => "Everyone with the password can see the page; everyone else sees a sign-in.".to_owned(),
            Self::Private { people: 0, domains: 0 } => {
                "Nobody can see the page yet: add people or an email domain.".to_owned()
            }
            Self::Private { people, domains } => {
                let people = (people > 0).then(|| words::count(people, "person", "people"));
                let domains = (domains > 0).then(|| words::count(domains, "email domain", "email domains"));
                let named: Vec<String> = people.into_iter().chain(domains).collect();
                format!("{} can see the page; everyone else sees a sign-in.", named.join(" and "))
            }
        }
    }
}

/// Form of who may see the page.
#[template_file("dashboard/settings_access.html")]
#[derive(Debug, Clone)]
pub(crate) struct VisitorAccessForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
    /// True if the page has a password.
    pub has_password: bool,
    /// Address of a feed for people without a password, if the page has one.
    pub feed: Option<String>,
    /// True if the person must confirm that it's them before they can save.
    pub asks_to_confirm: bool,
}

impl VisitorAccessForm {
    /// Choices: value, title, explanation.
    const fn choices() -> [(&'static str, &'static str, &'static str); 3] {
        [
            ("public", "Public", "Everyone can see it"),
            ("password", "Password", "One password for all visitors"),
            ("private", "Private", "Listed people and email domains, who sign in by mail"),
        ]
    }

    /// Hint of the password's field.
    const fn password_hint(&self) -> &'static str {
        if self.has_password {
            "Stored, never shown. Leave it empty to keep it; a new one signs every visitor out."
        } else {
            "1 to 200 characters. It is stored as a hash and never shown."
        }
    }
}
