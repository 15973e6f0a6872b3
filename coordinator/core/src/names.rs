//! Names that nobody can resolve: whether that is the names' fault, or that of the mesh's own name service.
//!
//! Agents make sure that their resolvers are alive before they accuse a name. What they can't see is a fault that all of
//! them share: then nearly every name fails at once, wherever it is registered and from every agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use crate::assign::{registrable, steady_hash};
use crate::check::Check;
use crate::observation::{Failure, Outcome, Phase};
use crate::place::PlaceNo;
use crate::time::{MINUTE, SECOND, Timestamp};

/// Milliseconds over which outcomes are compared: what fails "at once".
const WINDOW: i64 = 20 * SECOND;
/// Registrable domains that must fail before the names are not to blame.
const DOMAINS: usize = 5;
/// Domains that are compared: the newest outcome of each of the newest so many.
const COMPARED: usize = 10;
/// Milliseconds for which a fault of ours is taken to last after it was last seen.
const LASTS: i64 = MINUTE;
/// Outcomes that are remembered: the newest.
const KEPT: usize = 512;

/// Outcomes of checks that had to resolve a name.
#[derive(Debug, Clone, Default)]
pub struct Names {
    seen: VecDeque<Seen>,
    ours_until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Timestamp,
    domain: u64,
    place: PlaceNo,
    failed: bool,
}

/// Reads from an outcome whether resolving the target's name failed; none where the outcome says nothing of that.
pub fn resolution(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Passed(_) => Some(false),
        Outcome::Failed(_, failure) => Some(matches!(
            failure,
            Failure::Timeout(Phase::Dns) | Failure::ResolutionFailed | Failure::NameNotFound
        )),
        Outcome::Inconclusive(_) | Outcome::Pending => None,
    }
}

/// A number for the registrable domain of the name that a check has to resolve; none where it has none to resolve.
pub fn domain_of(check: &Check) -> Option<u64> {
    if matches!(check, Check::Heartbeat(_) | Check::Domain(_)) {
        return None;
    }
    let host = check.host();
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (!is_address && !name.is_empty()).then(|| steady_hash(registrable(&name).as_bytes()))
}

impl Names {
    /// True where no name has failed lately: then passes need not be heard.
    pub fn is_calm(&self) -> bool {
        self.seen.is_empty() && self.ours_until.is_none()
    }

    /// Takes in how the name of a domain was resolved at a place. Gives whether a failure is not the name's, and whether
    /// that is news.
    pub fn hear(&mut self, domain: u64, place: PlaceNo, failed: bool, now: Timestamp) -> (bool, bool) {
        self.seen.retain(|seen| (0..=WINDOW).contains(&now.since(seen.at)));
        let was_ours = self.ours_until.is_some();
        if !failed && self.is_calm() {
            return (false, false);
        }
        if self.seen.len() >= KEPT {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen { at: now, domain, place, failed });
        let (failing, compared) = self.compare();
        if failing >= DOMAINS && failing * 10 >= compared * 9 && self.fails_everywhere() {
            self.ours_until = Some(now + LASTS);
        } else if failing * 2 < compared {
            self.ours_until = None;
        }
        if self.seen.iter().all(|seen| !seen.failed) {
            self.seen.clear();
        }
        self.expire(now);
        let is_ours = self.ours_until.is_some();
        (failed && is_ours, is_ours != was_ours)
    }

