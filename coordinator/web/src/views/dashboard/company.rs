//! Settings of company sign-in.

use parallax_template::template_file;

use super::account::{SECURITY, tabs};
use super::frame::Frame;
use crate::views::assets;
use crate::views::format::FormattedTime;

/// Settings of company sign-in.
#[template_file("dashboard/company.html")]
#[derive(Debug, Clone)]
pub(crate) struct CompanyScreen {
    /// The frame.
    pub frame: Frame,
    /// Address of the provider, stored or typed.
    pub issuer: String,
    /// Client id, stored or typed.
    pub client_id: String,
    /// True if a provider is stored.
    pub is_set: bool,
    /// True if a secret is stored.
    pub has_secret: bool,
    /// True if members other than owners have no other way in.
    pub is_required: bool,
    /// True if the provider asks for a second factor.
    pub covers_second_factor: bool,
    /// True if the provider was seen to work.
    pub works: bool,
    /// Address to give the provider.
    pub callback: String,
    /// Address at which members begin.
    pub start: String,
    /// True if this installation reaches providers.
    pub is_offered: bool,
    /// Email domains.
    pub domains: Vec<CompanyDomainRow>,
    /// Domain that was typed.
    pub typed_domain: String,
    /// True if the person has to confirm before a form is saved.
    pub asks_to_confirm: bool,
    /// Reasons why the last form was refused.
    pub faults: CompanyFaults,
}

/// An email domain with its TXT record.
#[derive(Debug, Clone)]
pub(crate) struct CompanyDomainRow {
    /// The domain.
    pub host: String,
    /// Name of the record.
    pub record_name: String,
    /// Value of the record.
    pub record_value: String,
    /// Time of the proof.
    pub proved: Option<FormattedTime>,
    /// Time of the last look-up.
    pub checked: Option<FormattedTime>,
    /// Reason why it proved nothing; empty if there is none.
    pub problem: String,
}

/// Faults of the forms; empty for none.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompanyFaults {
    /// Of the address.
    pub issuer: String,
    /// Of the client id.
    pub client_id: String,
    /// Of the secret.
    pub client_secret: String,
    /// Of the domain.
    pub domain: String,
    /// Of the switch.
    pub required: String,
    /// Of the tick that the provider asks for a second factor.
    pub covers: String,
    /// Of no field.
    pub other: String,
    /// Of the test.
    pub test: String,
}

impl CompanyScreen {
    /// Shows why a form was refused.
    pub(crate) fn with_faults(self, faults: CompanyFaults) -> Self {
        Self { faults, ..self }
    }

    fn tabs(&self) -> Vec<(&'static str, &'static str, bool)> {
        tabs(&self.frame, SECURITY)
    }

    /// Hint of the secret, which is never shown.
    const fn secret_hint(&self) -> &'static str {
        if self.has_secret {
            "Stored. Leave it empty to keep it."
        } else {
            "As the provider shows it. It is stored sealed and never shown again."
        }
    }

    /// Name and style of the provider's state.
    const fn state(&self) -> (&'static str, &'static str) {
        if self.works { ("up", "Works") } else { ("none", "Not tested") }
    }
}
