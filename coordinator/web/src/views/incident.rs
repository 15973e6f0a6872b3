//! Incidents and maintenance windows by day and by month, and the page of one.

use std::collections::BTreeSet;

use chrono::{Datelike, Days, NaiveDate};
use parallax_core::page::Page;
use parallax_core::page_view::{IncidentView, PageView, UptimeDay};
use parallax_core::rollup::{OutcomeCounts, day_of};
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, fill};
use parallax_template::template_file;

use super::assets;
use super::format;
use super::frame::PageFrame;
use super::incident_card::IncidentCard;
use super::link_preview::{LinkPreview, PreviewLocation};

/// A past day and its incidents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PastDay {
    /// Date, also the URL fragment.
    pub key: String,
    /// Formatted date.
    pub name: String,
    /// True if there is data: without data, the page can't claim that nothing happened.
    pub is_known: bool,
    /// Incidents and maintenance of the day.
    pub cards: Vec<IncidentCard>,
}

/// Returns the last `max_days` days of a page with their incidents, newest first. Days before the page was
/// created are left out, unless there are older incidents.
pub(crate) fn build_past_days(page_view: &PageView, root: &str, max_days: u64) -> Vec<PastDay> {
    let (page, now) = (&page_view.page, page_view.now);
    let locale = PageLocale::of(page);
    let date = |at| day_of(at, locale.zone);
    let (Some(today), Some(created)) = (date(now), date(page.created_at)) else { return Vec::new() };
    let all = page_view.incidents.iter().chain(&page_view.maintenance).chain(&page_view.past_incidents);
    let days_of = |incident_view: &IncidentView| {
        let span = incident_view.incident.duration_so_far(now)?;
        let last = (span.to - 1).max(span.from);
        Some(date(span.from)?..=date(last)?)
    };
    let dated: Vec<_> = all.filter_map(|incident_view| Some((days_of(incident_view)?, incident_view))).collect();
    let first = dated.iter().map(|(days, _)| *days.start()).fold(created, NaiveDate::min);
    let oldest = today.checked_sub_days(Days::new(max_days)).unwrap_or(today);
    let dated: Vec<_> = dated
        .into_iter()
        .filter(|(days, _)| *days.end() >= oldest)
        .map(|(days, incident_view)| (days, IncidentCard::of(incident_view, root, locale, now, true)))
        .collect();
    let is_known = |day: &&UptimeDay| day.uptime.is_some() || day.counts != OutcomeCounts::default();
    let days = page_view.monitors.iter().flat_map(|view| &view.history.days);
    let known: BTreeSet<NaiveDate> = days.filter(is_known).map(|day| day.date).collect();
    let day = |days_ago| {
        let date = today.checked_sub_days(Days::new(days_ago)).filter(|date| *date >= first)?;
        let day_incidents = dated.iter().filter(|(days, _)| days.contains(&date));
        Some(PastDay {
            key: date.to_string(),
            name: locale.messages.locale().day(date),
            is_known: known.contains(&date),
            cards: day_incidents.map(|(_, card)| card.clone()).collect(),
        })
    };
    (0..max_days).map_while(day).collect()
}

/// Page of one incident.
#[template_file("public/incident.html")]
#[derive(Debug, Clone)]
pub(crate) struct IncidentPage {
    frame: PageFrame,
    card: IncidentCard,
}

impl IncidentPage {
    /// Builds the page of an incident on a status page that is served at `location`.
    pub(crate) fn new(
        (page, root): (&Page, &str),
        incident_view: &IncidentView,
        location: PreviewLocation<'_>,
        now: Timestamp,
    ) -> Self {
        let card = IncidentCard::of(incident_view, root, PageLocale::of(page), now, false);
        let share = LinkPreview::of_incident(page, incident_view, &card, location);
        Self { frame: PageFrame::new(page, root, &card.title, now).with_preview(share), card }
    }
}

/// Page of one month.
#[template_file("public/history.html")]
#[derive(Debug, Clone)]
pub(crate) struct HistoryPage {
    frame: PageFrame,
    name: String,
    days: Vec<PastDay>,
    earlier: Option<(String, String)>,
    later: Option<(String, String)>,
}

