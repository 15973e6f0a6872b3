//! Quarantine of vantages: a vantage that other networks keep contradicting is not trusted until it agrees again.
//!
//! Every round with outcomes from two or three vantages judges each of them. Of three, the odd one out is
//! contradicted, by two networks at once; of two that disagree, the one that saw the failure is. So the rules detect
//! a vantage that passes every check (behind a captive portal or an intercepting proxy) as well as one that fails
//! every check.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::event::{Reason, RoundReport};
use crate::id::AccountId;
use crate::observation::{self, Outcome};
use crate::place::{Mesh, NetworkNo, Place, PlaceNo};
use crate::time::{MINUTE, Timestamp};

/// Window in milliseconds over which a vantage's outcomes are compared.
const WINDOW: i64 = MINUTE;
/// Minimum number of outcomes in the window before a vantage can be quarantined.
const WORDS: usize = 5;
/// Minimum number of distinct targets among the contradicted outcomes.
const TARGETS: usize = 3;
/// Minimum number of distinct accounts among those targets, if that many have monitors. A customer can make their own
/// site respond differently to one agent, and must not be able to remove it for everyone else.
const ACCOUNTS: usize = 3;
/// Minimum number of other networks, and of vantages on them, that must contradict it, if the mesh has that many.
const WITNESSES: usize = 2;
/// One of this many vantages may be in quarantine.
const PLACES_FOR_ONE: usize = 3;
/// Number of agreeing outcomes that end a quarantine immediately.
const AGREED: u32 = 10;
/// Milliseconds without a dispute after which fewer agreeing outcomes suffice.
const CALM: i64 = 5 * MINUTE;
/// Age in milliseconds up to which a shadow round counts.
const FRESH: i64 = 2 * MINUTE;
/// Number of agreeing outcomes that suffice after [`CALM`].
const AGREED_IN_CALM: u32 = 3;
/// Maximum number of outcomes stored for one vantage. Judging the newest 256 is as good as judging all of them.
const KEPT: usize = 256;
/// Maximum number of contradicting vantages named in a report.
const NAMED: usize = 16;

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
        ACCOUNTS.min(self.accounts)
    }
}

/// Contradictions of a vantage's outcomes within the last minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradictions {
    /// Outcomes that other vantages have also judged.
    pub words: u32,
    /// Number of those that were contradicted.
    pub contradicted: u32,
    /// Contradicting vantages, each with a count, most frequent first.
    pub by: Vec<(PlaceNo, u32)>,
}

impl Contradictions {
    /// Renders the contradictions as text; `name` returns the name and network of a vantage.
    pub fn words(&self, name: impl Fn(PlaceNo) -> String) -> String {
        let by: Vec<String> =
            self.by.iter().map(|(place, times)| format!("{times} by {}", name(*place))).collect();
        format!("{} of {} results contradicted, {}", self.contradicted, self.words, by.join(", "))
    }
}

/// Vantages that others contradict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspects {
    /// Vantages in quarantine.
    pub held: BTreeMap<PlaceNo, Contradictions>,
    /// Vantages that would be in quarantine if the limit were not reached.
    pub spared: BTreeMap<PlaceNo, Contradictions>,
}

/// Change of trust in a vantage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Put into quarantine.
    Held(Contradictions),
    /// Due for quarantine, but a third of the vantages are quarantined already: it stays active, and the operator is
    /// alerted.
    Spared(Contradictions),
    /// Released from quarantine.
    Released,
}

/// Trust in every vantage.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    places: BTreeMap<PlaceNo, Record>,
    /// Vantages that are contradicted but not quarantined, each with the time of the last contradiction.
    spared: BTreeMap<PlaceNo, (Timestamp, Contradictions)>,
}

#[derive(Debug, Clone)]
enum Record {
    /// Trusted: its outcomes of the last minute.
    Free(VecDeque<Said>),
    /// Quarantined since, or last disputed at, `calm_since`; counts agreeing outcomes since then. `disputes` lists
    /// the accounts whose rounds contradicted it during the quarantine, each with the time of the last one.
    Held { calm_since: Timestamp, agreed: u32, found: Contradictions, disputes: Vec<(AccountId, Timestamp)> },
}

/// Outcome of a vantage that other vantages have also judged.
#[derive(Debug, Clone, Copy)]
struct Said {
    at: Timestamp,
    target: CheckTarget,
    /// Vantages that contradicted it; none if they agreed.
    against: [Option<PlaceNo>; 2],
}

impl Said {
    fn is_contradicted(&self) -> bool {
        self.against.iter().any(Option::is_some)
    }
}

impl Quarantine {
    /// Applies a finished round on `target` to each vantage that took part. Returns the vantages whose trust changed.
    pub fn hear_round(
        &mut self,
        report: &RoundReport,
        target: CheckTarget,
        mesh: &Mesh,
        now: Timestamp,
    ) -> Vec<(PlaceNo, Turn)> {
        let judged = judgements(report).into_iter().flatten();
        judged
            .filter_map(|(place, against)| {
                let said = Said { at: now, target, against };
                Some((place, self.hear(place, said, mesh)?))
            })
            .collect()
    }

