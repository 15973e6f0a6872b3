//! Texts of automatic incidents: titles and updates, in Markdown that is safe against any name or failure
//! reason.

use std::collections::BTreeMap;

use chrono_tz::Tz;

use super::{MonitorInfo, OutageEnd};
use crate::alert_settings::AnnouncedOutage;
use crate::flapping::{Flapping, FlappingEnd};
use crate::id::{MonitorId, UpdateId};
use crate::incident::{Impact, Incident, IncidentStatus, MAX_UPDATES};
use crate::locale::{Locale, fill};
use crate::page::branding::Language;
use crate::text;
use crate::time::Timestamp;
use crate::vantage::RegionSet;

/// Maximum length of a failure reason in a text, in characters.
const MAX_REASON: usize = 300;

/// Tense and kind of a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tense {
    Present,
    Past,
    /// A single monitor keeps going down and up.
    Flapping,
    /// A single monitor did.
    Flapped,
}

/// Builds a title: the first monitor's name and the number of others.
pub(super) fn title(first: &str, count: usize, tense: Tense, locale: &Locale) -> String {
    let (one, two, many) = match tense {
        Tense::Present => (locale.title_one, locale.title_two, locale.title_many),
        Tense::Past => (locale.title_one_over, locale.title_two_over, locale.title_many_over),
        Tense::Flapping => (locale.title_flapping, locale.title_two, locale.title_many),
        Tense::Flapped => (locale.title_flapping_over, locale.title_two_over, locale.title_many_over),
    };
    match count {
        0 | 1 => fill(one, &[first]),
        2 => fill(two, &[first]),
        count => fill(many, &[first, &(count - 1).to_string()]),
    }
}

/// Returns true if an incident has a generated title, in whichever language its page had then. `first` is the
/// name of the first of its monitors, if that still exists.
pub(super) fn is_generated_title(incident: &Incident, first: Option<&str>) -> bool {
    [Tense::Present, Tense::Past].into_iter().any(|tense| is_in(incident, first, tense))
        || is_flapping_title(incident, first)
}

/// Returns true for a title that reports the only monitor as flapping, now or in the past.
fn is_flapping_title(incident: &Incident, first: Option<&str>) -> bool {
    [Tense::Flapping, Tense::Flapped].into_iter().any(|tense| is_in(incident, first, tense))
}

fn is_in(incident: &Incident, first: Option<&str>, tense: Tense) -> bool {
    Language::ALL.into_iter().any(|language| {
        let locale = Locale::of(language);
        let first = first.unwrap_or(locale.some_monitor);
        title(first, incident.affected.len(), tense, locale) == incident.title
    })
}

impl Incident {
    /// The name of the first of its monitors, looked up by id, if that still exists.
    pub fn first_monitor_name<'a>(&self, names: &'a [(MonitorId, String, Option<Impact>)]) -> Option<&'a str> {
        let first = self.affected.first()?.monitor;
        names.iter().find(|(id, ..)| *id == first).map(|(_, name, _)| name.as_str())
    }

    /// Returns true if it is automatic and still has its generated title, which names the monitors that went
    /// down and not those that are down now. `first` is the name of the first of its monitors.
    pub fn has_generated_title(&self, first: Option<&str>) -> bool {
        self.automatic && is_generated_title(self, first)
    }

    /// The generated title that it was opened with, whatever it has become since; none if a person replaced
    /// it.
    pub fn original_title(&self, first: Option<&str>, language: Language) -> Option<String> {
        let locale = Locale::of(language);
        let title = || title(first.unwrap_or(locale.some_monitor), 1, Tense::Present, locale);
        self.has_generated_title(first).then(title)
    }

    /// The generated title in the past tense; none if a person replaced it.
    pub fn past_tense_title(&self, first: Option<&str>, language: Language) -> Option<String> {
        let locale = Locale::of(language);
        let tense = if is_flapping_title(self, first) { Tense::Flapped } else { Tense::Past };
        let past = || title(first.unwrap_or(locale.some_monitor), self.affected.len(), tense, locale);
        self.has_generated_title(first).then(past)
    }
}

impl Incident {
    /// Returns the resolved incident after `name`, the last of its monitors that was down, is no longer
    /// monitored. `first` is the name of the first of its monitors.
    #[must_use]
    pub fn ended_unmonitored(
        &self,
        (name, first): (&str, Option<&str>),
        update: UpdateId,
        language: Language,
        now: Timestamp,
    ) -> Self {
        let mut after = self.clone();
        if let Some(title) = self.past_tense_title(first, language) {
            after.title = title;
        }
        after.status = IncidentStatus::Resolved;
        after.resolved_at = Some(now.max(self.started_at));
        if after.updates.len() < MAX_UPDATES {
            after.add_update(update, fill(Locale::of(language).unchecked, &[&escape_markdown(name)]), now);
        }
        after
    }