    /// Forgets a fault of ours that was not seen for long enough. Gives whether there was one.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let is_over = self.ours_until.is_some_and(|until| !(0..=LASTS).contains(&until.since(now)));
        if is_over {
            self.ours_until = None;
        }
        is_over
    }

    /// Of the newest outcomes of the newest domains: how many fail, and how many there are.
    fn compare(&self) -> (usize, usize) {
        let mut newest: BTreeMap<u64, bool> = BTreeMap::new();
        for seen in self.seen.iter().rev() {
            if newest.len() >= COMPARED && !newest.contains_key(&seen.domain) {
                break;
            }
            newest.entry(seen.domain).or_insert(seen.failed);
        }
        (newest.values().filter(|failed| **failed).count(), newest.len())
    }

    /// True where two places or more saw something, and each of them a failure last.
    fn fails_everywhere(&self) -> bool {
        let mut places = BTreeSet::new();
        let mut failing = BTreeSet::new();
        for seen in self.seen.iter().rev() {
            if places.insert(seen.place) && seen.failed {
                failing.insert(seen.place);
            }
        }
        places.len() >= 2 && failing.len() == places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Facts;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * SECOND)
    }

    /// Hears what comes in each second: domain, place, whether it failed. Gives when a failure was taken for ours.
    fn hear(names: &mut Names, seen: &[(i64, u64, u16, bool)]) -> Vec<i64> {
        let hear = |(second, domain, place, failed): &(i64, u64, u16, bool)| {
            let (ours, _) = names.hear(*domain, PlaceNo(*place), *failed, at(*second));
            ours.then_some(*second)
        };
        seen.iter().filter_map(hear).collect()
    }

    #[test]
    fn nearly_all_names_that_fail_at_once_at_all_places_are_not_to_blame() {
        let mut names = Names::default();
        let storm: Vec<_> = (0_i64..9).map(|n| (n, n.unsigned_abs(), (n % 3) as u16, true)).collect();
        assert_eq!(hear(&mut names, &storm), [4, 5, 6, 7, 8]);
        // It lasts while little is heard, and is over once names are resolved again.
        assert_eq!(hear(&mut names, &[(60, 1, 0, true), (61, 2, 1, false), (62, 3, 1, false)]), [60]);
        assert_eq!(hear(&mut names, &[(63, 1, 0, true)]), []);
        let mut names = Names::default();
        assert_eq!(hear(&mut names, &storm).len(), 5);
        assert_eq!(hear(&mut names, &[(69, 1, 0, true)]), [], "a minute after it was last seen");
    }

    #[test]
    fn one_domain_a_few_and_one_place_are_their_own_fault() {
        // Many names of one domain.
        let one: Vec<_> = (0_i64..30).map(|n| (n / 3, 7, (n % 3) as u16, true)).collect();
        assert_eq!(hear(&mut Names::default(), &one), []);
        // Four domains, whatever else is never heard.
        let few: Vec<_> = (0_i64..30).map(|n| (n / 3, n.unsigned_abs() % 4, (n % 3) as u16, true)).collect();
        assert_eq!(hear(&mut Names::default(), &few), []);
        // One place.
        let place: Vec<_> = (0_i64..30).map(|n| (n / 3, n.unsigned_abs(), 1, true)).collect();
        assert_eq!(hear(&mut Names::default(), &place), []);
        // All at one place, and the same names are well at the others.
        let mixed: Vec<_> =
            (0_i64..60).map(|n| (n / 6, n.unsigned_abs() / 2 % 9, (n % 2) as u16, n % 2 == 0)).collect();
        assert_eq!(hear(&mut Names::default(), &mixed), []);
    }

    #[test]
    fn a_name_that_has_been_dead_for_long_hides_no_fault_and_makes_none() {
        let mut names = Names::default();
        let calm: Vec<_> =
            (0_i64..600).map(|n| (n / 10, n.unsigned_abs() % 30, (n % 4) as u16, n % 30 == 0)).collect();
        assert_eq!(hear(&mut names, &calm), []);
        // Then all of them fail: known as soon as nine of ten have.
        let storm: Vec<_> =
            (0_i64..40).map(|n| (60 + n / 10, n.unsigned_abs() % 30, (n % 4) as u16, true)).collect();
        let ours = hear(&mut names, &storm);
        assert!(ours.len() >= 30 && ours.first().is_some_and(|first| *first <= 61), "{ours:?}");
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_a_calm_time_costs_nothing() {
        let mut names = Names::default();
        for n in 0..10_000_u64 {
            names.hear(n, PlaceNo(1), false, at(1));
        }
        assert!(names.is_calm());
        for n in 0..10_000_u64 {
            names.hear(n, PlaceNo(1), true, at(1));
        }
        assert!(names.seen.len() <= KEPT);
    }

    #[test]
    fn names_are_those_that_have_to_be_resolved() {
        let tcp = |host: &str| Check::Tcp(crate::check::TcpCheck { host: host.to_owned(), port: 80 });
        assert_eq!(domain_of(&tcp("a.shop.example.com")), domain_of(&tcp("Example.com.")));
        assert_ne!(domain_of(&tcp("example.com")), domain_of(&tcp("example.org")));
        for address in ["192.0.2.1", "[2001:db8::1]", "2001:db8::1"] {
            assert_eq!(domain_of(&tcp(address)), None, "{address}");
        }
        let failed = |failure| resolution(&Outcome::Failed(Facts::default(), failure));
        assert_eq!((failed(Failure::NameNotFound), failed(Failure::Refused)), (Some(true), Some(false)));
        assert_eq!(resolution(&Outcome::Pending), None);
    }
}
