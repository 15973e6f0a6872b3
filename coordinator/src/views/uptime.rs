//! Uptime of a monitor as shown on pages: only of the time since it was created.

use parallax_core::board::{Range, Shown};
use parallax_core::rollup::{Counts, day_of};
use parallax_core::time::{DAY, Timestamp};

use super::strip::{self, Glance};
use super::tongue::{Voice, Words, fill};
use super::words;

/// Placeholder for a missing value.
const DASH: &str = "–";

/// Uptime over a range, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uptime {
    /// Value, or a text if there is none.
    pub figure: String,
    /// Meaning of the dash, if the value is one.
    pub unsaid: Option<&'static str>,
    /// Start of monitoring if it is within the range and there is a value: `29 Nov`.
    pub since: Option<String>,
    /// True if there is no value because the monitor is paused.
    is_paused: bool,
    /// Length of the range as text.
    span: &'static str,
    said: &'static Words,
}

impl Uptime {
    /// Returns the uptime of a monitor.
    pub fn of(shown: &Shown, glance: Glance) -> Self {
        let share = shown.uptime_in(glance.range);
        let told = Self::of_share(share, shown, glance);
        if share.is_none() && !shown.monitor.paused && is_excused(shown, glance.range) {
            return Self { figure: DASH.to_owned(), unsaid: Some(told.said.maintenance), ..told };
        }
        told
    }

    /// Returns the uptime of one region of a monitor, in percent.
    pub fn of_share(share: Option<f64>, shown: &Shown, glance: Glance) -> Self {
        let said = glance.voice.words;
        let is_paused = shown.monitor.paused;
        let share = share.filter(|_| !is_paused);
        let since = share.and_then(|_| since(shown, glance));
        let (figure, unsaid) = match share {
            Some(share) => (words::percent(share, said), None),
            None if is_paused => (DASH.to_owned(), Some(said.state_paused)),
            None => (said.no_data.to_owned(), None),
        };
        Self { figure, unsaid, since, is_paused, span: strip::length(glance.range, said), said }
    }

    /// Returns the uptime over each range, shortest first; `None` for ranges longer than the first one that
    /// covers the monitor's whole life, and for all ranges while it is paused.
    pub fn of_each(shown: &Shown, glance: Glance) -> Vec<(Range, Option<Self>)> {
        let ranges = Range::ALL.map(|range| Glance { range, ..glance });
        let whole = ranges.iter().position(|glance| since(shown, *glance).is_some());
        let told = |(at, glance): (usize, Glance)| {
            let is_told = !shown.monitor.paused && whole.is_none_or(|whole| at <= whole);
            (glance.range, is_told.then(|| Self::of(shown, glance)))
        };
        ranges.into_iter().enumerate().map(told).collect()
    }

    /// Time range: `since 29 Nov` or `over 90 days`; empty if paused.
    pub fn time(&self) -> String {
        match &self.since {
            None if self.is_paused => String::new(),
            Some(since) => fill(self.said.since_day, &[since]),
            None => fill(self.said.over, &[self.span]),
        }
    }

    /// Complete text: `100 % since 29 Nov`.
    pub fn text(&self) -> String {
        let figure = self.unsaid.unwrap_or(&self.figure);
        match &self.since {
            None if self.is_paused => figure.to_owned(),
            Some(since) => fill(self.said.uptime_since, &[figure, since]),
            None => fill(self.said.uptime_over, &[figure, self.span]),
        }
    }
}

/// Creation day of a monitor, if it is younger than the range.
fn since(shown: &Shown, glance: Glance) -> Option<String> {
    let Glance { range, now, voice, .. } = glance;
    let made = shown.monitor.created_at;
    let is_younger = match range {
        Range::Day => made > now - DAY,
        Range::Week | Range::Month | Range::Quarter => is_after_first_day(made, range, now, voice),
    };
    is_younger.then(|| words::short_day(made, voice))
}

/// Returns true if a time is after the first full day of a range.
fn is_after_first_day(moment: Timestamp, range: Range, now: Timestamp, voice: Voice) -> bool {
    let days = day_of(now, voice.zone).zip(day_of(moment, voice.zone));
    let length = i64::try_from(range.days()).unwrap_or(i64::MAX);
    days.is_some_and(|(today, day)| today.signed_duration_since(day).num_days() < length - 1)
}

