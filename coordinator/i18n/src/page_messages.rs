//! Texts of pages in each language: one catalogue per language, in addition to core's [`Locale`].
//!
//! A catalogue with a missing text does not compile; tests check that all placeholders match the English
//! ones.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod pt;

use chrono_tz::Tz;
use parallax_core::catalogue;
use parallax_core::locale::Locale;
pub use parallax_core::locale::fill;
use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_core::validation::FieldError;

catalogue! {
    /// A catalogue of the page's texts.
    #[derive(Debug, PartialEq, Eq)]
    pub struct PageMessages {
        /// Language.
        language: Language,
    }
    pub texts {
        skip, theme, theme_label, theme_system, theme_page, theme_light, theme_dark, support, get_updates,
        email_about, subscribe, mail_hint, more_options, times_in, times_local, status, history, last_update,
        monitored_by, title, last_updated, last_checked, checked_from, just_now, last_data_received, nothing_checked,
        open_label, working, slow, short_outage, outage, maintenance, no_data, time_shown, services, over,
        since_day, regions_and_time, regions_only, budget, no_monitors, past, past_window, resolved_after,
        past_ongoing, no_incidents, earlier, table, response_times, table_from, automatic, more_updates, to,
        lasting, not_checked_now, since, outages, no_outages, began, lasted, reason, so_far, bars_as_list, back,
        postmortem, months_label, no_incidents_in, history_of, stale_title, stale_text, all_unknown,
        all_operational, known_operational, some_slow, some_down, all_down, in_maintenance_now, windows_in_progress,
        is_down, is_down_from, are_down, many_down, is_slow, is_slow_from, are_slow, many_slow, others_down,
        more_is_slow, more_are_slow, others_working, has_no_data, have_no_data, state_paused, state_maintenance,
        state_no_data, state_was_up, state_was_slow, state_was_down, state_up, state_slow, state_slow_from,
        state_down, state_down_from, budget_spent, budget_left, unknown_reason, reason_from, range_day, range_week,
        range_month, range_quarter, ago_day, ago_week, ago_month, ago_half, ago_quarter, now, today, hourly,
        six_hourly, daily, down_for, down_now, region_down, uptime_over, uptime_since, span, kind_completed,
        kind_cancelled, kind_running, kind_planned, kind_notice, was_degraded, was_partial, was_major,
        in_progress, has_begun, ends_in, repeats_weekly, repeats_monthly, later, more_later, response_time,
        chart_title, chart_mean, chart_soon, chart_summary, slow_above, slow_beyond, figures, under_minute,
        short_minutes, short_hours, one_region, regions, one_incident, incidents, form_mail_sent,
        form_challenge_sent, form_confirm, form_choose, form_done, form_unsubscribe, form_unsubscribed,
        form_invalid_link, form_alerts, form_stop, form_stopped, form_too_many, about, about_selected,
        about_all, email, by_webhook, address, webhook_hint, mail_sent_text, challenge_sent_text,
        challenge_shown_once, secret_label, manage_label, unsubscribe_label, this_link, updates_to,
        confirm_subscription, save, unsubscribe, confirmed_text, manage_subscription, no_more, change_instead,
        unsubscribed_text, invalid_link_text, subscribe_again, alerts_text, confirm_alerts, alerts_go_to,
        alerts_end, stopped_text, alerts_link_expired, retry, sentence_end, feed, calendar, badge, embed, embed_lead,
        embed_private, badge_of_service, badge_parameters, frame, frame_lead, widget, widget_lead,
        programs_badge, programs_summary, copy, copied, sign_out, programs, programs_text, programs_maintenance,
        programs_status, password_title, password_lead, password, continue_button, wrong_password,
        sign_in_title, sign_in_lead, send_link, sign_in_sent_lead, other_address, sign_in_button_lead,
        other_browser_title, other_browser_lead, request_link_here, expired_link_lead, new_link,
        too_many_attempts, too_many_attempts_lead, retry_in, feed_title, feed_about, calendar_name,
        calendar_cancelled, affected, invalid_email, invalid_url, invalid_monitors, page_full, widget_label,
        widget_see, widget_dismiss, form_not_found, not_found_text, to_status,
    }
}

/// Returns the catalogue of a language.
pub fn messages(language: Language) -> &'static PageMessages {
    match language {
        Language::En => &en::MESSAGES,
        Language::De => &de::MESSAGES,
        Language::Es => &es::MESSAGES,
        Language::Fr => &fr::MESSAGES,
        Language::Pt => &pt::MESSAGES,
        Language::Ja => &ja::MESSAGES,
    }
}

/// Returns the English catalogue, for output that is in English whatever the page's language.
pub fn in_english() -> &'static PageMessages {
    messages(Language::En)
}

/// Time zone and texts of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageLocale {
    /// Time zone.
    pub zone: Tz,
    /// Texts.
    pub messages: &'static PageMessages,
}

impl PageLocale {
    /// Returns those of a page.
    pub fn of(page: &Page) -> Self {
        Self { zone: page.timezone, messages: messages(page.language) }
    }
}

impl PageMessages {
    /// Core texts of the language.
    pub const fn locale(&self) -> &'static Locale {
        Locale::of(self.language)
    }

    /// Message for an invalid form field. Visitors get a text per field; the detailed rules are for programs.
    pub fn field_error(&self, error: &FieldError) -> String {
        match error.field.as_str() {
            "email" => self.invalid_email.to_owned(),
            "url" => self.invalid_url.to_owned(),
            "monitors" => self.invalid_monitors.to_owned(),
            "page" => self.page_full.to_owned(),
            _ => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(number, _)| number).collect()
    }

    #[test]
    fn every_catalogue_has_all_texts_with_the_same_placeholders() {
        let english = messages(Language::En).entries();
        for language in Language::ALL {
            let catalogue = messages(language);
            assert_eq!(catalogue.language, language);
            for ((name, english_text), (_, text)) in english.iter().zip(catalogue.entries()) {
                assert!(!text.trim().is_empty(), "{language:?} {name}");
                assert_eq!(placeholders(english_text), placeholders(text), "{language:?} {name}");
                assert!(!text.contains(['<', '>']), "{language:?} {name}: texts contain no markup");
            }
        }
    }

    #[test]
    fn catalogues_differ_from_the_english_one() {
        let english = messages(Language::En).entries();
        for language in Language::ALL.into_iter().skip(1) {
            let translated = messages(language).entries();
            let same = english
                .iter()
                .zip(&translated)
                .filter(|(english_text, translated)| english_text.1 == translated.1)
                .count();
            assert!(same * 8 < english.len(), "{language:?}: {same} of {}", english.len());
        }
    }
}
