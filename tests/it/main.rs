//! The whole service under test: one binary, one mod per topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

/// A test that plays a scenario (an async function of a `World`) inside network namespaces.
macro_rules! in_a_world {
    ($(#[$attribute:meta])* $name:ident, $scenario:path) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            // The test's full name, by which the inner run finds it again: without the binary's own name.
            let path = concat!(module_path!(), "::", stringify!($name));
            let (_, test) = path.split_once("::").expect("a module lies in the binary");
            parallax_tests::netns::run(test, $scenario);
        }
    };
}
mod acme;
mod alerts;
mod api;
mod beyond;
mod bombs;
mod calendar;
mod charges;
mod clients;
mod clocks;
mod copies;
mod damage;
mod deliveries;
mod demo;
mod detection;
mod doors;
mod feeds;
mod flaps;
mod floods;
mod frames;
mod full;
mod guard;
mod guarded;
mod heartbeat;
mod identity;
mod incidents;
mod join;
mod kills;
mod legacy;
mod lines;
mod mail;
mod misbehaved;
mod notices;
mod outage;
mod pages;
mod peers;
mod points;
mod proxy;
mod resolver;
mod restart;
mod revoked;
mod slots;
mod stage;
mod stall;
mod subscribers;
mod tidy;
mod tls;
mod tls_floods;
mod world;
