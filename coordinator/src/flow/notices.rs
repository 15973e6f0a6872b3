//! Mesh problems reported to the operator: which failures can't be confirmed, and why.

use std::collections::BTreeSet;
use std::fmt;

use parallax_core::notice::Matter;
use parallax_core::place::{Mesh, NetworkNo, Region};
use parallax_core::watch::Confirmation;

/// A mesh problem for the operator to fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// No vantage is connected.
    NobodyConnected,
    /// Only one network in the whole mesh can confirm, and failures are confirmed by another network only.
    NothingConfirmed,
    /// Only one network in the whole mesh can confirm; the same network repeats a failed check.
    RepeatedOnly,
    /// A region's vantages that can confirm are on one network, or there are none.
    OneNetwork(Region),
    /// A region has vantages, and none is connected.
    NobodyIn(Region),
    /// Vantages are connected, and all of them are in quarantine.
    AllQuarantined,
    /// All connected vantages of a region are in quarantine.
    QuarantinedIn(Region),
    /// Nearly all names fail to resolve at all vantages.
    NamesFail,
    /// The vantages that can confirm are on two networks: a contradiction between them stays undecided.
    TwoNetworks,
    /// Other networks contradict vantages that were spared from quarantine, because too many would be in it.
    Contradicted,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyConnected => f.write_str("no agent is connected: nothing is checked"),
            Self::NothingConfirmed => f.write_str(
                "only one network has working agents: outages can't be confirmed, so no monitor will be called down; \
                 add an agent on another network, or repair those that are disconnected, quarantined or unfit to check",
            ),
            Self::RepeatedOnly => f.write_str(
                "only one network has working agents: a failed check is repeated from the same network until an agent \
                 on another network works",
            ),
            Self::OneNetwork(region) => write!(
                f,
                "{} has at most one network with working agents: it can confirm only what other regions see too",
                region.title()
            ),
            Self::NobodyIn(region) => write!(f, "no agent in {} is connected", region.title()),
            Self::AllQuarantined => {
                f.write_str("all connected agents are in quarantine: no check counts; `parallax agent list` says why")
            }
            Self::NamesFail => f.write_str(
                "nearly all names fail to resolve at all agents: such failures are not counted until names resolve \
                 again; check the agents' name servers",
            ),
            Self::TwoNetworks => f.write_str(
                "only two networks have working agents: if they contradict each other, a failure is not counted, so \
                 one agent behind a captive portal hides outages; add an agent on a third network",
            ),
            Self::Contradicted => f.write_str(
                "agents contradict each other, and no more than a third of them may be in quarantine: all count; \
                 `parallax agent list` says who contradicts whom",
            ),
            Self::QuarantinedIn(region) => {
                write!(f, "all connected agents in {} are in quarantine: no check from there counts", region.title())
            }
        }
    }
}

/// Returns every problem of the mesh.
pub fn notices(mesh: &Mesh, confirmation: Confirmation) -> BTreeSet<Notice> {
    let mut told = BTreeSet::new();
    let is_connected = |region: Option<Region>| {
        mesh.places()
            .iter()
            .any(|place| place.connected && region.is_none_or(|region| place.region == region))
    };
    if mesh.fit().next().is_none() {
        told.insert(if is_connected(None) { Notice::AllQuarantined } else { Notice::NobodyConnected });
        return told;
    }
    if mesh.has_one_network() {
        told.insert(match confirmation {
            Confirmation::OtherNetwork => Notice::NothingConfirmed,
            Confirmation::Repeat => Notice::RepeatedOnly,
        });
        return told;
    }
    let networks: BTreeSet<NetworkNo> = mesh.confirmers().map(|place| place.network).collect();
    if networks.len() == 2 {
        told.insert(Notice::TwoNetworks);
    }
    for region in mesh.enrolled_regions().iter() {
        let networks: BTreeSet<NetworkNo> =
            mesh.confirmers().filter(|place| place.region == region).map(|place| place.network).collect();
        match networks.len() {
            0 if mesh.fit_regions().contains(region) => told.insert(Notice::OneNetwork(region)),
            0 if is_connected(Some(region)) => told.insert(Notice::QuarantinedIn(region)),
            0 => told.insert(Notice::NobodyIn(region)),
            1 => told.insert(Notice::OneNetwork(region)),
            _ => continue,
        };
    }
    told
}

