//! The topology of namespaces itself: if cuts had no effect, the other tests would prove nothing.

use parallax_core::vantage::Region;
use parallax_tests::namespace_site::{NamespaceSite, request_site};
use parallax_tests::netns::{NETWORKS, RouteCut, Topology};
use parallax_tests::test_target::TargetMode;

in_a_world!(a_world_connects_cuts_and_heals, cuts_and_heals);

async fn cuts_and_heals(world: Topology) {
    let mut site = NamespaceSite::start(&world).await;
    assert_eq!(world.agent_hosts.len(), 12);
    for spot in &world.agent_hosts {
        assert_eq!(request_site(&spot.netns), "answered", "{}", spot.name);
    }
    let (one, other) = (world.agent_host(Region::Europe, NETWORKS[0]), world.agent_host(Region::Europe, NETWORKS[1]));

    world.cut_target(one, RouteCut::Reject);
    assert_eq!((request_site(&one.netns), request_site(&other.netns)), ("refused".into(), "answered".into()));
    world.remove_cuts();
    world.cut_target(one, RouteCut::Drop);
    assert_eq!((request_site(&one.netns), request_site(&other.netns)), ("silent".into(), "answered".into()));
    world.remove_cuts();
    world.isolate(other);
    assert_eq!((request_site(&one.netns), request_site(&other.netns)), ("answered".into(), "silent".into()));
    world.remove_cuts();
    assert_eq!((request_site(&one.netns), request_site(&other.netns)), ("answered".into(), "answered".into()));

    site.set(TargetMode::Refuse).await;
    assert_eq!(request_site(&one.netns), "refused");
    site.set(TargetMode::Hang).await;
    assert_eq!(request_site(&one.netns), "silent");
    site.set(TargetMode::Pass).await;
    assert_eq!(request_site(&one.netns), "answered");
}
