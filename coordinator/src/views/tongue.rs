//! The words of pages in each language: one catalogue a language, all of one shape, and how numbers and dates go into them.
//!
//! A catalogue that lacks a word does not compile; the tests hold the placeholders of all to those of the English one.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod pt;

use chrono::{Datelike, NaiveDate};
use chrono_tz::Tz;
use parallax_core::page::Page;
use parallax_core::page::look::Language;
use parallax_core::place::Region;

/// When the singular is used (CLDR plural rules, cardinals; of the languages that there are).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Singular {
    /// For one alone.
    One,
    /// For none and for one.
    UpToOne,
    /// For nothing: there is one form.
    Never,
}

macro_rules! words {
    ($($word:ident,)*) => {
        /// A catalogue. A word may hold `{0}`, `{1}` and so on, for what is put there.
        #[derive(Debug, PartialEq, Eq)]
        pub struct Words {
            /// The language's tag (BCP 47).
            pub(super) language: &'static str,
            /// What parts a number's whole from its fraction.
            pub(super) decimal: &'static str,
            /// When the singular is used.
            pub(super) one: Singular,
            /// The months' names.
            pub(super) months: [&'static str; 12],
            /// The same, short.
            pub(super) short_months: [&'static str; 12],
            $(pub(super) $word: &'static str,)*
        }

        #[cfg(test)]
        impl Words {
            fn entries(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($word), self.$word),)*]
            }
        }
    };
}

words! {
    skip, theme, theme_label, theme_system, theme_page, theme_light, theme_dark, support, get_updates,
    mail_about, subscribe, mail_hint, times_in, times_own, status, history, written, watched, title,
    renewed, last_checked, checked_from, last_heard, nothing_checked, open_label, working, slow,
    short_outage, outage, maintenance, no_data, time_shown, services, over, regions_and_time, budget,
    nothing_watched, past, past_window, resolved_after, no_incidents, earlier, table, response_times,
    table_from, automatic, more_updates, to, lasting, nobody, since, outages, none_known, began, lasted,
    reason, so_far, bars, bars_words, back, postmortem, months_label, none_in, history_of, stale_title,
    stale_text, all_unknown, all_operational, some_slow, some_down, all_down, in_maintenance_now, is_down,
    is_down_from, are_down, many_down, is_slow, are_slow, many_slow, others_down, more_is_slow,
    more_are_slow, rest_working, has_no_data, have_no_data, state_paused, state_maintenance,
    state_no_data, state_was_up, state_was_slow, state_was_down, state_up, state_slow, state_down,
    state_down_from, budget_spent, budget_left, not_known, reason_from, range_day, range_week,
    range_month, range_quarter, ago_day, ago_week, ago_month, ago_half, ago_quarter, now, today, hourly,
    six_hourly, daily, down_for, lane_down, lane_over, span, kind_done, kind_running, kind_planned,
    kind_notice, kind_degraded, kind_partial, kind_major, investigating, identified, monitoring, resolved,
    scheduled, completed, response_time, chart_summary, slow_above, figures, region_europe,
    region_north_america, region_south_america, region_africa, region_asia, region_oceania, under_second,
    under_minute, short_minutes, short_hours, one_day, days, one_hour, hours, one_minute, minutes,
    one_second, seconds, one_region, regions, one_incident, incidents, date_time, full_day, day,
    short_day, month_year, form_mailed, form_challenged, form_confirm, form_choose, form_done, form_leave,
    form_left, form_void, form_alerts, form_many, about, whole_page, only_these, ask_intro, email,
    by_webhook, address, webhook_hint, mailed_text, challenged_text, challenged_once, secret_label,
    change_label, end_label, this_link, updates_to, yes_tell, save, rather_not, confirmed_text,
    change_told, no_more, change_instead, left_text, void_text, subscribe_again, alerts_text, yes_send,
    alerts_go_to, alerts_end, alerts_late, retry, and, comma, stop, feed, calendar, sign_out, programs, programs_text, programs_maintenance, programs_status, door_password, door_password_lead, password, go_on, wrong_password, door_sign_in, door_sign_in_lead, send_link, door_sent_lead, other_address, door_button_lead, door_elsewhere, door_elsewhere_lead, ask_here, door_dead_lead, new_link, door_many, door_many_lead, again_in,
}

/// The catalogue of a language.
pub fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &en::WORDS,
        Language::De => &de::WORDS,
        Language::Es => &es::WORDS,
        Language::Fr => &fr::WORDS,
        Language::Pt => &pt::WORDS,
        Language::Ja => &ja::WORDS,
    }
}

/// The catalogue of what programs read, and of what is written in English whatever the page's language.
pub fn in_english() -> &'static Words {
    words(Language::En)
}

/// How a page speaks: the zone of its times, and its words.
#[derive(Debug, Clone, Copy)]
pub struct Voice {
    /// The zone.
    pub zone: Tz,
    /// The words.
    pub words: &'static Words,
}

impl Voice {
    /// That of a page.
    pub fn of(page: &Page) -> Self {
        Self { zone: page.timezone, words: words(page.language) }
    }
}

