//! Confirmation rules: which vantage on another network confirms a failure, how long it may take and what its outcome
//! means; and which vantage on a third network decides if the first two disagree.

use std::collections::BTreeMap;

use crate::assign::monitor_hash;
use crate::check::CheckKind;
use crate::effective::{ConfirmationPolicy, EffectiveSettings};
use crate::observation::{ProbeOutcome, RoundOutcome};
use crate::time::{SECOND, Timestamp};
use crate::vantage::{Mesh, NetworkNo, Region, Vantage, VantageNo};

/// Maximum number of vantages tried before a failure stays unconfirmed.
pub const MAX_ATTEMPTS: usize = 3;
/// Milliseconds a vantage has to respond: ten seconds for the check, two for the network.
pub const RESPONSE_TIMEOUT: i64 = 12 * SECOND;
/// Milliseconds a vantage has to respond, or to report that the check is pending, if a pass would end an outage.
/// Short, because subscribers should learn of a recovery quickly unless another network contradicts it.
pub const PASS_CONFIRMATION_TIMEOUT: i64 = 4 * SECOND;
/// Age in milliseconds, counted from its end, beyond which an arriving failure can no longer be confirmed.
pub const MAX_FAILURE_AGE: i64 = 15 * SECOND;
/// Delay in milliseconds before the same network repeats a check, if there is no other network.
pub const REPEAT_DELAY: i64 = 5 * SECOND;

/// Vantage that may confirm a failure now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmer {
    /// A vantage on another network, immediately.
    OtherNetwork(VantageNo),
    /// A vantage on the same, only network, after [`REPEAT_DELAY`].
    SameNetwork(VantageNo),
    /// No vantage is available.
    Nobody,
}

/// Failure that needs confirmation, or a pass that would end an outage.
#[derive(Debug, Clone, Copy)]
pub struct PendingFailure<'a> {
    /// Region of the round.
    pub region: Region,
    /// Vantage that saw it.
    pub vantage: VantageNo,
    /// Network of that vantage.
    pub network: NetworkNo,
    /// Start of the round.
    pub started: Timestamp,
    /// Vantages already tried.
    pub tried: &'a [VantageNo],
}

/// How failures are confirmed, and from how many networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfirmingNetworks {
    /// Confirmation by another network, or by a repeated check where there is only one.
    pub policy: ConfirmationPolicy,
    /// Number of networks with a confirming agent.
    pub total: usize,
    /// The same by region; a region without any is left out.
    pub by_region: BTreeMap<Region, usize>,
}

impl ConfirmingNetworks {
    /// Counts the networks of a mesh.
    pub fn of(mesh: &Mesh, policy: ConfirmationPolicy) -> Self {
        let regions = Region::ALL.map(|region| (region, mesh.confirming_networks(Some(region))));
        Self {
            policy,
            total: mesh.confirming_networks(None),
            by_region: regions.into_iter().filter(|(_, networks)| *networks > 0).collect(),
        }
    }

    /// Number of networks with a confirming agent in a region.
    pub fn in_region(&self, region: Region) -> usize {
        self.by_region.get(&region).copied().unwrap_or_default()
    }

    /// Returns true if a second network exists. Without one, only a repeated check can confirm.
    pub const fn has_second(&self) -> bool {
        self.total > 1
    }
}

/// Chooses the confirming vantage: on another network in the same region, otherwise on another network anywhere; for
/// a pinned monitor only within its region. Vantages whose host is fit come first; unfit ones are tried only while
/// two networks are fit. With one fit network, failures stay unconfirmed or are repeated. Vantages rotate from round
/// to round, so that no single one takes all probe requests.
pub fn confirmer(settings: &EffectiveSettings, mesh: &Mesh, suspect: PendingFailure<'_>) -> Confirmer {
    if suspect.tried.len() >= MAX_ATTEMPTS {
        return Confirmer::Nobody;
    }
    let is_other = |vantage: &&Vantage| vantage.network != suspect.network && !suspect.tried.contains(&vantage.no);
    let mut fit: Vec<&Vantage> = mesh.confirmers().filter(is_other).collect();
    if fit.is_empty() {
        if mesh.has_one_network() {
            let repeats = settings.confirmation == ConfirmationPolicy::Repeat;
            return if repeats { repeater(mesh, suspect) } else { Confirmer::Nobody };
        }
        // A host reported as unfit may still reach this target. If it cannot, it says so.
        fit = mesh.available().filter(is_other).collect();
    }
    choose(settings, suspect, fit).map_or(Confirmer::Nobody, Confirmer::OtherNetwork)
}

