//! Vantages, accounts and check targets of the simulated service.

use parallax_core::id::AccountId;
use parallax_core::quarantine::CheckTarget;
use parallax_core::vantage::{NetworkNo, Region, Vantage, VantageNo};

use super::seeded_random::SeededRandom;
use super::world::ACCOUNTS;

pub(super) fn account(index: usize) -> AccountId {
    AccountId::from_u128(index.saturating_sub(2) as u128)
}

pub(super) fn target(index: usize) -> CheckTarget {
    CheckTarget { host: index as u64, account: account(index), accounts: ACCOUNTS }
}

/// Three to eight vantages on three networks or more, in one region or several.
pub(super) fn vantages(chance: &mut SeededRandom) -> Vec<Vantage> {
    let regions = chance.index(4) + 1;
    let count = chance.index(6) + 3;
    let vantage = |index: usize, chance: &mut SeededRandom| {
        let no = u16::try_from(index).unwrap();
        Vantage {
            no: VantageNo(no + 1),
            region: Region::ALL[chance.index(regions)],
            network: NetworkNo(if no < 3 { no } else { chance.pick(&[0, 1, 2, 3]) }),
            connected: true,
            quarantined: false,
            unfit: false,
        }
    };
    (0..count).map(|index| vantage(index, chance)).collect()
}
