//! What automatic incidents say: their titles and updates, in Markdown that nothing in a name or a reason breaks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Watched;
use crate::id::MonitorId;
use crate::incident::Incident;
use crate::place::{Region, RegionSet};
use crate::telling::ToldOutage;
use crate::time::{DAY, HOUR, MINUTE, Timestamp};

/// Characters of a reason that are told.
const REASON: usize = 300;

/// The title: the first monitor's name, and how many others there are.
pub(super) fn title(incident: &Incident, monitors: &BTreeMap<MonitorId, Watched>) -> String {
    let first = name(incident, monitors);
    match incident.affected.len() {
        0 | 1 => format!("{first} is down"),
        2 => format!("{first} and 1 other are down"),
        count => format!("{first} and {} others are down", count - 1),
    }
}

/// That a monitor is down, where, and why.
pub(super) fn down(watched: &Watched, outage: &ToldOutage, again: bool) -> String {
    let mut text = format!("{} is down", plain(&watched.name));
    if again {
        text.push_str(" again");
    }
    match outage.down_from {
        Some(regions) => {
            text.push_str(" from ");
            list(&mut text, regions);
        }
        None if watched.regional => text.push_str(" from every region that checks it"),
        None => {}
    }
    if let Some(reason) = &outage.reason {
        let reason: String = reason.to_string().chars().take(REASON).collect();
        // Writing to a string does not fail.
        let _ = write!(text, ": {}", plain(&reason));
    }
    text.push('.');
    if outage.down_from.is_some() {
        text.push_str(" Other regions reach it.");
    }
    text
}

/// That an incident is over, and how long it took.
pub(super) fn over(
    incident: &Incident,
    monitors: &BTreeMap<MonitorId, Watched>,
    is_back: bool,
    at: Timestamp,
) -> String {
    let lasted = length(at.since(incident.started_at));
    let first = plain(&name(incident, monitors));
    match (incident.affected.len(), is_back) {
        (0 | 1, true) => format!("{first} is back. This lasted {lasted}."),
        (_, true) => format!("Everything that was affected is back. This lasted {lasted}."),
        (0 | 1, false) => format!("{first} is not checked any more."),
        (_, false) => "What was still down is not checked any more.".to_owned(),
    }
}

fn name(incident: &Incident, monitors: &BTreeMap<MonitorId, Watched>) -> String {
    let first = incident.affected.first().and_then(|first| monitors.get(&first.monitor));
    first.map_or_else(|| "A monitor".to_owned(), |watched| watched.name.clone())
}

fn list(text: &mut String, regions: RegionSet) {
    let count = regions.len();
    for (place, region) in regions.iter().map(Region::title).enumerate() {
        let before = match place {
            0 => "",
            _ if place + 1 == count => " and ",
            _ => ", ",
        };
        text.push_str(before);
        text.push_str(region);
    }
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

/// A length of time in its two largest units.
fn length(millis: i64) -> String {
    let unit = |count: i64, name: &str| match count {
        1 => format!("1 {name}"),
        _ => format!("{count} {name}s"),
    };
    let two = |large: i64, name: &str, rest: i64, small: &str| match rest {
        0 => unit(large, name),
        _ => format!("{} and {}", unit(large, name), unit(rest, small)),
    };
    if millis < MINUTE {
        "less than a minute".to_owned()
    } else if millis < HOUR {
        unit(millis / MINUTE, "minute")
    } else if millis < DAY {
        two(millis / HOUR, "hour", millis % HOUR / MINUTE, "minute")
    } else {
        two(millis / DAY, "day", millis % DAY / HOUR, "hour")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Failure;

    fn outage(reason: Option<Failure>, down_from: Option<RegionSet>) -> ToldOutage {
        ToldOutage { since: Timestamp::from_millis(0), reason, down_from, incident: None }
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
            assert_eq!(down(&shop(regional), &outage(Some(Failure::Refused), down_from), false), words);
        }
        assert_eq!(down(&shop(false), &outage(None, None), true), "Shop is down again.");
        let nasty = Watched { name: "[a](http://b) <i>\r\n# x".to_owned(), regional: false, paused: false };
        let vendor = Failure::VendorOutage(format!("*{}", "y".repeat(9999)));
        let text = down(&nasty, &outage(Some(vendor), None), false);
        assert!(text.starts_with(r"\[a\](http://b) \<i\>  \# x is down: "), "{text}");
        assert!(text.contains(r"\*yyy") && text.chars().count() < 500, "{text}");
    }

    #[test]
    fn lengths_are_told_in_two_units() {
        for (millis, words) in [
            (-5, "less than a minute"),
            (59_999, "less than a minute"),
            (MINUTE, "1 minute"),
            (59 * MINUTE, "59 minutes"),
            (HOUR, "1 hour"),
            (2 * HOUR + 5 * MINUTE, "2 hours and 5 minutes"),
            (DAY + HOUR, "1 day and 1 hour"),
            (40 * DAY, "40 days"),
        ] {
            assert_eq!(length(millis), words);
        }
    }
}
