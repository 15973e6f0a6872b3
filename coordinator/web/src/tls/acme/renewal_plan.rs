//! Plans the orders of certificates: which host is next, and when. No IO; the time is an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parallax_core::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};

/// Limit of orders per hour, since ACME servers limit them.
const MAX_ORDERS_PER_HOUR: usize = 50;
/// Share of hosts without a certificate, so that renewals are not delayed.
const MAX_NEW_ORDERS_PER_HOUR: usize = 40;
/// Shortest and longest pause after a failure. ACME servers allow few failed validations per host and hour.
const FIRST_PAUSE: i64 = HOUR;
const LONGEST_PAUSE: i64 = 6 * HOUR;
/// Shortest pause for a host that points elsewhere, so that an owner who changes the DNS entry does not wait for long.
/// The ACME server was not contacted.
const ELSEWHERE_PAUSE: i64 = 20 * SECOND;
/// The same if the ACME server could not be reached, which does not count against its limits.
const SHORT_PAUSE: i64 = MINUTE;
const LONGEST_SHORT_PAUSE: i64 = HOUR;
/// Remaining validity below which a certificate that is not renewed is reported.
const EXPIRY_WARNING: i64 = 14 * DAY;

/// Kind of a failed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderFailure {
    /// The ACME server was not reached, or the order failed before it was contacted.
    Unreachable,
    /// The ACME server refused, or could not validate the challenge.
    Rejected,
    /// The host does not point here, which only its owner can fix. The ACME server was not contacted.
    PointsElsewhere,
}

/// Certificates that expire soon although they should have been renewed, for reasons that page owners can't fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringCertificates {
    /// Host whose certificate expires first.
    pub first_host: String,
    /// Number of expiring certificates.
    pub count: u32,
    /// Expiry of the first one.
    pub expires_at: Timestamp,
}

/// The hosts and their state.
#[derive(Debug, Default)]
pub(super) struct RenewalPlan {
    /// Most important first.
    hosts: Vec<String>,
    states: BTreeMap<String, HostState>,
    /// Orders of the last hour: their start, and whether the host had no certificate.
    recent_orders: VecDeque<(Timestamp, bool)>,
}

#[derive(Debug, Default)]
struct HostState {
    /// Renewal time and expiry; `None` without a certificate.
    validity: Option<(Timestamp, Timestamp)>,
    /// Kind and number of the latest consecutive failures of one kind.
    failures: Option<(OrderFailure, u32)>,
    /// Start and end of the pause before the next attempt.
    pause: Option<(Timestamp, Timestamp)>,
}

impl HostState {
    fn is_due(&self, now: Timestamp) -> bool {
        // A pause that starts in the future was set while the clock was wrong.
        let is_paused = self.pause.is_some_and(|(from, until)| (from..until).contains(&now));
        !is_paused && self.validity.is_none_or(|(renew, _)| now >= renew)
    }

    /// Returns true if more than half of the time from renewal to expiry has passed.
    fn is_urgent(&self, now: Timestamp) -> bool {
        self.validity.is_some_and(|(renew, until)| now >= renew + until.since(renew) / 2)
    }
}

impl RenewalPlan {
    /// Sets the hosts, and returns those removed.
    pub(super) fn set_hosts(&mut self, names: Vec<String>) -> Vec<String> {
        let listed: BTreeSet<&String> = names.iter().collect();
        let removed: Vec<String> = self.states.keys().filter(|name| !listed.contains(name)).cloned().collect();
        for name in &removed {
            self.states.remove(name);
        }
        for name in &names {
            self.states.entry(name.clone()).or_default();
        }
        self.hosts = names;
        removed
    }

    /// Returns true if the host has a certificate.
    pub(super) fn has_certificate(&self, name: &str) -> bool {
        self.states.get(name).is_some_and(|state| state.validity.is_some())
    }

    /// Records the certificate of a host and its validity. It is renewed when a third of the validity is left.
    pub(super) fn record_certificate(&mut self, name: &str, from: Timestamp, until: Timestamp) {
        let Some(state) = self.states.get_mut(name) else { return };
        let renew = Timestamp::from_millis(until.as_millis() - until.since(from) / 3);
        *state = HostState { validity: Some((renew, until)), failures: None, pause: None };
    }