    /// Returns true if a shadow round of a quarantined vantage counts: it began after the last contradiction and not
    /// too long ago. Results queued before that say nothing about its present condition.
    pub fn is_fresh(&self, place: PlaceNo, started: Timestamp, now: Timestamp) -> bool {
        match self.places.get(&place) {
            Some(Record::Held { calm_since, .. }) => started >= *calm_since && now.since(started) <= FRESH,
            Some(Record::Free(_)) | None => false,
        }
    }

    /// Applies a shadow round of a quarantined vantage: whether it agrees with the others.
    pub fn hear_shadow(
        &mut self,
        place: PlaceNo,
        agrees: bool,
        target: CheckTarget,
        now: Timestamp,
    ) -> Option<Turn> {
        match self.places.get_mut(&place)? {
            Record::Free(_) => None,
            held @ Record::Held { .. } => {
                let released = held.hear_held(agrees, target, now);
                self.release(place, released)
            }
        }
    }

    fn hear(&mut self, place: PlaceNo, said: Said, mesh: &Mesh) -> Option<Turn> {
        let now = said.at;
        let record = self.places.entry(place).or_insert_with(|| Record::Free(VecDeque::new()));
        let words = match record {
            Record::Free(words) => words,
            held @ Record::Held { .. } => {
                let released = held.hear_held(!said.is_contradicted(), said.target, now);
                return self.release(place, released);
            }
        };
        forget(words, now);
        if words.len() >= KEPT {
            words.pop_front();
        }
        words.push_back(said);
        // An agreeing outcome never triggers quarantine.
        let needed = said.target.accounts_needed();
        let found = said.is_contradicted().then(|| found(words, needed, place, mesh)).flatten()?;
        if self.has_room(mesh) {
            self.spared.remove(&place);
            let held =
                Record::Held { calm_since: now, agreed: 0, found: found.clone(), disputes: Vec::new() };
            self.places.insert(place, held);
            return Some(Turn::Held(found));
        }
        let before = self.spared.insert(place, (now, found.clone()));
        before.is_none().then_some(Turn::Spared(found))
    }

    fn release(&mut self, place: PlaceNo, released: bool) -> Option<Turn> {
        released.then(|| {
            self.places.remove(&place);
            Turn::Released
        })
    }

    /// Returns true if one more vantage may be quarantined: never more than a third of the connected ones. A
    /// quarantined vantage that is disconnected counts too, since it will reconnect.
    fn has_room(&self, mesh: &Mesh) -> bool {
        let places = || mesh.places().iter();
        let held = places().filter(|place| place.quarantined || self.is_quarantined(place.no)).count();
        (held + 1) * PLACES_FOR_ONE <= places().filter(|place| place.connected).count()
    }

    /// Returns true if the vantage is in quarantine.
    pub fn is_quarantined(&self, place: PlaceNo) -> bool {
        matches!(self.places.get(&place), Some(Record::Held { .. }))
    }

    /// Vantages that others contradict.
    pub fn suspects(&self) -> Suspects {
        let held = self.places.iter().filter_map(|(place, record)| match record {
            Record::Held { found, .. } => Some((*place, found.clone())),
            Record::Free(_) => None,
        });
        let spared = self.spared.iter().map(|(place, (_, found))| (*place, found.clone()));
        Suspects { held: held.collect(), spared: spared.collect() }
    }

    /// Time at which [`Quarantine::handle_timeout`] has work to do without another outcome; none if there is no such
    /// time.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let calm = self.places.values().filter_map(Record::calm_at);
        calm.chain(self.spared.values().map(|(last, _)| *last + CALM)).min()
    }

    /// Releases the vantages that have agreed often enough and have been undisputed long enough, and removes expired
    /// outcomes. Returns the released vantages.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Vec<PlaceNo> {
        let calm = |record: &Record| record.calm_at().is_some_and(|at| now >= at);
        let free = self.places.iter().filter(|(_, record)| calm(record)).map(|(place, _)| *place).collect();
        self.places.retain(|_, record| match record {
            Record::Free(words) => {
                forget(words, now);
                !words.is_empty()
            }
            Record::Held { .. } => !calm(record),
        });
        self.spared.retain(|_, (last, _)| now.since(*last) < CALM);
        free
    }

    /// Removes vantages that are no longer enrolled.
    pub fn forget_others(&mut self, mesh: &Mesh) {
        self.places.retain(|place, _| mesh.place(*place).is_some());
        self.spared.retain(|place, _| mesh.place(*place).is_some());
    }
}

impl Record {
    fn calm_at(&self) -> Option<Timestamp> {
        match self {
            Self::Held { calm_since, agreed, .. } if *agreed >= AGREED_IN_CALM => Some(*calm_since + CALM),
            Self::Held { .. } | Self::Free(_) => None,
        }
    }