/// Returns true if all data of a range was in maintenance, which does not count.
fn is_excused(shown: &Shown, range: Range) -> bool {
    let newest = shown.past.days.iter().rev().take(range.days());
    newest
        .fold(Counts::default(), |mut sum, day| {
            sum.merge(day.counts);
            sum
        })
        .excluded
        > 0
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use parallax_core::event::Status;
    use parallax_core::time::{HOUR, MINUTE};

    use super::super::tests::{NOW, shown};
    use super::super::tongue::english;
    use super::*;

    fn glance(range: Range) -> Glance {
        Glance { range, now: NOW, is_stale: false, voice: english(Tz::UTC) }
    }

    /// A monitor of a given age with only passed rounds.
    fn aged(age: i64) -> Shown {
        let mut shown = shown(1, "Web shop", "Shop", Status::Up, 0);
        shown.monitor.created_at = NOW - age;
        shown.uptime_24h = Some(100.0);
        for day in shown.past.days.iter_mut().rev().take(usize::try_from(age / DAY).unwrap() + 1) {
            day.counts.passed = 60;
            day.uptime = Some(100.0);
        }
        shown
    }

    #[test]
    fn no_figure_is_of_a_time_before_the_monitor() {
        // Now is 27 November, 12:46.
        for (age, expected) in [
            (6 * MINUTE, ["100 % since 27 Nov", "-", "-", "-"]),
            (20 * HOUR, ["100 % since 26 Nov", "-", "-", "-"]),
            (25 * HOUR, ["100 % over 24 hours", "100 % since 26 Nov", "-", "-"]),
            // On the first of seven days.
            (6 * DAY, ["100 % over 24 hours", "100 % over 7 days", "100 % since 21 Nov", "-"]),
            (
                60 * DAY,
                ["100 % over 24 hours", "100 % over 7 days", "100 % over 30 days", "100 % since 28 Sep"],
            ),
            (
                400 * DAY,
                ["100 % over 24 hours", "100 % over 7 days", "100 % over 30 days", "100 % over 90 days"],
            ),
        ] {
            let told = Uptime::of_each(&aged(age), glance(Range::Quarter)).into_iter();
            let told: Vec<String> = told.map(|(_, it)| it.map_or("-".to_owned(), |it| it.text())).collect();
            assert_eq!(told, expected, "{age}");
        }
    }

    #[test]
    fn days_are_those_of_the_pages_zone() {
        let voice = Voice { zone: Tz::Pacific__Kiritimati, ..english(Tz::UTC) };
        let glance = Glance { voice, ..glance(Range::Quarter) };
        assert_eq!(Uptime::of(&aged(14 * HOUR), glance).time(), "since 27 Nov");
    }

    #[test]
    fn what_is_paused_has_no_figure() {
        let mut shown = aged(60 * DAY);
        shown.monitor.paused = true;
        let told = Uptime::of(&shown, glance(Range::Month));
        assert_eq!((told.figure.as_str(), told.unsaid, told.since.clone()), (DASH, Some("Paused"), None));
        assert_eq!((told.time(), told.text()), (String::new(), "Paused".to_owned()));
        assert!(Uptime::of_each(&shown, glance(Range::Month)).iter().all(|(_, uptime)| uptime.is_none()));
    }

    #[test]
    fn what_does_not_count_is_told_from_what_is_not_known() {
        let mut shown = shown(1, "Web shop", "Shop", Status::Up, 0);
        shown.uptime_24h = None;
        let told = |shown: &Shown| Uptime::of(shown, glance(Range::Day));
        assert_eq!((told(&shown).figure.as_str(), told(&shown).unsaid), ("no data", None));
        shown.past.days.last_mut().unwrap().counts.excluded = 9;
        assert_eq!((told(&shown).figure.as_str(), told(&shown).unsaid), (DASH, Some("maintenance")));
        assert_eq!(told(&shown).text(), "maintenance over 24 hours");
    }
}
