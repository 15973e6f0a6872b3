//! Downtime of monitors that have no rounds of their own (heartbeat, component), from which their uptime is computed;
//! and pauses of every monitor, which are excluded from all statistics.

use serde::{Deserialize, Serialize};

use crate::time::{DAY, Timestamp};
use crate::uptime::{MonitoredTime, TimeSpan};

/// Maximum number of spans stored of each kind. One more evicts the oldest if it ended more than a day ago; otherwise
/// the oldest two are merged, preserving their total length.
const MAX_SPANS: usize = 96;
/// Milliseconds for which a span is stored after its end: the longest history a user can request.
const RETENTION: i64 = 400 * DAY;

/// Outages and pauses of a monitor. Small enough to be stored with its machine's state, and only a pointer for the
/// many monitors that have rounds and were never paused.
///
/// Results are exact, except for a monitor that goes down more than 96 times within 24 hours: the first outages of
/// that day keep their total length, but one may appear directly before the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downtime(Option<Box<DowntimeRecord>>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DowntimeRecord {
    /// Start of the complete record; nothing is reported for earlier times.
    recorded_since: Option<Timestamp>,
    /// Start of the open outage.
    down_since: Option<Timestamp>,
    /// Start of the open pause.
    paused_since: Option<Timestamp>,
    outages: Vec<TimeSpan>,
    pauses: Vec<TimeSpan>,
}

impl Downtime {
    /// Records that the monitor is down, or not, from that time on.
    pub(crate) fn set_down(&mut self, is_down: bool, at: Timestamp) {
        let it = self.0.get_or_insert_default();
        it.recorded_since.get_or_insert(at);
        if is_down {
            it.down_since.get_or_insert(at);
        } else if let Some(from) = it.down_since.take() {
            let forgotten = store_span(&mut it.outages, TimeSpan { from, to: at.max(from) });
            it.recorded_since = it.recorded_since.max(forgotten);
        }
    }

    /// Records the start of a pause.
    pub(crate) fn pause(&mut self, at: Timestamp) {
        self.0.get_or_insert_default().paused_since.get_or_insert(at);
    }

    /// Records the end of a pause.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        if let Some(it) = &mut self.0
            && let Some(from) = it.paused_since.take()
        {
            let forgotten = store_span(&mut it.pauses, TimeSpan { from, to: at.max(from) });
            it.recorded_since = it.recorded_since.max(forgotten);
        }
    }

    /// Share of the 24 hours before `now` in which it was not down, in percent with 3 decimals, rounded down.
    /// Excludes the time before the record began, pauses, and `excluded`; none if that leaves nothing.
    pub fn uptime(&self, now: Timestamp, excluded: &[TimeSpan]) -> Option<f64> {
        let it = self.0.as_deref()?;
        if it.recorded_since? >= now {
            // No time has passed yet: the current state decides.
            return it.paused_since.is_none().then_some(if it.down_since.is_some() { 0.0 } else { 100.0 });
        }
        self.uptime_over(TimeSpan { from: now - DAY, to: now }, now, excluded)
    }

    /// The same for any span, as far as it has passed by `now`.
    pub fn uptime_over(&self, window: TimeSpan, now: Timestamp, excluded: &[TimeSpan]) -> Option<f64> {
        self.monitored_time(window, now, excluded).percent()
    }

    /// Time in a span, as far as it has passed by `now`, that was monitored, and how much of it was down.
    pub fn monitored_time(&self, window: TimeSpan, now: Timestamp, excluded: &[TimeSpan]) -> MonitoredTime {
        let Some((it, known)) = self.0.as_deref().and_then(|it| Some((it, it.recorded_since?))) else {
            return MonitoredTime::default();
        };
        let window = TimeSpan { from: window.from.max(known), to: window.to.min(now) };
        let touches = |span: &TimeSpan| span.from < window.to && window.from < span.to;
        let within = |spans: &[TimeSpan], open: Option<Timestamp>| -> Vec<TimeSpan> {
            let open = open.map(|from| TimeSpan { from, to: now });
            spans.iter().copied().chain(open).filter(touches).collect()
        };
        let mut left_out = within(&it.pauses, it.paused_since);
        left_out.extend(excluded.iter().filter(|span| touches(span)));
        MonitoredTime::of_outages(window, &within(&it.outages, it.down_since), &left_out)
    }

    /// Pauses as far as they are stored, oldest first. An open pause has no end yet.
    pub fn pauses(&self) -> Vec<TimeSpan> {
        let Some(it) = self.0.as_deref() else { return Vec::new() };
        let open = it.paused_since.map(|from| TimeSpan { from, to: Timestamp::from_millis(i64::MAX) });
        it.pauses.iter().copied().chain(open).collect()
    }
}