impl Words {
    /// One form or the other, with the number in it.
    pub(super) fn count(&self, number: u64, one: &str, many: &str) -> String {
        let is_one = match self.one {
            Singular::One => number == 1,
            Singular::UpToOne => number < 2,
            Singular::Never => false,
        };
        fill(if is_one { one } else { many }, &[&number.to_string()])
    }

    /// A number that was written with a point, as the language writes it.
    pub(super) fn number(&self, text: &str) -> String {
        text.replace('.', self.decimal)
    }

    /// A day, by a pattern of the catalogue: `{0}` is its number, `{1}` its month, `{2}` its year and `{3}` the time.
    pub(super) fn date(&self, pattern: &str, date: NaiveDate, is_short: bool, time: &str) -> String {
        let (day, year) = (date.day().to_string(), date.year().to_string());
        fill(pattern, &[&day, self.month(date, is_short), &year, time])
    }

    /// A date's month with its year.
    pub(super) fn month_of(&self, date: NaiveDate) -> String {
        fill(self.month_year, &[self.month(date, false), &date.year().to_string()])
    }

    fn month(&self, date: NaiveDate, is_short: bool) -> &'static str {
        let names = if is_short { &self.short_months } else { &self.months };
        names.get(date.month0() as usize).copied().unwrap_or_default()
    }

    /// The name of a region.
    pub(super) const fn region(&self, region: Region) -> &'static str {
        match region {
            Region::Europe => self.region_europe,
            Region::NorthAmerica => self.region_north_america,
            Region::SouthAmerica => self.region_south_america,
            Region::Africa => self.region_africa,
            Region::Asia => self.region_asia,
            Region::Oceania => self.region_oceania,
        }
    }
}

/// A pattern with its placeholders filled. What is put in is not looked at again.
pub(super) fn fill(pattern: &str, values: &[&str]) -> String {
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((number, after)) = after.split_once('}') else { return text };
        let value = number.parse::<usize>().ok().and_then(|at| values.get(at));
        text.push_str(value.copied().unwrap_or_default());
        rest = after;
    }
    text.push_str(rest);
    text
}

/// How a page in English speaks.
#[cfg(test)]
pub(super) fn english(zone: Tz) -> Voice {
    Voice { zone, words: words(Language::En) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(number, _)| number).collect()
    }

    #[test]
    fn every_catalogue_has_every_word_with_the_same_placeholders() {
        let english = words(Language::En).entries();
        for language in Language::ALL {
            let catalogue = words(language);
            assert_eq!(catalogue.language, language.tag());
            for ((name, ours), (_, theirs)) in english.iter().zip(catalogue.entries()) {
                assert!(!theirs.trim().is_empty(), "{language:?} {name}");
                assert_eq!(placeholders(ours), placeholders(theirs), "{language:?} {name}");
                assert!(!theirs.contains(['<', '>']), "{language:?} {name}: a word is no markup");
            }
        }
    }

    #[test]
    fn catalogues_differ_from_the_english_one() {
        let english = words(Language::En).entries();
        for language in Language::ALL.into_iter().skip(1) {
            let theirs = words(language).entries();
            let same = english.iter().zip(&theirs).filter(|(ours, theirs)| ours.1 == theirs.1).count();
            assert!(same * 8 < english.len(), "{language:?}: {same} of {}", english.len());
        }
    }

    #[test]
    fn numbers_go_with_their_plural_rule() {
        let said = |language: Language, number| {
            let words = words(language);
            words.count(number, words.one_day, words.days)
        };
        assert_eq!((said(Language::En, 0), said(Language::En, 1)), ("0 days".to_owned(), "1 day".to_owned()));
        assert_eq!(
            (said(Language::Fr, 0), said(Language::Fr, 2)),
            ("0 jour".to_owned(), "2 jours".to_owned())
        );
        assert_eq!((said(Language::De, 1), said(Language::Ja, 1)), ("1 Tag".to_owned(), "1日".to_owned()));
    }

    #[test]
    fn dates_and_numbers_have_the_languages_form() {
        let date = NaiveDate::from_ymd_opt(2026, 3, 7).unwrap();
        for (language, full, month, number) in [
            (Language::En, "7 Mar 2026", "March 2026", "99.9"),
            (Language::De, "7. März 2026", "März 2026", "99,9"),
            (Language::Es, "7 mar 2026", "marzo de 2026", "99,9"),
            (Language::Fr, "7 mars 2026", "mars 2026", "99,9"),
            (Language::Pt, "7 mar. 2026", "março de 2026", "99,9"),
            (Language::Ja, "2026年3月7日", "2026年3月", "99.9"),
        ] {
            let words = words(language);
            assert_eq!(words.date(words.full_day, date, true, ""), full);
            assert_eq!((words.month_of(date).as_str(), words.number("99.9").as_str()), (month, number));
        }
    }

    #[test]
    fn what_is_put_in_is_no_pattern() {
        assert_eq!(fill("{0} and {1}", &["{1}", "b"]), "{1} and b");
        assert_eq!((fill("{2}", &[]), fill("a {", &[])), (String::new(), "a ".to_owned()));
    }
}
