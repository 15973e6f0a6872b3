//! Detection of a faulty resolver: decides whether names that fail to resolve are at fault, or the mesh's own DNS is.
//!
//! Agents verify that their resolvers work before they report a name as failing. They cannot detect a fault that all
//! of them share: then nearly every name fails at once, wherever it is registered and from every agent. Only failures
//! of names that resolved until then are evidence of that. If results of several accounts are compared, names of two
//! of them must fail: otherwise one account with many non-existent names could hide everyone's outages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use crate::assign::{registrable, stable_hash};
use crate::check::Check;
use crate::event::MonitorStatus;
use crate::id::AccountId;
use crate::observation::{CheckPhase, Failure, ProbeOutcome};
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::vantage::VantageNo;

/// Window in milliseconds over which outcomes are compared: failures within it count as simultaneous.
const WINDOW: i64 = 20 * SECOND;
/// Number of registrable domains that must fail before our DNS is considered faulty.
const MIN_FAILING_DOMAINS: usize = 5;
/// Number of domains compared: the newest outcome of each of the most recent ones.
const MAX_COMPARED_DOMAINS: usize = 10;
/// Milliseconds for which our DNS fault is assumed to last after its last evidence.
const FAULT_DURATION: i64 = MINUTE;
/// Maximum number of outcomes stored.
const MAX_RECORDED: usize = 512;

/// Recent outcomes of checks that had to resolve a name.
#[derive(Debug, Clone, Default)]
pub struct DnsFaultDetector {
    recent: VecDeque<RecordedResolution>,
    fault_until: Option<Timestamp>,
    /// Domains whose failures started or prolonged the present fault. They remain evidence after their monitors go
    /// stale.
    evidence_domains: BTreeSet<u64>,
}

/// Result of resolving a check's host name.
#[derive(Debug, Clone, Copy)]
pub struct NameResolution {
    /// Number of the registrable domain.
    pub domain: u64,
    /// Vantage that resolved it.
    pub vantage: VantageNo,
    /// Account of the monitor.
    pub account: AccountId,
    /// Status of the monitor before this outcome.
    pub status: MonitorStatus,
    /// Set if the name could not be resolved.
    pub failed: bool,
    /// End of the check.
    pub ended: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct RecordedResolution {
    at: Timestamp,
    domain: u64,
    vantage: VantageNo,
    account: AccountId,
    failed: bool,
}

/// Returns whether name resolution failed in an outcome; none if the outcome says nothing about it.
pub fn resolution_failed(outcome: &ProbeOutcome) -> Option<bool> {
    match outcome {
        ProbeOutcome::Passed(_) => Some(false),
        ProbeOutcome::Failed(_, failure) => Some(matches!(
            failure,
            Failure::Timeout(CheckPhase::Dns) | Failure::ResolutionFailed | Failure::NameNotFound
        )),
        ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
    }
}

/// Number of the registrable domain that a check has to resolve; none if there is none.
pub fn domain_of(check: &Check) -> Option<u64> {
    if matches!(check, Check::Heartbeat(_) | Check::Domain(_)) {
        return None;
    }
    let host = check.host();
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (!is_address && !name.is_empty()).then(|| stable_hash(registrable(&name).as_bytes()))
}

impl DnsFaultDetector {
    /// Returns true if no name has failed lately: then passes need not be recorded.
    pub fn is_calm(&self) -> bool {
        self.recent.is_empty() && self.fault_until.is_none()
    }

    /// Returns true while our own DNS is considered faulty: nearly all names fail at once at all vantages.
    pub const fn has_fault(&self) -> bool {
        self.fault_until.is_some()
    }

    /// Records a name resolution. Returns whether a failure is excused (not the name's fault), and whether a fault of
    /// the mesh's own DNS has just begun or ended. Results that an agent queued while disconnected are ignored: they say nothing
    /// about the present.
    pub fn record(&mut self, resolution: &NameResolution, now: Timestamp) -> (bool, bool) {
        if now.since(resolution.ended) > WINDOW {
            return (false, false);
        }
        self.recent.retain(|recorded| (0..=WINDOW).contains(&now.since(recorded.at)));
        let was_ours = self.has_fault();
        if !resolution.failed && self.is_calm() {
            return (false, false);
        }
        if self.is_evidence(resolution) {
            self.record_evidence(resolution, now);
        }
        self.expire(now);
        let is_ours = self.has_fault();
        let is_excused = resolution.failed && is_ours && resolution.status != MonitorStatus::Down;
        (is_excused, is_ours != was_ours)
    }

