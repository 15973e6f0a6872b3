//! Mesh problems reported to the operator: which failures can't be confirmed, and why.

use std::collections::BTreeSet;
use std::fmt;

use parallax_core::effective::ConfirmationPolicy;
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::vantage::{Mesh, NetworkNo, Region};

use super::MESH_PROBLEMS_LOG_TARGET;

/// A mesh problem for the operator to fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeshProblem {
    /// No vantage is connected.
    NoneConnected,
    /// Only one network in the whole mesh can confirm, and failures are confirmed by another network only.
    NoConfirmation,
    /// Only one network in the whole mesh can confirm; the same network repeats a failed check.
    RepeatOnly,
    /// A region's vantages that can confirm are on one network, or there are none.
    OneNetwork(Region),
    /// A region has vantages, and none is connected.
    RegionDisconnected(Region),
    /// Vantages are connected, and all of them are in quarantine.
    AllQuarantined,
    /// All connected vantages of a region are in quarantine.
    RegionQuarantined(Region),
    /// Nearly all names fail to resolve at all vantages.
    DnsFailing,
    /// The vantages that can confirm are on two networks: a contradiction between them stays undecided.
    TwoNetworks,
    /// Other networks contradict vantages that were spared from quarantine, because too many would be in it.
    Contradicted,
}

impl fmt::Display for MeshProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneConnected => f.write_str("no agent is connected: nothing is checked"),
            Self::NoConfirmation => f.write_str(
                "only one network has working agents: outages can't be confirmed, so no monitor will be called down; \
                 add an agent on another network, or repair those that are disconnected, quarantined or unfit to check",
            ),
            Self::RepeatOnly => f.write_str(
                "only one network has working agents: a failed check is repeated from the same network until an agent \
                 on another network works",
            ),
            Self::OneNetwork(region) => write!(
                f,
                "{} has at most one network with working agents: it can confirm only what other regions see too",
                region.title()
            ),
            Self::RegionDisconnected(region) => write!(f, "no agent in {} is connected", region.title()),
            Self::AllQuarantined => {
                f.write_str("all connected agents are in quarantine: no check counts; `parallax agent list` says why")
            }
            Self::DnsFailing => f.write_str(
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
            Self::RegionQuarantined(region) => {
                write!(f, "all connected agents in {} are in quarantine: no check from there counts", region.title())
            }
        }
    }
}

/// Returns every problem of the mesh.
pub(crate) fn find_problems(mesh: &Mesh, confirmation: ConfirmationPolicy) -> BTreeSet<MeshProblem> {
    let mut told = BTreeSet::new();
    let is_connected = |region: Option<Region>| {
        mesh.vantages().iter().any(|place| place.connected && region.is_none_or(|region| place.region == region))
    };
    if mesh.available().next().is_none() {
        told.insert(if is_connected(None) { MeshProblem::AllQuarantined } else { MeshProblem::NoneConnected });
        return told;
    }
    if mesh.has_one_network() {
        told.insert(match confirmation {
            ConfirmationPolicy::OtherNetwork => MeshProblem::NoConfirmation,
            ConfirmationPolicy::Repeat => MeshProblem::RepeatOnly,
        });
        return told;
    }
    let networks: BTreeSet<NetworkNo> = mesh.confirmers().map(|place| place.network).collect();
    if networks.len() == 2 {
        told.insert(MeshProblem::TwoNetworks);
    }
    for region in mesh.enrolled_regions().iter() {
        let networks: BTreeSet<NetworkNo> =
            mesh.confirmers().filter(|place| place.region == region).map(|place| place.network).collect();
        match networks.len() {
            0 if mesh.available_regions().contains(region) => told.insert(MeshProblem::OneNetwork(region)),
            0 if is_connected(Some(region)) => told.insert(MeshProblem::RegionQuarantined(region)),
            0 => told.insert(MeshProblem::RegionDisconnected(region)),
            1 => told.insert(MeshProblem::OneNetwork(region)),
            _ => continue,
        };
    }
    told
}

