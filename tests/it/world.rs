//! The world of namespaces itself: if a cut cuts nothing, every other test of it proves nothing.

use parallax_core::place::Region;
use parallax_tests::netns::{Cut, NETWORKS, World};
use parallax_tests::site::{Site, ask};
use parallax_tests::targets::Mode;

in_a_world!(a_world_connects_cuts_and_heals, cuts_and_heals);

async fn cuts_and_heals(world: World) {
    let mut site = Site::start(&world).await;
    assert_eq!(world.spots.len(), 12);
    for spot in &world.spots {
        assert_eq!(ask(&spot.netns), "answered", "{}", spot.name);
    }
    let (one, other) = (world.spot(Region::Europe, NETWORKS[0]), world.spot(Region::Europe, NETWORKS[1]));

    world.cut_target(one, Cut::Refused);
    assert_eq!((ask(&one.netns), ask(&other.netns)), ("refused".into(), "answered".into()));
    world.restore();
    world.cut_target(one, Cut::Silent);
    assert_eq!((ask(&one.netns), ask(&other.netns)), ("silent".into(), "answered".into()));
    world.restore();
    world.silence(other);
    assert_eq!((ask(&one.netns), ask(&other.netns)), ("answered".into(), "silent".into()));
    world.restore();
    assert_eq!((ask(&one.netns), ask(&other.netns)), ("answered".into(), "answered".into()));

    site.set(Mode::Refuse).await;
    assert_eq!(ask(&one.netns), "refused");
    site.set(Mode::Hang).await;
    assert_eq!(ask(&one.netns), "silent");
    site.set(Mode::Pass).await;
    assert_eq!(ask(&one.netns), "answered");
}
