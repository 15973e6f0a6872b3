//! Errors as pages for people: the status and words of the API's error, with the way on.

use ::http::StatusCode;
use ::http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use super::{ROOT, with_security_headers};
use crate::http::error::ApiError;
use crate::http::response::HttpResponse;
use crate::views::dashboard::MessagePage;
use crate::views::dashboard::form::FieldFault;

/// Builds the page of an error. It keeps the headers of the API's error, such as `Retry-After`.
pub(in crate::http) fn error_page(error: ApiError) -> HttpResponse {
    let reply = error.into_response();
    let page = page_of(&reply);
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    with_security_headers(reply.map_body(|_| page.html().into()).with(CONTENT_TYPE, html))
}

fn page_of(reply: &HttpResponse) -> MessagePage {
    let seconds = reply.header(&::http::header::RETRY_AFTER).and_then(|seconds| seconds.to_str().ok());
    match (reply.status(), seconds) {
        (StatusCode::NOT_FOUND, _) => MessagePage::new("Not found", "Not found, or you have no access.".to_owned()),
        (StatusCode::TOO_MANY_REQUESTS, Some(seconds)) => {
            MessagePage::new("Too many requests", format!("Too many requests. Wait {seconds} seconds."))
        }
        (status, _) => MessagePage::new(title_of(status), FieldFault::sentence(&message_of(reply.body()))),
    }
    .with_link(ROOT, "Overview")
}

fn title_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "Not allowed",
        status if status.is_server_error() => "Something went wrong",
        _ => "This did not work",
    }
}

/// Returns the message of an error of the API.
fn message_of(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    document.pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use ::http::header::RETRY_AFTER;
    use parallax_core::role::Role;
    use parallax_service::ServiceError;

    use super::*;

    #[test]
    fn an_error_keeps_its_status_and_says_why() {
        let page = |error: ServiceError| {
            let reply = error_page(error.into()).into_response();
            (reply.status().as_u16(), String::from_utf8_lossy(reply.body()).into_owned(), reply.headers().clone())
        };
        let (status, text, _) = page(ServiceError::RoleForbids { role: Role::Viewer });
        assert!(status == 403 && text.contains("Your role (viewer) may not do this."), "{text}");
        let (status, text, _) = page(ServiceError::NotFound);
        assert!(status == 404 && text.contains("Not found, or you have no access."), "{text}");
        assert!(text.contains("href=\"/app\""), "{text}");
        let (status, text, headers) = page(ServiceError::CheckNowTooSoon { seconds: 12 });
        assert!(status == 429 && text.contains("Too many requests. Wait 12 seconds."), "{text}");
        assert_eq!(
            (&headers[RETRY_AFTER], &headers["cache-control"]),
            (&"12".parse().unwrap(), &"no-store".parse().unwrap())
        );
        let (status, text, _) = page(ServiceError::Internal("secret".to_owned()));
        assert!(status == 500 && !text.contains("secret"), "{text}");
    }
}