    /// Returns true if a resolution is evidence: passes are, and failures of names that resolved until then. A name
    /// that never resolved neither starts nor prolongs a fault.
    fn is_evidence(&self, resolution: &NameResolution) -> bool {
        !resolution.failed
            || match resolution.status {
                MonitorStatus::Up | MonitorStatus::Slow => true,
                MonitorStatus::Unknown => self.has_fault() && self.evidence_domains.contains(&resolution.domain),
                MonitorStatus::Down => false,
            }
    }

    fn record_evidence(&mut self, resolution: &NameResolution, now: Timestamp) {
        if self.recent.len() >= MAX_RECORDED {
            self.recent.pop_front();
        }
        let NameResolution { domain, vantage, account, failed, .. } = *resolution;
        self.recent.push_back(RecordedResolution { at: now, domain, vantage, account, failed });
        let (failing, compared) = self.compare();
        let is_ours = failing >= MIN_FAILING_DOMAINS && failing * 10 >= compared * 9;
        if is_ours && self.fails_everywhere() && self.fails_across_accounts() {
            self.fault_until = Some(now + FAULT_DURATION);
            let failing = self.recent.iter().filter(|recorded| recorded.failed).map(|recorded| recorded.domain);
            let free = MAX_RECORDED.saturating_sub(self.evidence_domains.len());
            self.evidence_domains.extend(failing.take(free));
        } else if failing * 2 < compared {
            self.end_fault();
        }
        if self.recent.iter().all(|recorded| !recorded.failed) {
            self.recent.clear();
        }
    }

    fn end_fault(&mut self) {
        self.fault_until = None;
        self.evidence_domains.clear();
    }

    /// Ends a fault that has had no evidence for long enough. Returns true if it ended one.
    pub fn expire(&mut self, now: Timestamp) -> bool {
        let is_over = self.fault_until.is_some_and(|until| !(0..=FAULT_DURATION).contains(&until.since(now)));
        if is_over {
            self.end_fault();
        }
        is_over
    }

    /// Counts the failing and all domains among the newest ones, by the newest outcome of each.
    fn compare(&self) -> (usize, usize) {
        let mut newest: BTreeMap<u64, bool> = BTreeMap::new();
        for recorded in self.recent.iter().rev() {
            if newest.len() >= MAX_COMPARED_DOMAINS && !newest.contains_key(&recorded.domain) {
                break;
            }
            newest.entry(recorded.domain).or_insert(recorded.failed);
        }
        (newest.values().filter(|failed| **failed).count(), newest.len())
    }

    /// Returns true if two vantages or more reported, and each of them a failure last.
    fn fails_everywhere(&self) -> bool {
        let mut vantages = BTreeSet::new();
        let mut failing = BTreeSet::new();
        for recorded in self.recent.iter().rev() {
            if vantages.insert(recorded.vantage) && recorded.failed {
                failing.insert(recorded.vantage);
            }
        }
        vantages.len() >= 2 && failing.len() == vantages.len()
    }

    /// Returns true if all outcomes belong to one account, or names of two accounts failed last.
    fn fails_across_accounts(&self) -> bool {
        let mut newest: BTreeMap<(AccountId, u64), bool> = BTreeMap::new();
        for recorded in self.recent.iter().rev() {
            newest.entry((recorded.account, recorded.domain)).or_insert(recorded.failed);
        }
        let accounts: BTreeSet<AccountId> = newest.keys().map(|(account, _)| *account).collect();
        let failing = newest.iter().filter(|(_, failed)| **failed).map(|((account, _), _)| *account);
        accounts.len() < 2 || failing.collect::<BTreeSet<AccountId>>().len() >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Measurements;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * SECOND)
    }

    fn resolution_of(domain: u64, vantage: u16, failed: bool, ended: Timestamp) -> NameResolution {
        let account = AccountId::from_u128(u128::from(domain % 2));
        NameResolution { domain, vantage: VantageNo(vantage), account, status: MonitorStatus::Up, failed, ended }
    }

