//! Mesh problems reported to the operator: which failures can't be confirmed, and why.

use std::collections::BTreeSet;
use std::fmt;

use parallax_core::effective::ConfirmationPolicy;
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::vantage::{Mesh, Region};

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
    let mut problems = BTreeSet::new();
    let is_connected = |region: Option<Region>| {
        mesh.vantages().iter().any(|vantage| vantage.connected && region.is_none_or(|region| vantage.region == region))
    };
    if mesh.available().next().is_none() {
        problems.insert(if is_connected(None) { MeshProblem::AllQuarantined } else { MeshProblem::NoneConnected });
        return problems;
    }
    if mesh.has_one_network() {
        problems.insert(match confirmation {
            ConfirmationPolicy::OtherNetwork => MeshProblem::NoConfirmation,
            ConfirmationPolicy::Repeat => MeshProblem::RepeatOnly,
        });
        return problems;
    }
    if mesh.confirming_networks(None) == 2 {
        problems.insert(MeshProblem::TwoNetworks);
    }
    for region in mesh.enrolled_regions().iter() {
        match mesh.confirming_networks(Some(region)) {
            0 if mesh.available_regions().contains(region) => problems.insert(MeshProblem::OneNetwork(region)),
            0 if is_connected(Some(region)) => problems.insert(MeshProblem::RegionQuarantined(region)),
            0 => problems.insert(MeshProblem::RegionDisconnected(region)),
            1 => problems.insert(MeshProblem::OneNetwork(region)),
            _ => continue,
        };
    }
    problems
}

/// Converts the problems to operator alerts, each with whether it holds now. An alert that another one covers is left
/// out: where no vantage is connected, the number of networks is unknown.
pub fn to_operator_alerts(problems: &BTreeSet<MeshProblem>) -> Vec<(OperatorProblem, bool)> {
    let none_connected = problems.contains(&MeshProblem::NoneConnected);
    let all_quarantined = problems.contains(&MeshProblem::AllQuarantined);
    let mut alerts = vec![
        (OperatorProblem::NoAgentConnected(None), none_connected),
        (OperatorProblem::AllQuarantined(None), all_quarantined),
        (OperatorProblem::NameResolutionFails, problems.contains(&MeshProblem::DnsFailing)),
    ];
    if none_connected || all_quarantined {
        return alerts;
    }
    let one_network = problems.contains(&MeshProblem::NoConfirmation) || problems.contains(&MeshProblem::RepeatOnly);
    alerts.push((OperatorProblem::SingleNetwork(None), one_network));
    if one_network {
        return alerts;
    }
    alerts.push((OperatorProblem::OnlyTwoNetworks, problems.contains(&MeshProblem::TwoNetworks)));
    for region in Region::ALL {
        let none_connected = problems.contains(&MeshProblem::RegionDisconnected(region));
        let quarantined = problems.contains(&MeshProblem::RegionQuarantined(region));
        alerts.push((OperatorProblem::NoAgentConnected(Some(region)), none_connected));
        alerts.push((OperatorProblem::AllQuarantined(Some(region)), quarantined));
        if !none_connected && !quarantined {
            alerts.push((
                OperatorProblem::SingleNetwork(Some(region)),
                problems.contains(&MeshProblem::OneNetwork(region)),
            ));
        }
    }
    alerts
}