/// Converts the problems to operator alerts, each with whether it holds now. An alert that another one covers is left
/// out: where no vantage is connected, the number of networks is unknown.
pub fn matters(told: &BTreeSet<Notice>) -> Vec<(Matter, bool)> {
    let nobody = told.contains(&Notice::NobodyConnected);
    let all_quarantined = told.contains(&Notice::AllQuarantined);
    let mut matters = vec![
        (Matter::NobodyConnected(None), nobody),
        (Matter::Quarantined(None), all_quarantined),
        (Matter::NamesFail, told.contains(&Notice::NamesFail)),
    ];
    if nobody || all_quarantined {
        return matters;
    }
    let one_network = told.contains(&Notice::NothingConfirmed) || told.contains(&Notice::RepeatedOnly);
    matters.push((Matter::OneNetwork(None), one_network));
    if one_network {
        return matters;
    }
    matters.push((Matter::TwoNetworks, told.contains(&Notice::TwoNetworks)));
    for region in Region::ALL {
        let nobody = told.contains(&Notice::NobodyIn(region));
        let quarantined = told.contains(&Notice::QuarantinedIn(region));
        matters.push((Matter::NobodyConnected(Some(region)), nobody));
        matters.push((Matter::Quarantined(Some(region)), quarantined));
        if !nobody && !quarantined {
            matters.push((Matter::OneNetwork(Some(region)), told.contains(&Notice::OneNetwork(region))));
        }
    }
    matters
}