/// Chooses the vantage that decides a dispute: on neither the network that failed nor that of `second`, which passed.
/// The order of preference is as for the second opinion, but vantages on unfit hosts are excluded.
pub fn arbiter(
    settings: &EffectiveSettings,
    mesh: &Mesh,
    suspect: PendingFailure<'_>,
    second: VantageNo,
) -> Option<VantageNo> {
    if suspect.tried.len() > MAX_ATTEMPTS {
        return None;
    }
    let network = mesh.vantage(second).map(|vantage| vantage.network);
    let is_third = |vantage: &&Vantage| {
        vantage.network != suspect.network && Some(vantage.network) != network && !suspect.tried.contains(&vantage.no)
    };
    choose(settings, suspect, mesh.confirmers().filter(is_third).collect())
}

/// Picks one of these vantages: within the round's region if possible, otherwise, unless pinned, from all of them.
fn choose(settings: &EffectiveSettings, suspect: PendingFailure<'_>, fit: Vec<&Vantage>) -> Option<VantageNo> {
    let near: Vec<&Vantage> = fit.iter().copied().filter(|vantage| vantage.region == suspect.region).collect();
    let choice = if near.is_empty() && settings.pinned.is_none() { fit } else { near };
    let seconds = suspect.started.as_millis().unsigned_abs() / 1000;
    // Monitors of one domain fail together: one vantage's single registry lookup confirms them all.
    let turn = match settings.kind {
        CheckKind::Domain => seconds / 60,
        _ => monitor_hash(settings.monitor).wrapping_add(seconds),
    };
    let index = usize::try_from(turn % choice.len().max(1) as u64).unwrap_or(0);
    choice.get(index).map(|vantage| vantage.no)
}

/// Returns true if a failure of the monitor could be confirmed by the vantages available now.
pub fn can_confirm(settings: &EffectiveSettings, mesh: &Mesh) -> bool {
    if settings.heartbeat.is_some() {
        return true;
    }
    if mesh.has_one_network() {
        return settings.confirmation == ConfirmationPolicy::Repeat;
    }
    let Some(pinned) = settings.pinned else { return true };
    mesh.confirming_networks(Some(pinned)) > 1
}

/// Returns true if a pass could be outvoted by `vantages`: they span two other networks, one of them in the pass's
/// region, since a target may have recovered there only. For a pinned monitor, all must be in its region.
pub fn can_be_outvoted<'a>(
    settings: &EffectiveSettings,
    vantages: impl Iterator<Item = &'a Vantage>,
    pass: PendingFailure<'_>,
) -> bool {
    let is_other = |vantage: &&Vantage| {
        vantage.network != pass.network
            && !pass.tried.contains(&vantage.no)
            && settings.pinned.is_none_or(|pinned| vantage.region == pinned)
    };
    let others: Vec<&Vantage> = vantages.filter(is_other).collect();
    let first = others.first().map(|vantage| vantage.network);
    let is_near = |vantage: &Vantage| vantage.region == pass.region || !settings.kind.is_regional();
    others.iter().any(|vantage| Some(vantage.network) != first) && others.iter().any(|vantage| is_near(vantage))
}

/// Outcome of a failed round, given the second vantage's outcome; none if that is inconclusive and the next must be
/// tried.
pub const fn confirmed_outcome(second: &ProbeOutcome) -> Option<RoundOutcome> {
    match second {
        ProbeOutcome::Passed(_) => Some(RoundOutcome::Disputed),
        ProbeOutcome::Failed(..) => Some(RoundOutcome::Failed),
        ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => None,
    }
}

fn repeater(mesh: &Mesh, suspect: PendingFailure<'_>) -> Confirmer {
    let near = |vantage: &&Vantage| vantage.region == suspect.region && !suspect.tried.contains(&vantage.no);
    let other = mesh.confirmers().filter(near).find(|vantage| vantage.no != suspect.vantage);
    other
        .or_else(|| mesh.confirmers().find(near))
        .map_or(Confirmer::Nobody, |vantage| Confirmer::SameNetwork(vantage.no))
}
