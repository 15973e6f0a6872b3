//! Receiver health after each attempt: since when deliveries fail, and when the receiver is switched off.

use parallax_core::delivery::AttemptOutcome;
use parallax_core::destination::{DISABLE_AFTER, DeliveryHealth, DisableReason, MAX_REJECTIONS};
use parallax_core::time::Timestamp;

/// Returns the receiver's health after an attempt at `now`; `None` if it is unchanged. `counts` is false for
/// a failure on our side and for a test: neither affects the health.
pub(super) fn after_attempt(
    before: &DeliveryHealth,
    outcome: AttemptOutcome,
    counts: bool,
    now: Timestamp,
) -> Option<DeliveryHealth> {
    let mut health = before.clone();
    match outcome {
        AttemptOutcome::Accepted => {
            health.failing_since = None;
            health.rejections = 0;
        }
        _ if !counts => return None,
        AttemptOutcome::Deferred(_) | AttemptOutcome::Gone | AttemptOutcome::Rejected => {
            let since = *health.failing_since.get_or_insert(now);
            if outcome == AttemptOutcome::Rejected {
                health.rejections = health.rejections.saturating_add(1);
            }
            let reason = match outcome {
                AttemptOutcome::Gone => Some(DisableReason::Gone),
                _ if health.rejections >= MAX_REJECTIONS => Some(DisableReason::Rejected),
                _ if now.since(since) >= DISABLE_AFTER => Some(DisableReason::Failing),
                AttemptOutcome::Deferred(_) | AttemptOutcome::Rejected | AttemptOutcome::Accepted => None,
            };
            health.disabled = health.disabled.or(reason.map(|reason| (now, reason)));
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
    fn a_receiver_is_switched_off_for_three_reasons_only() {
        let failing = |since: i64| DeliveryHealth { failing_since: Some(NOW - since), ..DeliveryHealth::default() };
        let rejected = |rejections| DeliveryHealth { rejections, failing_since: Some(NOW), disabled: None };
        for (before, outcome, reason) in [
            (DeliveryHealth::default(), AttemptOutcome::Gone, Some(DisableReason::Gone)),
            (DeliveryHealth::default(), AttemptOutcome::Deferred(None), None),
            (failing(DISABLE_AFTER - 1), AttemptOutcome::Deferred(Some(7)), None),
            (failing(DISABLE_AFTER), AttemptOutcome::Deferred(None), Some(DisableReason::Failing)),
            (rejected(1), AttemptOutcome::Rejected, None),
            (rejected(2), AttemptOutcome::Rejected, Some(DisableReason::Rejected)),
        ] {
            let health = after_attempt(&before, outcome, true, NOW).unwrap_or_else(|| before.clone());
            assert_eq!(health.disabled, reason.map(|reason| (NOW, reason)), "{before:?} {outcome:?}");
            assert!(health.failing_since.is_some());
            assert_eq!(
                after_attempt(&before, outcome, false, NOW),
                None,
                "a test or a failure on our side doesn't count"
            );
        }
    }

    #[test]
    fn a_success_resets_failures_and_otherwise_changes_nothing() {
        let before = DeliveryHealth { failing_since: Some(NOW - DAY), rejections: 2, disabled: None };
        assert_eq!(after_attempt(&before, AttemptOutcome::Accepted, true, NOW), Some(DeliveryHealth::default()));
        assert_eq!(after_attempt(&DeliveryHealth::default(), AttemptOutcome::Accepted, true, NOW), None);
        let since = DeliveryHealth { failing_since: Some(NOW - DAY), ..DeliveryHealth::default() };
        assert_eq!(after_attempt(&since, AttemptOutcome::Deferred(None), true, NOW), None, "unchanged");
    }
}
