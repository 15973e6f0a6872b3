//! Tests of delivery.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn delivery() -> Delivery {
    Delivery {
        id: DeliveryId::from_u128(1),
        page: None,
        to: Recipient::OperatorMail,
        event: "went-down".to_owned(),
        monitor: None,
        incident: None,
        seq: 1,
        message: DeliveryMessage::Json(Vec::new()),
        is_single_attempt: false,
        created_at: Timestamp::from_millis(0),
        state: DeliveryState::Waiting(Timestamp::from_millis(0)),
        attempts: AttemptCount::default(),
        attempt_log: Vec::new(),
        outage_start: None,
    }
}

fn tried(now: Timestamp) -> DeliveryAttempt {
    DeliveryAttempt { at: now, duration_ms: 1, status: None, error: None, response: String::new() }
}

#[test]
fn a_delivery_without_any_answer_ends_after_ten_attempts() {
    let mut delivery = delivery();
    let mut pauses = Vec::new();
    let mut now = Timestamp::from_millis(0);
    while let DeliveryState::Waiting(due) = delivery.state {
        pauses.push(due.since(now));
        now = due;
        delivery.record_attempt(tried(now), AttemptOutcome::Deferred(None), now, 0.0);
    }
    assert_eq!((pauses[0], &pauses[1..]), (0, &RETRY_DELAYS[..]));
    assert_eq!((delivery.state, delivery.attempt_log.len()), (DeliveryState::Failed(now), 10));
}

#[test]
fn each_outcome_leads_where_it_should() {
    let now = Timestamp::from_millis(1_000);
    let after = |once, outcome, jitter| {
        let mut delivery = Delivery { is_single_attempt: once, ..delivery() };
        delivery.record_attempt(tried(now), outcome, now, jitter);
        delivery.state
    };
    let waits = |millis| DeliveryState::Waiting(now + millis);
    for (once, outcome, jitter, stage) in [
        (false, AttemptOutcome::Accepted, 0.0, DeliveryState::Delivered(now)),
        (false, AttemptOutcome::Gone, 0.0, DeliveryState::Failed(now)),
        (false, AttemptOutcome::Rejected, 0.0, DeliveryState::Failed(now)),
        (false, AttemptOutcome::Deferred(None), 1.0, waits(6_000)),
        (false, AttemptOutcome::Deferred(None), -1.0, waits(4_000)),
        (false, AttemptOutcome::Deferred(Some(7_000)), 1.0, waits(7_000)),
        (false, AttemptOutcome::Deferred(Some(1_000)), -1.0, waits(1_000)),
        (false, AttemptOutcome::Deferred(Some(40 * MINUTE)), -1.0, waits(40 * MINUTE)),
        (false, AttemptOutcome::Deferred(Some(999)), 0.0, waits(5_000)),
        (false, AttemptOutcome::Deferred(Some(0)), 0.0, waits(5_000)),
        (false, AttemptOutcome::Deferred(Some(-7)), 0.0, waits(5_000)),
        (false, AttemptOutcome::Deferred(Some(9 * HOUR)), 0.0, waits(HOUR)),
        (true, AttemptOutcome::Deferred(Some(7_000)), 0.0, DeliveryState::Failed(now)),
    ] {
        assert_eq!(after(once, outcome, jitter), stage, "{once} {outcome:?}");
    }
}

#[test]
fn a_secret_link_is_forgotten_once_nothing_sends_it() {
    let (now, id) = (Timestamp::from_millis(1_000), DeliveryId::from_u128(1));
    let link = "https://status.example/reset/secret";
    let mail = MailMessage { subject: "New".to_owned(), text: link.to_owned(), html: link.to_owned() };
    let mail_to = |to| Delivery { to, message: DeliveryMessage::Mail(mail.clone()), ..delivery() };
    let is_readable =
        |it: &Delivery| matches!(&it.message, DeliveryMessage::Mail(mail) if mail.text.contains("secret"));
    let (visitor, destination) = (Recipient::Visitor(id), DestinationId::from_u128(2));
    for (to, is_secret) in [
        (visitor, true),
        (Recipient::UnconfirmedDestination(destination), true),
        (Recipient::Destination(destination), false),
        (Recipient::OperatorMail, false),
    ] {
        for (outcome, is_finished) in [
            (AttemptOutcome::Accepted, true),
            (AttemptOutcome::Gone, true),
            (AttemptOutcome::Rejected, true),
            (AttemptOutcome::Deferred(None), false),
        ] {
            let mut delivery = mail_to(to);
            assert!(!format!("{delivery:?}").contains("secret"), "debug output");
            delivery.record_attempt(tried(now), outcome, now, 0.0);
            assert_eq!(is_readable(&delivery), !(is_secret && is_finished), "{to:?} {outcome:?}");
        }
        let mut delivery = mail_to(to);
        delivery.drop_unsent(now);
        assert_eq!((delivery.state, is_readable(&delivery)), (DeliveryState::Dropped(now), !is_secret), "{to:?}");
    }
}