    /// Records that the certificate was just ordered. If it is already due for renewal, because it is very short-lived
    /// or a clock is wrong, the next order is delayed.
    pub(super) fn record_order(&mut self, name: &str, now: Timestamp) {
        let Some(state) = self.states.get_mut(name) else { return };
        if state.is_due(now) {
            state.pause = Some((now, now + FIRST_PAUSE));
        }
    }

    /// Records that the latest order failed, and returns the time of the next attempt for the host. `jitter`, from 0 to
    /// 1, spreads the attempts of many hosts.
    pub(super) fn record_failure(
        &mut self,
        name: &str,
        failure: OrderFailure,
        now: Timestamp,
        jitter: f64,
    ) -> Option<Timestamp> {
        if failure != OrderFailure::Rejected {
            // It does not count against the limits of the ACME server.
            self.recent_orders.pop_back();
        }
        let state = self.states.get_mut(name)?;
        let (first, longest) = match failure {
            OrderFailure::Unreachable => (SHORT_PAUSE, LONGEST_SHORT_PAUSE),
            OrderFailure::Rejected => (FIRST_PAUSE, LONGEST_PAUSE),
            OrderFailure::PointsElsewhere => (ELSEWHERE_PAUSE, LONGEST_PAUSE),
        };
        let previous = state.failures.filter(|(kind, _)| *kind == failure).map_or(0, |(_, count)| count);
        let pause = first.saturating_mul(1 << previous.min(16)).min(longest);
        state.failures = Some((failure, previous.saturating_add(1)));
        // Plus or minus 20%.
        let offset = (pause as f64 * (jitter.clamp(0.0, 1.0) - 0.5) * 0.4) as i64;
        let next = now + pause + offset;
        state.pause = Some((now, next));
        Some(next)
    }