    /// Records resolutions by second: domain, vantage, failed. Returns the seconds whose failures were excused.
    fn record_all(names: &mut DnsFaultDetector, recorded: &[(i64, u64, u16, bool)]) -> Vec<i64> {
        record_all_as(names, recorded, |it| it)
    }

    /// The same for resolutions with modified fields.
    fn record_all_as(
        names: &mut DnsFaultDetector,
        recorded: &[(i64, u64, u16, bool)],
        of: impl Fn(NameResolution) -> NameResolution,
    ) -> Vec<i64> {
        let record_all = |(second, domain, vantage, failed): &(i64, u64, u16, bool)| {
            let resolution = of(resolution_of(*domain, *vantage, *failed, at(*second)));
            let (ours, _) = names.record(&resolution, at(*second));
            ours.then_some(*second)
        };
        recorded.iter().filter_map(record_all).collect()
    }

    /// Names, each in its own domain, that fail within that second at three vantages.
    fn storm(second: i64, domains: std::ops::Range<u64>) -> Vec<(i64, u64, u16, bool)> {
        domains.map(|domain| (second, domain, (domain % 3) as u16, true)).collect()
    }

    #[test]
    fn names_that_never_resolved_neither_begin_nor_prolong_a_resolver_fault() {
        for status in [MonitorStatus::Unknown, MonitorStatus::Down] {
            let dead = |it| NameResolution { status, ..it };
            let mut names = DnsFaultDetector::default();
            assert_eq!(record_all_as(&mut names, &storm(0, 0..500), dead), []);
            assert!(names.is_calm(), "they are not recorded");
            // Another name that fails meanwhile is its own fault.
            assert_eq!(record_all(&mut names, &[(1, 1_000, 0, true)]), []);
            // A real fault of our DNS ends a minute after the last evidence, however many dead names are checked.
            assert!(!record_all(&mut names, &storm(2, 2_000..2_020)).is_empty());
            let excused = record_all_as(&mut names, &storm(40, 0..20), dead);
            assert_eq!(excused.len(), if status == MonitorStatus::Unknown { 20 } else { 0 });
            assert_eq!(record_all_as(&mut names, &storm(63, 0..20), dead), [], "{status:?}");
            assert_eq!(record_all(&mut names, &[(64, 1_000, 0, true)]), [], "{status:?}");
        }
    }

    #[test]
    fn a_resolver_fault_lasts_beyond_the_staleness_of_its_monitors() {
        let mut names = DnsFaultDetector::default();
        assert!(!record_all(&mut names, &storm(0, 0..20)).is_empty());
        for minute in 1..10 {
            let stale = |it| NameResolution { status: MonitorStatus::Unknown, ..it };
            let excused = record_all_as(&mut names, &storm(50 * minute, 0..20), stale);
            assert_eq!(excused.len(), 20, "{minute}");
        }
    }

    #[test]
    fn the_names_of_one_account_among_several_are_its_own_fault() {
        let account = |n| move |it| NameResolution { account: AccountId::from_u128(n), ..it };
        let mut names = DnsFaultDetector::default();
        // A name of another account passes once the first have failed, and one of its own fails later.
        record_all_as(&mut names, &storm(0, 0..4), account(7));
        record_all_as(&mut names, &[(0, 1_000, 1, false), (0, 1_000, 2, false)], account(8));
        assert_eq!(record_all_as(&mut names, &storm(1, 4..60), account(7)), []);
        // If an installation has one account, its names are all there is.
        assert!(!record_all_as(&mut DnsFaultDetector::default(), &storm(0, 0..20), account(7)).is_empty());
    }

    #[test]
    fn old_queued_results_are_no_present_failures() {
        let mut names = DnsFaultDetector::default();
        let kept = |it: NameResolution| NameResolution { ended: at(0), ..it };
        assert_eq!(record_all_as(&mut names, &storm(21, 0..100), kept), []);
        assert!(names.is_calm());
        // The present fault does not excuse them either.
        assert!(!record_all(&mut names, &storm(22, 0..20)).is_empty());
        assert_eq!(record_all_as(&mut names, &storm(23, 0..100), kept), []);
    }

