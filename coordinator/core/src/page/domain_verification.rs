//! Verification of a custom domain: the times of DNS look-ups, and the judgement of their results.

use crate::page::domain::DomainClaim;
use crate::time::{DAY, HOUR, SECOND, Timestamp};

/// Milliseconds for which a hostname is looked up automatically; later only on request.
pub const AUTOMATIC_FOR: i64 = 7 * DAY;
/// Bounds of the delay between two look-ups, which grows with the age of the claim.
const SHORTEST: i64 = 20 * SECOND;
const LONGEST: i64 = 6 * HOUR;
/// Maximum length of a foreign record that is quoted to the owner, in characters.
const MAX_QUOTED: usize = 100;

/// The reason for which no record was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupFailure {
    /// The name servers responded that there is none.
    NoRecord,
    /// The name servers responded with an error.
    ServerError,
    /// The name servers did not respond.
    NoResponse,
    /// The look-up could not be made: the problem is on our side.
    Internal,
}

/// Time of the next look-up; none once the automatic look-ups are over.
pub fn next_lookup(claim: &DomainClaim) -> Option<Timestamp> {
    let last = claim.claimed_at + AUTOMATIC_FOR;
    let next = match claim.checked_at {
        None => claim.claimed_at,
        Some(checked) if checked >= last => return None,
        Some(checked) => {
            let waited = checked.since(claim.claimed_at).clamp(SHORTEST, LONGEST);
            Timestamp::from_millis((checked + waited).as_millis().min(last.as_millis()))
        }
    };
    Some(next)
}

/// Judges a look-up made at `now`, one of those that are automatic at first.
///
/// # Errors
/// The reason for which it proves no ownership, in words for the owner.
pub fn verify(claim: &DomainClaim, found: Result<&[String], LookupFailure>, now: Timestamp) -> Result<(), String> {
    let is_over = now.since(claim.claimed_at) >= AUTOMATIC_FOR;
    verify_on_request(claim, found).map_err(|problem| match is_over {
        true => format!("{problem}; automatic look-ups ended after seven days, and only a manual check looks again"),
        false => problem,
    })
}

/// Judges a look-up of a name that is looked up on request alone.
///
/// # Errors
/// As [`verify`].
pub fn verify_on_request(claim: &DomainClaim, found: Result<&[String], LookupFailure>) -> Result<(), String> {
    let (name, value) = (claim.record_name(), claim.record_value());
    let problem = match found {
        Ok(records) if records.iter().any(|record| record.trim() == value) => return Ok(()),
        Ok(records) => match records.first() {
            Some(other) => {
                let other: String = other.chars().filter(|c| !c.is_control()).take(MAX_QUOTED).collect();
                format!("the TXT record of {name} has another value: {other:?}")
            }
            None => no_record_message(&name),
        },
        Err(LookupFailure::NoRecord) => no_record_message(&name),
        Err(LookupFailure::ServerError) => format!("the name servers of {} returned an error", claim.host),
        Err(LookupFailure::NoResponse) => format!("the name servers of {} did not respond", claim.host),
        Err(LookupFailure::Internal) => "the look-up failed because of a problem on our side".to_owned(),
    };
    Err(problem)
}

fn no_record_message(name: &str) -> String {
    format!("there is no TXT record at {name} yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis)
    }

    fn claim(checked: Option<i64>) -> DomainClaim {
        let claim = DomainClaim::new("status.shop.example".to_owned(), "abc".to_owned(), at(0));
        DomainClaim { checked_at: checked.map(at), ..claim }
    }

    #[test]
    fn lookups_are_immediate_then_rarer_and_end_after_seven_days() {
        let mut looks = 0;
        let mut checked = None;
        let mut pauses = Vec::new();
        while let Some(next) = next_lookup(&claim(checked)) {
            let next = next.since(at(0));
            pauses.push(next - checked.unwrap_or(0));
            checked = Some(next);
            looks += 1;
        }
        assert_eq!(pauses[..5], [0, 20_000, 20_000, 40_000, 80_000]);
        assert!(pauses.iter().all(|pause| *pause <= LONGEST));
        assert_eq!((checked, looks < 60), (Some(AUTOMATIC_FOR), true), "{looks}");
    }

    #[test]
    fn only_the_exact_value_verifies_and_other_results_are_explained() {
        let claim = claim(None);
        let (value, other) = (claim.record_value(), "v=spf1 -all".to_owned());
        let say = |found: Result<&[String], LookupFailure>, now| verify(&claim, found, at(now)).unwrap_err();
        assert_eq!(verify(&claim, Ok(&[other, format!("{value} ")]), at(0)), Ok(()));
        let near = format!("{value}0");
        assert!(say(Ok(&[near]), 0).contains("has another value"));
        assert!(say(Ok(&["x\u{7}".repeat(500)]), 0).chars().count() < 220);
        assert_eq!(say(Ok(&[]), 0), say(Err(LookupFailure::NoRecord), 0));
        assert!(say(Err(LookupFailure::NoRecord), 0).starts_with("there is no TXT record at _parallax-challenge."));
        assert!(say(Err(LookupFailure::ServerError), 0).ends_with("returned an error"));
        assert!(say(Err(LookupFailure::Internal), 0).ends_with("on our side"));
        assert!(say(Err(LookupFailure::NoResponse), AUTOMATIC_FOR - 1).ends_with("did not respond"));
        assert!(say(Err(LookupFailure::NoResponse), AUTOMATIC_FOR).ends_with("only a manual check looks again"));
        // Where nothing is looked up automatically, nothing ends.
        assert!(verify_on_request(&claim, Err(LookupFailure::NoResponse)).unwrap_err().ends_with("did not respond"));
        // Neither another token nor another name.
        let others = DomainClaim { token: "abd".to_owned(), ..claim.clone() };
        assert!(verify(&others, Ok(&[value]), at(0)).is_err());
    }
}
