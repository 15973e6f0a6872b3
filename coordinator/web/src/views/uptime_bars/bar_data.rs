//! Data of one uptime bar: its state and label.

use parallax_core::page_view::UptimeDay;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::uptime::MonitoredTime;
use parallax_i18n::page_messages::{PageMessages, fill};

use super::super::format;
use super::BarState;

/// Minutes of downtime from which a bar shows a long outage.
const LONG_OUTAGE_MINUTES: f64 = 20.0;
/// Minutes of downtime up to which a bar still shows as up; its label states the downtime.
const BRIEF_OUTAGE_MINUTES: f64 = 1.0;

/// Data of one uptime bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct BarData {
    pub counts: OutcomeCounts,
    pub uptime: Option<f64>,
    /// Monitored time and downtime.
    pub time: MonitoredTime,
    /// True if the bar includes the present and an outage is ongoing.
    pub is_down: bool,
}

impl BarData {
    /// Data of a day, without a current outage.
    pub(super) const fn of(day: &UptimeDay) -> Self {
        Self { counts: day.counts, uptime: day.uptime, time: day.time, is_down: false }
    }
}

/// Label of a bar.
pub(super) fn bar_label(title: String, data: BarData, incidents: usize, messages: &PageMessages) -> String {
    let mut parts = Vec::new();
    match data.uptime {
        None if data.counts.excluded > 0 => parts.push(messages.maintenance.to_owned()),
        // Before a day's first round nothing else is known.
        None if data.is_down => {}
        None => parts.push(messages.no_data.to_owned()),
        Some(uptime) => {
            parts.push(format::format_percent(uptime, messages));
            let down = data.time.minutes_down();
            if down > 0.0 {
                parts.push(fill(messages.down_for, &[&format::format_minutes(down, messages)]));
            }
        }
    }
    if data.is_down {
        parts.push(messages.down_now.to_owned());
    } else if bar_state(data) == BarState::Slow {
        parts.push(messages.slow.to_owned());
    }
    if incidents > 0 {
        parts.push(messages.locale().plural(incidents as u64, messages.one_incident, messages.incidents));
    }
    format!("{title}: {}", parts.join(messages.locale().comma()))
}

/// State of a bar. A bar with a current outage never shows as up, however short the outage is.
pub(super) fn bar_state(data: BarData) -> BarState {
    match counted_state(data) {
        outage @ (BarState::BriefOutage | BarState::LongOutage) => outage,
        _ if data.is_down => BarState::BriefOutage,
        other => other,
    }
}

/// State by the counted rounds. A bar that has just begun and was mostly down doesn't show as up.
fn counted_state(BarData { counts, uptime, time, .. }: BarData) -> BarState {
    if uptime.is_none() {
        return if counts.excluded > 0 { BarState::Maintenance } else { BarState::NoData };
    }
    let down_minutes = time.minutes_down();
    if down_minutes >= LONG_OUTAGE_MINUTES {
        BarState::LongOutage
    } else if down_minutes >= BRIEF_OUTAGE_MINUTES || uptime.is_some_and(|uptime| uptime < 50.0) {
        BarState::BriefOutage
    } else if u64::from(counts.slow) * 10 >= u64::from(counts.passed) && counts.slow > 0 {
        BarState::Slow
    } else {
        BarState::Up
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use parallax_core::time::{DAY, HOUR, MINUTE};

    use super::*;
    use crate::views::tests::english_locale;

    fn counts(passed: u32, failed: u32, slow: u32, excluded: u32) -> OutcomeCounts {
        OutcomeCounts { passed, failed, slow, excluded, ..OutcomeCounts::default() }
    }

    fn bar_data(counts: OutcomeCounts, monitored_ms: i64) -> BarData {
        let time = MonitoredTime::of_rounds(monitored_ms.unsigned_abs(), counts.tally());
        BarData { counts, uptime: counts.tally().percent(), time, is_down: false }
    }

    #[test]
    fn a_bars_state_follows_from_its_downtime() {
        for (counts, monitored_ms, expected) in [
            (counts(0, 0, 0, 0), DAY, BarState::NoData),
            (counts(0, 0, 0, 3), DAY, BarState::Maintenance),
            (counts(1440, 0, 0, 0), DAY, BarState::Up),
            (counts(8639, 1, 0, 0), DAY, BarState::Up),
            (counts(1430, 10, 0, 0), DAY, BarState::BriefOutage),
            (counts(1420, 20, 0, 0), DAY, BarState::LongOutage),
            (counts(0, 1, 0, 0), DAY, BarState::LongOutage),
            (counts(1440, 0, 144, 0), DAY, BarState::Slow),
            (counts(1440, 0, 100, 0), DAY, BarState::Up),
            // Ten minutes of an hour, and half of an hour.
            (counts(50, 10, 0, 0), HOUR, BarState::BriefOutage),
            (counts(30, 30, 0, 0), HOUR, BarState::LongOutage),
            // Ten minutes after midnight, down for one of them.
            (counts(54, 6, 0, 0), 10 * MINUTE, BarState::BriefOutage),
        ] {
            assert_eq!(bar_state(bar_data(counts, monitored_ms)), expected, "{counts:?}");
        }
    }

    #[test]
    fn a_bars_label_has_all_known_data() {
        let label = |counts: OutcomeCounts, incidents| {
            bar_label("26 Nov 2026".to_owned(), bar_data(counts, DAY), incidents, english_locale(Tz::UTC).messages)
        };
        assert_eq!(label(counts(0, 0, 0, 0), 0), "26 Nov 2026: no data");
        assert_eq!(label(counts(0, 0, 0, 9), 0), "26 Nov 2026: maintenance");
        assert_eq!(label(counts(10, 0, 5, 0), 0), "26 Nov 2026: 100 %, slow");
        assert_eq!(label(counts(1430, 10, 0, 0), 1), "26 Nov 2026: 99.305 %, 10 min down, 1 incident");
        assert_eq!(label(counts(8639, 1, 0, 0), 2), "26 Nov 2026: 99.988 %, under 1 min down, 2 incidents");
    }

    #[test]
    fn a_bar_with_an_ongoing_outage_is_never_up_and_is_labelled() {
        for (counts, expected, label) in [
            (counts(0, 0, 0, 0), BarState::BriefOutage, "today: down now"),
            (counts(0, 0, 0, 9), BarState::BriefOutage, "today: maintenance, down now"),
            (counts(8639, 1, 0, 0), BarState::BriefOutage, "today: 99.988 %, under 1 min down, down now"),
            (counts(1440, 0, 144, 0), BarState::BriefOutage, "today: 100 %, down now"),
            (counts(1400, 40, 0, 0), BarState::LongOutage, "today: 97.222 %, 40 min down, down now"),
        ] {
            let bar_data = BarData { is_down: true, ..bar_data(counts, DAY) };
            assert_eq!(bar_state(bar_data), expected, "{counts:?}");
            assert_eq!(bar_label("today".to_owned(), bar_data, 0, english_locale(Tz::UTC).messages), label);
        }
    }
}
