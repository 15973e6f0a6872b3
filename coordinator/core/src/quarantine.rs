//! Quarantine: which places are contradicted by other networks, and are not believed until they agree again.
//!
//! Every round on which two places or three have spoken judges each of them: of three the odd one is contradicted, by two
//! networks at once; of two that contradict each other it is the one that saw the failure. So a place that passes whatever
//! it checks (behind a captive portal, an intercepting proxy) is found as well as one that fails whatever it checks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::event::{Reason, RoundReport};
use crate::id::AccountId;
use crate::observation::{self, Outcome};
use crate::place::{Mesh, NetworkNo, Place, PlaceNo};
use crate::time::{MINUTE, Timestamp};

/// Milliseconds over which a place's words are looked at.
const WINDOW: i64 = MINUTE;
/// Words in that time before a place can be put into quarantine.
const WORDS: usize = 5;
/// Different targets that the contradicted ones must be of.
const TARGETS: usize = 3;
/// Different accounts that those targets must be of, where so many have monitors: one customer can have a site of theirs
/// answer one agent otherwise than the others, and must not take it from everybody else.
const ACCOUNTS: usize = 3;
/// Other networks, and places on them, that must have contradicted it, where the mesh has so many.
const WITNESSES: usize = 2;
/// Places of which at most one is in quarantine.
const PLACES_FOR_ONE: usize = 3;
/// Agreeing words that let a place out at once.
const AGREED: u32 = 10;
/// Milliseconds without a dispute after which fewer do.
const CALM: i64 = 5 * MINUTE;
/// Milliseconds after its beginning for which a shadow round counts.
const FRESH: i64 = 2 * MINUTE;
/// How many fewer.
const AGREED_IN_CALM: u32 = 3;
/// Words that are kept of one place: the newest. A judgement of the newest 256 is one of them all.
const KEPT: usize = 256;
/// Places that are named as those that contradicted one.
const NAMED: usize = 16;

/// Host that was checked, and the account that had it checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckTarget {
    /// A number for the host: any hash of its name.
    pub host: u64,
    /// Account that the monitor belongs to.
    pub account: AccountId,
    /// How many accounts have monitors that are checked, at this moment.
    pub accounts: usize,
}

impl CheckTarget {
    /// How many accounts must have a say.
    fn accounts_needed(&self) -> usize {
        ACCOUNTS.min(self.accounts)
    }
}

/// Contradictions of a place's words within the last minute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradictions {
    /// Words of it on which others have spoken too.
    pub words: u32,
    /// Those of them that others contradicted.
    pub contradicted: u32,
    /// The places that did, each with how often, the most frequent first.
    pub by: Vec<(PlaceNo, u32)>,
}

impl Contradictions {
    /// The contradictions in words; `name` gives a place's name and network.
    pub fn words(&self, name: impl Fn(PlaceNo) -> String) -> String {
        let by: Vec<String> =
            self.by.iter().map(|(place, times)| format!("{times} by {}", name(*place))).collect();
        format!("{} of {} results contradicted, {}", self.contradicted, self.words, by.join(", "))
    }
}

/// Places that others contradict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspects {
    /// Those in quarantine.
    pub held: BTreeMap<PlaceNo, Contradictions>,
    /// Those that would be in quarantine if not too many were.
    pub spared: BTreeMap<PlaceNo, Contradictions>,
}

/// A change of what is believed of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It is in quarantine from now on.
    Held(Contradictions),
    /// It would be, if a third of the places were not in quarantine with it: it goes on, and the operator is told.
    Spared(Contradictions),
    /// It is out of quarantine.
    Released,
}

/// The record of every place.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    places: BTreeMap<PlaceNo, Record>,
    /// Places that are contradicted and not in quarantine, each with when it last was.
    spared: BTreeMap<PlaceNo, (Timestamp, Contradictions)>,
}

#[derive(Debug, Clone)]
enum Record {
    /// Believed: its words of the last minute.
    Free(VecDeque<Said>),
    /// Not believed since, or since its last dispute: agreeing words since then. Accounts that had it contradicted since
    /// it is in, each with when last.
    Held { calm_since: Timestamp, agreed: u32, found: Contradictions, disputes: Vec<(AccountId, Timestamp)> },
}

