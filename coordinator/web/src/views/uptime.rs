//! Uptime of a monitor as shown on pages: only of the time since it was created.

use parallax_core::page_view::{MonitorView, TimeRange};
use parallax_core::rollup::{OutcomeCounts, day_of};
use parallax_core::time::{DAY, Timestamp};
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

use super::format;
use super::range_context::RangeContext;
use super::ranges;

/// Placeholder for a missing value.
const NO_VALUE: &str = "–";

/// Uptime over a range, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UptimeView {
    /// Value, or a text if there is none.
    pub figure: String,
    /// Meaning of the dash, if the value is one.
    pub dash_meaning: Option<&'static str>,
    /// Start of monitoring if it is within the range and there is a value: `29 Nov`.
    pub since: Option<String>,
    /// True if there is no value because the monitor is paused.
    is_paused: bool,
    /// Length of the range as text.
    span: &'static str,
    messages: &'static PageMessages,
}

impl UptimeView {
    /// Returns the uptime of a monitor.
    pub(crate) fn of(view: &MonitorView, context: RangeContext) -> Self {
        let percent = view.uptime_in(context.range);
        let uptime = Self::of_percent(percent, view, context);
        if percent.is_none() && !view.monitor.paused && is_all_maintenance(view, context.range) {
            return Self { figure: NO_VALUE.to_owned(), dash_meaning: Some(uptime.messages.maintenance), ..uptime };
        }
        uptime
    }

    /// Returns the uptime of one region of a monitor, in percent.
    pub(crate) fn of_percent(percent: Option<f64>, view: &MonitorView, context: RangeContext) -> Self {
        let messages = context.locale.messages;
        let is_paused = view.monitor.paused;
        let percent = percent.filter(|_| !is_paused);
        let since = percent.and_then(|_| since(view, context));
        let (figure, dash_meaning) = match percent {
            Some(percent) => (format::format_percent(percent, messages), None),
            None if is_paused => (NO_VALUE.to_owned(), Some(messages.state_paused)),
            None => (messages.no_data.to_owned(), None),
        };
        Self { figure, dash_meaning, since, is_paused, span: ranges::range_label(context.range, messages), messages }
    }

    /// Returns the uptime over each range, shortest first; `None` for ranges longer than the first one that
    /// covers the monitor's whole life, and for all ranges while it is paused.
    pub(crate) fn of_each(view: &MonitorView, context: RangeContext) -> Vec<(TimeRange, Option<Self>)> {
        let ranges = TimeRange::ALL.map(|range| RangeContext { range, ..context });
        let first_covering = ranges.iter().position(|context| since(view, *context).is_some());
        let uptime = |(at, context): (usize, RangeContext)| {
            let is_known = !view.monitor.paused && first_covering.is_none_or(|first_covering| at <= first_covering);
            (context.range, is_known.then(|| Self::of(view, context)))
        };
        ranges.into_iter().enumerate().map(uptime).collect()
    }

    /// Time range: `since 29 Nov` or `over 90 days`; empty if paused.
    pub(crate) fn time_range(&self) -> String {
        match &self.since {
            None if self.is_paused => String::new(),
            Some(since) => fill(self.messages.since_day, &[since]),
            None => fill(self.messages.over, &[self.span]),
        }
    }

    /// Complete text: `100 % since 29 Nov`.
    pub(crate) fn text(&self) -> String {
        let figure = self.dash_meaning.unwrap_or(&self.figure);
        match &self.since {
            None if self.is_paused => figure.to_owned(),
            Some(since) => fill(self.messages.uptime_since, &[figure, since]),
            None => fill(self.messages.uptime_over, &[figure, self.span]),
        }
    }
}

/// Creation day of a monitor, if it is younger than the range.
fn since(view: &MonitorView, context: RangeContext) -> Option<String> {
    let RangeContext { range, now, locale, .. } = context;
    let created_at = view.monitor.created_at;
    let is_younger = match range {
        TimeRange::Day => created_at > now - DAY,
        TimeRange::Week | TimeRange::Month | TimeRange::Quarter => is_after_first_day(created_at, range, now, locale),
    };
    is_younger.then(|| format::format_short_day(created_at, locale))
}