    /// Sets the generated title for the first monitor, named `first`, and as many others; or the one for
    /// flapping if the title with the earlier name was that.
    pub fn set_generated_title(&mut self, before: Option<&str>, first: &str, language: Language) {
        let tense = if is_flapping_title(self, before) { Tense::Flapping } else { Tense::Present };
        self.title = title(first, self.affected.len(), tense, Locale::of(language));
    }
}

/// Builds a title for monitors that are down now, each with the regions that it is down from if others see it
/// up; none without such monitors.
pub fn title_for_down(down: &[(&str, Option<RegionSet>)], language: Language) -> Option<String> {
    let locale = Locale::of(language);
    match down {
        [] => None,
        [(name, Some(from))] => Some(fill(locale.down_from, &[name, &locale.regions(*from)])),
        [(first, _), ..] => Some(title(first, down.len(), Tense::Present, locale)),
    }
}

/// Text of the outage of a monitor: regions and reason.
pub(super) fn down_text(watched: &MonitorInfo, outage: &AnnouncedOutage, again: bool, locale: &Locale) -> String {
    let name = escape_markdown(&watched.name);
    let regions = outage.down_from.map(|regions| locale.regions(regions));
    let what = match (&regions, again) {
        (Some(_), false) => locale.down_from,
        (Some(_), true) => locale.again_from,
        (None, false) if watched.is_regional => locale.down_everywhere,
        (None, true) if watched.is_regional => locale.again_everywhere,
        (None, false) => locale.down,
        (None, true) => locale.again,
    };
    let what = fill(what, &[&name, regions.as_deref().unwrap_or_default()]);
    let text = match &outage.reason {
        Some(reason) => {
            let reason: String = locale.failure_text(reason).chars().take(MAX_REASON).collect();
            fill(locale.because, &[&what, &escape_markdown(&reason)])
        }
        None => fill(locale.sentence, &[&what]),
    };
    if regions.is_some() { fill(locale.reachable_elsewhere, &[&text]) } else { text }
}

/// All texts that may have been posted about an outage, in any language; each with whether it says "again".
pub(super) fn possible_texts(watched: &MonitorInfo, outage: &AnnouncedOutage) -> Vec<(String, bool)> {
    let of = |language| [false, true].map(|again| (down_text(watched, outage, again, Locale::of(language)), again));
    Language::ALL.into_iter().flat_map(of).collect()
}

/// Text of the recovery of one monitor while others of the incident are still down.
pub(super) fn recovered_text(watched: &MonitorInfo, locale: &Locale) -> String {
    fill(locale.one_back, &[&escape_markdown(&watched.name)])
}

/// Text of the end of an incident, with its duration.
pub(super) fn resolved_text(
    incident: &Incident,
    monitors: &BTreeMap<MonitorId, MonitorInfo>,
    ended: &OutageEnd,
    at: Timestamp,
    locale: &Locale,
) -> String {
    let lasted = locale.duration_in_sentence(at.since(incident.started_at));
    let first = escape_markdown(first_monitor(incident, monitors).unwrap_or(locale.some_monitor));
    match (incident.affected.len(), ended) {
        (0 | 1, OutageEnd::Recovered) => fill(locale.is_back, &[&first, &lasted]),
        (0 | 1, OutageEnd::Steady(text)) => text.clone(),
        (_, OutageEnd::Recovered) => fill(locale.all_back, &[&lasted]),
        (_, OutageEnd::Steady(text)) => fill(locale.two_sentences, &[text, &fill(locale.all_back, &[&lasted])]),
        (0 | 1, OutageEnd::Unmonitored) => fill(locale.unchecked, &[&first]),
        (_, OutageEnd::Unmonitored) => locale.rest_unchecked.to_owned(),
    }
}

/// Text about a flapping monitor: the number of changes and their beginning.
pub(super) fn flapping_text(watched: &MonitorInfo, flapping: Flapping, zone: Tz, locale: &Locale) -> String {
    let (changes, since) = (flapping.changes.to_string(), format_time(flapping.since, zone, locale));
    fill(locale.flapping, &[&escape_markdown(&watched.name), &changes, &since])
}

