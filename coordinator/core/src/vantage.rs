//! Vantages from which checks run: regions, networks, agents as the rules see them, and the mesh they form.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Region of the API contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Region {
    /// Europe, which is also the default for judging response times.
    Europe,
    /// North America.
    NorthAmerica,
    /// South America.
    SouthAmerica,
    /// Africa.
    Africa,
    /// Asia.
    Asia,
    /// Oceania.
    Oceania,
}

impl Region {
    /// Every region, in display order.
    pub const ALL: [Self; 6] =
        [Self::Europe, Self::NorthAmerica, Self::SouthAmerica, Self::Africa, Self::Asia, Self::Oceania];

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Europe => "europe",
            Self::NorthAmerica => "north-america",
            Self::SouthAmerica => "south-america",
            Self::Africa => "africa",
            Self::Asia => "asia",
            Self::Oceania => "oceania",
        }
    }

    /// Name in running text.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Europe => "Europe",
            Self::NorthAmerica => "North America",
            Self::SouthAmerica => "South America",
            Self::Africa => "Africa",
            Self::Asia => "Asia",
            Self::Oceania => "Oceania",
        }
    }

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Text that names no region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of europe, north-america, south-america, africa, asia, oceania")]
pub struct UnknownRegion;

impl FromStr for Region {
    type Err = UnknownRegion;