    /// Returns the host whose certificate is to be ordered now: urgent renewals first, then hosts without a
    /// certificate, then other renewals.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<String> {
        // Orders that start in the future were recorded while the clock was wrong.
        self.recent_orders.retain(|(at, _)| (0..HOUR).contains(&now.since(*at)));
        if self.recent_orders.len() >= MAX_ORDERS_PER_HOUR {
            return None;
        }
        let is_full = self.recent_orders.iter().filter(|(_, is_new)| *is_new).count() >= MAX_NEW_ORDERS_PER_HOUR;
        let all = self.hosts.iter().filter_map(|name| Some((name, self.states.get(name)?)));
        let rank = |state: &HostState| match state.validity {
            Some(_) if state.is_urgent(now) => Some(0),
            None if is_full => None,
            None => Some(1),
            Some(_) => Some(2),
        };
        let due = all.filter(|(_, state)| state.is_due(now));
        // Within a rank, fewest failures first, so that hosts that point elsewhere do not delay others; then by
        // importance.
        let failures = |state: &HostState| state.failures.map_or(0, |(_, count)| count);
        let (_, name, is_new) = due
            .filter_map(|(name, state)| Some(((rank(state)?, failures(state)), name, state.validity.is_none())))
            .min_by_key(|(order, ..)| *order)?;
        let name = name.clone();
        self.recent_orders.push_back((now, is_new));
        Some(name)
    }

    /// Returns the certificates that expire soon, except those of hosts that point elsewhere.
    pub(super) fn expiring(&self, now: Timestamp) -> Option<ExpiringCertificates> {
        let is_reported = |name: &&String| {
            let state = self.states.get(*name);
            state.is_some_and(|state| !matches!(state.failures, Some((OrderFailure::PointsElsewhere, _))))
        };
        let expiring = self.hosts.iter().filter(is_reported).filter(|name| self.expires_soon(name, now));
        let expiries = expiring.filter_map(|name| Some((self.states.get(name)?.validity?.1, name)));
        let mut count = 0;
        let (expires_at, first) = expiries.inspect(|_| count += 1).min()?;
        Some(ExpiringCertificates { first_host: first.clone(), count, expires_at })
    }

    /// Returns true if the certificate of the host expires soon although it should have been renewed.
    pub(super) fn expires_soon(&self, name: &str, now: Timestamp) -> bool {
        self.states.get(name).is_some_and(|state| {
            state.is_urgent(now) && state.validity.is_some_and(|(_, until)| until.since(now) < EXPIRY_WARNING)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn plan(names: &[&str]) -> RenewalPlan {
        let mut plan = RenewalPlan::default();
        plan.set_hosts(names.iter().map(|&name| name.to_owned()).collect());
        plan
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_validity_is_left() {
        let mut plan = plan(&["a"]);
        assert_eq!(plan.next_due(at(0)).as_deref(), Some("a"));
        plan.record_certificate("a", at(0), at(90 * DAY));
        assert_eq!(plan.next_due(at(60 * DAY - 1)), None);
        assert_eq!(plan.next_due(at(60 * DAY)).as_deref(), Some("a"));
        let soon = |days: i64| plan.expires_soon("a", at(days * DAY));
        assert!(!soon(60) && !soon(76) && soon(77) && soon(91));
    }

    #[test]
    fn failed_orders_are_retried_after_growing_pauses() {
        let mut plan = plan(&["a"]);
        let mut now = at(0);
        for _ in 0..9 {
            assert!(plan.record_failure("a", OrderFailure::Unreachable, now, 0.5).unwrap().since(now) <= HOUR);
        }
        let mut pauses = Vec::new();
        for _ in 0..5 {
            let next = plan.record_failure("a", OrderFailure::Rejected, now, 0.5).unwrap();
            pauses.push(next.since(now) / HOUR);
            assert_eq!(plan.next_due(Timestamp::from_millis(next.as_millis() - 1)), None);
            assert_eq!(plan.next_due(next).as_deref(), Some("a"));
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 6, 6]);
        plan.record_certificate("a", now, at(90 * DAY));
        let next = plan.record_failure("a", OrderFailure::Unreachable, now, 0.5).unwrap();
        assert_eq!(next.since(now), MINUTE);
        let [early, late] =
            [0.0, 1.0].map(|jitter| plan.record_failure("a", OrderFailure::Rejected, now, jitter).unwrap());
        assert!(early.since(now) >= 48 * MINUTE && late.since(now) <= 144 * MINUTE);
    }

    #[test]
    fn hosts_that_point_elsewhere_do_not_delay_others() {
        let mut plan = plan(&["a", "b", "c"]);
        for name in ["a", "b", "c"] {
            assert_eq!(plan.next_due(at(0)).as_deref(), Some(name));
            plan.record_failure(name, OrderFailure::PointsElsewhere, at(0), 0.5);
        }
        plan.set_hosts(["a", "b", "c", "new"].map(str::to_owned).to_vec());
        assert_eq!(plan.next_due(at(MINUTE)).as_deref(), Some("new"));
        plan.record_certificate("new", at(MINUTE), at(90 * DAY));
        assert_eq!(plan.next_due(at(MINUTE)).as_deref(), Some("a"));
        plan.record_failure("a", OrderFailure::PointsElsewhere, at(MINUTE), 0.5);
        assert_eq!(plan.next_due(at(2 * MINUTE)).as_deref(), Some("b"));
    }

    #[test]
    fn orders_per_hour_are_limited_and_new_hosts_do_not_delay_renewals() {
        let names: Vec<String> = (0..99).map(|n| format!("n{n}")).collect();
        let mut plan = RenewalPlan::default();
        plan.set_hosts(names);
        let orders = |plan: &mut RenewalPlan, now: Timestamp| -> Vec<String> {
            let issue = |plan: &mut RenewalPlan, name: String| {
                plan.record_certificate(&name, now, now + 90 * DAY);
                name
            };
            std::iter::from_fn(|| plan.next_due(now).map(|name| issue(plan, name))).collect()
        };
        // Two due for renewal, and one that is urgent.
        for (name, days_left) in [("n0", 29), ("n1", 28), ("n70", 14)] {
            plan.record_certificate(name, at((days_left - 90) * DAY), at(days_left * DAY));
        }
        let new = (2..2 + MAX_NEW_ORDERS_PER_HOUR).map(|n| format!("n{n}"));
        let expected: Vec<String> =
            ["n70".to_owned()].into_iter().chain(new).chain(["n0", "n1"].map(str::to_owned)).collect();
        assert_eq!(orders(&mut plan, at(0)), expected);
        assert_eq!(orders(&mut plan, at(HOUR - 1)), [""; 0]);
        let remaining = 99 - expected.len();
        assert_eq!(orders(&mut plan, at(HOUR)).len(), remaining.min(MAX_NEW_ORDERS_PER_HOUR));
        // Later all are due, up to the limit of the hour.
        let later = at(80 * DAY);
        assert_eq!(orders(&mut plan, later).len(), MAX_ORDERS_PER_HOUR);
    }

    #[test]
    fn orders_that_did_not_reach_the_acme_server_do_not_count() {
        let names: Vec<String> = (0..60).map(|n| format!("n{n}")).collect();
        let mut plan = RenewalPlan::default();
        plan.set_hosts(names);
        for _ in 0..60 {
            let name = plan.next_due(at(0)).unwrap();
            plan.record_failure(&name, OrderFailure::Unreachable, at(0), 0.5);
        }
        assert_eq!(plan.next_due(at(0)), None);
        assert!(plan.next_due(at(MINUTE)).is_some());
    }

    #[test]
    fn a_clock_that_is_set_back_delays_no_order() {
        let names: Vec<String> = (0..30).map(|n| format!("n{n}")).collect();
        let mut plan = RenewalPlan::default();
        plan.set_hosts(names);
        while let Some(name) = plan.next_due(at(DAY)) {
            plan.record_failure(&name, OrderFailure::Rejected, at(DAY), 0.5);
        }
        assert_eq!(plan.next_due(at(0)).as_deref(), Some("n0"));
    }

    #[test]
    fn a_certificate_that_is_due_when_issued_is_not_ordered_again_at_once() {
        let mut plan = plan(&["a"]);
        assert!(plan.next_due(at(DAY)).is_some());
        plan.record_certificate("a", at(0), at(DAY));
        plan.record_order("a", at(DAY));
        assert_eq!(plan.next_due(at(DAY)), None);
        assert!(plan.next_due(at(DAY) + FIRST_PAUSE).is_some());
        plan.record_certificate("a", at(DAY), at(91 * DAY));
        plan.record_order("a", at(DAY));
        assert!(plan.next_due(at(61 * DAY)).is_some());
    }

    #[test]
    fn expiring_certificates_are_reported_except_for_hosts_that_point_elsewhere() {
        let mut plan = plan(&["a", "b", "c", "d"]);
        for (name, expiry) in [("a", 91), ("b", 90), ("c", 89), ("d", 200)] {
            plan.record_certificate(name, at((expiry - 90) * DAY), at(expiry * DAY));
        }
        let expiring_at = |plan: &RenewalPlan, days: i64| plan.expiring(at(days * DAY));
        let expected = |first: &str, count, expiry: i64| {
            Some(ExpiringCertificates { first_host: first.to_owned(), count, expires_at: at(expiry * DAY) })
        };
        assert_eq!((expiring_at(&plan, 74), expiring_at(&plan, 76)), (None, expected("c", 1, 89)));
        assert_eq!(expiring_at(&plan, 78), expected("c", 3, 89));
        plan.record_failure("c", OrderFailure::PointsElsewhere, at(78 * DAY), 0.5);
        assert_eq!(expiring_at(&plan, 78), expected("b", 2, 90));
        plan.record_failure("b", OrderFailure::Rejected, at(78 * DAY), 0.5);
        assert_eq!(expiring_at(&plan, 95), expected("b", 2, 90), "expired ones are included");
        for name in ["a", "b"] {
            plan.record_certificate(name, at(80 * DAY), at(170 * DAY));
        }
        assert_eq!(expiring_at(&plan, 90), None);
    }

    #[test]
    fn a_host_that_points_elsewhere_is_checked_with_growing_pauses() {
        let mut plan = plan(&["a"]);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..13 {
            assert_eq!(plan.next_due(now).as_deref(), Some("a"));
            let next = plan.record_failure("a", OrderFailure::PointsElsewhere, now, 0.5).unwrap();
            pauses.push(next.since(now) / SECOND);
            now = next;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 20_480, 21_600, 21_600]);
    }

    #[test]
    fn removed_hosts_are_returned_and_forgotten() {
        let mut plan = plan(&["a", "b"]);
        plan.record_certificate("b", at(0), at(DAY));
        assert_eq!(plan.set_hosts(vec!["a".to_owned()]), ["b"]);
        assert_eq!(plan.record_failure("b", OrderFailure::Rejected, at(0), 0.5), None);
        assert_eq!(plan.next_due(at(0)).as_deref(), Some("a"));
        assert!(!plan.expires_soon("b", at(DAY)));
    }
}
