//! Time down: what the uptime of a monitor without rounds of its own (heartbeat, component) is worked out from.

use serde::{Deserialize, Serialize};

use crate::time::{DAY, Timestamp};
use crate::uptime::{Span, percent_of_time};

/// Stretches of a kind that are kept; the oldest two become one for one more, and keep their length together.
const KEPT: usize = 96;

/// When a monitor was down, and when it was not watched, over the last 24 hours. Small enough to be written with its
/// machine's state, and a pointer alone for the many monitors that have rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downtime(Option<Box<Stretches>>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stretches {
    /// The first moment that something was known of it; none before.
    known: Option<Timestamp>,
    /// Since when it is down.
    down: Option<Timestamp>,
    /// Since when it is paused.
    paused: Option<Timestamp>,
    outages: Vec<Span>,
    pauses: Vec<Span>,
}

impl Downtime {
    /// From that moment on it is down, or it is not.
    pub(crate) fn note(&mut self, is_down: bool, at: Timestamp) {
        let it = self.0.get_or_insert_default();
        it.known.get_or_insert(at);
        if is_down {
            it.down.get_or_insert(at);
        } else if let Some(from) = it.down.take() {
            keep(&mut it.outages, Span { from, to: at.max(from) });
        }
    }

    /// From that moment on it is not watched.
    pub(crate) fn pause(&mut self, at: Timestamp) {
        if let Some(it) = &mut self.0 {
            it.paused.get_or_insert(at);
        }
    }

    /// It is watched again.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        if let Some(it) = &mut self.0
            && let Some(from) = it.paused.take()
        {
            keep(&mut it.pauses, Span { from, to: at.max(from) });
        }
    }

    /// The share of the 24 hours before `now` in which it was not down, in percent with 3 decimals, rounded down. Left
    /// out is what was before the first that was known of it, while it was paused, and in `excluded`; none where that
    /// leaves nothing.
    pub fn uptime(&self, now: Timestamp, excluded: &[Span]) -> Option<f64> {
        let it = self.0.as_deref()?;
        let known = it.known?;
        let mut excluded = excluded.to_vec();
        excluded.extend(&it.pauses);
        excluded.extend(it.paused.map(|from| Span { from, to: now }));
        let mut outages = it.outages.clone();
        outages.extend(it.down.map(|from| Span { from, to: now }));
        if known >= now {
            // Nothing has passed yet: what holds at this moment stands for it.
            return it.paused.is_none().then_some(if it.down.is_some() { 0.0 } else { 100.0 });
        }
        percent_of_time(Span { from: known.max(now - DAY), to: now }, &outages, &excluded)
    }
}

/// Keeps a stretch that is over; those that are over for a day are forgotten.
fn keep(stretches: &mut Vec<Span>, new: Span) {
    stretches.retain(|span| new.to.since(span.to) < DAY);
    stretches.push(new);
    if stretches.len() > KEPT {
        let oldest = stretches.remove(0);
        if let Some(next) = stretches.first_mut() {
            next.from = (next.from - oldest.to.since(oldest.from)).max(oldest.from);
        }
    }
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
        downtime.note(false, at(0));
        downtime
    }

    #[test]
    fn nothing_is_said_before_the_first_word_and_all_of_it_at_once() {
        assert_eq!(Downtime::default().uptime(at(5), &[]), None);
        assert_eq!(known().uptime(at(0), &[]), Some(100.0));
        assert_eq!(known().uptime(at(90), &[]), Some(100.0));
    }

    #[test]
    fn time_down_counts_while_it_lasts_and_for_a_day_after() {
        let mut downtime = known();
        downtime.note(true, at(60));
        assert_eq!(downtime.uptime(at(120), &[]), Some(50.0));
        downtime.note(false, at(120));
        assert_eq!(downtime.uptime(at(240), &[]), Some(75.0));
        assert_eq!(downtime.uptime(at(26 * 60), &[]), Some(100.0));
        assert_eq!(downtime.uptime(at(25 * 60 + 30), &[]), Some(97.916));
    }

    #[test]
    fn a_pause_and_a_window_are_left_out() {
        let mut downtime = known();
        downtime.note(true, at(60));
        downtime.note(false, at(90));
        downtime.pause(at(120));
        assert_eq!(downtime.uptime(at(240), &[]), Some(75.0));
        downtime.resume(at(240));
        downtime.note(false, at(250));
        assert_eq!(downtime.uptime(at(240 + 120), &[]), Some(87.5));
        assert_eq!(downtime.uptime(at(240 + 120), &[Span { from: at(60), to: at(90) }]), Some(100.0));
        downtime.pause(at(400));
        assert_eq!(downtime.uptime(at(400 + 25 * 60), &[]), None, "a day of nothing but pause");
    }

    #[test]
    fn many_outages_are_bounded_and_keep_their_length() {
        let mut downtime = known();
        for turn in 0..300 {
            downtime.note(true, at(turn * 2));
            downtime.note(false, at(turn * 2 + 1));
        }
        assert!(downtime.0.as_ref().is_some_and(|it| it.outages.len() <= KEPT));
        assert_eq!(downtime.uptime(at(600), &[]), Some(50.0));
        let bytes = postcard::to_allocvec(&downtime).unwrap();
        assert!(bytes.len() < 2048, "{}", bytes.len());
    }
}