    fn from_str(text: &str) -> Result<Self, UnknownRegion> {
        Self::ALL.into_iter().find(|region| region.name() == text).ok_or(UnknownRegion)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of regions, iterated in the order of [`Region::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct RegionSet(u8);

impl RegionSet {
    /// No region.
    pub const NONE: Self = Self(0);
    /// Every region.
    pub const ALL: Self = Self(0b11_1111);

    /// The set of one region.
    pub const fn only(region: Region) -> Self {
        Self(1 << region.index())
    }

    /// Returns true if the set contains the region.
    pub const fn contains(self, region: Region) -> bool {
        self.0 & (1 << region.index()) != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 & Self::ALL.0 == 0
    }

    /// Number of regions in the set.
    pub const fn len(self) -> usize {
        (self.0 & Self::ALL.0).count_ones() as usize
    }

    /// Adds a region.
    pub fn insert(&mut self, region: Region) {
        self.0 |= 1 << region.index();
    }

    /// Removes a region.
    pub fn remove(&mut self, region: Region) {
        self.0 &= !(1 << region.index());
    }

    /// Regions in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Regions in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Regions in this set but not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Iterates over the regions in the set.
    pub fn iter(self) -> impl Iterator<Item = Region> {
        Region::ALL.into_iter().filter(move |region| self.contains(*region))
    }
}

impl FromIterator<Region> for RegionSet {
    fn from_iter<I: IntoIterator<Item = Region>>(regions: I) -> Self {
        let mut set = Self::NONE;
        regions.into_iter().for_each(|region| set.insert(region));
        set
    }
}

impl fmt::Debug for RegionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Region::name)).finish()
    }
}

/// Dense number of an agent, assigned when it enrols and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VantageNo(pub u16);

/// Dense number of a network label, assigned when the first agent on that network is invited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NetworkNo(pub u16);

/// Agent as the rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vantage {
    /// Its number.
    pub no: VantageNo,
    /// Region of the agent.
    pub region: Region,
    /// Network of the agent.
    pub network: NetworkNo,
    /// Set while the agent is connected.
    pub connected: bool,
    /// Set while quarantined: it runs no counted rounds and confirms no failures.
    pub quarantined: bool,
    /// Set while the agent reports that its host cannot check (no route, no resolver, no file descriptors): it keeps
    /// its rounds, but does not count as a second network.
    pub unfit: bool,
}

impl Vantage {
    /// Returns true if rounds and probe requests may go to it now.
    pub const fn is_available(&self) -> bool {
        self.connected && !self.quarantined
    }
}

/// Every enrolled vantage, in order of number. Revoked and deleted agents are not included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mesh {
    vantages: Vec<Vantage>,
}

impl Mesh {
    /// Creates a mesh of these vantages.
    pub fn new(vantages: impl IntoIterator<Item = Vantage>) -> Self {
        let mut vantages: Vec<Vantage> = vantages.into_iter().collect();
        vantages.sort_by_key(|vantage| vantage.no);
        vantages.dedup_by_key(|vantage| vantage.no);
        Self { vantages }
    }

    /// All enrolled vantages.
    pub fn vantages(&self) -> &[Vantage] {
        &self.vantages
    }

    /// Returns the vantage with that number.
    pub fn vantage(&self, no: VantageNo) -> Option<&Vantage> {
        self.vantages.binary_search_by_key(&no, |vantage| vantage.no).ok().and_then(|at| self.vantages.get(at))
    }

    /// Vantages that can take probe requests now.
    pub fn available(&self) -> impl Iterator<Item = &Vantage> {
        self.vantages.iter().filter(|vantage| vantage.is_available())
    }

    /// Vantages that can confirm an observation: those whose host is fit to check. If no host is fit, all of them
    /// count.
    pub fn confirmers(&self) -> impl Iterator<Item = &Vantage> {
        let none_is_fit = self.available().all(|vantage| vantage.unfit);
        self.available().filter(move |vantage| none_is_fit || !vantage.unfit)
    }

    /// Returns true if that vantage can confirm an observation now.
    pub fn can_confirm(&self, no: VantageNo) -> bool {
        self.confirmers().any(|vantage| vantage.no == no)
    }

    /// Number of networks of the confirming vantages: those of one region, or of the whole mesh.
    pub fn confirming_networks(&self, region: Option<Region>) -> usize {
        let members = self.confirmers().filter(|vantage| region.is_none_or(|region| vantage.region == region));
        members.map(|vantage| vantage.network).collect::<BTreeSet<_>>().len()
    }

    /// Regions with an enrolled vantage, connected or not.
    pub fn enrolled_regions(&self) -> RegionSet {
        self.vantages.iter().map(|vantage| vantage.region).collect()
    }

    /// Regions with a vantage that can take probe requests now.
    pub fn available_regions(&self) -> RegionSet {
        self.available().map(|vantage| vantage.region).collect()
    }

    /// Returns true if the confirming vantages span three networks or more, so that a two-of-three majority exists.
    pub fn has_three_networks(&self) -> bool {
        let mut first = None;
        let mut second = None;
        self.confirmers().any(|vantage| match (first, second) {
            (None, _) => {
                first = Some(vantage.network);
                false
            }
            (Some(one), None) if one != vantage.network => {
                second = Some(vantage.network);
                false
            }
            (Some(one), Some(two)) => vantage.network != one && vantage.network != two,
            (Some(_), None) => false,
        })
    }

    /// Returns true if all confirming vantages are on one network (or there are none), so that no second network can
    /// confirm anything. Enrolled vantages that are disconnected, quarantined or unfit do not count.
    pub fn has_one_network(&self) -> bool {
        let mut networks = self.confirmers().map(|vantage| vantage.network);
        let first = networks.next();
        networks.all(|network| Some(network) == first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_iterates_in_the_order_of_the_regions() {
        let set: RegionSet = [Region::Oceania, Region::Europe].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Region::Europe, Region::Oceania]);
        assert_eq!(set.len(), 2);
        assert_eq!(RegionSet::ALL.without(set).len(), 4);
    }

    #[test]
    fn every_region_name_reads_back() {
        for region in Region::ALL {
            assert_eq!(region.name().parse(), Ok(region));
        }
        assert!("Europe".parse::<Region>().is_err());
    }

    fn vantage(no: u16, network: u16) -> Vantage {
        Vantage {
            no: VantageNo(no),
            region: Region::Asia,
            network: NetworkNo(network),
            connected: true,
            quarantined: false,
            unfit: false,
        }
    }

    #[test]
    fn places_are_found_by_number() {
        let mesh = Mesh::new([Vantage { connected: false, ..vantage(9, 1) }, vantage(2, 1)]);
        assert_eq!(mesh.vantage(VantageNo(9)).map(|p| p.connected), Some(false));
        assert_eq!(mesh.vantage(VantageNo(3)), None);
        assert_eq!(mesh.available().count(), 1);
    }

    #[test]
    fn only_vantages_that_can_confirm_count_as_a_second_network() {
        let other = vantage(2, 2);
        for (second, one) in [
            (other, false),
            (Vantage { network: NetworkNo(1), ..other }, true),
            (Vantage { connected: false, ..other }, true),
            (Vantage { quarantined: true, ..other }, true),
            (Vantage { unfit: true, ..other }, true),
        ] {
            assert_eq!(Mesh::new([vantage(1, 1), second]).has_one_network(), one, "{second:?}");
        }
        let three = |networks: [u16; 3]| Mesh::new((1..).zip(networks).map(|(no, network)| vantage(no, network)));
        assert!(three([1, 2, 3]).has_three_networks() && !three([1, 2, 1]).has_three_networks());
        assert!(!Mesh::default().has_three_networks());
        assert!(Mesh::default().has_one_network(), "nobody confirms anything");
        let unfit = |vantage: Vantage| Vantage { unfit: true, ..vantage };
        assert!(!Mesh::new([unfit(vantage(1, 1)), unfit(other)]).has_one_network(), "no vantage is preferred");
    }

    #[test]
    fn unfit_vantages_confirm_while_no_vantage_is_fit() {
        let unfit = |no, network| Vantage { unfit: true, ..vantage(no, network) };
        let europe = |vantage: Vantage| Vantage { region: Region::Europe, ..vantage };
        let answers = |mesh: &Mesh| {
            let regions = [None, Some(Region::Asia), Some(Region::Europe)];
            ([1, 2].map(|no| mesh.can_confirm(VantageNo(no))), regions.map(|region| mesh.confirming_networks(region)))
        };
        for (vantages, expected) in [
            ([vantage(1, 1), europe(vantage(2, 2))], ([true, true], [2, 1, 1])),
            ([vantage(1, 1), vantage(2, 1)], ([true, true], [1, 1, 0])),
            ([vantage(1, 1), europe(unfit(2, 2))], ([true, false], [1, 1, 0])),
            ([unfit(1, 1), europe(unfit(2, 2))], ([true, true], [2, 1, 1])),
            ([unfit(1, 1), Vantage { quarantined: true, ..vantage(2, 2) }], ([true, false], [1, 1, 0])),
        ] {
            assert_eq!(answers(&Mesh::new(vantages)), expected, "{vantages:?}");
        }
    }
}
