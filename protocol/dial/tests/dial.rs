//! Tests of the guard and the dialler with real sockets on loopback and a scripted name server.

#![allow(clippy::unwrap_used)]

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use parallax_dial::{
    BlockedAddressMode, BlockedClass, DialError, DialGuard, DialPolicy, DnsResolver, HEAD_START, Host, OwnAddresses,
    SourceAddresses,
    stub::{StubAnswer, StubServer},
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Instant, timeout},
};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn private() -> DialPolicy {
    DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() }
}

fn guard(server: &StubServer, policy: DialPolicy) -> DialGuard {
    DialGuard::new(DnsResolver::with_servers(&[server.address()]).unwrap(), policy)
}

async fn empty_zone() -> StubServer {
    StubServer::start(|_, _| StubAnswer::NxDomain).await.unwrap()
}

#[tokio::test]
async fn a_private_target_is_reached_only_if_allowed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let zone = empty_zone().await;
    let admitted =
        guard(&zone, private()).admit(&host("127.0.0.1"), port, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    let connected = admitted.connect(soon()).await.unwrap();
    assert_eq!(connected.peer, listener.local_addr().unwrap());
    assert_eq!(admitted.resolution_time(), Duration::ZERO);

    for name in ["127.0.0.1", "::ffff:127.0.0.1", "localhost", "a.localhost."] {
        let refused =
            guard(&zone, DialPolicy::default()).admit(&host(name), port, BlockedAddressMode::DropBlocked, soon()).await;
        assert_eq!(refused.unwrap_err(), DialError::AddressNotAllowed(BlockedClass::Loopback), "{name}");
    }
    assert_eq!(zone.query_count(), 0, "neither literals nor localhost are queried");
}

#[tokio::test]
async fn localhost_is_reached_although_only_one_family_listens() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let zone = empty_zone().await;
    let admitted =
        guard(&zone, private()).admit(&host("localhost"), port, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    assert_eq!(admitted.addresses().len(), 2);
    assert_eq!(admitted.connect(soon()).await.unwrap().peer, listener.local_addr().unwrap());
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let zone = empty_zone().await;
    let admitted =
        guard(&zone, private()).admit(&host("127.0.0.1"), port, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    assert_eq!(admitted.connect(soon()).await.unwrap_err(), DialError::Refused);
}

#[tokio::test]
async fn an_unresponsive_first_address_costs_only_the_head_start() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _hole = black_hole(Ipv4Addr::new(127, 0, 0, 2), port).await;
    let zone = StubServer::start(|_, _| StubAnswer::Addresses(vec![ip("127.0.0.2"), ip("127.0.0.1")])).await.unwrap();
    let admitted = guard(&zone, private())
        .admit(&host("two.example"), port, BlockedAddressMode::DropBlocked, soon())
        .await
        .unwrap();
    let connected = admitted.connect(soon()).await.unwrap();
    assert_eq!(connected.peer, listener.local_addr().unwrap());
    assert!(connected.connect_time >= HEAD_START);
    assert!(connected.connect_time < Duration::from_secs(4));
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let hole = black_hole(Ipv4Addr::LOCALHOST, 0).await;
    let zone = empty_zone().await;
    let admitted = guard(&zone, private())
        .admit(&host("127.0.0.1"), hole.1, BlockedAddressMode::DropBlocked, soon())
        .await
        .unwrap();
    let deadline = Instant::now() + Duration::from_millis(100);
    assert_eq!(admitted.connect(deadline).await.unwrap_err(), DialError::Timeout);
}

/// Opens a listener with a full backlog: the system drops further SYNs, like a firewall that drops silently.
async fn black_hole(ip: Ipv4Addr, port: u16) -> (TcpListener, u16, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((ip, port).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(50), TcpStream::connect(address)).await {
        filling.push(stream.unwrap());
    }
    (listener, address.port(), filling)
}

