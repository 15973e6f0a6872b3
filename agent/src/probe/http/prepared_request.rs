//! The prepared first request of a check: its bytes, built once and not at every round.

use std::sync::OnceLock;

use parallax_dial::Host;
use parallax_protocol::{check::WireHttpCheck, result::WireFailure};

use super::{judge, request_plan::RequestPlan};

/// Target and bytes of a check's first request. They contain the customer's headers.
pub(super) struct PreparedRequest {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) is_https: bool,
    /// True for the method HEAD.
    pub(super) to_head: bool,
    /// Request line and header lines over HTTP/1.1 (RFC 9112, section 3).
    pub(super) request: Box<[u8]>,
}

/// Cache of a check's prepared request; one for each check, as long as the check stays the same.
#[derive(Default)]
pub(in crate::probe) struct PreparedRequestCache(OnceLock<Box<PreparedRequest>>);

impl PreparedRequestCache {
    /// Returns the prepared request of `check`; `None` if the check needs more than a head, or sends a body.
    ///
    /// # Errors
    /// [`WireFailure::BadTarget`] naming the rule that the URL or a header breaks.
    pub(super) fn get(&self, check: &WireHttpCheck) -> Result<Option<&PreparedRequest>, WireFailure> {
        if let Some(request) = self.0.get() {
            return Ok(Some(request));
        }
        if judge::reads_bodies(check) {
            return Ok(None);
        }
        let plan = RequestPlan::from_check(check)?;
        if !plan.body.is_empty() {
            return Ok(None);
        }
        let request = PreparedRequest::of(&plan)?;
        Ok(Some(self.0.get_or_init(|| Box::new(request))))
    }
}

impl PreparedRequest {
    fn of(plan: &RequestPlan) -> Result<Self, WireFailure> {
        Ok(Self {
            host: plan.host.clone(),
            port: plan.port,
            is_https: plan.is_https(),
            to_head: plan.is_head(),
            request: plan.request_bytes()?.into_boxed_slice(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::{
        check::{WireHeader, WireKeywordMode, WireMethod as CheckMethod},
        text::SecretText,
    };

    fn check(url: &str) -> WireHttpCheck {
        WireHttpCheck {
            url: url.to_owned(),
            method: CheckMethod::Get,
            headers: vec![WireHeader { name: "X-Token".to_owned(), value: SecretText::new("a b") }],
            body: None,
            expect_status: None,
            keyword: None,
            keyword_mode: WireKeywordMode::Present,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_request() {
        let cache = PreparedRequestCache::default();
        let request = cache.get(&check("http://example.com:8080/a b?c=d#e")).unwrap().unwrap();
        let text = std::str::from_utf8(&request.request).unwrap();
        assert!(text.starts_with("GET /a%20b?c=d HTTP/1.1\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n"), "{text}");
        for line in ["host: example.com:8080", "x-token: a b", "accept: */*", "accept-encoding: identity"] {
            assert_eq!(text.lines().filter(|own| own == &line).count(), 1, "{line} in {text}");
        }
        assert_eq!((request.host.to_string().as_str(), request.port), ("example.com", 8080));
        assert!(!request.to_head && !request.is_https);
    }

    #[test]
    fn a_check_that_needs_more_than_a_head_has_no_prepared_request() {
        let keyword = WireHttpCheck { keyword: Some("fine".to_owned()), ..check("http://example.com/") };
        let body = Some(SecretText::new("body"));
        let post = WireHttpCheck { method: CheckMethod::Post, body, ..check("http://example.com/") };
        for check in [keyword, post] {
            assert!(PreparedRequestCache::default().get(&check).unwrap().is_none(), "{}", check.url);
        }
        assert!(PreparedRequestCache::default().get(&check("http://a..b/")).is_err());
    }
}
