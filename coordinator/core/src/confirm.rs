//! The second-opinion rule: which place on another network is asked about a failure, how long, and what its word means;
//! and which place on a third network decides where the first two contradict each other.

use crate::assign::spread;
use crate::check::CheckKind;
use crate::observation::{Outcome, Word};
use crate::place::{Mesh, NetworkNo, Place, PlaceNo, Region};
use crate::time::{SECOND, Timestamp};
use crate::watch::{Confirmation, Watch};

/// How many places are asked at most before a failure stays unconfirmed.
pub const TRIES: usize = 3;
/// Milliseconds a place has to answer: the check's ten seconds, and two for the way there and back.
pub const PATIENCE: i64 = 12 * SECOND;
/// Milliseconds a place has to answer, or to say that it still waits, where a pass would end an outage: while nobody
/// speaks against it, people learn of a recovery at once.
pub const PATIENCE_FOR_A_PASS: i64 = 4 * SECOND;
/// A failure that arrives so long after it ended, in milliseconds, can't be confirmed any more.
pub const TOO_OLD: i64 = 15 * SECOND;
/// Milliseconds after which the same network repeats a check, where no other network exists.
pub const REPEAT_AFTER: i64 = 5 * SECOND;

/// Who may confirm a failure now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmer {
    /// A place on another network, at once.
    Other(PlaceNo),
    /// A place of the same and only network, after [`REPEAT_AFTER`].
    Same(PlaceNo),
    /// Nobody.
    Nobody,
}

/// A failure that wants a second word.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// Region of the round.
    pub region: Region,
    /// Who saw it.
    pub place: PlaceNo,
    /// The network it was seen from.
    pub network: NetworkNo,
    /// When the round began.
    pub started: Timestamp,
    /// Who was asked already.
    pub asked: &'a [PlaceNo],
}

/// Chooses who confirms: another network in the same region, else another network anywhere; a pinned monitor only
/// within its region. Places whose host is fit to check come first, and others are asked only while two networks are fit:
/// with one, failures stay unconfirmed or are repeated. Places take turns from round to round, so that no neighbour carries
/// all questions.
pub fn confirmer(watch: &Watch, mesh: &Mesh, suspect: Suspect<'_>) -> Confirmer {
    if suspect.asked.len() >= TRIES {
        return Confirmer::Nobody;
    }
    let is_other = |place: &&Place| place.network != suspect.network && !suspect.asked.contains(&place.no);
    let mut fit: Vec<&Place> = mesh.confirmers().filter(is_other).collect();
    if fit.is_empty() {
        if mesh.has_one_network() {
            let repeats = watch.confirmation == Confirmation::Repeat;
            return if repeats { repeater(mesh, suspect) } else { Confirmer::Nobody };
        }
        // A host that is not fit to check may still reach this target. If it can't look, it says so.
        fit = mesh.fit().filter(is_other).collect();
    }
    choose(watch, suspect, fit).map_or(Confirmer::Nobody, Confirmer::Other)
}

/// Chooses who decides a dispute: a place that is neither on the network that failed nor on that of `second`, which
/// passed. The same places come first as for the second word, and none is asked whose host is not fit to check.
pub fn arbiter(watch: &Watch, mesh: &Mesh, suspect: Suspect<'_>, second: PlaceNo) -> Option<PlaceNo> {
    if suspect.asked.len() > TRIES {
        return None;
    }
    let network = mesh.place(second).map(|place| place.network);
    let is_third = |place: &&Place| {
        place.network != suspect.network
            && Some(place.network) != network
            && !suspect.asked.contains(&place.no)
    };
    choose(watch, suspect, mesh.confirmers().filter(is_third).collect())
}

/// One of these places: of the round's region where there are any, else, for a monitor that is not pinned, of all.
fn choose(watch: &Watch, suspect: Suspect<'_>, fit: Vec<&Place>) -> Option<PlaceNo> {
    let near: Vec<&Place> = fit.iter().copied().filter(|place| place.region == suspect.region).collect();
    let choice = if near.is_empty() && watch.pinned.is_none() { fit } else { near };
    let seconds = suspect.started.as_millis().unsigned_abs() / 1000;
    // Monitors of one domain fail together: the same place's one look-up confirms them all.
    let turn = match watch.kind {
        CheckKind::Domain => seconds / 60,
        _ => spread(watch.monitor).wrapping_add(seconds),
    };
    let index = usize::try_from(turn % choice.len().max(1) as u64).unwrap_or(0);
    choice.get(index).map(|place| place.no)
}

/// True where places that are fit to confirm now could confirm a failure of the monitor.
pub fn can_confirm(watch: &Watch, mesh: &Mesh) -> bool {
    if watch.beat.is_some() {
        return true;
    }
    if mesh.has_one_network() {
        return watch.confirmation == Confirmation::Repeat;
    }
    let Some(pinned) = watch.pinned else { return true };
    let mut networks = mesh.confirmers().filter(|place| place.region == pinned).map(|place| place.network);
    let first = networks.next();
    networks.any(|network| Some(network) != first)
}

/// True where a pass in `region` on `network` could be outvoted: two other networks are fit to confirm, one of them in that
/// region, since a target may be back there and nowhere else. All must be in a pinned monitor's region.
pub fn can_be_outvoted(watch: &Watch, mesh: &Mesh, region: Region, network: NetworkNo) -> bool {
    let others = || {
        mesh.confirmers().filter(|place| {
            place.network != network && watch.pinned.is_none_or(|pinned| place.region == pinned)
        })
    };
    let first = others().next().map(|place| place.network);
    let is_near = |place: &Place| place.region == region || !watch.kind.is_regional();
    others().any(|place| Some(place.network) != first) && others().any(is_near)
}

/// What a failed round ends as, given what the second place saw. None: that place has no word, the next is asked.
pub const fn word(second: &Outcome) -> Option<Word> {
    match second {
        Outcome::Passed(_) => Some(Word::Disputed),
        Outcome::Failed(..) => Some(Word::Failed),
        Outcome::Inconclusive(_) | Outcome::Pending => None,
    }
}

fn repeater(mesh: &Mesh, suspect: Suspect<'_>) -> Confirmer {
    let near = |place: &&Place| place.region == suspect.region && !suspect.asked.contains(&place.no);
    let other = mesh.confirmers().filter(near).find(|place| place.no != suspect.place);
    other
        .or_else(|| mesh.confirmers().find(near))
        .map_or(Confirmer::Nobody, |place| Confirmer::Same(place.no))
}
