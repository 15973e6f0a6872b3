//! Judges the vantages of a round by each other's outcomes, and decides when one is contradicted enough for quarantine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{ProbeReason, RoundReport};
use crate::id::AccountId;
use crate::observation;
use crate::vantage::{Mesh, NetworkNo, Vantage, VantageNo};

use super::{Contradictions, JudgedOutcome, MAX_NAMED, MIN_OUTCOMES, MIN_TARGETS, MIN_WITNESSES};

/// Decides whether a vantage is contradicted enough for quarantine: more than half of at least five outcomes, over at
/// least three targets of as many accounts. So a vantage is not blamed if one site or one customer has trouble with
/// one network, however many others failed for everyone meanwhile. One account counts for at most as many
/// contradictions as all others together. Two other networks must contradict it, and two vantages on them, if there
/// are that many: a single one may itself be wrong.
pub(super) fn find_contradictions(
    outcomes: &VecDeque<JudgedOutcome>,
    accounts: usize,
    vantage: VantageNo,
    mesh: &Mesh,
) -> Option<Contradictions> {
    let contradicted = || outcomes.iter().filter(|outcome| outcome.is_contradicted());
    let all = contradicted().count();
    let (by_accounts, most) = by_account(contradicted());
    let count = if accounts > 1 { all.min((all - most) * 2) } else { all };
    let counted = outcomes.len() - all + count;
    if by_accounts < accounts || counted < MIN_OUTCOMES || count * 2 <= counted {
        return None;
    }
    let targets: BTreeSet<u64> = contradicted().map(|outcome| outcome.target.host).collect();
    let mut times = BTreeMap::<VantageNo, u32>::new();
    for other in contradicted().flat_map(|outcome| outcome.contradicted_by).flatten() {
        *times.entry(other).or_default() += 1;
    }
    let own = mesh.vantage(vantage)?.network;
    let other = |no: VantageNo| mesh.vantage(no).filter(|other| other.network != own);
    let witnesses: Vec<&Vantage> = times.keys().filter_map(|no| other(*no)).collect();
    let possible: Vec<&Vantage> = mesh.confirmers().filter(|vantage| vantage.network != own).collect();
    let networks = |vantages: &[&Vantage]| vantages.iter().map(|it| it.network).collect::<BTreeSet<NetworkNo>>().len();
    let enough = targets.len() >= MIN_TARGETS
        && witnesses.len() >= MIN_WITNESSES.min(possible.len())
        && networks(&witnesses) >= MIN_WITNESSES.min(networks(&possible));
    if !enough {
        return None;
    }
    let mut by: Vec<(VantageNo, u32)> = times.into_iter().collect();
    by.sort_by_key(|(vantage, times)| (std::cmp::Reverse(*times), *vantage));
    by.truncate(MAX_NAMED);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Some(Contradictions { outcomes: number(outcomes.len()), contradicted: number(all), by })
}

/// Number of accounts these outcomes belong to, and the count of the account with the most.
fn by_account<'a>(outcomes: impl Iterator<Item = &'a JudgedOutcome>) -> (usize, usize) {
    let mut accounts = BTreeMap::<AccountId, usize>::new();
    for outcome in outcomes {
        *accounts.entry(outcome.target.account).or_default() += 1;
    }
    (accounts.len(), accounts.values().max().copied().unwrap_or_default())
}

/// Judges each vantage that took part in a round: lists the vantages that contradicted it, if any.
pub(super) fn judgements(report: &RoundReport) -> [Option<(VantageNo, [Option<VantageNo>; 2])>; 3] {
    use observation::RoundOutcome::{Disputed, Failed, Inconclusive, Passed, Unconfirmed};
    const AGREED: [Option<VantageNo>; 2] = [None, None];
    let first = report.first_vantage;
    let Some((second, seen)) = report.second.as_ref().filter(|_| report.reason != ProbeReason::Confirm) else {
        return [None; 3];
    };
    let third = report.third.as_deref().map(|(third, _)| *third);
    let agrees = report.round_outcome.agrees_with(seen);
    match report.round_outcome {
        Disputed => [
            Some((first, [Some(*second), third])),
            // Two that disagree say nothing about the second.
            third.map(|_| (*second, AGREED)),
            third.map(|third| (third, AGREED)),
        ],
        // While a region is down, failures are not confirmed; that says nothing about the vantage.
        Failed | Passed if agrees => {
            [Some((first, AGREED)), Some((*second, AGREED)), third.map(|third| (third, [Some(first), Some(*second)]))]
        }
        Passed | Failed | Unconfirmed | Inconclusive => [None; 3],
    }
}
