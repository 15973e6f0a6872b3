//! Outcomes of attempts by the receiver's response.

use http::StatusCode;

use super::*;

#[test]
fn each_response_status_has_its_outcome() {
    let now = Timestamp::from_millis(1_795_783_560_000);
    let outcome_of = |kind, status: u16, retry_after: Option<&str>, text: &str| {
        let retry_after = retry_after.map(str::to_owned);
        let status = StatusCode::from_u16(status).unwrap();
        let text = text.to_owned();
        classify_response(kind, ChannelResponse { status, retry_after, body: text, is_text: true }, now).outcome
    };
    let body = r#"{"ok":false,"parameters":{"retry_after":5}}"#;
    let webhook = ChannelKind::Webhook;
    for (kind, status, retry_after, text, outcome) in [
        (webhook, 200, None, "", AttemptOutcome::Accepted),
        (webhook, 204, Some("7"), "", AttemptOutcome::Accepted),
        (webhook, 302, None, "", AttemptOutcome::Deferred(None)),
        (webhook, 404, Some("7"), "", AttemptOutcome::Deferred(None)),
        (webhook, 410, None, "", AttemptOutcome::Gone),
        (webhook, 429, Some("7"), "", AttemptOutcome::Deferred(Some(7_000))),
        (webhook, 503, Some(" 12 "), "", AttemptOutcome::Deferred(Some(12_000))),
        (webhook, 503, Some("Fri, 27 Nov 2026 12:46:30 GMT"), "", AttemptOutcome::Deferred(Some(30_000))),
        (webhook, 503, Some("Fri, 27 Nov 2020 12:46:30 GMT"), "", AttemptOutcome::Deferred(Some(0))),
        (webhook, 429, Some("soon"), "", AttemptOutcome::Deferred(None)),
        (webhook, 429, Some("-7"), "", AttemptOutcome::Deferred(Some(0))),
        (webhook, 429, None, body, AttemptOutcome::Deferred(None)),
        (ChannelKind::Telegram, 429, None, body, AttemptOutcome::Deferred(Some(5_000))),
    ] {
        assert_eq!(outcome_of(kind, status, retry_after, text), outcome, "{status} {retry_after:?} {text}");
    }
}