/// Stores a span that has ended. Returns the time up to which spans were evicted for it.
fn store_span(stretches: &mut Vec<TimeSpan>, new: TimeSpan) -> Option<Timestamp> {
    let is_old = |span: &TimeSpan, age: i64| new.to.since(span.to) >= age;
    let mut forgotten = None;
    while let Some(oldest) = stretches.first().copied()
        && (is_old(&oldest, RETENTION) || (stretches.len() >= MAX_SPANS && is_old(&oldest, DAY)))
    {
        forgotten = Some(oldest.to);
        stretches.remove(0);
    }
    stretches.push(new);
    if stretches.len() > MAX_SPANS {
        let oldest = stretches.remove(0);
        if let Some(next) = stretches.first_mut() {
            next.from = (next.from - oldest.to.since(oldest.from)).max(oldest.from);
        }
    }
    forgotten
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MINUTE;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + minute * MINUTE)
    }

    fn known() -> Downtime {
        let mut downtime = Downtime::default();
        downtime.set_down(false, at(0));
        downtime
    }

    #[test]
    fn there_is_no_summary_before_the_first_outcome() {
        assert_eq!(Downtime::default().uptime(at(5), &[]), None);
        assert_eq!(known().uptime(at(0), &[]), Some(100.0));
        assert_eq!(known().uptime(at(90), &[]), Some(100.0));
    }

    #[test]
    fn time_down_counts_while_it_lasts_and_for_a_day_after() {
        let mut downtime = known();
        downtime.set_down(true, at(60));
        assert_eq!(downtime.uptime(at(120), &[]), Some(50.0));
        downtime.set_down(false, at(120));
        assert_eq!(downtime.uptime(at(240), &[]), Some(75.0));
        assert_eq!(downtime.uptime(at(26 * 60), &[]), Some(100.0));
        assert_eq!(downtime.uptime(at(25 * 60 + 30), &[]), Some(97.916));
    }

    #[test]
    fn a_pause_and_a_window_are_left_out() {
        let mut downtime = known();
        downtime.set_down(true, at(60));
        downtime.set_down(false, at(90));
        downtime.pause(at(120));
        assert_eq!(downtime.uptime(at(240), &[]), Some(75.0));
        downtime.resume(at(240));
        downtime.set_down(false, at(250));
        assert_eq!(downtime.uptime(at(240 + 120), &[]), Some(87.5));
        assert_eq!(downtime.uptime(at(240 + 120), &[TimeSpan { from: at(60), to: at(90) }]), Some(100.0));
        downtime.pause(at(400));
        assert_eq!(downtime.uptime(at(400 + 25 * 60), &[]), None, "a day of nothing but pause");
    }

    #[test]
    fn a_pause_is_recorded_also_for_monitors_with_rounds() {
        let mut downtime = Downtime::default();
        assert_eq!(downtime.pauses(), []);
        downtime.resume(at(5));
        downtime.pause(at(10));
        downtime.pause(at(20));
        assert_eq!(downtime.pauses(), [TimeSpan { from: at(10), to: Timestamp::from_millis(i64::MAX) }]);
        downtime.resume(at(30));
        downtime.resume(at(40));
        assert_eq!(downtime.pauses(), [TimeSpan { from: at(10), to: at(30) }]);
        assert_eq!(
            (downtime.uptime(at(60), &[]), downtime.uptime_over(downtime.pauses()[0], at(60), &[])),
            (None, None)
        );
        for turn in 0..300 {
            downtime.pause(at(100 + turn * 2));
            downtime.resume(at(101 + turn * 2));
        }
        assert!(downtime.pauses().len() <= MAX_SPANS);
        let whole: i64 = downtime.pauses().iter().map(|span| span.to.since(span.from)).sum();
        assert_eq!(whole, 320 * MINUTE, "their total length is preserved");
    }

    #[test]
    fn old_days_are_shown_as_far_as_records_reach() {
        let day = |n: i64| TimeSpan { from: at(n * 1440), to: at((n + 1) * 1440) };
        let now = at(200 * 1440);
        let mut downtime = Downtime::default();
        downtime.set_down(false, at(720));
        for n in 0..90 {
            // 144 minutes are a tenth of a day.
            downtime.set_down(true, at(n * 1440 + 800));
            downtime.set_down(false, at(n * 1440 + 944));
        }
        assert_eq!(downtime.uptime_over(day(0), now, &[]), Some(80.0), "of the recorded half");
        assert_eq!(downtime.uptime_over(day(-1), now, &[]), None);
        assert_eq!(downtime.uptime_over(day(45), now, &[]), Some(90.0));
        let window = TimeSpan { from: at(45 * 1440 + 700), to: at(45 * 1440 + 1000) };
        assert_eq!(downtime.uptime_over(day(45), now, &[window]), Some(100.0));
        assert_eq!(downtime.uptime_over(day(120), now, &[]), Some(100.0));
        assert_eq!(downtime.uptime_over(day(201), now, &[]), None, "it is in the future");
        downtime.set_down(true, at(199 * 1440 + 720));
        assert_eq!(downtime.uptime_over(day(199), now, &[]), Some(50.0), "it is still down");
        assert_eq!(downtime.uptime(now, &[]), downtime.uptime_over(day(199), now, &[]));
        downtime.set_down(false, now);
        for n in 0..10 {
            downtime.set_down(true, at((210 + n) * 1440));
            downtime.set_down(false, at((210 + n) * 1440 + 144));
        }
        let later = at(230 * 1440);
        assert_eq!(downtime.uptime_over(day(2), later, &[]), None, "evicted, so unknown");
        assert_eq!(downtime.uptime_over(day(30), later, &[]), Some(90.0));
        let mut calm = known();
        calm.set_down(true, at(60));
        calm.set_down(false, at(70));
        calm.set_down(true, at(401 * 1440));
        calm.set_down(false, at(401 * 1440 + 1));
        assert_eq!(calm.uptime_over(TimeSpan { from: at(0), to: at(65) }, at(402 * 1440), &[]), None);
    }

    #[test]
    fn many_outages_are_bounded_and_keep_their_length() {
        let mut downtime = known();
        for turn in 0..300 {
            downtime.set_down(true, at(turn * 2));
            downtime.set_down(false, at(turn * 2 + 1));
        }
        assert!(downtime.0.as_ref().is_some_and(|it| it.outages.len() <= MAX_SPANS));
        assert_eq!(downtime.uptime(at(600), &[]), Some(50.0));
        let bytes = postcard::to_allocvec(&downtime).unwrap();
        assert!(bytes.len() < 2048, "{}", bytes.len());
    }
}
