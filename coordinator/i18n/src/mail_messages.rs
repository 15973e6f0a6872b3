//! Texts of mails to visitors and subscribers in the page's language: one catalogue per language, in addition
//! to core's [`Locale`](parallax_core::locale::Locale). Mails to owners and operators are in English.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod pt;

use parallax_core::catalogue;
use parallax_core::page::branding::Language;

catalogue! {
    /// A catalogue. In a `*_lead`, the placeholder is the page by `name_and_url`; in `subject`, the
    /// placeholders are the event, a title and the page's name.
    #[derive(Debug, PartialEq, Eq)]
    pub struct MailMessages {}
    pub texts {
        subject, fact, incident, update, resolved, scheduled, starts_in, started, completed, cancelled, status,
        affected, impact, since, from, to, ended, open, subscribed, unsubscribe, name_and_url, confirm,
        confirm_lead, confirm_link, confirm_note, alerts, alerts_lead, alerts_link, alerts_note, sign_in,
        sign_in_lead, sign_in_once, sign_in_link, sign_in_note,
    }
}

/// Returns the catalogue of a language.
pub const fn messages(language: Language) -> &'static MailMessages {
    match language {
        Language::En => &en::MESSAGES,
        Language::De => &de::MESSAGES,
        Language::Es => &es::MESSAGES,
        Language::Fr => &fr::MESSAGES,
        Language::Pt => &pt::MESSAGES,
        Language::Ja => &ja::MESSAGES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_catalogue_has_all_texts_with_the_same_placeholders() {
        let placeholder_counts =
            |text: &str| ["{0}", "{1}", "{2}"].map(|placeholder| text.matches(placeholder).count());
        let english = messages(Language::En).entries();
        for language in Language::ALL {
            for ((name, english_text), (_, translated)) in english.iter().zip(messages(language).entries()) {
                assert_eq!(placeholder_counts(english_text), placeholder_counts(translated), "{language:?} {name}");
                assert!(!translated.trim().is_empty() && !translated.contains(['<', '>']), "{language:?} {name}");
            }
        }
    }
}
