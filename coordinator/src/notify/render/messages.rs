//! Texts of mails to visitors and subscribers in the page's language: one catalogue per language, in addition
//! to core's [`Locale`]. Mails to owners and operators are in English.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod pt;

use parallax_core::catalogue;
use parallax_core::locale::Locale;
use parallax_core::page::branding::Language;
use parallax_core::time::Timestamp;

use super::time_format::zone_name;

catalogue! {
    /// A catalogue. In a `*_lead`, the placeholder is the page, `named` by name and URL; in `subject`, the
    /// placeholders are the event, a title and the page's name.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct MailMessages {}
    pub(super) texts {
        subject, fact, incident, update, resolved, planned, soon, begins, completed, cancelled, status, affected,
        impact, since, from, to, over, open, subscribed, unsubscribe, named, confirm, confirm_lead,
        confirm_link, confirm_note, alerts, alerts_lead, alerts_link, alerts_note, sign_in,
        sign_in_lead, sign_in_once, sign_in_link, sign_in_note,
    }
}

/// Returns the catalogue of a language.
pub(super) const fn messages(language: Language) -> &'static MailMessages {
    match language {
        Language::En => &en::MESSAGES,
        Language::De => &de::MESSAGES,
        Language::Es => &es::MESSAGES,
        Language::Fr => &fr::MESSAGES,
        Language::Pt => &pt::MESSAGES,
        Language::Ja => &ja::MESSAGES,
    }
}

/// Formats a time in a zone in the page's language, with the zone: `1 Mar 2026, 10:30 (Europe/Berlin,
/// UTC+01:00)`.
pub(super) fn format_time(at: Timestamp, zone: chrono_tz::Tz, language: Language) -> String {
    let Some(utc) = at.to_utc() else { return at.to_string() };
    let local = utc.with_timezone(&zone);
    let time = local.format("%H:%M").to_string();
    format!("{} ({})", Locale::of(language).date_time(local.date_naive(), &time), zone_name(&local))
}

#[cfg(test)]
mod tests;