/// Logs new and resolved problems.
pub fn tell(before: &BTreeSet<Notice>, now: &BTreeSet<Notice>) {
    for notice in now.difference(before) {
        tracing::warn!("{notice}");
    }
    for notice in before.difference(now) {
        tracing::info!("resolved: {notice}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_core::place::{Place, PlaceNo};

    /// Builds a mesh of vantages by region, network, and whether they are connected.
    fn mesh(places: &[(Region, u16, bool)]) -> Mesh {
        Mesh::new((0..).zip(places).map(|(no, &(region, network, connected))| Place {
            no: PlaceNo(no),
            region,
            network: NetworkNo(network),
            connected,
            quarantined: false,
            unfit: false,
        }))
    }

    #[test]
    fn one_network_can_confirm_nothing_and_the_operator_is_told() {
        let one = mesh(&[(Region::Asia, 1, true), (Region::Europe, 1, true)]);
        assert_eq!(notices(&one, Confirmation::OtherNetwork), [Notice::NothingConfirmed].into());
        assert_eq!(notices(&one, Confirmation::Repeat), [Notice::RepeatedOnly].into());
    }

    #[test]
    fn one_network_that_works_of_two_is_one_matter_and_not_one_a_region() {
        let places = Region::ALL.into_iter().flat_map(|region| [(region, 1, true), (region, 2, true)]);
        let whole = mesh(&places.collect::<Vec<_>>());
        assert_eq!(notices(&whole, Confirmation::OtherNetwork), [Notice::TwoNetworks].into());
        let broken: [fn(&mut Place); 3] =
            [|place| place.connected = false, |place| place.quarantined = true, |place| place.unfit = true];
        for breaks in broken {
            let places = whole.places().iter().map(|place| {
                let mut place = *place;
                if place.network == NetworkNo(2) {
                    breaks(&mut place);
                }
                place
            });
            let told = notices(&Mesh::new(places), Confirmation::OtherNetwork);
            assert_eq!(told, [Notice::NothingConfirmed].into());
            let holding = matters(&told).into_iter().filter(|(_, holds)| *holds);
            assert_eq!(holding.collect::<Vec<_>>(), [(Matter::OneNetwork(None), true)]);
        }
    }

    #[test]
    fn two_networks_that_decide_no_dispute_are_told_and_three_are_not() {
        let told = |networks: &[u16]| {
            let places: Vec<_> = networks.iter().map(|network| (Region::Asia, *network, true)).collect();
            notices(&mesh(&places), Confirmation::OtherNetwork).contains(&Notice::TwoNetworks)
        };
        assert!(told(&[1, 2, 2]) && !told(&[1, 2, 3]) && !told(&[1, 1]));
    }

    #[test]
    fn a_region_with_one_network_or_nobody_is_named() {
        let two = mesh(&[(Region::Asia, 1, true), (Region::Europe, 2, true), (Region::Africa, 2, false)]);
        let expected = [
            Notice::TwoNetworks,
            Notice::OneNetwork(Region::Europe),
            Notice::OneNetwork(Region::Asia),
            Notice::NobodyIn(Region::Africa),
        ];
        assert_eq!(notices(&two, Confirmation::OtherNetwork), expected.into());
    }

    #[test]
    fn a_dead_agent_is_one_matter_whatever_it_was_part_of() {
        let region = Region::Asia;
        let holding = |places: &[(Region, u16, bool)]| -> Vec<Matter> {
            let matters = matters(&notices(&mesh(places), Confirmation::OtherNetwork));
            let holding = matters.into_iter().filter(|(_, holds)| *holds).map(|(matter, _)| matter);
            // With two networks, undecided contradictions are an alert of their own.
            holding.filter(|matter| *matter != Matter::TwoNetworks).collect()
        };
        let europe = [(Region::Europe, 1, true), (Region::Europe, 2, true)];
        let with = |asia: &[bool]| {
            let asia = (1..).zip(asia).map(|(network, connected)| (region, network, *connected));
            europe.into_iter().chain(asia).collect::<Vec<_>>()
        };
        assert_eq!(holding(&with(&[true, true])), []);
        assert_eq!(holding(&with(&[true, false])), [Matter::OneNetwork(Some(region))]);
        assert_eq!(holding(&with(&[false, false])), [Matter::NobodyConnected(Some(region))]);
        assert_eq!(holding(&[(region, 1, false)]), [Matter::NobodyConnected(None)]);
        assert_eq!(holding(&[(region, 1, true), (region, 1, false)]), [Matter::OneNetwork(None)]);
    }

    #[test]
    fn agents_in_quarantine_are_connected_and_the_operator_is_told_so() {
        let place = |no, region, network, connected, quarantined| Place {
            no: PlaceNo(no),
            region,
            network: NetworkNo(network),
            connected,
            quarantined,
            unfit: false,
        };
        let told = |places: &[Place]| {
            let told = notices(&Mesh::new(places.iter().copied()), Confirmation::OtherNetwork);
            let holding = matters(&told).into_iter().filter(|(_, holds)| *holds).map(|(matter, _)| matter);
            let holding = holding.filter(|matter| *matter != Matter::TwoNetworks);
            (told, holding.collect::<Vec<_>>())
        };
        let europe = [place(1, Region::Europe, 1, true, false), place(2, Region::Europe, 2, true, false)];
        let asia = place(3, Region::Asia, 1, true, true);
        let (notice, matter) = told(&[europe[0], europe[1], asia]);
        assert_eq!(notice, [Notice::QuarantinedIn(Region::Asia), Notice::TwoNetworks].into());
        assert_eq!(matter, [Matter::Quarantined(Some(Region::Asia))]);
        // A disconnected agent among them changes nothing; all agents disconnected is another alert.
        let away = place(4, Region::Asia, 2, false, false);
        assert_eq!(told(&[europe[0], europe[1], asia, away]).1, [Matter::Quarantined(Some(Region::Asia))]);
        assert_eq!(told(&[europe[0], europe[1], away]).1, [Matter::NobodyConnected(Some(Region::Asia))]);
        assert_eq!(told(&[asia, away]), ([Notice::AllQuarantined].into(), vec![Matter::Quarantined(None)]));
    }
}