/// Logs new and resolved problems.
pub(crate) fn log_changes(previous: &BTreeSet<MeshProblem>, current: &BTreeSet<MeshProblem>) {
    for problem in current.difference(previous) {
        tracing::warn!(target: MESH_PROBLEMS_LOG_TARGET, "{problem}");
    }
    for problem in previous.difference(current) {
        tracing::info!(target: MESH_PROBLEMS_LOG_TARGET, "resolved: {problem}");
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::vantage::{NetworkNo, Vantage, VantageNo};

    use super::*;

    /// Builds a mesh of vantages by region, network, and whether they are connected.
    fn mesh(vantages: &[(Region, u16, bool)]) -> Mesh {
        Mesh::new((0..).zip(vantages).map(|(no, &(region, network, connected))| Vantage {
            no: VantageNo(no),
            region,
            network: NetworkNo(network),
            connected,
            quarantined: false,
            unfit: false,
        }))
    }

    #[test]
    fn a_mesh_of_one_network_reports_that_it_cannot_confirm() {
        let one = mesh(&[(Region::Asia, 1, true), (Region::Europe, 1, true)]);
        assert_eq!(find_problems(&one, ConfirmationPolicy::OtherNetwork), [MeshProblem::NoConfirmation].into());
        assert_eq!(find_problems(&one, ConfirmationPolicy::Repeat), [MeshProblem::RepeatOnly].into());
    }

    #[test]
    fn one_working_network_of_two_is_one_problem_not_one_per_region() {
        let vantages = Region::ALL.into_iter().flat_map(|region| [(region, 1, true), (region, 2, true)]);
        let two_networks = mesh(&vantages.collect::<Vec<_>>());
        assert_eq!(find_problems(&two_networks, ConfirmationPolicy::OtherNetwork), [MeshProblem::TwoNetworks].into());
        let breakages: [fn(&mut Vantage); 3] =
            [|vantage| vantage.connected = false, |vantage| vantage.quarantined = true, |vantage| vantage.unfit = true];
        for break_vantage in breakages {
            let vantages = two_networks.vantages().iter().map(|vantage| {
                let mut vantage = *vantage;
                if vantage.network == NetworkNo(2) {
                    break_vantage(&mut vantage);
                }
                vantage
            });
            let problems = find_problems(&Mesh::new(vantages), ConfirmationPolicy::OtherNetwork);
            assert_eq!(problems, [MeshProblem::NoConfirmation].into());
            let active = to_operator_alerts(&problems).into_iter().filter(|(_, holds)| *holds);
            assert_eq!(active.collect::<Vec<_>>(), [(OperatorProblem::SingleNetwork(None), true)]);
        }
    }

    #[test]
    fn two_networks_are_reported_and_three_are_not() {
        let reports_two_networks = |networks: &[u16]| {
            let vantages: Vec<_> = networks.iter().map(|network| (Region::Asia, *network, true)).collect();
            find_problems(&mesh(&vantages), ConfirmationPolicy::OtherNetwork).contains(&MeshProblem::TwoNetworks)
        };
        assert!(
            reports_two_networks(&[1, 2, 2]) && !reports_two_networks(&[1, 2, 3]) && !reports_two_networks(&[1, 1])
        );
    }

    #[test]
    fn a_region_with_one_network_or_no_connected_vantage_is_named() {
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
    fn a_disconnected_agent_raises_one_alert() {
        let region = Region::Asia;
        let active_alerts = |vantages: &[(Region, u16, bool)]| -> Vec<OperatorProblem> {
            let alerts = to_operator_alerts(&find_problems(&mesh(vantages), ConfirmationPolicy::OtherNetwork));
            let active = alerts.into_iter().filter(|(_, holds)| *holds).map(|(alert, _)| alert);
            // With two networks, undecided contradictions are an alert of their own.
            active.filter(|alert| *alert != OperatorProblem::OnlyTwoNetworks).collect()
        };
        let europe = [(Region::Europe, 1, true), (Region::Europe, 2, true)];
        let with = |asia: &[bool]| {
            let asia = (1..).zip(asia).map(|(network, connected)| (region, network, *connected));
            europe.into_iter().chain(asia).collect::<Vec<_>>()
        };
        assert_eq!(active_alerts(&with(&[true, true])), []);
        assert_eq!(active_alerts(&with(&[true, false])), [OperatorProblem::SingleNetwork(Some(region))]);
        assert_eq!(active_alerts(&with(&[false, false])), [OperatorProblem::NoAgentConnected(Some(region))]);
        assert_eq!(active_alerts(&[(region, 1, false)]), [OperatorProblem::NoAgentConnected(None)]);
        assert_eq!(active_alerts(&[(region, 1, true), (region, 1, false)]), [OperatorProblem::SingleNetwork(None)]);
    }

    #[test]
    fn quarantined_agents_are_reported_as_such_not_as_disconnected() {
        let vantage = |no, region, network, connected, quarantined| Vantage {
            no: VantageNo(no),
            region,
            network: NetworkNo(network),
            connected,
            quarantined,
            unfit: false,
        };
        let problems_and_alerts = |vantages: &[Vantage]| {
            let problems = find_problems(&Mesh::new(vantages.iter().copied()), ConfirmationPolicy::OtherNetwork);
            let active = to_operator_alerts(&problems).into_iter().filter(|(_, holds)| *holds).map(|(alert, _)| alert);
            let active = active.filter(|alert| *alert != OperatorProblem::OnlyTwoNetworks);
            (problems, active.collect::<Vec<_>>())
        };
        let europe = [vantage(1, Region::Europe, 1, true, false), vantage(2, Region::Europe, 2, true, false)];
        let asia = vantage(3, Region::Asia, 1, true, true);
        let (problems, alerts) = problems_and_alerts(&[europe[0], europe[1], asia]);
        assert_eq!(problems, [MeshProblem::RegionQuarantined(Region::Asia), MeshProblem::TwoNetworks].into());
        assert_eq!(alerts, [OperatorProblem::AllQuarantined(Some(Region::Asia))]);
        // A disconnected agent among them changes nothing; all agents disconnected is another alert.
        let disconnected = vantage(4, Region::Asia, 2, false, false);
        assert_eq!(
            problems_and_alerts(&[europe[0], europe[1], asia, disconnected]).1,
            [OperatorProblem::AllQuarantined(Some(Region::Asia))]
        );
        assert_eq!(
            problems_and_alerts(&[europe[0], europe[1], disconnected]).1,
            [OperatorProblem::NoAgentConnected(Some(Region::Asia))]
        );
        assert_eq!(
            problems_and_alerts(&[asia, disconnected]),
            ([MeshProblem::AllQuarantined].into(), vec![OperatorProblem::AllQuarantined(None)])
        );
    }
}
