//! Quarantine of vantages: a vantage that other networks keep contradicting is not trusted until it agrees again.
//!
//! Every round with outcomes from two or three vantages judges each of them. Of three, the odd one out is
//! contradicted, by two networks at once; of two that disagree, the one that saw the failure is. So the rules detect
//! a vantage that passes every check (behind a captive portal or an intercepting proxy) as well as one that fails
//! every check.

mod contradictions;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::event::RoundReport;
use crate::id::AccountId;
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Mesh, VantageNo};

use contradictions::{find_contradictions, judgements};

/// Window in milliseconds over which a vantage's outcomes are compared.
const WINDOW: i64 = MINUTE;
/// Minimum number of outcomes in the window before a vantage can be quarantined.
const MIN_OUTCOMES: usize = 5;
/// Minimum number of distinct targets among the contradicted outcomes.
const MIN_TARGETS: usize = 3;
/// Minimum number of distinct accounts among those targets, if that many have monitors. A customer can make their own
/// site respond differently to one agent, and must not be able to remove it for everyone else.
const MIN_ACCOUNTS: usize = 3;
/// Minimum number of other networks, and of vantages on them, that must contradict it, if the mesh has that many.
const MIN_WITNESSES: usize = 2;
/// One of this many vantages may be in quarantine.
const VANTAGES_PER_QUARANTINED: usize = 3;
/// Number of agreeing outcomes that end a quarantine immediately.
const AGREEMENTS_TO_RELEASE: u32 = 10;
/// Milliseconds without a dispute after which fewer agreeing outcomes suffice.
const CALM_PERIOD: i64 = 5 * MINUTE;
/// Age in milliseconds up to which a shadow round counts.
const MAX_SHADOW_AGE: i64 = 2 * MINUTE;
/// Number of agreeing outcomes that suffice after [`CALM_PERIOD`].
const AGREEMENTS_AFTER_CALM: u32 = 3;
/// Maximum number of outcomes stored for one vantage. Judging the newest 256 is as good as judging all of them.
const MAX_OUTCOMES: usize = 256;
/// Maximum number of contradicting vantages named in a report.
const MAX_NAMED: usize = 16;

/// Host that was checked, and the account whose monitor it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckTarget {
    /// Number of the host: any hash of its name.
    pub host: u64,
    /// Account of the monitor.
    pub account: AccountId,
    /// Number of accounts with active monitors at present.
    pub accounts: usize,
}

impl CheckTarget {
    /// Number of accounts that must be affected.
    fn accounts_needed(&self) -> usize {
        MIN_ACCOUNTS.min(self.accounts)
    }
}

/// Contradictions of a vantage's outcomes within the last minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradictions {
    /// Outcomes that other vantages have also judged.
    pub outcomes: u32,
    /// Number of those that were contradicted.
    pub contradicted: u32,
    /// Contradicting vantages, each with a count, most frequent first.
    pub by: Vec<(VantageNo, u32)>,
}

impl Contradictions {
    /// Renders the contradictions as text; `name` returns the name and network of a vantage.
    pub fn describe(&self, name: impl Fn(VantageNo) -> String) -> String {
        let by: Vec<String> = self.by.iter().map(|(vantage, times)| format!("{times} by {}", name(*vantage))).collect();
        format!("{} of {} results contradicted, {}", self.contradicted, self.outcomes, by.join(", "))
    }
}

/// Vantages that others contradict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuspectedVantages {
    /// Vantages in quarantine.
    pub quarantined: BTreeMap<VantageNo, Contradictions>,
    /// Vantages that would be in quarantine if the limit were not reached.
    pub spared: BTreeMap<VantageNo, Contradictions>,
}

/// Change of trust in a vantage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuarantineChange {
    /// Put into quarantine.
    Quarantined(Contradictions),
    /// Due for quarantine, but a third of the vantages are quarantined already: it stays active, and the operator is
    /// alerted.
    Spared(Contradictions),
    /// Released from quarantine.
    Released,
}

/// Trust in every vantage.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    vantages: BTreeMap<VantageNo, TrustRecord>,
    /// Vantages that are contradicted but not quarantined, each with the time of the last contradiction.
    spared: BTreeMap<VantageNo, (Timestamp, Contradictions)>,
}