    #[test]
    fn names_that_fail_together_at_all_vantages_are_excused() {
        let mut names = DnsFaultDetector::default();
        let storm: Vec<_> = (0_i64..9).map(|n| (n, n.unsigned_abs(), (n % 3) as u16, true)).collect();
        assert_eq!(record_all(&mut names, &storm), [4, 5, 6, 7, 8]);
        // The fault lasts while there are few outcomes, and ends once names resolve again.
        assert_eq!(record_all(&mut names, &[(60, 1, 0, true), (61, 2, 1, false), (62, 3, 1, false)]), [60]);
        assert_eq!(record_all(&mut names, &[(63, 1, 0, true)]), []);
        let mut names = DnsFaultDetector::default();
        assert_eq!(record_all(&mut names, &storm).len(), 5);
        assert_eq!(record_all(&mut names, &[(69, 1, 0, true)]), [], "a minute after it was last seen");
    }

    #[test]
    fn one_domain_few_domains_and_one_vantage_are_not_excused() {
        // Many names of one domain.
        let one: Vec<_> = (0_i64..30).map(|n| (n / 3, 7, (n % 3) as u16, true)).collect();
        assert_eq!(record_all(&mut DnsFaultDetector::default(), &one), []);
        // Four domains, however often they fail.
        let few: Vec<_> = (0_i64..30).map(|n| (n / 3, n.unsigned_abs() % 4, (n % 3) as u16, true)).collect();
        assert_eq!(record_all(&mut DnsFaultDetector::default(), &few), []);
        // One vantage.
        let from_one: Vec<_> = (0_i64..30).map(|n| (n / 3, n.unsigned_abs(), 1, true)).collect();
        assert_eq!(record_all(&mut DnsFaultDetector::default(), &from_one), []);
        // All at one vantage, while the same names resolve at the others.
        let mixed: Vec<_> =
            (0_i64..60).map(|n| (n / 6, n.unsigned_abs() / 2 % 9, (n % 2) as u16, n % 2 == 0)).collect();
        assert_eq!(record_all(&mut DnsFaultDetector::default(), &mixed), []);
    }

    #[test]
    fn a_name_that_failed_for_long_neither_hides_nor_causes_a_resolver_fault() {
        let mut names = DnsFaultDetector::default();
        let calm: Vec<_> = (0_i64..600).map(|n| (n / 10, n.unsigned_abs() % 30, (n % 4) as u16, n % 30 == 0)).collect();
        assert_eq!(record_all(&mut names, &calm), []);
        // Then all of them fail: detected as soon as nine of ten have.
        let storm: Vec<_> = (0_i64..40).map(|n| (60 + n / 10, n.unsigned_abs() % 30, (n % 4) as u16, true)).collect();
        let ours = record_all(&mut names, &storm);
        assert!(ours.len() >= 30 && ours.first().is_some_and(|first| *first <= 61), "{ours:?}");
    }

    #[test]
    fn the_record_is_bounded_and_empty_in_calm_times() {
        let mut names = DnsFaultDetector::default();
        for n in 0..10_000_u64 {
            names.record(&resolution_of(n, 1, false, at(1)), at(1));
        }
        assert!(names.is_calm());
        for n in 0..10_000_u64 {
            names.record(&resolution_of(n, 1, true, at(1)), at(1));
        }
        assert!(names.recent.len() <= MAX_RECORDED);
    }

    #[test]
    fn names_are_those_that_have_to_be_resolved() {
        let tcp = |host: &str| Check::Tcp(crate::check::TcpCheck { host: host.to_owned(), port: 80 });
        assert_eq!(domain_of(&tcp("a.shop.example.com")), domain_of(&tcp("Example.com.")));
        assert_ne!(domain_of(&tcp("example.com")), domain_of(&tcp("example.org")));
        for address in ["192.0.2.1", "[2001:db8::1]", "2001:db8::1"] {
            assert_eq!(domain_of(&tcp(address)), None, "{address}");
        }
        let failed = |failure| resolution_failed(&ProbeOutcome::Failed(Measurements::default(), failure));
        assert_eq!((failed(Failure::NameNotFound), failed(Failure::Refused)), (Some(true), Some(false)));
        assert_eq!(resolution_failed(&ProbeOutcome::Pending), None);
    }
}