    /// Applies an outcome to a quarantined vantage; returns true if that ends the quarantine. Disputes restart the
    /// waiting time once enough accounts have had one within five minutes: disputes of a single account cannot keep
    /// it in.
    fn hear_held(&mut self, agrees: bool, target: CheckTarget, now: Timestamp) -> bool {
        let Self::Held { calm_since, agreed, disputes, .. } = self else { return false };
        if agrees {
            *agreed += 1;
        } else {
            disputes.retain(|(account, at)| *account != target.account && now.since(*at) < CALM);
            disputes.push((target.account, now));
            if disputes.len() >= target.accounts_needed() {
                (*calm_since, *agreed) = (now, 0);
            }
            // Drop the oldest: this many of the newest suffice.
            let surplus = disputes.len().saturating_sub(ACCOUNTS);
            disputes.drain(..surplus);
        }
        let calm = now.since(*calm_since) >= CALM && *agreed >= AGREED_IN_CALM;
        *agreed >= AGREED || calm
    }
}

fn forget(words: &mut VecDeque<Said>, now: Timestamp) {
    while words.front().is_some_and(|said| now.since(said.at) > WINDOW) {
        words.pop_front();
    }
}

/// Decides whether a vantage is contradicted enough for quarantine: more than half of at least five outcomes, over at
/// least three targets of as many accounts. So a vantage is not blamed if one site or one customer has trouble with
/// one network, however many others failed for everyone meanwhile. One account counts for at most as many
/// contradictions as all others together. Two other networks must contradict it, and two vantages on them, if there
/// are that many: a single one may itself be wrong.
fn found(words: &VecDeque<Said>, accounts: usize, place: PlaceNo, mesh: &Mesh) -> Option<Contradictions> {
    let contradicted = || words.iter().filter(|said| said.is_contradicted());
    let all = contradicted().count();
    let (by_accounts, most) = by_account(contradicted());
    let count = if accounts > 1 { all.min((all - most) * 2) } else { all };
    let heard = words.len() - all + count;
    if by_accounts < accounts || heard < WORDS || count * 2 <= heard {
        return None;
    }
    let targets: BTreeSet<u64> = contradicted().map(|said| said.target.host).collect();
    let mut times = BTreeMap::<PlaceNo, u32>::new();
    for other in contradicted().flat_map(|said| said.against).flatten() {
        *times.entry(other).or_default() += 1;
    }
    let own = mesh.place(place)?.network;
    let other = |no: PlaceNo| mesh.place(no).filter(|other| other.network != own);
    let said_so: Vec<&Place> = times.keys().filter_map(|no| other(*no)).collect();
    let there: Vec<&Place> = mesh.confirmers().filter(|place| place.network != own).collect();
    let networks =
        |places: &[&Place]| places.iter().map(|it| it.network).collect::<BTreeSet<NetworkNo>>().len();
    let enough = targets.len() >= TARGETS
        && said_so.len() >= WITNESSES.min(there.len())
        && networks(&said_so) >= WITNESSES.min(networks(&there));
    if !enough {
        return None;
    }
    let mut by: Vec<(PlaceNo, u32)> = times.into_iter().collect();
    by.sort_by_key(|(place, times)| (std::cmp::Reverse(*times), *place));
    by.truncate(NAMED);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Some(Contradictions { words: number(words.len()), contradicted: number(all), by })
}

/// Number of accounts these outcomes belong to, and the count of the account with the most.
fn by_account<'a>(words: impl Iterator<Item = &'a Said>) -> (usize, usize) {
    let mut accounts = BTreeMap::<AccountId, usize>::new();
    for said in words {
        *accounts.entry(said.target.account).or_default() += 1;
    }
    (accounts.len(), accounts.values().max().copied().unwrap_or_default())
}

/// Judges each vantage that took part in a round: lists the vantages that contradicted it, if any.
fn judgements(report: &RoundReport) -> [Option<(PlaceNo, [Option<PlaceNo>; 2])>; 3] {
    use observation::Word::{Disputed, Failed, Inconclusive, Passed, Unconfirmed};
    const AGREED: [Option<PlaceNo>; 2] = [None, None];
    let first = report.first;
    let Some((second, seen)) = report.second.as_ref().filter(|_| report.reason != Reason::Confirm) else {
        return [None; 3];
    };
    let third = report.third.as_deref().map(|(third, _)| *third);
    let agrees = match report.word {
        Failed => matches!(seen, Outcome::Failed(..)),
        Passed => matches!(seen, Outcome::Passed(_)),
        Disputed | Unconfirmed | Inconclusive => false,
    };
    match report.word {
        Disputed => [
            Some((first, [Some(*second), third])),
            // Two that disagree say nothing about the second.
            third.map(|_| (*second, AGREED)),
            third.map(|third| (third, AGREED)),
        ],
        // While a region is down, failures are not confirmed; that says nothing about the vantage.
        Failed | Passed if agrees => [
            Some((first, AGREED)),
            Some((*second, AGREED)),
            third.map(|third| (third, [Some(first), Some(*second)])),
        ],
        Passed | Failed | Unconfirmed | Inconclusive => [None; 3],
    }
}

#[cfg(test)]
mod tests;