/// Returns true if a time is after the first full day of a range.
fn is_after_first_day(at: Timestamp, range: TimeRange, now: Timestamp, locale: PageLocale) -> bool {
    let days = day_of(now, locale.zone).zip(day_of(at, locale.zone));
    let length = i64::try_from(range.days()).unwrap_or(i64::MAX);
    days.is_some_and(|(today, day)| today.signed_duration_since(day).num_days() < length - 1)
}

/// Returns true if all data of a range was in maintenance, which does not count.
fn is_all_maintenance(view: &MonitorView, range: TimeRange) -> bool {
    let newest = view.history.days.iter().rev().take(range.days());
    newest
        .fold(OutcomeCounts::default(), |mut sum, day| {
            sum.merge(day.counts);
            sum
        })
        .excluded
        > 0
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use parallax_core::event::MonitorStatus;
    use parallax_core::time::{HOUR, MINUTE};

    use super::super::tests::{NOW, monitor_view};
    use super::*;
    use crate::views::tests::english_locale;

    fn context(range: TimeRange) -> RangeContext {
        RangeContext { range, now: NOW, is_stale: false, locale: english_locale(Tz::UTC) }
    }

    /// A monitor of a given age with only passed rounds.
    fn aged(age: i64) -> MonitorView {
        let mut view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 0);
        view.monitor.created_at = NOW - age;
        view.uptime_24h = Some(100.0);
        for day in view.history.days.iter_mut().rev().take(usize::try_from(age / DAY).unwrap() + 1) {
            day.counts.passed = 60;
            day.uptime = Some(100.0);
        }
        view
    }

    #[test]
    fn uptime_figures_start_no_earlier_than_the_monitor() {
        // Now is 27 November, 12:46.
        for (age, expected) in [
            (6 * MINUTE, ["100 % since 27 Nov", "-", "-", "-"]),
            (20 * HOUR, ["100 % since 26 Nov", "-", "-", "-"]),
            (25 * HOUR, ["100 % over 24 hours", "100 % since 26 Nov", "-", "-"]),
            // On the first of seven days.
            (6 * DAY, ["100 % over 24 hours", "100 % over 7 days", "100 % since 21 Nov", "-"]),
            (60 * DAY, ["100 % over 24 hours", "100 % over 7 days", "100 % over 30 days", "100 % since 28 Sep"]),
            (400 * DAY, ["100 % over 24 hours", "100 % over 7 days", "100 % over 30 days", "100 % over 90 days"]),
        ] {
            let texts = UptimeView::of_each(&aged(age), context(TimeRange::Quarter)).into_iter();
            let texts: Vec<String> = texts.map(|(_, it)| it.map_or("-".to_owned(), |it| it.text())).collect();
            assert_eq!(texts, expected, "{age}");
        }
    }

    #[test]
    fn uptime_days_are_in_the_pages_zone() {
        let locale = PageLocale { zone: Tz::Pacific__Kiritimati, ..english_locale(Tz::UTC) };
        let context = RangeContext { locale, ..context(TimeRange::Quarter) };
        assert_eq!(UptimeView::of(&aged(14 * HOUR), context).time_range(), "since 27 Nov");
    }

    #[test]
    fn a_paused_monitor_has_no_uptime_figure() {
        let mut view = aged(60 * DAY);
        view.monitor.paused = true;
        let uptime = UptimeView::of(&view, context(TimeRange::Month));
        assert_eq!(
            (uptime.figure.as_str(), uptime.dash_meaning, uptime.since.clone()),
            (NO_VALUE, Some("Paused"), None)
        );
        assert_eq!((uptime.time_range(), uptime.text()), (String::new(), "Paused".to_owned()));
        assert!(UptimeView::of_each(&view, context(TimeRange::Month)).iter().all(|(_, uptime)| uptime.is_none()));
    }

    #[test]
    fn excluded_time_differs_from_unknown_time() {
        let mut view = monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 0);
        view.uptime_24h = None;
        let uptime = |view: &MonitorView| UptimeView::of(view, context(TimeRange::Day));
        assert_eq!((uptime(&view).figure.as_str(), uptime(&view).dash_meaning), ("no data", None));
        view.history.days.last_mut().unwrap().counts.excluded = 9;
        assert_eq!((uptime(&view).figure.as_str(), uptime(&view).dash_meaning), (NO_VALUE, Some("maintenance")));
        assert_eq!(uptime(&view).text(), "maintenance over 24 hours");
    }
}
