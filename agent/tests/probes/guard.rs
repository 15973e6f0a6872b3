//! Tests that no check of any kind reaches an internal address, by literal, name, redirect or changed answer.

use std::time::Duration;

use parallax_agent::probe::{Probes, roots, run};
use parallax_dial::{
    DialGuard, DialPolicy, DnsResolver, OwnAddresses,
    stub::{StubAnswer, StubServer},
};
use parallax_protocol::{
    check::{WireCertificateCheck, WireCheckSpec, WireComponentCheck, WirePingCheck, WireTcpCheck},
    result::{AddressClass, WireFailure, WireOutcome, WireOwnFault, WirePhase},
    text::ShortText,
};

use crate::harness::{ScriptedReply, ScriptedServer, get, no_resolver, probes_with, resolver_to};

fn refused(class: AddressClass) -> WireOutcome {
    WireOutcome::Failed(WireFailure::AddressNotAllowed { class })
}

#[tokio::test]
async fn literals_inside_are_refused_without_a_connection() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("")).await;
    let port = server.address.port();
    let probes = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:7f00:1]", "localhost"] {
        let check = WireCheckSpec::Http(get(&format!("http://{host}:{port}/")));
        assert_eq!(run(&check, &probes).await.outcome, refused(AddressClass::Loopback), "{host}");
    }
    let check = WireCheckSpec::Http(get("http://169.254.169.254/latest/meta-data/"));
    assert_eq!(run(&check, &probes).await.outcome, refused(AddressClass::LinkLocal));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("")).await;
    let (_zone, resolver) = resolver_to(&["127.0.0.1", "10.0.0.1", "::1"]).await;
    let probes = probes_with(&resolver, DialPolicy::default(), &[]);
    let check = WireCheckSpec::Http(get(&format!("http://inside.example:{}/", server.address.port())));
    assert!(matches!(run(&check, &probes).await.outcome, WireOutcome::Failed(WireFailure::AddressNotAllowed { .. })));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_that_leads_to_a_denied_address_is_refused() {
    let inside = ScriptedServer::start(|_| ScriptedReply::ok("secret")).await;
    let target = inside.address.port();
    for location in [
        format!("http://127.0.0.2:{target}/"),
        format!("http://hop.example:{target}/"),
        format!("http://[::ffff:127.0.0.2]:{target}/"),
    ] {
        let front = ScriptedServer::start(move |_| ScriptedReply::redirect(302, &location)).await;
        let (_zone, resolver) = resolver_to(&["127.0.0.2"]).await;
        let deny = vec!["127.0.0.2".parse().unwrap()];
        let probes = probes_with(
            &resolver,
            DialPolicy { allow_private: true, allow_own_host: true, deny, ..DialPolicy::default() },
            &[],
        );
        let report = run(&WireCheckSpec::Http(get(&front.url("/"))), &probes).await;
        assert_eq!(report.outcome, refused(AddressClass::Own));
        assert_eq!(front.requests().len(), 1);
    }
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_to_a_denied_address_between_hops_is_refused() {
    let server = ScriptedServer::start(|_| ScriptedReply::redirect(302, "/again")).await;
    let zone = StubServer::start(|_, nth| {
        let address = if nth < 2 { "127.0.0.1" } else { "127.0.0.2" };
        StubAnswer::Addresses(vec![address.parse().unwrap()])
    })
    .await
    .unwrap();
    let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap();
    let deny = vec!["127.0.0.2".parse().unwrap()];
    let probes = probes_with(
        &resolver,
        DialPolicy { allow_private: true, allow_own_host: true, deny, ..DialPolicy::default() },
        &[],
    );
    let check = WireCheckSpec::Http(get(&format!("http://rebind.example:{}/", server.address.port())));
    assert_eq!(run(&check, &probes).await.outcome, refused(AddressClass::Own));
    assert_eq!(zone.query_count(), 4, "each hop queries again");
}

#[tokio::test]
async fn unresolvable_names_have_their_own_failures() {
    let zone = StubServer::start(|name, _| match name {
        "gone.example" => StubAnswer::NxDomain,
        "empty.example" => StubAnswer::Addresses(Vec::new()),
        "broken.example" => StubAnswer::ServFail,
        _ => StubAnswer::Silence,
    })
    .await
    .unwrap();
    let brief = Duration::from_secs(1);
    let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap().with_limit(brief);
    let probes = probes_with(&resolver, DialPolicy::default(), &[]);
    for (host, failure) in [
        ("gone.example", WireFailure::DnsNotFound),
        ("empty.example", WireFailure::DnsNoRecord),
        ("broken.example", WireFailure::DnsFailed { code: 2 }),
        ("silent.example", WireFailure::Timeout { phase: WirePhase::Dns }),
    ] {
        let check = WireCheckSpec::Http(get(&format!("http://{host}/")));
        assert_eq!(run(&check, &probes).await.outcome, WireOutcome::Failed(failure), "{host}");
    }
    let dead = DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap().with_limit(brief);
    let probes = probes_with(&dead, DialPolicy::default(), &[]);
    let check = WireCheckSpec::Http(get("http://any.example/"));
    assert_eq!(run(&check, &probes).await.outcome, WireOutcome::Inconclusive(WireOwnFault::ResolverDead));
}

/// Returns one check of every type that dials its target.
fn every_type(host: &str, port: u16) -> Vec<WireCheckSpec> {
    let url = if host.contains(':') { format!("http://[{host}]:{port}/") } else { format!("http://{host}:{port}/") };
    let host = || host.to_owned();
    vec![
        WireCheckSpec::Http(get(&url)),
        WireCheckSpec::Tcp(WireTcpCheck { host: host(), port }),
        WireCheckSpec::Ping(WirePingCheck { host: host() }),
        WireCheckSpec::Certificate(WireCertificateCheck { host: host(), port, warn_days: 14 }),
        WireCheckSpec::Component(WireComponentCheck { vendor_url: url, component: None }),
    ]
}

#[tokio::test]
async fn allowed_private_networks_leave_this_host_blocked_for_every_type() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("secret")).await;
    let (_zone, resolver) = resolver_to(&["127.0.0.1", "::1"]).await;
    let probes = probes_with(&resolver, DialPolicy { allow_private: true, ..DialPolicy::default() }, &[]);
    for host in ["127.0.0.1", "::ffff:127.0.0.1", "::1", "localhost", "own.example"] {
        for check in every_type(host, server.address.port()) {
            let outcome = run(&check, &probes).await.outcome;
            match (&check, &outcome) {
                (WireCheckSpec::Component(_), WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { detail })) => {
                    assert!(
                        detail.as_str().starts_with("address not allowed: this host, or excluded by the operator"),
                        "{detail}"
                    );
                }
                _ => assert_eq!(outcome, refused(AddressClass::Own), "{check:?}"),
            }
        }
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_this_hosts_addresses_checks_are_inconclusive() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("secret")).await;
    // As in a systemd unit without AF_NETLINK.
    let unreadable = OwnAddresses::from_reader(|| Err(std::io::Error::from_raw_os_error(97)));
    let policy = DialPolicy { allow_private: true, ..DialPolicy::default() };
    let guard = DialGuard::new(no_resolver(), policy).with_own_addresses(unreadable);
    let probes = Probes::new(guard, roots(&[]).unwrap()).unwrap();
    for check in every_type("127.0.0.1", server.address.port()) {
        let detail = ShortText::new("this host's own addresses can't be read");
        let inconclusive = WireOutcome::Inconclusive(WireOwnFault::Internal { detail });
        assert_eq!(run(&check, &probes).await.outcome, inconclusive, "{check:?}");
    }
    assert!(server.requests().is_empty());
}
