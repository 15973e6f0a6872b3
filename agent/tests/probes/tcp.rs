//! Tests of the tcp probe.

use std::{net::Ipv4Addr, time::Duration};

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireTcpCheck},
    result::{AddressClass, WireFailure, WireOutcome, WirePhase},
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::harness::{no_resolver, probes, probes_with, probes_within, resolver_to};

fn to(host: &str, port: u16) -> WireCheckSpec {
    WireCheckSpec::Tcp(WireTcpCheck { host: host.to_owned(), port })
}

#[tokio::test]
async fn an_open_port_passes_by_address_and_by_name() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let report = run(&to("127.0.0.1", port), &probes()).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.address, Some(Ipv4Addr::LOCALHOST.into()));
    assert!(report.latency_ms.unwrap() >= 1);
    assert!(report.phases.connect_us.is_some());
    assert_eq!(report.phases.dns_us, None, "a literal is not resolved");

    let (_zone, resolver) = resolver_to(&["127.0.0.1"]).await;
    let probes =
        probes_with(&resolver, DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() }, &[]);
    let report = run(&to("db.example", port), &probes).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert!(report.phases.dns_us.is_some());
}

#[tokio::test]
async fn an_ipv6_literal_is_connected_to() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
    let report = run(&to("::1", listener.local_addr().unwrap().port()), &probes()).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let report = run(&to("127.0.0.1", port), &probes()).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Refused));
    assert_eq!(report.latency_ms, None);
}

#[tokio::test]
async fn silence_ends_at_the_limit() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    let brief = Duration::from_millis(50);
    while let Ok(stream) = tokio::time::timeout(brief, TcpStream::connect(address)).await {
        filling.push(stream.unwrap());
    }
    let report = run(&to("127.0.0.1", address.port()), &probes_within(Duration::from_millis(100))).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Connect }));
}

#[tokio::test]
async fn private_and_invalid_hosts_are_refused() {
    let guarded = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    let refused = WireOutcome::Failed(WireFailure::AddressNotAllowed { class: AddressClass::Loopback });
    for host in ["127.0.0.1", "::1", "localhost", "::ffff:127.0.0.1"] {
        assert_eq!(run(&to(host, 80), &guarded).await.outcome, refused, "{host}");
    }
    for host in ["127.1", "2130706433", "[::1]", "a b", ""] {
        let outcome = run(&to(host, 80), &probes()).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{host}: {outcome:?}");
    }
}
