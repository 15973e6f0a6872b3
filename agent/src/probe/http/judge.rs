//! The verdict on a response. Free of IO.

use parallax_protocol::{
    check::{HttpCheck, KeywordMode},
    result::{Failure, Outcome},
};

use crate::probe::facts::Trouble;

/// The final response, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its status.
    pub(super) status: u16,
    /// Result of the keyword search, if there was one.
    pub(super) keyword: Option<Search>,
}

/// Result of the keyword search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// It is there.
    Found,
    /// It is not in the whole body.
    Missing,
    /// It is not in the part of the body that was read.
    MissingSoFar,
    /// The body's coding can't be decoded.
    Encoded,
}

/// Returns true if redirects are followed, that is, unless the check expects one.
pub(super) fn follows_redirects(check: &HttpCheck) -> bool {
    !check.expect_status.is_some_and(|status| (300..400).contains(&status))
}

/// Returns true if this check may have to read a body.
pub(super) fn reads_bodies(check: &HttpCheck) -> bool {
    check.keyword.as_deref().is_some_and(|word| !word.is_empty())
}

/// Returns the keyword to search in the body of a response with this status; `None` if the status alone
/// decides.
pub(super) fn keyword_needed(check: &HttpCheck, status: u16) -> Option<&str> {
    check.keyword.as_deref().filter(|word| !word.is_empty() && status_fits(check, status))
}

/// Judges the response, or the reason why there is none.
pub(super) fn judge(check: &HttpCheck, seen: Result<Seen, Trouble>) -> Outcome {
    match seen {
        Err(trouble) => trouble.into(),
        Ok(Seen { status, .. }) if !status_fits(check, status) => {
            Outcome::Failed(Failure::UnexpectedStatus { got: status })
        }
        Ok(Seen { keyword: None, .. }) => Outcome::Passed,
        Ok(Seen { keyword: Some(search), .. }) => match (search, check.keyword_mode) {
            (Search::Found, KeywordMode::Present)
            | (Search::Missing | Search::MissingSoFar, KeywordMode::Absent) => Outcome::Passed,
            (Search::Found, KeywordMode::Absent) => Outcome::Failed(Failure::KeywordPresent),
            (Search::Missing, KeywordMode::Present) => Outcome::Failed(Failure::KeywordMissing),
            (Search::MissingSoFar, KeywordMode::Present) => Outcome::Failed(Failure::BodyTooLarge),
            (Search::Encoded, KeywordMode::Present | KeywordMode::Absent) => {
                Outcome::Failed(Failure::BodyUndecodable)
            }
        },
    }
}

fn status_fits(check: &HttpCheck, status: u16) -> bool {
    match check.expect_status {
        Some(expected) => status == expected,
        None => (200..300).contains(&status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::check::Method;

    fn check(expect_status: Option<u16>, keyword_mode: KeywordMode) -> HttpCheck {
        HttpCheck {
            url: "http://example.com/".to_owned(),
            method: Method::Get,
            headers: Vec::new(),
            body: None,
            expect_status,
            keyword: Some("fine".to_owned()),
            keyword_mode,
        }
    }

    fn verdict(check: &HttpCheck, status: u16, keyword: Option<Search>) -> Outcome {
        judge(check, Ok(Seen { status, keyword }))
    }

    #[test]
    fn any_2xx_passes_unless_one_status_is_expected() {
        let any = check(None, KeywordMode::Present);
        for (status, fits) in
            [(199, false), (200, true), (204, true), (299, true), (300, false), (500, false)]
        {
            assert_eq!(verdict(&any, status, None) == Outcome::Passed, fits, "{status}");
        }
        let exact = check(Some(503), KeywordMode::Present);
        assert_eq!(verdict(&exact, 503, None), Outcome::Passed);
        assert_eq!(verdict(&exact, 200, None), Outcome::Failed(Failure::UnexpectedStatus { got: 200 }));
    }

    #[test]
    fn the_status_speaks_before_the_keyword() {
        let any = check(None, KeywordMode::Present);
        assert_eq!(keyword_needed(&any, 500), None);
        assert_eq!(keyword_needed(&any, 200), Some("fine"));
        assert_eq!(
            verdict(&any, 500, Some(Search::Found)),
            Outcome::Failed(Failure::UnexpectedStatus { got: 500 })
        );
    }

    #[test]
    fn a_keyword_is_judged_by_its_mode() {
        let present = check(None, KeywordMode::Present);
        let absent = check(None, KeywordMode::Absent);
        for (search, if_present, if_absent) in [
            (Search::Found, Outcome::Passed, Outcome::Failed(Failure::KeywordPresent)),
            (Search::Missing, Outcome::Failed(Failure::KeywordMissing), Outcome::Passed),
            (Search::MissingSoFar, Outcome::Failed(Failure::BodyTooLarge), Outcome::Passed),
            (
                Search::Encoded,
                Outcome::Failed(Failure::BodyUndecodable),
                Outcome::Failed(Failure::BodyUndecodable),
            ),
        ] {
            assert_eq!(verdict(&present, 200, Some(search)), if_present);
            assert_eq!(verdict(&absent, 200, Some(search)), if_absent);
        }
    }

    #[test]
    fn a_check_that_expects_a_redirect_does_not_follow_it() {
        assert!(!follows_redirects(&check(Some(301), KeywordMode::Present)));
        assert!(follows_redirects(&check(Some(200), KeywordMode::Present)));
        assert!(follows_redirects(&check(None, KeywordMode::Present)));
    }
}