/// Converts the problems to operator alerts, each with whether it holds now. An alert that another one covers is left
/// out: where no vantage is connected, the number of networks is unknown.
pub fn to_operator_alerts(told: &BTreeSet<MeshProblem>) -> Vec<(OperatorProblem, bool)> {
    let nobody = told.contains(&MeshProblem::NoneConnected);
    let all_quarantined = told.contains(&MeshProblem::AllQuarantined);
    let mut matters = vec![
        (OperatorProblem::NoAgentConnected(None), nobody),
        (OperatorProblem::AllQuarantined(None), all_quarantined),
        (OperatorProblem::NameResolutionFails, told.contains(&MeshProblem::DnsFailing)),
    ];
    if nobody || all_quarantined {
        return matters;
    }
    let one_network = told.contains(&MeshProblem::NoConfirmation) || told.contains(&MeshProblem::RepeatOnly);
    matters.push((OperatorProblem::SingleNetwork(None), one_network));
    if one_network {
        return matters;
    }
    matters.push((OperatorProblem::OnlyTwoNetworks, told.contains(&MeshProblem::TwoNetworks)));
    for region in Region::ALL {
        let nobody = told.contains(&MeshProblem::RegionDisconnected(region));
        let quarantined = told.contains(&MeshProblem::RegionQuarantined(region));
        matters.push((OperatorProblem::NoAgentConnected(Some(region)), nobody));
        matters.push((OperatorProblem::AllQuarantined(Some(region)), quarantined));
        if !nobody && !quarantined {
            matters
                .push((OperatorProblem::SingleNetwork(Some(region)), told.contains(&MeshProblem::OneNetwork(region))));
        }
    }
    matters
}

