//! Form of a page's address: slug and own domain, with the DNS records that the domain needs.

use parallax_template::template_file;

use super::SettingsHead;
use crate::views::assets;
use crate::views::dashboard::form::FormView;
use crate::views::dashboard::frame::Frame;
use crate::views::dashboard::settings;
use crate::views::format::FormattedTime;

/// A DNS record that an own domain needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainRecord {
    /// Type.
    pub kind: &'static str,
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// CSS class with icon, and word: found or not.
    pub found: (&'static str, &'static str),
}

/// State of an own domain.
#[derive(Debug, Clone)]
pub(crate) struct DomainStatus {
    /// Domain.
    pub host: String,
    /// CSS class with icon, and word.
    pub state: (&'static str, &'static str),
    /// Records that it needs.
    pub records: Vec<DomainRecord>,
    /// True if the ownership is not proven yet, so that the records can be looked up on request.
    pub is_pending: bool,
    /// Time of the last look-up.
    pub checked_at: Option<FormattedTime>,
    /// Reason that it doesn't work yet, as a sentence.
    pub problem: Option<String>,
}

/// Form of the page's address.
#[template_file("dashboard/settings_address.html")]
#[derive(Debug, Clone)]
pub(crate) struct AddressForm {
    /// Frame.
    pub frame: Frame,
    /// Heading.
    pub head: SettingsHead,
    /// Form.
    pub form: FormView,
    /// Beginning and end of the addresses of pages, around the slug.
    pub around: (String, String),
    /// Own domains: the one that is set, and the one that is not proven yet.
    pub domains: Vec<DomainStatus>,
    /// Reason that the last look-up failed.
    pub problem: Option<String>,
}
