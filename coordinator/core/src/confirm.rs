//! Confirmation rules: which vantage on another network confirms a failure, how long it may take and what its outcome
//! means; and which vantage on a third network decides if the first two disagree.

use crate::assign::spread;
use crate::check::CheckKind;
use crate::observation::{Outcome, Word};
use crate::place::{Mesh, NetworkNo, Place, PlaceNo, Region};
use crate::time::{SECOND, Timestamp};
use crate::watch::{Confirmation, Watch};

/// Maximum number of vantages tried before a failure stays unconfirmed.
pub const TRIES: usize = 3;
/// Milliseconds a vantage has to respond: ten seconds for the check, two for the network.
pub const PATIENCE: i64 = 12 * SECOND;
/// Milliseconds a vantage has to respond, or to report that the check is pending, if a pass would end an outage.
/// Short, because subscribers should learn of a recovery quickly unless another network contradicts it.
pub const PATIENCE_FOR_A_PASS: i64 = 4 * SECOND;
/// Age in milliseconds, counted from its end, beyond which an arriving failure can no longer be confirmed.
pub const TOO_OLD: i64 = 15 * SECOND;
/// Delay in milliseconds before the same network repeats a check, if there is no other network.
pub const REPEAT_AFTER: i64 = 5 * SECOND;

/// Vantage that may confirm a failure now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmer {
    /// A vantage on another network, immediately.
    Other(PlaceNo),
    /// A vantage on the same, only network, after [`REPEAT_AFTER`].
    Same(PlaceNo),
    /// None available.
    Nobody,
}

/// Failure that needs confirmation.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// Region of the round.
    pub region: Region,
    /// Vantage that saw it.
    pub place: PlaceNo,
    /// Network of that vantage.
    pub network: NetworkNo,
    /// Start of the round.
    pub started: Timestamp,
    /// Vantages already tried.
    pub asked: &'a [PlaceNo],
}

/// Chooses the confirming vantage: on another network in the same region, otherwise on another network anywhere; for
/// a pinned monitor only within its region. Vantages whose host is fit come first; unfit ones are tried only while
/// two networks are fit. With one fit network, failures stay unconfirmed or are repeated. Vantages rotate from round
/// to round, so that no single one takes all probe requests.
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
        // A host reported as unfit may still reach this target. If it cannot, it says so.
        fit = mesh.fit().filter(is_other).collect();
    }
    choose(watch, suspect, fit).map_or(Confirmer::Nobody, Confirmer::Other)
}

/// Chooses the vantage that decides a dispute: on neither the network that failed nor that of `second`, which passed.
/// The order of preference is as for the second opinion, but vantages on unfit hosts are excluded.
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

/// Picks one of these vantages: within the round's region if possible, otherwise, unless pinned, from all of them.
fn choose(watch: &Watch, suspect: Suspect<'_>, fit: Vec<&Place>) -> Option<PlaceNo> {
    let near: Vec<&Place> = fit.iter().copied().filter(|place| place.region == suspect.region).collect();
    let choice = if near.is_empty() && watch.pinned.is_none() { fit } else { near };
    let seconds = suspect.started.as_millis().unsigned_abs() / 1000;
    // Monitors of one domain fail together: one vantage's single registry lookup confirms them all.
    let turn = match watch.kind {
        CheckKind::Domain => seconds / 60,
        _ => spread(watch.monitor).wrapping_add(seconds),
    };
    let index = usize::try_from(turn % choice.len().max(1) as u64).unwrap_or(0);
    choice.get(index).map(|place| place.no)
}

/// Returns true if a failure of the monitor could be confirmed by the vantages available now.
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

/// Returns true if a pass in `region` on `network` could be outvoted: two other networks can confirm, one of them in
/// that region, since a target may have recovered there only. For a pinned monitor, all must be in its region.
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

/// Outcome of a failed round, given the second vantage's outcome; none if that is inconclusive and the next must be
/// tried.
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