/// Logs new and resolved problems.
pub(crate) fn log_changes(before: &BTreeSet<MeshProblem>, now: &BTreeSet<MeshProblem>) {
    for notice in now.difference(before) {
        tracing::warn!(target: MESH_PROBLEMS_LOG_TARGET, "{notice}");
    }
    for notice in before.difference(now) {
        tracing::info!(target: MESH_PROBLEMS_LOG_TARGET, "resolved: {notice}");
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::vantage::{Vantage, VantageNo};

    use super::*;

    /// Builds a mesh of vantages by region, network, and whether they are connected.
    fn mesh(places: &[(Region, u16, bool)]) -> Mesh {
        Mesh::new((0..).zip(places).map(|(no, &(region, network, connected))| Vantage {
            no: VantageNo(no),
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
        assert_eq!(find_problems(&one, ConfirmationPolicy::OtherNetwork), [MeshProblem::NoConfirmation].into());
        assert_eq!(find_problems(&one, ConfirmationPolicy::Repeat), [MeshProblem::RepeatOnly].into());
    }

    #[test]
    fn one_network_that_works_of_two_is_one_matter_and_not_one_a_region() {
        let places = Region::ALL.into_iter().flat_map(|region| [(region, 1, true), (region, 2, true)]);
        let whole = mesh(&places.collect::<Vec<_>>());
        assert_eq!(find_problems(&whole, ConfirmationPolicy::OtherNetwork), [MeshProblem::TwoNetworks].into());
        let broken: [fn(&mut Vantage); 3] =
            [|place| place.connected = false, |place| place.quarantined = true, |place| place.unfit = true];
        for breaks in broken {
            let places = whole.vantages().iter().map(|place| {
                let mut place = *place;
                if place.network == NetworkNo(2) {
                    breaks(&mut place);
                }
                place
            });
            let told = find_problems(&Mesh::new(places), ConfirmationPolicy::OtherNetwork);
            assert_eq!(told, [MeshProblem::NoConfirmation].into());
            let holding = to_operator_alerts(&told).into_iter().filter(|(_, holds)| *holds);
            assert_eq!(holding.collect::<Vec<_>>(), [(OperatorProblem::SingleNetwork(None), true)]);
        }
    }

    #[test]
    fn two_networks_that_decide_no_dispute_are_told_and_three_are_not() {
        let told = |networks: &[u16]| {
            let places: Vec<_> = networks.iter().map(|network| (Region::Asia, *network, true)).collect();
            find_problems(&mesh(&places), ConfirmationPolicy::OtherNetwork).contains(&MeshProblem::TwoNetworks)
        };
        assert!(told(&[1, 2, 2]) && !told(&[1, 2, 3]) && !told(&[1, 1]));
    }

    #[test]
    fn a_region_with_one_network_or_nobody_is_named() {
        let two = mesh(&[(Region::Asia, 1, true), (Region::Europe, 2, true), (Region::Africa, 2, false)]);
        let expected = [
            MeshProblem::TwoNetworks,
            MeshProblem::OneNetwork(Region::Europe),
            MeshProblem::OneNetwork(Region::Asia),
            MeshProblem::RegionDisconnected(Region::Africa),
        ];
        assert_eq!(find_problems(&two, ConfirmationPolicy::OtherNetwork), expected.into());
    }

    #[test]
    fn a_dead_agent_is_one_matter_whatever_it_was_part_of() {
        let region = Region::Asia;
        let holding = |places: &[(Region, u16, bool)]| -> Vec<OperatorProblem> {
            let matters = to_operator_alerts(&find_problems(&mesh(places), ConfirmationPolicy::OtherNetwork));
            let holding = matters.into_iter().filter(|(_, holds)| *holds).map(|(matter, _)| matter);
            // With two networks, undecided contradictions are an alert of their own.
            holding.filter(|matter| *matter != OperatorProblem::OnlyTwoNetworks).collect()
        };
        let europe = [(Region::Europe, 1, true), (Region::Europe, 2, true)];
        let with = |asia: &[bool]| {
            let asia = (1..).zip(asia).map(|(network, connected)| (region, network, *connected));
            europe.into_iter().chain(asia).collect::<Vec<_>>()
        };
        assert_eq!(holding(&with(&[true, true])), []);
        assert_eq!(holding(&with(&[true, false])), [OperatorProblem::SingleNetwork(Some(region))]);
        assert_eq!(holding(&with(&[false, false])), [OperatorProblem::NoAgentConnected(Some(region))]);
        assert_eq!(holding(&[(region, 1, false)]), [OperatorProblem::NoAgentConnected(None)]);
        assert_eq!(holding(&[(region, 1, true), (region, 1, false)]), [OperatorProblem::SingleNetwork(None)]);
    }

    #[test]
    fn agents_in_quarantine_are_connected_and_the_operator_is_told_so() {
        let place = |no, region, network, connected, quarantined| Vantage {
            no: VantageNo(no),
            region,
            network: NetworkNo(network),
            connected,
            quarantined,
            unfit: false,
        };
        let told = |places: &[Vantage]| {
            let told = find_problems(&Mesh::new(places.iter().copied()), ConfirmationPolicy::OtherNetwork);
            let holding = to_operator_alerts(&told).into_iter().filter(|(_, holds)| *holds).map(|(matter, _)| matter);
            let holding = holding.filter(|matter| *matter != OperatorProblem::OnlyTwoNetworks);
            (told, holding.collect::<Vec<_>>())
        };
        let europe = [place(1, Region::Europe, 1, true, false), place(2, Region::Europe, 2, true, false)];
        let asia = place(3, Region::Asia, 1, true, true);
        let (notice, matter) = told(&[europe[0], europe[1], asia]);
        assert_eq!(notice, [MeshProblem::RegionQuarantined(Region::Asia), MeshProblem::TwoNetworks].into());
        assert_eq!(matter, [OperatorProblem::AllQuarantined(Some(Region::Asia))]);
        // A disconnected agent among them changes nothing; all agents disconnected is another alert.
        let away = place(4, Region::Asia, 2, false, false);
        assert_eq!(told(&[europe[0], europe[1], asia, away]).1, [OperatorProblem::AllQuarantined(Some(Region::Asia))]);
        assert_eq!(told(&[europe[0], europe[1], away]).1, [OperatorProblem::NoAgentConnected(Some(Region::Asia))]);
        assert_eq!(
            told(&[asia, away]),
            ([MeshProblem::AllQuarantined].into(), vec![OperatorProblem::AllQuarantined(None)])
        );
    }
}