#[tokio::test]
async fn no_spelling_of_a_private_url_is_admitted() {
    let zone = empty_zone().await;
    let guard = guard(&zone, DialPolicy::default());
    for text in [
        "http://127.0.0.1",
        "http://127.1",
        "http://0",
        "http://[::]",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:7f00:1]",
        "http://[::127.0.0.1]",
        "http://[::ffff:0:127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[64:ff9b:1::a9fe:a9fe]",
        "http://[2002:7f00:1::]",
        "http://[2001:0:7f00:1::]",
        "http://[fe80::1]",
        "http://[fec0::1]",
        "http://[fd00:ec2::254]",
        "http://169.254.169.254",
        "http://168.63.129.16",
        "http://100.100.100.200",
        "http://0x7f.1",
        "http://017700000001",
        "http://2130706433",
        "http://localhost",
        "http://localhost.",
        "http://a.localhost",
        "http://１２７.０.０.１",
        "http://127。0。0。1",
        "http://example.com@127.0.0.1",
        "http://127.0.0.1:80#@example.com",
    ] {
        let url = url::Url::parse(text).unwrap();
        let host = Host::from_url(&url.host().unwrap()).unwrap();
        for mode in [BlockedAddressMode::DropBlocked, BlockedAddressMode::RefuseAny] {
            let refused = guard.admit(&host, 80, mode, soon()).await;
            assert!(matches!(refused, Err(DialError::AddressNotAllowed(_))), "{text}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn the_configured_source_address_is_used() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let zone = empty_zone().await;
    let source = SourceAddresses { v4: Some(Ipv4Addr::new(127, 0, 0, 77)), v6: None };
    let admitted = guard(&zone, DialPolicy { source, ..private() })
        .admit(&host("127.0.0.1"), port, BlockedAddressMode::DropBlocked, soon())
        .await
        .unwrap();
    let connected = admitted.connect(soon()).await.unwrap();
    assert_eq!(connected.stream.local_addr().unwrap().ip(), ip("127.0.0.77"));

    let source = SourceAddresses { v4: Some(Ipv4Addr::new(192, 0, 2, 1)), v6: None };
    let admitted = guard(&zone, DialPolicy { source, ..private() })
        .admit(&host("127.0.0.1"), port, BlockedAddressMode::DropBlocked, soon())
        .await
        .unwrap();
    assert_eq!(admitted.connect(soon()).await.unwrap_err(), DialError::NoSource);
}

#[tokio::test]
async fn a_name_with_a_private_address_is_dropped_for_a_check_and_refused_for_a_delivery() {
    let zone =
        StubServer::start(|_, _| StubAnswer::Addresses(vec![ip("8.8.8.8"), ip("10.0.0.1"), ip("::1")])).await.unwrap();
    let guard = guard(&zone, DialPolicy::default());
    let name = host("mixed.example");
    let admitted = guard.admit(&name, 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    assert_eq!(admitted.addresses(), ["8.8.8.8:80".parse().unwrap()]);
    let refused = guard.admit(&name, 80, BlockedAddressMode::RefuseAny, soon()).await.unwrap_err();
    assert_eq!(refused, DialError::AddressNotAllowed(BlockedClass::Loopback));
}

#[tokio::test]
async fn a_name_that_changes_its_answer_never_gets_a_private_address_through() {
    let zone = StubServer::start(|_, count| {
        let inside = ["127.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1"];
        let answer = if count % 2 == 0 { "8.8.8.8" } else { inside[count / 2 % inside.len()] };
        StubAnswer::Addresses(vec![ip(answer)])
    })
    .await
    .unwrap();
    let guard = guard(&zone, DialPolicy::default());
    for _ in 0..200 {
        match guard.admit(&host("rebind.example"), 80, BlockedAddressMode::DropBlocked, soon()).await {
            Ok(admitted) => assert_eq!(admitted.addresses(), ["8.8.8.8:80".parse().unwrap()]),
            Err(DialError::AddressNotAllowed(_) | DialError::NoAddress) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(zone.query_count(), 400, "every attempt queries again, once for each family");
}

#[tokio::test]
async fn dns_failures_are_distinguished() {
    let zone = StubServer::start(|name, _| match name {
        "gone.example" => StubAnswer::NxDomain,
        "empty.example" => StubAnswer::Addresses(Vec::new()),
        "broken.example" => StubAnswer::ServFail,
        _ => StubAnswer::Silence,
    })
    .await
    .unwrap();
    let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap().with_limit(Duration::from_secs(1));
    let guard = DialGuard::new(resolver, DialPolicy::default());
    for (name, error) in [
        ("gone.example", DialError::NotFound),
        ("empty.example", DialError::NoAddress),
        ("broken.example", DialError::ServFail { code: 2 }),
        ("silent.example", DialError::DnsTimeout),
    ] {
        let failed = guard.admit(&host(name), 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap_err();
        assert_eq!(failed, error, "{name}");
    }
}

#[tokio::test]
async fn a_resolver_without_answers_is_the_hosts_fault() {
    let silent = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let resolver =
        DnsResolver::with_servers(&[silent.local_addr().unwrap()]).unwrap().with_limit(Duration::from_millis(200));
    let guard = DialGuard::new(resolver, DialPolicy::default());
    let failed = guard.admit(&host("any.example"), 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap_err();
    assert_eq!(failed, DialError::ResolverDead);
}

/// Answers every query with NXDOMAIN, including the one for the root, after a delay.
async fn liar(after: Duration) -> std::net::SocketAddr {
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    let socket = std::sync::Arc::new(socket);
    tokio::spawn(async move {
        let mut packet = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut packet).await {
            let (mut reply, socket) = (packet[..len].to_vec(), std::sync::Arc::clone(&socket));
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                // End of the question: the rest (EDNS) is cut off.
                let name = reply[12..].iter().position(|&byte| byte == 0).unwrap();
                reply.truncate(12 + name + 5);
                (reply[2], reply[3]) = (0x81, 0x83);
                reply[6..12].fill(0);
                let _ = socket.send_to(&reply, from).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_resolver_that_denies_every_name_is_the_hosts_fault() {
    let resolver = DnsResolver::with_servers(&[liar(Duration::ZERO).await]).unwrap();
    let guard = DialGuard::new(resolver, DialPolicy::default());
    let failed = guard.admit(&host("any.example"), 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap_err();
    assert_eq!(failed, DialError::ResolverDead);
}

#[tokio::test]
async fn a_resolver_that_takes_eight_seconds_is_the_hosts_fault() {
    let resolver = DnsResolver::with_servers(&[liar(Duration::from_secs(8)).await]).unwrap();
    let guard = DialGuard::new(resolver, DialPolicy::default());
    let by = Instant::now() + Duration::from_secs(10);
    let failed = guard.admit(&host("any.example"), 80, BlockedAddressMode::DropBlocked, by).await.unwrap_err();
    assert_eq!(failed, DialError::ResolverDead);
}

#[tokio::test]
async fn a_family_that_is_never_answered_does_not_hide_the_other() {
    let zone = StubServer::start(|_, count| {
        if count == 0 { StubAnswer::Silence } else { StubAnswer::Addresses(vec![ip("8.8.8.8"), ip("2606:4700::1")]) }
    })
    .await
    .unwrap();
    let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap();
    let guard = DialGuard::new(resolver, DialPolicy::default());
    let admitted = guard.admit(&host("half.example"), 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    assert!(!admitted.addresses().is_empty());
}

#[tokio::test]
async fn names_of_private_networks_are_not_queried() {
    let zone = StubServer::start(|_, _| StubAnswer::Addresses(vec!["8.8.8.8".parse().unwrap()])).await.unwrap();
    let closed = guard(&zone, DialPolicy::default());
    for name in ["vault.internal", "nas.local", "router.home.arpa", "db.corp"] {
        let admitted = closed.admit(&host(name), 80, BlockedAddressMode::DropBlocked, soon()).await;
        assert_eq!(admitted.unwrap_err(), DialError::AddressNotAllowed(BlockedClass::PrivateName), "{name}");
    }
    assert_eq!(zone.query_count(), 0);
    assert!(
        guard(&zone, private()).admit(&host("nas.local"), 80, BlockedAddressMode::DropBlocked, soon()).await.is_ok()
    );
}

#[tokio::test]
async fn addresses_of_this_host_are_dropped_and_the_others_dialled() {
    let zone = StubServer::start(|name, _| {
        let addresses: &[&str] = if name == "own.test" { &["5.9.9.9", "2600::5"] } else { &["5.9.9.9", "8.8.8.8"] };
        StubAnswer::Addresses(addresses.iter().map(|ip| ip.parse().unwrap()).collect())
    })
    .await
    .unwrap();
    let own = || Ok(vec!["5.9.9.9".parse().unwrap(), "2600::5".parse().unwrap()]);
    let guard = guard(&zone, DialPolicy::default()).with_own_addresses(OwnAddresses::from_reader(own));
    let refused = guard.admit(&host("own.test"), 80, BlockedAddressMode::DropBlocked, soon()).await;
    assert_eq!(refused.unwrap_err(), DialError::AddressNotAllowed(BlockedClass::OwnHost));
    let admitted = guard.admit(&host("both.test"), 80, BlockedAddressMode::DropBlocked, soon()).await.unwrap();
    assert_eq!(admitted.with_late_addresses().await.addresses(), ["8.8.8.8:80".parse().unwrap()]);
}
