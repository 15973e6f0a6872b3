//! What automatic incidents say: their titles and updates, in Markdown that nothing in a name or a reason breaks.

use std::collections::BTreeMap;

use super::Watched;
use crate::id::MonitorId;
use crate::incident::Incident;
use crate::page::look::Language;
use crate::telling::ToldOutage;
use crate::time::Timestamp;
use crate::tongue::{Tongue, fill};

/// Characters of a reason that are told.
const REASON: usize = 300;

/// The title: the first monitor's name, and how many others there are.
pub(super) fn title(incident: &Incident, monitors: &BTreeMap<MonitorId, Watched>, tongue: &Tongue) -> String {
    let first = name(incident, monitors, tongue);
    match incident.affected.len() {
        0 | 1 => fill(tongue.title_one, &[first]),
        2 => fill(tongue.title_two, &[first]),
        count => fill(tongue.title_many, &[first, &(count - 1).to_string()]),
    }
}

/// Whether an incident has a title of ours, in whichever language its page had then.
pub(super) fn is_title(incident: &Incident, monitors: &BTreeMap<MonitorId, Watched>) -> bool {
    let ours = |language| incident.title == title(incident, monitors, Tongue::of(language));
    Language::ALL.into_iter().any(ours)
}

/// That a monitor is down, where, and why.
pub(super) fn down(watched: &Watched, outage: &ToldOutage, again: bool, tongue: &Tongue) -> String {
    let name = plain(&watched.name);
    let regions = outage.down_from.map(|regions| tongue.regions(regions));
    let what = match (&regions, again) {
        (Some(_), false) => tongue.down_from,
        (Some(_), true) => tongue.again_from,
        (None, false) if watched.regional => tongue.down_everywhere,
        (None, true) if watched.regional => tongue.again_everywhere,
        (None, false) => tongue.down,
        (None, true) => tongue.again,
    };
    let what = fill(what, &[&name, regions.as_deref().unwrap_or_default()]);
    let text = match &outage.reason {
        Some(reason) => {
            let reason: String = tongue.failure(reason).chars().take(REASON).collect();
            fill(tongue.because, &[&what, &plain(&reason)])
        }
        None => fill(tongue.sentence, &[&what]),
    };
    if regions.is_some() { fill(tongue.elsewhere, &[&text]) } else { text }
}

/// All that we may have said of it, in whichever language its page had then; each with whether it says "again".
pub(super) fn ways(watched: &Watched, outage: &ToldOutage) -> Vec<(String, bool)> {
    let of =
        |language| [false, true].map(|again| (down(watched, outage, again, Tongue::of(language)), again));
    Language::ALL.into_iter().flat_map(of).collect()
}

/// That an incident is over, and how long it took.
pub(super) fn over(
    incident: &Incident,
    monitors: &BTreeMap<MonitorId, Watched>,
    is_back: bool,
    at: Timestamp,
    tongue: &Tongue,
) -> String {
    let lasted = tongue.length_in_words(at.since(incident.started_at));
    let first = plain(name(incident, monitors, tongue));
    match (incident.affected.len(), is_back) {
        (0 | 1, true) => fill(tongue.is_back, &[&first, &lasted]),
        (_, true) => fill(tongue.all_back, &[&lasted]),
        (0 | 1, false) => fill(tongue.unchecked, &[&first]),
        (_, false) => tongue.rest_unchecked.to_owned(),
    }
}

fn name<'a>(incident: &Incident, monitors: &'a BTreeMap<MonitorId, Watched>, tongue: &'a Tongue) -> &'a str {
    let first = incident.affected.first().and_then(|first| monitors.get(&first.monitor));
    first.map_or(tongue.some_monitor, |watched| &watched.name)
}

/// Text that means itself in Markdown: neither emphasis nor link nor HTML comes of it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|' | '!' | '&') {
            plain.push('\\');
        }
        plain.push(if c.is_control() { ' ' } else { c });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Failure;
    use crate::place::{Region, RegionSet};

    fn outage(reason: Option<Failure>, down_from: Option<RegionSet>) -> ToldOutage {
        ToldOutage { since: Timestamp::from_millis(0), reason, down_from, incident: None }
    }

    fn english() -> &'static Tongue {
        Tongue::of(Language::En)
    }

    #[test]
    fn the_longest_title_has_room_in_every_language() {
        let name = "x".repeat(crate::monitor::edit::MAX_NAME);
        for language in Language::ALL {
            let tongue = Tongue::of(language);
            for title in [tongue.title_one, tongue.title_two, tongue.title_many] {
                let title = fill(title, &[&name, "999"]);
                assert!(title.chars().count() <= crate::incident::edit::MAX_TITLE, "{title}");
            }
        }
    }

    #[test]
    fn a_text_names_regions_and_reason_and_nothing_in_it_is_markup() {
        let shop = |regional| Watched { name: "Shop".to_owned(), regional, paused: false };
        let two: RegionSet = [Region::Asia, Region::Europe].into_iter().collect();
        let three: RegionSet = [Region::Asia, Region::Europe, Region::Africa].into_iter().collect();
        for (regional, down_from, words) in [
            (true, None, "Shop is down from every region that checks it: connection refused."),
            (false, None, "Shop is down: connection refused."),
            (
                true,
                Some(two),
                "Shop is down from Europe and Asia: connection refused. Other regions reach it.",
            ),
            (
                true,
                Some(three),
                "Shop is down from Europe, Africa and Asia: connection refused. Other regions reach it.",
            ),
        ] {
            assert_eq!(
                down(&shop(regional), &outage(Some(Failure::Refused), down_from), false, english()),
                words
            );
        }
        assert_eq!(down(&shop(false), &outage(None, None), true, english()), "Shop is down again.");
        let nasty = Watched { name: "[a](http://b) <i>\r\n# x".to_owned(), regional: false, paused: false };
        let vendor = Failure::VendorOutage(format!("*{}", "y".repeat(9999)));
        let text = down(&nasty, &outage(Some(vendor), None), false, english());
        assert!(text.starts_with(r"\[a\](http://b) \<i\>  \# x is down: "), "{text}");
        assert!(text.contains(r"\*yyy") && text.chars().count() < 500, "{text}");
    }
}
