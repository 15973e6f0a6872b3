//! Localization of core texts in a page's language: numbers, dates, durations, lists; names of regions,
//! states and failures; and texts of incidents without a message.
//!
//! There is one catalogue for each language, all of the same type: a missing text is a compile error. Pages
//! and mails have catalogues of their own, made by the same [`catalogue!`](crate::catalogue).

mod de;
mod en;
mod es;
mod failure;
mod fr;
mod ja;
mod pt;

use chrono::{Datelike, NaiveDate};

use crate::incident::{Impact, Incident, IncidentStatus, UpdateTemplate};
use crate::page::branding::Language;
use crate::time::{DAY, HOUR, MINUTE, SECOND};
use crate::vantage::{Region, RegionSet};

/// The singular rule of a language (CLDR plural rules, cardinals; only for the languages supported).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PluralRule {
    /// Singular for one only.
    One,
    /// Singular for zero and one.
    ZeroOrOne,
    /// No singular: there is one form.
    NoSingular,
}

/// Defines the type of a catalogue: typed fields, and texts, which may contain placeholders `{0}`, `{1}` and
/// so on, filled by [`fill`].
#[macro_export]
macro_rules! catalogue {
    (
        $(#[$about:meta])* $outer:vis struct $name:ident { $($(#[$note:meta])* $field:ident: $kind:ty,)* }
        $within:vis texts { $($text:ident,)* }
    ) => {
        $(#[$about])*
        $outer struct $name {
            $($(#[$note])* $within $field: $kind,)*
            $($within $text: &'static str,)*
        }

        #[cfg(test)]
        impl $name {
            /// All texts with their names.
            fn entries(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($text), self.$text),)*]
            }
        }
    };
}

catalogue! {
    /// The texts and formats of a language.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Locale {
        /// Decimal separator.
        decimal: &'static str,
        /// Singular rule.
        one: PluralRule,
        /// Names of the months.
        months: [&'static str; 12],
        /// Short names of the months.
        short_months: [&'static str; 12],
        /// Short names of the weekdays, from Monday.
        short_weekdays: [&'static str; 7],
    }
    pub(crate) texts {
        and, comma, date_time, on_weekday, full_day, day, short_day, month_year, region_europe,
        region_north_america, region_south_america, region_africa, region_asia, region_oceania, under_second,
        under_a_minute, length_gap, length_and, one_day, days, one_hour, hours, one_minute, minutes, one_second,
        seconds, status_investigating, status_identified, status_monitoring, status_resolved, status_scheduled,
        status_completed, status_cancelled, impact_none, impact_degraded, impact_partial, impact_major,
        line_investigating, line_identified, line_monitoring, line_resolved, line_scheduled, line_completed,
        line_cancelled, template_investigating, template_identified, template_fixing, template_monitoring,
        template_resolved, template_vendor, some_monitor, title_one, title_two, title_many, title_one_over, title_two_over,
        title_many_over, down, down_from, down_everywhere, again, again_from, again_everywhere, sentence,
        because, reachable_elsewhere, one_back, is_back, all_back, unchecked, rest_unchecked, two_sentences,
        title_flapping, title_flapping_over, flapping, steady_up, steady_down, timeout_dns, timeout_connect,
        timeout_tls, timeout_first_byte, timeout_transfer, refused, reset, unreachable, name_not_found,
        no_address, resolution_failed, address_not_allowed, unexpected_status, keyword_missing, keyword_present,
        body_too_large, too_many_redirects, bad_redirect, tls_expired, tls_not_yet_valid, tls_name_mismatch,
        tls_unknown_issuer, tls_failed, not_http, dns_unexpected, certificate_expires_one, certificate_expires,
        domain_expires_one, domain_expires, ping_missed, job_failed, job_failed_code,
    }
}

impl Locale {
    /// The catalogue of a language.
    pub const fn of(language: Language) -> &'static Self {
        match language {
            Language::En => &en::LOCALE,
            Language::De => &de::LOCALE,
            Language::Es => &es::LOCALE,
            Language::Fr => &fr::LOCALE,
            Language::Pt => &pt::LOCALE,
            Language::Ja => &ja::LOCALE,
        }
    }

    /// Selects the singular or plural pattern and inserts the number.
    pub fn plural(&self, number: impl Into<i128>, one: &str, many: &str) -> String {
        let number = number.into();
        let is_one = match self.one {
            PluralRule::One => number == 1,
            PluralRule::ZeroOrOne => (0..2).contains(&number),
            PluralRule::NoSingular => false,
        };
        fill(if is_one { one } else { many }, &[&number.to_string()])
    }

    /// Replaces the decimal point of a formatted number with the language's separator.
    pub fn number(&self, text: &str) -> String {
        text.replace('.', self.decimal)
    }

    /// Formats a date with its year in short form, and an already formatted time.
    pub fn date_time(&self, date: NaiveDate, time: &str) -> String {
        self.date(self.date_time, date, &self.short_months, time)
    }

    /// Formats a date and time with the weekday.
    pub fn weekday_time(&self, date: NaiveDate, time: &str) -> String {
        let name = self.short_weekdays.get(date.weekday().num_days_from_monday() as usize);
        fill(self.on_weekday, &[name.copied().unwrap_or_default(), &self.full_day(date), time])
    }

    /// Formats a date with its year in short form.
    pub fn full_day(&self, date: NaiveDate) -> String {
        self.date(self.full_day, date, &self.short_months, "")
    }

    /// Formats a date without its year.
    pub fn day(&self, date: NaiveDate) -> String {
        self.date(self.day, date, &self.months, "")
    }

    /// Formats a date without its year in short form.
    pub fn short_day(&self, date: NaiveDate) -> String {
        self.date(self.short_day, date, &self.short_months, "")
    }

    /// Formats the month and year of a date.
    pub fn month(&self, date: NaiveDate) -> String {
        fill(self.month_year, &[month(&self.months, date), &date.year().to_string()])
    }

    /// Fills a date pattern of the catalogue: `{0}` is the day, `{1}` the month, `{2}` the year and `{3}` the
    /// time.
    fn date(&self, pattern: &str, date: NaiveDate, months: &[&'static str; 12], time: &str) -> String {
        let (day, year) = (date.day().to_string(), date.year().to_string());
        fill(pattern, &[&day, month(months, date), &year, time])
    }

    /// Formats a duration in its two largest units: `2 hours 5 minutes`. Seconds appear only below a minute.
    pub fn duration(&self, millis: i64) -> String {
        let parts = self.parts(millis);
        if parts.is_empty() { self.under_second.to_owned() } else { parts.join(self.length_gap) }
    }

    /// Formats a duration for use in a sentence, without seconds: `2 hours and 5 minutes`.
    pub(crate) fn duration_in_sentence(&self, millis: i64) -> String {
        if millis < MINUTE {
            return self.under_a_minute.to_owned();
        }
        self.parts(millis).join(self.length_and)
    }

    fn parts(&self, millis: i64) -> Vec<String> {
        let millis = millis.max(0);
        let units = [
            (DAY, self.one_day, self.days),
            (HOUR, self.one_hour, self.hours),
            (MINUTE, self.one_minute, self.minutes),
            (SECOND, self.one_second, self.seconds),
        ];
        let first = units.iter().position(|(unit, ..)| millis >= *unit).unwrap_or(units.len());
        let last = if millis >= MINUTE { 3 } else { 4 };
        let mut parts = Vec::new();
        let mut rest = millis;
        for (unit, one, many) in units.iter().take(last.min(first + 2)).skip(first) {
            let count = rest / unit;
            rest %= unit;
            if count > 0 {
                parts.push(self.plural(count, one, many));
            }
        }
        parts
    }

    /// Formats a list for use in a sentence.
    pub fn list<T: AsRef<str>>(&self, names: &[T]) -> String {
        let mut text = String::new();
        for (at, name) in names.iter().enumerate() {
            text.push_str(match at {
                0 => "",
                _ if at + 1 == names.len() => self.and,
                _ => self.comma,
            });
            text.push_str(name.as_ref());
        }
        text
    }

    /// Separator of an enumeration.
    pub const fn comma(&self) -> &'static str {
        self.comma
    }

    /// Name of a region.
    pub const fn region(&self, region: Region) -> &'static str {
        match region {
            Region::Europe => self.region_europe,
            Region::NorthAmerica => self.region_north_america,
            Region::SouthAmerica => self.region_south_america,
            Region::Africa => self.region_africa,
            Region::Asia => self.region_asia,
            Region::Oceania => self.region_oceania,
        }
    }

    /// Formats a list of regions for use in a sentence.
    pub fn regions(&self, regions: RegionSet) -> String {
        self.list(&regions.iter().map(|region| self.region(region)).collect::<Vec<_>>())
    }

    /// Name of an incident's or window's status.
    pub const fn status(&self, status: IncidentStatus) -> &'static str {
        match status {
            IncidentStatus::Investigating => self.status_investigating,
            IncidentStatus::Identified => self.status_identified,
            IncidentStatus::Monitoring => self.status_monitoring,
            IncidentStatus::Resolved => self.status_resolved,
            IncidentStatus::Scheduled => self.status_scheduled,
            IncidentStatus::Completed => self.status_completed,
        }
    }

    /// Name of the status of that incident or window.
    pub fn status_of(&self, incident: &Incident) -> &'static str {
        if incident.is_cancelled() { self.status_cancelled } else { self.status(incident.status) }
    }

    /// Default text of the update that led to the incident's present status.
    pub fn default_closing_message(&self, incident: &Incident) -> &'static str {
        if incident.is_cancelled() { self.line_cancelled } else { self.default_message(incident.status) }
    }

    /// Name of an impact.
    pub const fn impact(&self, impact: Impact) -> &'static str {
        match impact {
            Impact::None => self.impact_none,
            Impact::Degraded => self.impact_degraded,
            Impact::Partial => self.impact_partial,
            Impact::Major => self.impact_major,
        }
    }

    /// Text of an update made from a template, about those monitors, or about the page by its name.
    pub fn template<T: AsRef<str>>(&self, template: UpdateTemplate, names: &[T]) -> String {
        let pattern = match template {
            UpdateTemplate::Investigating => self.template_investigating,
            UpdateTemplate::Identified => self.template_identified,
            UpdateTemplate::FixInProgress => self.template_fixing,
            UpdateTemplate::Monitoring => self.template_monitoring,
            UpdateTemplate::Resolved => self.template_resolved,
            UpdateTemplate::VendorOutage => self.template_vendor,
        };
        fill(pattern, &[&self.list(names)])
    }

    /// Default text of an update without a message.
    pub const fn default_message(&self, status: IncidentStatus) -> &'static str {
        match status {
            IncidentStatus::Investigating => self.line_investigating,
            IncidentStatus::Identified => self.line_identified,
            IncidentStatus::Monitoring => self.line_monitoring,
            IncidentStatus::Resolved => self.line_resolved,
            IncidentStatus::Scheduled => self.line_scheduled,
            IncidentStatus::Completed => self.line_completed,
        }
    }
}

fn month(names: &[&'static str; 12], date: NaiveDate) -> &'static str {
    names.get(date.month0() as usize).copied().unwrap_or_default()
}

/// Fills the placeholders of a pattern. Inserted values are not expanded again.
pub fn fill(pattern: &str, values: &[&str]) -> String {
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

#[cfg(test)]
mod tests;