/// A word of a place on which others have spoken too.
#[derive(Debug, Clone, Copy)]
struct Said {
    at: Timestamp,
    target: CheckTarget,
    /// Places that contradicted it; none where it was agreed with.
    against: [Option<PlaceNo>; 2],
}

impl Said {
    fn is_contradicted(&self) -> bool {
        self.against.iter().any(Option::is_some)
    }
}

impl Quarantine {
    /// Takes in a round on `target` that is over: what it says of each place that has spoken. Gives the places of which
    /// something else is believed from now on.
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

    /// Checks that a shadow round of a place in quarantine counts: it began since the place was last contradicted, and not
    /// too long ago. What a place had kept from before says nothing of it as it is now.
    pub fn is_fresh(&self, place: PlaceNo, started: Timestamp, now: Timestamp) -> bool {
        match self.places.get(&place) {
            Some(Record::Held { calm_since, .. }) => started >= *calm_since && now.since(started) <= FRESH,
            Some(Record::Free(_)) | None => false,
        }
    }

    /// Takes in a shadow round of a place in quarantine: whether it saw what the others see.
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
        // An agreeing word makes nobody a suspect.
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

    /// True where one more place may be put into quarantine: never more than a third of those that are connected. One in
    /// quarantine that is away counts too: it comes back.
    fn has_room(&self, mesh: &Mesh) -> bool {
        let places = || mesh.places().iter();
        let held = places().filter(|place| place.quarantined || self.is_quarantined(place.no)).count();
        (held + 1) * PLACES_FOR_ONE <= places().filter(|place| place.connected).count()
    }

    /// True where the place is in quarantine.
    pub fn is_quarantined(&self, place: PlaceNo) -> bool {
        matches!(self.places.get(&place), Some(Record::Held { .. }))
    }

    /// The places that others contradict.
    pub fn suspects(&self) -> Suspects {
        let held = self.places.iter().filter_map(|(place, record)| match record {
            Record::Held { found, .. } => Some((*place, found.clone())),
            Record::Free(_) => None,
        });
        let spared = self.spared.iter().map(|(place, (_, found))| (*place, found.clone()));
        Suspects { held: held.collect(), spared: spared.collect() }
    }

    /// When [`Quarantine::handle_timeout`] would change something without another word; none while nothing can.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let calm = self.places.values().filter_map(Record::calm_at);
        calm.chain(self.spared.values().map(|(last, _)| *last + CALM)).min()
    }

    /// Lets out the places that have agreed often enough and been calm for long enough, and forgets what is too old to
    /// count. Says which were let out.
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

    /// Forgets the places that are enrolled no more.
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

    /// A word of a place in quarantine: true where it is out with it. Disputes begin the waiting again once enough accounts
    /// have had one within five minutes: those of one account can't keep it in.
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
            // The oldest goes: of the newest so many are enough.
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

/// More than half of its words, of which there are at least five, are contradicted, over at least three targets of as many
/// accounts: that one site or one customer has trouble with one network is no place's fault, however many others failed for
/// everybody meanwhile. Of the contradicted ones at most as many count of one account as of all others. Two other networks
/// must contradict it, and two places on them, where there are so many: one alone may be the one that is wrong.
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

/// How many accounts these words are of, and how many of them are of the account with most.
fn by_account<'a>(words: impl Iterator<Item = &'a Said>) -> (usize, usize) {
    let mut accounts = BTreeMap::<AccountId, usize>::new();
    for said in words {
        *accounts.entry(said.target.account).or_default() += 1;
    }
    (accounts.len(), accounts.values().max().copied().unwrap_or_default())
}

/// Judges each place that has spoken in a round: by whom it was contradicted, if by anybody.
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
            // Two that contradict each other say nothing of the second.
            third.map(|_| (*second, AGREED)),
            third.map(|third| (third, AGREED)),
        ],
        // While a region is down failures are asked of nobody else: that says nothing of the place.
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
