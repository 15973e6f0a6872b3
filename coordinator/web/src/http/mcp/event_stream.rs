//! Responses as server-sent events (MCP, "Streamable HTTP"), for clients that accept nothing else.

use ::http::header::ACCEPT;
use ::http::{HeaderMap, StatusCode};
use parallax_core::text::accept::weight;
use serde_json::Value;

use crate::http::response::{HttpResponse, header_values};

const EVENTS: &str = "text/event-stream";

/// Returns true if the client accepts events but not JSON. A client that accepts both gets JSON.
pub(super) fn accepts_only_events(headers: &HeaderMap) -> bool {
    let weight = |media| weight(header_values(headers, &ACCEPT), media);
    weight("application/json") <= 0.0 && weight(EVENTS) > 0.0
}

/// Builds an event stream of the responses, which ends after them, since the server sends no later messages.
pub(super) fn event_response<'a>(answers: impl Iterator<Item = &'a Value>) -> HttpResponse {
    // JSON contains no bare line breaks, so each response is one line.
    let body: String = answers.map(|answer| format!("event: message\ndata: {answer}\n\n")).collect();
    HttpResponse::bytes(EVENTS, body)
        .with(::http::header::CACHE_CONTROL, ::http::HeaderValue::from_static("no-store"))
        .with_status(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_for_clients_that_do_not_accept_json() {
        for (accept, expected) in [
            ("text/event-stream", true),
            ("text/event-stream, text/html", true),
            ("text/event-stream, application/json;q=0", true),
            ("application/json, text/event-stream", false),
            ("text/event-stream, */*;q=0.1", false),
            ("*/*", false),
            ("application/json", false),
            ("text/html", false),
        ] {
            let headers = [(ACCEPT, accept.parse().unwrap())].into_iter().collect();
            assert_eq!(accepts_only_events(&headers), expected, "{accept}");
        }
        assert!(!accepts_only_events(&HeaderMap::new()));
    }
}