/// Text about a monitor that has stopped flapping and stays up, or down.
pub(super) fn steady_text(watched: &MonitorInfo, steady: &FlappingEnd, zone: Tz, locale: &Locale) -> String {
    let pattern = if steady.is_bad { locale.steady_down } else { locale.steady_up };
    let (changes, last) = (steady.flapping.changes.to_string(), format_time(steady.last_change, zone, locale));
    fill(pattern, &[&escape_markdown(&watched.name), &last, &changes])
}

/// Formats a time in a zone: `1 Mar 2026, 10:30 UTC+01:00`.
fn format_time(at: Timestamp, zone: Tz, locale: &Locale) -> String {
    let Some(utc) = at.to_utc() else { return at.to_string() };
    let local = utc.with_timezone(&zone);
    let offset = match zone {
        Tz::UTC | Tz::Etc__UTC => "UTC".to_owned(),
        _ => local.format("UTC%:z").to_string(),
    };
    locale.date_time(local.date_naive(), &format!("{} {offset}", local.format("%H:%M")))
}

/// The name of the first of an incident's monitors, if that still exists.
pub(super) fn first_monitor<'a>(
    incident: &Incident,
    monitors: &'a BTreeMap<MonitorId, MonitorInfo>,
) -> Option<&'a str> {
    let first = incident.affected.first().and_then(|first| monitors.get(&first.monitor));
    first.map(|watched| watched.name.as_str())
}

/// Escapes text for Markdown, so that it can't become emphasis, a link or HTML. Characters that alter the layout become
/// spaces.
fn escape_markdown(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|' | '!' | '&') {
            plain.push('\\');
        }
        plain.push(if text::alters_layout(c) { ' ' } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Failure;
    use crate::vantage::Region;

    fn outage(reason: Option<Failure>, down_from: Option<RegionSet>) -> AnnouncedOutage {
        AnnouncedOutage { since: Timestamp::from_millis(0), reason, down_from, incident: None }
    }

    fn english() -> &'static Locale {
        Locale::of(Language::En)
    }

    #[test]
    fn the_longest_title_fits_in_every_language() {
        let name = "x".repeat(crate::monitor::edit::MAX_NAME);
        for language in Language::ALL {
            let locale = Locale::of(language);
            for (count, tense) in [1, 2, 1000].into_iter().flat_map(|n| [(n, Tense::Present), (n, Tense::Past)]) {
                let title = title(&name, count, tense, locale);
                assert!(title.chars().count() <= crate::incident::edit::MAX_TITLE, "{title}");
            }
        }
    }

    #[test]
    fn a_text_names_regions_and_reason_and_nothing_in_it_is_markup() {
        let shop = |regional| MonitorInfo { name: "Shop".to_owned(), is_regional: regional, paused: false };
        let two: RegionSet = [Region::Asia, Region::Europe].into_iter().collect();
        let three: RegionSet = [Region::Asia, Region::Europe, Region::Africa].into_iter().collect();
        for (regional, down_from, words) in [
            (true, None, "Shop is down from every region that checks it: connection refused."),
            (false, None, "Shop is down: connection refused."),
            (
                true,
                Some(two),
                "Shop is down from Europe and Asia: connection refused. It is reachable from other regions.",
            ),
            (
                true,
                Some(three),
                "Shop is down from Europe, Africa and Asia: connection refused. It is reachable from other regions.",
            ),
        ] {
            assert_eq!(down_text(&shop(regional), &outage(Some(Failure::Refused), down_from), false, english()), words);
        }
        assert_eq!(down_text(&shop(false), &outage(None, None), true, english()), "Shop is down again.");
        let nasty = MonitorInfo { name: "[a](http://b) <i>\r\n# x".to_owned(), is_regional: false, paused: false };
        let vendor = Failure::VendorOutage(format!("\u{202e}*{}", "y".repeat(9999)));
        let text = down_text(&nasty, &outage(Some(vendor), None), false, english());
        assert!(text.starts_with(r"\[a\](http://b) \<i\>  \# x is down: "), "{text}");
        assert!(text.contains("\u{fffd}\\*yyy") && text.chars().count() < 500, "{text}");
    }

    #[test]
    fn a_single_down_monitor_is_named_with_its_regions() {
        let asia = Some(RegionSet::only(Region::Asia));
        for (down, title) in [
            (&[][..], None),
            (&[("API", None)], Some("API is down")),
            (&[("API", asia)], Some("API is down from Asia")),
            (&[("API", asia), ("Shop", None)], Some("API and 1 other are down")),
            (&[("API", None), ("Shop", None), ("Mail", asia)], Some("API and 2 others are down")),
        ] {
            assert_eq!(title_for_down(down, Language::En).as_deref(), title, "{down:?}");
        }
    }
}
