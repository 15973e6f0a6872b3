//! Tests of attempt.

use http::StatusCode;

use super::*;

#[test]
fn each_answer_has_its_meaning() {
    let now = Timestamp::from_millis(1_795_783_560_000);
    let of = |kind, status: u16, retry_after: Option<&str>, text: &str| {
        let retry_after = retry_after.map(str::to_owned);
        let status = StatusCode::from_u16(status).unwrap();
        let text = text.to_owned();
        classify_response(kind, ChannelResponse { status, retry_after, body: text, is_text: true }, now).outcome
    };
    let told = r#"{"ok":false,"parameters":{"retry_after":5}}"#;
    let hook = ChannelKind::Webhook;
    for (kind, status, retry_after, text, outcome) in [
        (hook, 200, None, "", AttemptOutcome::Accepted),
        (hook, 204, Some("7"), "", AttemptOutcome::Accepted),
        (hook, 302, None, "", AttemptOutcome::Deferred(None)),
        (hook, 404, Some("7"), "", AttemptOutcome::Deferred(None)),
        (hook, 410, None, "", AttemptOutcome::Gone),
        (hook, 429, Some("7"), "", AttemptOutcome::Deferred(Some(7_000))),
        (hook, 503, Some(" 12 "), "", AttemptOutcome::Deferred(Some(12_000))),
        (hook, 503, Some("Fri, 27 Nov 2026 12:46:30 GMT"), "", AttemptOutcome::Deferred(Some(30_000))),
        (hook, 503, Some("Fri, 27 Nov 2020 12:46:30 GMT"), "", AttemptOutcome::Deferred(Some(0))),
        (hook, 429, Some("soon"), "", AttemptOutcome::Deferred(None)),
        (hook, 429, Some("-7"), "", AttemptOutcome::Deferred(Some(0))),
        (hook, 429, None, told, AttemptOutcome::Deferred(None)),
        (ChannelKind::Telegram, 429, None, told, AttemptOutcome::Deferred(Some(5_000))),
    ] {
        assert_eq!(of(kind, status, retry_after, text), outcome, "{status} {retry_after:?} {text}");
    }
}