#[derive(Debug, Clone)]
enum TrustRecord {
    /// Trusted: its outcomes of the last minute.
    Trusted(VecDeque<JudgedOutcome>),
    /// Quarantined since, or last disputed at, `calm_since`; counts agreeing outcomes since then. `disputes` lists
    /// the accounts whose rounds contradicted it during the quarantine, each with the time of the last one.
    Quarantined { calm_since: Timestamp, agreed: u32, found: Contradictions, disputes: Vec<(AccountId, Timestamp)> },
}

/// Outcome of a vantage that other vantages have also judged.
#[derive(Debug, Clone, Copy)]
struct JudgedOutcome {
    at: Timestamp,
    target: CheckTarget,
    /// Vantages that contradicted it; none if they agreed.
    contradicted_by: [Option<VantageNo>; 2],
}

impl JudgedOutcome {
    fn is_contradicted(&self) -> bool {
        self.contradicted_by.iter().any(Option::is_some)
    }
}

impl Quarantine {
    /// Applies a finished round on `target` to each vantage that took part. Returns the vantages whose trust changed.
    pub fn apply_round(
        &mut self,
        report: &RoundReport,
        target: CheckTarget,
        mesh: &Mesh,
        now: Timestamp,
    ) -> Vec<(VantageNo, QuarantineChange)> {
        let judged = judgements(report).into_iter().flatten();
        judged
            .filter_map(|(vantage, against)| {
                let outcome = JudgedOutcome { at: now, target, contradicted_by: against };
                Some((vantage, self.apply_outcome(vantage, outcome, mesh)?))
            })
            .collect()
    }

    /// Returns true if a shadow round of a quarantined vantage counts: it began after the last contradiction and not
    /// too long ago. Results queued before that say nothing about its present condition.
    pub fn counts_shadow_round(&self, vantage: VantageNo, started: Timestamp, now: Timestamp) -> bool {
        match self.vantages.get(&vantage) {
            Some(TrustRecord::Quarantined { calm_since, .. }) => {
                started >= *calm_since && now.since(started) <= MAX_SHADOW_AGE
            }
            Some(TrustRecord::Trusted(_)) | None => false,
        }
    }

    /// Applies a shadow round of a quarantined vantage: whether it agrees with the others.
    pub fn apply_shadow_round(
        &mut self,
        vantage: VantageNo,
        agrees: bool,
        target: CheckTarget,
        now: Timestamp,
    ) -> Option<QuarantineChange> {
        match self.vantages.get_mut(&vantage)? {
            TrustRecord::Trusted(_) => None,
            record @ TrustRecord::Quarantined { .. } => {
                let released = record.apply_while_quarantined(agrees, target, now);
                self.release(vantage, released)
            }
        }
    }

    fn apply_outcome(&mut self, vantage: VantageNo, outcome: JudgedOutcome, mesh: &Mesh) -> Option<QuarantineChange> {
        let now = outcome.at;
        let record = self.vantages.entry(vantage).or_insert_with(|| TrustRecord::Trusted(VecDeque::new()));
        let outcomes = match record {
            TrustRecord::Trusted(outcomes) => outcomes,
            record @ TrustRecord::Quarantined { .. } => {
                let released = record.apply_while_quarantined(!outcome.is_contradicted(), outcome.target, now);
                return self.release(vantage, released);
            }
        };
        remove_expired(outcomes, now);
        if outcomes.len() >= MAX_OUTCOMES {
            outcomes.pop_front();
        }
        outcomes.push_back(outcome);
        // An agreeing outcome never triggers quarantine.
        let needed = outcome.target.accounts_needed();
        let found =
            outcome.is_contradicted().then(|| find_contradictions(outcomes, needed, vantage, mesh)).flatten()?;
        if self.has_capacity(mesh) {
            self.spared.remove(&vantage);
            let record =
                TrustRecord::Quarantined { calm_since: now, agreed: 0, found: found.clone(), disputes: Vec::new() };
            self.vantages.insert(vantage, record);
            return Some(QuarantineChange::Quarantined(found));
        }
        let before = self.spared.insert(vantage, (now, found.clone()));
        before.is_none().then_some(QuarantineChange::Spared(found))
    }

    fn release(&mut self, vantage: VantageNo, released: bool) -> Option<QuarantineChange> {
        released.then(|| {
            self.vantages.remove(&vantage);
            QuarantineChange::Released
        })
    }

