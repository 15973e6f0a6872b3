//! Texts of mails to visitors and subscribers in the page's language: one catalogue per language, in addition
//! to core's [`Tongue`]. Mails to owners and operators are in English.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod pt;

use parallax_core::catalogue;
use parallax_core::page::look::Language;
use parallax_core::time::Timestamp;
use parallax_core::tongue::Tongue;

use super::words::zone_name;

catalogue! {
    /// A catalogue. In a `*_lead`, the placeholder is the page, `named` by name and URL; in `subject`, the
    /// placeholders are the event, a title and the page's name.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Words {}
    pub(super) words {
        subject, fact, incident, update, resolved, planned, soon, begins, completed, cancelled, status, affected,
        impact, since, from, to, over, open, subscribed, unsubscribe, named, confirm, confirm_lead,
        confirm_link, confirm_note, alerts, alerts_lead, alerts_link, alerts_note, sign_in,
        sign_in_lead, sign_in_once, sign_in_link, sign_in_note,
    }
}

/// Returns the catalogue of a language.
pub(super) const fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &en::WORDS,
        Language::De => &de::WORDS,
        Language::Es => &es::WORDS,
        Language::Fr => &fr::WORDS,
        Language::Pt => &pt::WORDS,
        Language::Ja => &ja::WORDS,
    }
}

/// Formats a time in a zone in the page's language, with the zone: `1 Mar 2026, 10:30 (Europe/Berlin,
/// UTC+01:00)`.
pub(super) fn moment(at: Timestamp, zone: chrono_tz::Tz, language: Language) -> String {
    let Some(utc) = at.to_utc() else { return at.to_string() };
    let local = utc.with_timezone(&zone);
    let time = local.format("%H:%M").to_string();
    format!("{} ({})", Tongue::of(language).date_time(local.date_naive(), &time), zone_name(&local))
}

#[cfg(test)]
mod tests;
