//! The verdict on a response. Free of IO.

use parallax_protocol::{
    check::{WireHttpCheck, WireKeywordMode},
    result::{WireFailure, WireOutcome},
};

use crate::probe::facts::CheckError;

/// The final response, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResponseSummary {
    /// Its status.
    pub(super) status: u16,
    /// Result of the keyword search, if there was one.
    pub(super) keyword: Option<KeywordSearchResult>,
}

/// Result of the keyword search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordSearchResult {
    /// It is there.
    Found,
    /// It is not in the whole body.
    Missing,
    /// It is not in the part of the body that was read.
    MissingInPart,
    /// The body's coding can't be decoded.
    Undecodable,
}

/// Returns true if redirects are followed, that is, unless the check expects one.
pub(super) fn follows_redirects(check: &WireHttpCheck) -> bool {
    !check.expect_status.is_some_and(|status| (300..400).contains(&status))
}

/// Returns true if this check may have to read a body.
pub(super) fn reads_bodies(check: &WireHttpCheck) -> bool {
    check.keyword.as_deref().is_some_and(|keyword| !keyword.is_empty())
}

/// Returns the keyword to search in the body of a response with this status; `None` if the status alone
/// decides.
pub(super) fn keyword_needed(check: &WireHttpCheck, status: u16) -> Option<&str> {
    check.keyword.as_deref().filter(|keyword| !keyword.is_empty() && status_fits(check, status))
}

/// Judges the response, or the reason why there is none.
pub(super) fn judge(check: &WireHttpCheck, response: Result<ResponseSummary, CheckError>) -> WireOutcome {
    match response {
        Err(error) => error.into(),
        Ok(ResponseSummary { status, .. }) if !status_fits(check, status) => {
            WireOutcome::Failed(WireFailure::UnexpectedStatus { got: status })
        }
        Ok(ResponseSummary { keyword: None, .. }) => WireOutcome::Passed,
        Ok(ResponseSummary { keyword: Some(search), .. }) => match (search, check.keyword_mode) {
            (KeywordSearchResult::Found, WireKeywordMode::Present)
            | (KeywordSearchResult::Missing | KeywordSearchResult::MissingInPart, WireKeywordMode::Absent) => {
                WireOutcome::Passed
            }
            (KeywordSearchResult::Found, WireKeywordMode::Absent) => WireOutcome::Failed(WireFailure::KeywordPresent),
            (KeywordSearchResult::Missing, WireKeywordMode::Present) => {
                WireOutcome::Failed(WireFailure::KeywordMissing)
            }
            (KeywordSearchResult::MissingInPart, WireKeywordMode::Present) => {
                WireOutcome::Failed(WireFailure::BodyTooLarge)
            }
            (KeywordSearchResult::Undecodable, WireKeywordMode::Present | WireKeywordMode::Absent) => {
                WireOutcome::Failed(WireFailure::BodyUndecodable)
            }
        },
    }
}

fn status_fits(check: &WireHttpCheck, status: u16) -> bool {
    match check.expect_status {
        Some(expected) => status == expected,
        None => (200..300).contains(&status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::check::WireMethod;

    fn check(expect_status: Option<u16>, keyword_mode: WireKeywordMode) -> WireHttpCheck {
        WireHttpCheck {
            url: "http://example.com/".to_owned(),
            method: WireMethod::Get,
            headers: Vec::new(),
            body: None,
            expect_status,
            keyword: Some("fine".to_owned()),
            keyword_mode,
        }
    }

    fn verdict(check: &WireHttpCheck, status: u16, keyword: Option<KeywordSearchResult>) -> WireOutcome {
        judge(check, Ok(ResponseSummary { status, keyword }))
    }

    #[test]
    fn any_2xx_passes_unless_one_status_is_expected() {
        let any = check(None, WireKeywordMode::Present);
        for (status, fits) in [(199, false), (200, true), (204, true), (299, true), (300, false), (500, false)] {
            assert_eq!(verdict(&any, status, None) == WireOutcome::Passed, fits, "{status}");
        }
        let exact = check(Some(503), WireKeywordMode::Present);
        assert_eq!(verdict(&exact, 503, None), WireOutcome::Passed);
        assert_eq!(verdict(&exact, 200, None), WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 200 }));
    }

    #[test]
    fn the_status_is_judged_before_the_keyword() {
        let any = check(None, WireKeywordMode::Present);
        assert_eq!(keyword_needed(&any, 500), None);
        assert_eq!(keyword_needed(&any, 200), Some("fine"));
        assert_eq!(
            verdict(&any, 500, Some(KeywordSearchResult::Found)),
            WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 500 })
        );
    }

    #[test]
    fn a_keyword_is_judged_by_its_mode() {
        let present = check(None, WireKeywordMode::Present);
        let absent = check(None, WireKeywordMode::Absent);
        for (search, if_present, if_absent) in [
            (KeywordSearchResult::Found, WireOutcome::Passed, WireOutcome::Failed(WireFailure::KeywordPresent)),
            (KeywordSearchResult::Missing, WireOutcome::Failed(WireFailure::KeywordMissing), WireOutcome::Passed),
            (KeywordSearchResult::MissingInPart, WireOutcome::Failed(WireFailure::BodyTooLarge), WireOutcome::Passed),
            (
                KeywordSearchResult::Undecodable,
                WireOutcome::Failed(WireFailure::BodyUndecodable),
                WireOutcome::Failed(WireFailure::BodyUndecodable),
            ),
        ] {
            assert_eq!(verdict(&present, 200, Some(search)), if_present);
            assert_eq!(verdict(&absent, 200, Some(search)), if_absent);
        }
    }

    #[test]
    fn a_check_that_expects_a_redirect_does_not_follow_it() {
        assert!(!follows_redirects(&check(Some(301), WireKeywordMode::Present)));
        assert!(follows_redirects(&check(Some(200), WireKeywordMode::Present)));
        assert!(follows_redirects(&check(None, WireKeywordMode::Present)));
    }
}
