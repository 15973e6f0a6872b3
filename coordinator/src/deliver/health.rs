//! Receiver health after each attempt: since when deliveries fail, and when the receiver is switched off.

use parallax_core::delivery::Outcome;
use parallax_core::destination::{GIVES_UP, Health, OffReason, REFUSALS};
use parallax_core::time::Timestamp;

/// Returns the receiver's health after an attempt at `now`; `None` if it is unchanged. `counts` is false for
/// a failure on our side and for a test: neither affects the health.
pub(super) fn after(before: &Health, outcome: Outcome, counts: bool, now: Timestamp) -> Option<Health> {
    let mut health = before.clone();
    match outcome {
        Outcome::Taken => {
            health.failing_since = None;
            health.refusals = 0;
        }
        _ if !counts => return None,
        Outcome::NotNow(_) | Outcome::Gone | Outcome::Refused => {
            let since = *health.failing_since.get_or_insert(now);
            if outcome == Outcome::Refused {
                health.refusals = health.refusals.saturating_add(1);
            }
            let reason = match outcome {
                Outcome::Gone => Some(OffReason::Gone),
                _ if health.refusals >= REFUSALS => Some(OffReason::Refused),
                _ if now.since(since) >= GIVES_UP => Some(OffReason::Failing),
                Outcome::NotNow(_) | Outcome::Refused | Outcome::Taken => None,
            };
            health.off = health.off.or(reason.map(|reason| (now, reason)));
        }
    }
    (health != *before).then_some(health)
}

#[cfg(test)]
mod tests {
    use parallax_core::time::DAY;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(10 * DAY);

    #[test]
    fn a_receiver_is_switched_off_for_the_three_reasons_and_no_other() {
        let failing = |since: i64| Health { failing_since: Some(NOW - since), ..Health::default() };
        let refused = |refusals| Health { refusals, failing_since: Some(NOW), off: None };
        for (before, outcome, reason) in [
            (Health::default(), Outcome::Gone, Some(OffReason::Gone)),
            (Health::default(), Outcome::NotNow(None), None),
            (failing(GIVES_UP - 1), Outcome::NotNow(Some(7)), None),
            (failing(GIVES_UP), Outcome::NotNow(None), Some(OffReason::Failing)),
            (refused(1), Outcome::Refused, None),
            (refused(2), Outcome::Refused, Some(OffReason::Refused)),
        ] {
            let health = after(&before, outcome, true, NOW).unwrap_or_else(|| before.clone());
            assert_eq!(health.off, reason.map(|reason| (NOW, reason)), "{before:?} {outcome:?}");
            assert!(health.failing_since.is_some());
            assert_eq!(
                after(&before, outcome, false, NOW),
                None,
                "a test or a failure on our side doesn't count"
            );
        }
    }

    #[test]
    fn a_success_ends_a_row_of_failures_and_changes_nothing_where_there_was_none() {
        let before = Health { failing_since: Some(NOW - DAY), refusals: 2, off: None };
        assert_eq!(after(&before, Outcome::Taken, true, NOW), Some(Health::default()));
        assert_eq!(after(&Health::default(), Outcome::Taken, true, NOW), None);
        let since = Health { failing_since: Some(NOW - DAY), ..Health::default() };
        assert_eq!(after(&since, Outcome::NotNow(None), true, NOW), None, "unchanged");
    }
}