    /// Returns true if one more vantage may be quarantined: never more than a third of the connected ones. A
    /// quarantined vantage that is disconnected counts too, since it will reconnect.
    fn has_capacity(&self, mesh: &Mesh) -> bool {
        let vantages = || mesh.vantages().iter();
        let quarantined = vantages().filter(|vantage| vantage.quarantined || self.is_quarantined(vantage.no)).count();
        (quarantined + 1) * VANTAGES_PER_QUARANTINED <= vantages().filter(|vantage| vantage.connected).count()
    }

    /// Returns true if the vantage is in quarantine.
    pub fn is_quarantined(&self, vantage: VantageNo) -> bool {
        matches!(self.vantages.get(&vantage), Some(TrustRecord::Quarantined { .. }))
    }

    /// Vantages that others contradict.
    pub fn suspected(&self) -> SuspectedVantages {
        let quarantined = self.vantages.iter().filter_map(|(vantage, record)| match record {
            TrustRecord::Quarantined { found, .. } => Some((*vantage, found.clone())),
            TrustRecord::Trusted(_) => None,
        });
        let spared = self.spared.iter().map(|(vantage, (_, found))| (*vantage, found.clone()));
        SuspectedVantages { quarantined: quarantined.collect(), spared: spared.collect() }
    }

    /// Time at which [`Quarantine::handle_timeout`] has work to do without another outcome; none if there is no such
    /// time.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let calm = self.vantages.values().filter_map(TrustRecord::release_at);
        calm.chain(self.spared.values().map(|(last, _)| *last + CALM_PERIOD)).min()
    }

    /// Releases the vantages that have agreed often enough and have been undisputed long enough, and removes expired
    /// outcomes. Returns the released vantages.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Vec<VantageNo> {
        let calm = |record: &TrustRecord| record.release_at().is_some_and(|at| now >= at);
        let free = self.vantages.iter().filter(|(_, record)| calm(record)).map(|(vantage, _)| *vantage).collect();
        self.vantages.retain(|_, record| match record {
            TrustRecord::Trusted(outcomes) => {
                remove_expired(outcomes, now);
                !outcomes.is_empty()
            }
            TrustRecord::Quarantined { .. } => !calm(record),
        });
        self.spared.retain(|_, (last, _)| now.since(*last) < CALM_PERIOD);
        free
    }

    /// Removes vantages that are no longer enrolled.
    pub fn retain_enrolled(&mut self, mesh: &Mesh) {
        self.vantages.retain(|vantage, _| mesh.vantage(*vantage).is_some());
        self.spared.retain(|vantage, _| mesh.vantage(*vantage).is_some());
    }
}

impl TrustRecord {
    fn release_at(&self) -> Option<Timestamp> {
        match self {
            Self::Quarantined { calm_since, agreed, .. } if *agreed >= AGREEMENTS_AFTER_CALM => {
                Some(*calm_since + CALM_PERIOD)
            }
            Self::Quarantined { .. } | Self::Trusted(_) => None,
        }
    }

    /// Applies an outcome to a quarantined vantage; returns true if that ends the quarantine. Disputes restart the
    /// waiting time once enough accounts have had one within five minutes: disputes of a single account cannot keep
    /// it in.
    fn apply_while_quarantined(&mut self, agrees: bool, target: CheckTarget, now: Timestamp) -> bool {
        let Self::Quarantined { calm_since, agreed, disputes, .. } = self else { return false };
        if agrees {
            *agreed += 1;
        } else {
            disputes.retain(|(account, at)| *account != target.account && now.since(*at) < CALM_PERIOD);
            disputes.push((target.account, now));
            if disputes.len() >= target.accounts_needed() {
                (*calm_since, *agreed) = (now, 0);
            }
            // Drop the oldest: this many of the newest suffice.
            let surplus = disputes.len().saturating_sub(MIN_ACCOUNTS);
            disputes.drain(..surplus);
        }
        let calm = now.since(*calm_since) >= CALM_PERIOD && *agreed >= AGREEMENTS_AFTER_CALM;
        *agreed >= AGREEMENTS_TO_RELEASE || calm
    }
}

fn remove_expired(outcomes: &mut VecDeque<JudgedOutcome>, now: Timestamp) {
    while outcomes.front().is_some_and(|outcome| now.since(outcome.at) > WINDOW) {
        outcomes.pop_front();
    }
}

#[cfg(test)]
mod tests;
