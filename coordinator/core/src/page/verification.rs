//! When the record of a hostname that was asked for is looked for, and what the answer says.

use crate::page::domain::DomainClaim;
use crate::time::{DAY, HOUR, SECOND, Timestamp};

/// Milliseconds for which a hostname is looked for by itself; later on request alone.
pub const PATIENCE: i64 = 7 * DAY;
/// Pauses between two looks: as long as the owner has waited already, within these.
const SHORTEST: i64 = 20 * SECOND;
const LONGEST: i64 = 6 * HOUR;
/// Characters of somebody's record that are repeated to the owner.
const REPEATED: usize = 100;

/// Why no record was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The name servers say that there is none.
    Absent,
    /// The name servers answer with a fault.
    Fault,
    /// They did not answer.
    Silence,
    /// Nobody could be asked: the trouble is ours.
    Ours,
}

/// When the hostname is looked for next; none once it was for as long as it is by itself.
pub fn next_look(claim: &DomainClaim) -> Option<Timestamp> {
    let last = claim.asked_at + PATIENCE;
    let next = match claim.checked_at {
        None => claim.asked_at,
        Some(checked) if checked >= last => return None,
        Some(checked) => {
            let waited = checked.since(claim.asked_at).clamp(SHORTEST, LONGEST);
            Timestamp::from_millis((checked + waited).as_millis().min(last.as_millis()))
        }
    };
    Some(next)
}

/// Whether what was found shows that the owner asks; else why not, in words for the owner. `now` is when it was found.
///
/// # Errors
/// The words.
pub fn judge(claim: &DomainClaim, found: Result<&[String], Unseen>, now: Timestamp) -> Result<(), String> {
    let (name, value) = (claim.record_name(), claim.record_value());
    let words = match found {
        Ok(records) if records.iter().any(|record| record.trim() == value) => return Ok(()),
        Ok(records) => match records.first() {
            Some(other) => {
                let other: String = other.chars().filter(|c| !c.is_control()).take(REPEATED).collect();
                format!("the TXT record of {name} has another value: {other:?}")
            }
            None => absent(&name),
        },
        Err(Unseen::Absent) => absent(&name),
        Err(Unseen::Fault) => format!("the name servers of {} answered with a fault", claim.host),
        Err(Unseen::Silence) => format!("the name servers of {} did not answer", claim.host),
        Err(Unseen::Ours) => "it could not be looked for just now; the trouble is on our side".to_owned(),
    };
    let is_over = now.since(claim.asked_at) >= PATIENCE;
    Err(if is_over {
        format!("{words}; it was looked for during seven days and is now looked for on request alone")
    } else {
        words
    })
}

fn absent(name: &str) -> String {
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
    fn looks_come_at_once_then_ever_more_seldom_and_end_after_seven_days() {
        let mut looks = 0;
        let mut checked = None;
        let mut pauses = Vec::new();
        while let Some(next) = next_look(&claim(checked)) {
            let next = next.since(at(0));
            pauses.push(next - checked.unwrap_or(0));
            checked = Some(next);
            looks += 1;
        }
        assert_eq!(pauses[..5], [0, 20_000, 20_000, 40_000, 80_000]);
        assert!(pauses.iter().all(|pause| *pause <= LONGEST));
        assert_eq!((checked, looks < 60), (Some(PATIENCE), true), "{looks}");
    }

    #[test]
    fn only_the_very_value_verifies_and_all_else_is_told_in_words() {
        let claim = claim(None);
        let (value, other) = (claim.record_value(), "v=spf1 -all".to_owned());
        let say = |found: Result<&[String], Unseen>, now| judge(&claim, found, at(now)).unwrap_err();
        assert_eq!(judge(&claim, Ok(&[other, format!("{value} ")]), at(0)), Ok(()));
        let near = format!("{value}0");
        assert!(say(Ok(&[near]), 0).contains("has another value"));
        assert!(say(Ok(&["x\u{7}".repeat(500)]), 0).chars().count() < 220);
        assert_eq!(say(Ok(&[]), 0), say(Err(Unseen::Absent), 0));
        assert!(say(Err(Unseen::Absent), 0).starts_with("there is no TXT record at _parallax-challenge."));
        assert!(say(Err(Unseen::Fault), 0).ends_with("answered with a fault"));
        assert!(say(Err(Unseen::Ours), 0).ends_with("on our side"));
        assert!(say(Err(Unseen::Silence), PATIENCE - 1).ends_with("did not answer"));
        assert!(say(Err(Unseen::Silence), PATIENCE).ends_with("on request alone"));
        // Nobody else's token, and nobody else's name.
        let others = DomainClaim { token: "abd".to_owned(), ..claim.clone() };
        assert!(judge(&others, Ok(&[value]), at(0)).is_err());
    }
}