impl HistoryPage {
    /// Builds the page of a month, with links limited to the page's first and last month.
    pub(crate) fn new(
        (page, root): (&Page, &str),
        (year, month): (i32, u32),
        (first, last): ((i32, u32), (i32, u32)),
        incident_views: &[IncidentView],
        location: PreviewLocation<'_>,
        now: Timestamp,
    ) -> Self {
        let locale = PageLocale::of(page);
        let mut days: Vec<PastDay> = Vec::new();
        for incident_view in incident_views {
            let date = day_of(incident_view.incident.started_at, locale.zone).unwrap_or_default();
            let (key, name) = (date.to_string(), locale.messages.locale().day(date));
            let card = IncidentCard::of(incident_view, root, locale, now, true);
            match days.last_mut() {
                Some(day) if day.key == key => day.cards.push(card),
                Some(_) | None => days.push(PastDay { key, name, is_known: true, cards: vec![card] }),
            }
        }
        let link = |(year, month): (i32, u32)| {
            (format!("{root}/history/{year:04}-{month:02}"), format::format_month(year, month, locale.messages))
        };
        let date = NaiveDate::from_ymd_opt(year, month, 1);
        let step = |date: Option<NaiveDate>| date.map(|date| (date.year(), date.month()));
        let before = step(date.and_then(|date| date.checked_sub_months(chrono::Months::new(1))));
        let after = step(date.and_then(|date| date.checked_add_months(chrono::Months::new(1))));
        let name = format::format_month(year, month, locale.messages);
        Self {
            frame: PageFrame::new(page, root, &fill(locale.messages.history_of, &[&name]), now)
                .with_preview(LinkPreview::of_month(page, (year, month), incident_views, location)),
            name,
            days,
            earlier: before.filter(|month| *month >= first).map(link),
            later: after.filter(|month| *month <= last).map(link),
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::incident::{Incident, IncidentStatus};
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use super::*;
    use crate::views::tests::{NOW, incident, incident_view, page_view, resolved, window};

    fn titles(page_view: &PageView) -> Vec<(String, Vec<String>)> {
        let titles = |day: PastDay| (day.key, day.cards.into_iter().map(|card| card.title).collect());
        build_past_days(page_view, "", 7).into_iter().map(titles).collect()
    }

    fn incident_between(title: &str, from: Timestamp, to: Option<Timestamp>) -> IncidentView {
        let status = if to.is_some() { IncidentStatus::Resolved } else { IncidentStatus::Identified };
        incident_view(Incident { started_at: from, resolved_at: to, status, ..incident(9, title) })
    }

    #[test]
    fn a_day_lists_every_incident_that_was_open_on_it() {
        let midnight = NOW - NOW.as_millis() % DAY;
        let page_view = PageView {
            incidents: vec![incident_between("Open", midnight - HOUR, None)],
            past_incidents: vec![
                incident_between("Three days", midnight - 4 * DAY - HOUR, Some(midnight - 3 * DAY + HOUR)),
                incident_between("Until midnight", midnight - 5 * DAY - HOUR, Some(midnight - 5 * DAY)),
            ],
            ..page_view()
        };
        let days = titles(&page_view);
        let titles_by_day: Vec<Vec<&str>> =
            days.iter().map(|(_, titles)| titles.iter().map(String::as_str).collect()).collect();
        let expected: [&[&str]; 7] =
            [&["Open"], &["Open"], &[], &["Three days"], &["Three days"], &["Three days"], &["Until midnight"]];
        assert_eq!(titles_by_day, expected);
        assert_eq!(days[0].0, "2026-11-27");
    }

    #[test]
    fn maintenance_is_listed_on_its_days_once_it_has_begun() {
        let mut page_view = PageView { incidents: Vec::new(), past_incidents: Vec::new(), ..page_view() };
        assert!(titles(&page_view).iter().all(|(_, titles)| titles.is_empty()));
        page_view.maintenance = vec![incident_view(Incident { started_at: NOW - MINUTE, has_begun: true, ..window() })];
        assert_eq!(titles(&page_view)[0].1, ["Database upgrade"]);
    }

    #[test]
    fn days_follow_the_pages_zone_and_start_with_the_page() {
        let mut page_view =
            PageView { incidents: Vec::new(), past_incidents: vec![incident_view(resolved())], ..page_view() };
        page_view.page.created_at = NOW - 2 * DAY;
        let days = titles(&page_view);
        assert_eq!(days.len(), 3);
        assert_eq!(days[2], ("2026-11-25".to_owned(), vec!["Checkout slow for some customers".to_owned()]));
        page_view.past_incidents = vec![incident_between("From before", NOW - 4 * DAY, Some(NOW - 4 * DAY + HOUR))];
        let days = titles(&page_view);
        assert_eq!((days.len(), days[4].1[0].as_str()), (5, "From before"), "people announced it");
        page_view.page.timezone = chrono_tz::Tz::Pacific__Kiritimati;
        assert_eq!(titles(&page_view)[0].0, "2026-11-28", "it is tomorrow there");
    }

    #[test]
    fn a_day_without_data_is_not_shown_as_free_of_incidents() {
        let mut page_view = page_view();
        page_view.monitors.truncate(1);
        let past = &mut page_view.monitors[0].history.days;
        let newest = past.len() - 1;
        past[newest - 1] = UptimeDay { counts: OutcomeCounts::default(), uptime: None, ..past[newest - 1] };
        past[newest - 2] = UptimeDay {
            counts: OutcomeCounts { excluded: 9, ..OutcomeCounts::default() },
            uptime: None,
            ..past[newest - 2]
        };
        let known: Vec<bool> = build_past_days(&page_view, "", 7).iter().map(|day| day.is_known).collect();
        assert_eq!(known, [true, false, true, true, true, true, true]);
        page_view.monitors.clear();
        assert!(build_past_days(&page_view, "", 7).iter().all(|day| !day.is_known));
    }
}
