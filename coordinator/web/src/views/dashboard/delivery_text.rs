//! Texts about deliveries: the event, the receiver, and the receiver's answer.

use parallax_core::delivery::{DeliveryAttempt, Recipient};
use parallax_core::event::AlertKind;

use super::words;

/// Text of a kind of alert.
pub(crate) const fn event_text(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::WentDown => "Down",
        AlertKind::StillDown => "Still down",
        AlertKind::Recovered => "Recovered",
        AlertKind::WentSlow => "Slow",
        AlertKind::BackToNormal => "Back to normal",
    }
}

/// Text of the event of a delivery. An event without a text is shown by its name, as words.
pub(crate) fn delivery_event_text(event: &str) -> String {
    if let Some(kind) = AlertKind::ALL.into_iter().find(|kind| kind.name() == event) {
        return event_text(kind).to_owned();
    }
    let text = match event {
        "flapping" => "Flapping",
        "steady" => "Stable again",
        "monitor.unjudged" => "Not checked",
        "incident.created" => "Incident opened",
        "incident.updated" => "Incident updated",
        "incident.resolved" => "Incident resolved",
        "maintenance.scheduled" => "Maintenance planned",
        "maintenance.updated" => "Maintenance updated",
        "maintenance.reminder" => "Maintenance reminder",
        "maintenance.started" => "Maintenance started",
        "maintenance.completed" => "Maintenance completed",
        "subscription.challenge" => "Subscription check",
        "destination.off" => "Destination switched off",
        "page.sign-in" => "Link to the page",
        "person.sign-in" => "Sign-in link",
        "test" => "Test",
        other => {
            let words = other.replace(['-', '.'], " ");
            return parallax_core::explanation::capitalized(&words);
        }
    };
    text.to_owned()
}

/// Name of the receiver of a delivery; `destination` is the name of its destination, unless it was deleted.
pub(crate) fn recipient_text(to: Recipient, destination: Option<&str>) -> String {
    let text = match to {
        Recipient::Destination(_) | Recipient::UnconfirmedDestination(_) => {
            destination.unwrap_or("a deleted destination")
        }
        Recipient::Subscriber(_) => "a subscriber",
        Recipient::Owner(_) => "the account’s mailbox",
        Recipient::Visitor(_) => "a visitor",
        Recipient::OperatorMail | Recipient::OperatorWebhook => "the operator",
    };
    text.to_owned()
}

/// Writes what a receiver answered: "500 in 84 ms", "302 in 84 ms: redirects are not followed".
pub(crate) fn attempt_answer(attempt: &DeliveryAttempt) -> String {
    let time = words::elapsed(attempt.duration_ms.into());
    match (attempt.status, &attempt.error) {
        // An error that names the status says no more than the status.
        (Some(status), Some(error)) if !error.contains(&status.to_string()) => format!("{status} in {time}: {error}"),
        (Some(status), _) => format!("{status} in {time}"),
        (None, Some(error)) => error.clone(),
        (None, None) => format!("in {time}"),
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::Timestamp;
    use parallax_notify::render::incident_update::EVENTS;

    use super::*;

    #[test]
    fn an_answer_keeps_the_error() {
        let answer = |status: Option<u16>, error: Option<&str>| {
            attempt_answer(&DeliveryAttempt {
                at: Timestamp::from_millis(0),
                duration_ms: 84,
                status,
                error: error.map(str::to_owned),
                response: String::new(),
            })
        };
        for (status, error, expected) in [
            (Some(204), None, "204 in 84 ms"),
            (Some(500), Some("unexpected status 500"), "500 in 84 ms"),
            (Some(302), Some("redirects are not followed"), "302 in 84 ms: redirects are not followed"),
            (None, Some("the connection was refused"), "the connection was refused"),
            (None, None, "in 84 ms"),
        ] {
            assert_eq!(answer(status, error), expected);
        }
    }

    #[test]
    fn no_event_is_shown_by_its_name() {
        let kinds = AlertKind::ALL.map(AlertKind::name);
        for event in kinds.into_iter().chain(EVENTS) {
            let text = delivery_event_text(event);
            assert!(text.starts_with(char::is_uppercase) && !text.contains(['.', '-']), "{event}: {text}");
        }
        assert_eq!(delivery_event_text("went-slow"), "Slow");
        assert_eq!(delivery_event_text("incident.updated"), "Incident updated");
        assert_eq!(delivery_event_text("region-stale"), "Region stale");
    }
}
