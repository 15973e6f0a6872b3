//! Which name's certificate is ordered next, and when: no IO, the time is an argument.

use std::collections::{BTreeMap, VecDeque};

use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};

/// Orders in an hour, of all names: an authority counts them.
const ORDERS: usize = 50;
/// Pauses after the first failure, and the longest one. Authorities allow few failed proofs of a name in an hour.
const FIRST_PAUSE: i64 = HOUR;
const LONGEST_PAUSE: i64 = DAY;
/// The same where the authority was not reached, and counted nothing.
const SHORT_PAUSE: i64 = MINUTE;
const LONGEST_SHORT_PAUSE: i64 = HOUR;

/// Why there is no certificate after an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The authority was not reached, or nothing was asked of it yet.
    Unreached,
    /// It refused, or could not see the proof.
    Refused,
}

/// The names, and what is known of each.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In the order of their importance.
    names: Vec<String>,
    states: BTreeMap<String, State>,
    /// When the orders of the last hour began.
    began: VecDeque<Timestamp>,
}

#[derive(Debug, Default)]
struct State {
    /// From when on it is to be renewed, and until when it is good; none: there is no certificate.
    good: Option<(Timestamp, Timestamp)>,
    failures: u32,
    /// Not tried before.
    pause: Option<Timestamp>,
}

impl Plan {
    /// The names from now on; gives those that are gone.
    pub(super) fn set_names(&mut self, names: Vec<String>) -> Vec<String> {
        let gone = |states: &BTreeMap<String, State>| -> Vec<String> {
            states.keys().filter(|name| !names.contains(name)).cloned().collect()
        };
        let gone = gone(&self.states);
        for name in &gone {
            self.states.remove(name);
        }
        for name in &names {
            self.states.entry(name.clone()).or_default();
        }
        self.names = names;
        gone
    }

    /// There is a certificate for that name, good from then until then. It is renewed when a third of that is left.
    pub(super) fn issued(&mut self, name: &str, from: Timestamp, until: Timestamp) {
        let Some(state) = self.states.get_mut(name) else { return };
        let renew = Timestamp::from_millis(until.as_millis() - until.since(from) / 3);
        *state = State { good: Some((renew, until)), failures: 0, pause: None };
    }

    /// An order failed; `share` in 0 to 1 spreads the next tries of many names.
    pub(super) fn failed(
        &mut self,
        name: &str,
        failure: Failure,
        now: Timestamp,
        share: f64,
    ) -> Option<Timestamp> {
        let state = self.states.get_mut(name)?;
        let (first, longest) = match failure {
            Failure::Unreached => (SHORT_PAUSE, LONGEST_SHORT_PAUSE),
            Failure::Refused => (FIRST_PAUSE, LONGEST_PAUSE),
        };
        let pause = first.saturating_mul(1 << state.failures.min(16)).min(longest);
        state.failures = state.failures.saturating_add(1);
        // A fifth more or less.
        let spread = (pause as f64 * (share.clamp(0.0, 1.0) - 0.5) * 0.4) as i64;
        state.pause = Some(Timestamp::from_millis(now.as_millis() + pause + spread));
        state.pause
    }

    /// The name whose certificate is to be ordered now: one that has none goes before one that is renewed.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<String> {
        while self.began.front().is_some_and(|first| now.since(*first) >= HOUR) {
            self.began.pop_front();
        }
        if self.began.len() >= ORDERS {
            return None;
        }
        let is_due = |state: &State| {
            state.pause.is_none_or(|pause| now >= pause) && state.good.is_none_or(|(renew, _)| now >= renew)
        };
        let due = || self.names.iter().filter_map(|name| Some((name, self.states.get(name)?)));
        let lacking = due().find(|(_, state)| state.good.is_none() && is_due(state));
        let found = lacking.or_else(|| due().find(|(_, state)| is_due(state)));
        let name = found.map(|(name, _)| name.clone())?;
        self.began.push_back(now);
        Some(name)
    }

    /// Until when the certificate of that name is good.
    pub(super) fn good_until(&self, name: &str) -> Option<Timestamp> {
        self.states.get(name)?.good.map(|(_, until)| until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn plan(names: &[&str]) -> Plan {
        let mut plan = Plan::default();
        plan.set_names(names.iter().map(|&name| name.to_owned()).collect());
        plan
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
        let mut plan = plan(&["a"]);
        assert_eq!(plan.due(at(0)).as_deref(), Some("a"));
        plan.issued("a", at(0), at(90 * DAY));
        assert_eq!(plan.due(at(60 * DAY - 1)), None);
        assert_eq!(plan.due(at(60 * DAY)).as_deref(), Some("a"));
        assert_eq!(plan.good_until("a"), Some(at(90 * DAY)));
    }

    #[test]
    fn failures_are_tried_again_after_growing_pauses() {
        let mut plan = plan(&["a"]);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let next = plan.failed("a", Failure::Refused, now, 0.5).unwrap();
            pauses.push(next.since(now) / HOUR);
            assert_eq!(plan.due(Timestamp::from_millis(next.as_millis() - 1)), None);
            assert_eq!(plan.due(next).as_deref(), Some("a"));
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 24, 24]);
        plan.issued("a", now, at(90 * DAY));
        let next = plan.failed("a", Failure::Unreached, now, 0.5).unwrap();
        assert_eq!(next.since(now), MINUTE);
        let [early, late] = [0.0, 1.0].map(|share| plan.failed("a", Failure::Refused, now, share).unwrap());
        assert!(early.since(now) >= 96 * MINUTE && late.since(now) <= 288 * MINUTE);
    }

    #[test]
    fn the_hour_has_its_share_of_orders_and_names_without_one_go_first() {
        let names: Vec<String> = (0..60).map(|n| format!("n{n}")).collect();
        let mut plan = Plan::default();
        plan.set_names(names);
        plan.issued("n0", at(-DAY), at(0));
        for n in 1..=ORDERS {
            let name = plan.due(at(0)).unwrap();
            assert_eq!(name, format!("n{n}"));
            plan.issued(&name, at(0), at(DAY));
        }
        assert_eq!(plan.due(at(0)), None);
        assert!(plan.due(at(HOUR)).is_some());
    }

    #[test]
    fn names_that_are_gone_are_told_and_forgotten() {
        let mut plan = plan(&["a", "b"]);
        plan.issued("b", at(0), at(DAY));
        assert_eq!(plan.set_names(vec!["a".to_owned()]), ["b"]);
        assert_eq!((plan.good_until("b"), plan.failed("b", Failure::Refused, at(0), 0.5)), (None, None));
    }
}