#[test]
fn requested_delays_cost_no_attempt_up_to_a_hundred_or_a_day() {
    let start = Timestamp::from_millis(0);
    let defer = |delivery: &mut Delivery, now| {
        delivery.record_attempt(tried(now), AttemptOutcome::Deferred(Some(7_000)), now, 1.0);
        assert!(matches!(delivery.state, DeliveryState::Waiting(due) if due.since(now) == 7_000), "{delivery:?}");
        (delivery.attempts.counted(), delivery.attempts.deferred())
    };
    let mut delivery = delivery();
    delivery.record_attempt(tried(start), AttemptOutcome::Deferred(None), start, 0.0);
    for requested in 1..=MAX_DEFERRALS {
        assert_eq!(defer(&mut delivery, start), (1, requested));
    }
    for counted in 2..=9 {
        assert_eq!(defer(&mut delivery, start), (counted, MAX_DEFERRALS));
    }
    delivery.record_attempt(tried(start), AttemptOutcome::Deferred(Some(7_000)), start, 1.0);
    assert_eq!((delivery.state, delivery.attempts.total()), (DeliveryState::Failed(start), 10 + MAX_DEFERRALS));
    delivery.resend(start + MAX_DEFERRAL_AGE - 1);
    assert_eq!(defer(&mut delivery, start + MAX_DEFERRAL_AGE - 1), (0, 1));
    assert_eq!(defer(&mut delivery, start + MAX_DEFERRAL_AGE), (1, 1));
}

proptest! {
    #[test]
    fn every_delivery_ends_within_bounds_for_any_responses(
        answers in vec((option::of(-10_i64..3 * HOUR), -1.0..1.0_f64), 1..12),
    ) {
        let mut delivery = delivery();
        let mut now = Timestamp::from_millis(0);
        for (requested, jitter) in answers.iter().cycle() {
            let DeliveryState::Waiting(due) = delivery.state else { break };
            prop_assert!(due >= now);
            now = due;
            delivery.record_attempt(tried(now), AttemptOutcome::Deferred(*requested), now, *jitter);
            if let (DeliveryState::Waiting(due), Some(requested)) = (delivery.state, requested)
                && *requested >= SECOND
            {
                prop_assert_eq!(due.since(now), (*requested).min(MAX_RETRY_AFTER));
            }
        }
        let pauses: i64 = RETRY_DELAYS.iter().map(|pause| (pause * 6 / 5).max(MAX_RETRY_AFTER)).sum();
        prop_assert_eq!(delivery.state, DeliveryState::Failed(now));
        prop_assert!(delivery.attempts.counted() == 10 && delivery.attempts.deferred() <= MAX_DEFERRALS);
        prop_assert!(now.as_millis() <= MAX_DEFERRAL_AGE + MAX_RETRY_AFTER + pauses, "{now}");
    }
}

#[test]
fn a_retried_delivery_has_all_attempts_again_and_keeps_its_log() {
    let now = Timestamp::from_millis(5);
    let mut delivery = delivery();
    for _ in 0..30 {
        delivery.record_attempt(tried(now), AttemptOutcome::Deferred(None), now, 0.0);
    }
    delivery.resend(now);
    assert_eq!(
        (delivery.state, delivery.attempts, delivery.attempt_log.len()),
        (DeliveryState::Waiting(now), AttemptCount::default(), MAX_LOGGED_ATTEMPTS)
    );
}
