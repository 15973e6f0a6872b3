//! The demo's targets, requested from the agents' own addresses.

use std::net::IpAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use super::super::demo_agents::DEMO_AGENTS;
use super::*;

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn a_behaviour_depends_on_the_callers_region() {
    let at = |behaviour: SiteBehaviour, from| behaviour.respond(from, Duration::ZERO);
    let (well, ill) = (
        SiteResponse { is_healthy: true, delay: Duration::ZERO },
        SiteResponse { is_healthy: false, delay: Duration::ZERO },
    );
    for region in Region::ALL.into_iter().map(Some).chain([None]) {
        assert_eq!(at(SiteBehaviour::Healthy, region), well);
        assert_eq!(at(SiteBehaviour::Down, region), ill);
        let asia = region == Some(Region::Asia);
        assert_eq!(at(SiteBehaviour::DownFrom(Region::Asia), region), if asia { ill } else { well });
        let slow = at(SiteBehaviour::SlowFrom(Region::Asia), region);
        assert_eq!((slow.is_healthy, slow.delay == SLOW), (true, asia));
    }
}

#[test]
fn a_flapping_site_starts_up_and_alternates() {
    let is_well = |seconds| SiteBehaviour::Flapping.respond(None, SECONDS(seconds)).is_healthy;
    assert_eq!([0, 149, 150, 239, 240, 389, 390].map(is_well), [true, true, false, false, true, true, false]);
}

/// Requests the site at that port from an address; returns the response's status line and body.
async fn ask(source: IpAddr, port: u16) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(source, 0)).unwrap();
    let mut stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_site_down_from_asia_fails_only_for_agents_in_asia() {
    let (listener, port) = bind(None).await.unwrap();
    let (stop, stopping) = watch::channel(false);
    let behaviour = SiteBehaviour::DownFrom(Region::Asia);
    let started = DemoStart { at: Timestamp::default(), instant: Instant::now() };
    let serving = tokio::spawn(serve_site(listener, Site { name: "Images", behaviour, base_ms: 5, started }, stopping));
    for agent in &DEMO_AGENTS {
        let response = ask(IpAddr::V4(agent.address()), port).await;
        let status = if agent.region == Region::Asia { "HTTP/1.1 503 " } else { "HTTP/1.1 200 " };
        assert!(response.starts_with(status), "{}: {response}", agent.name);
        assert!(response.contains(agent.region.title()), "{response}");
    }
    assert!(ask(IpAddr::V4(Ipv4Addr::LOCALHOST), port).await.contains("elsewhere"));
    stop.send_replace(true);
    serving.await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_replaced_by_a_free_one() {
    let (listener, port) = bind(None).await.unwrap();
    let (_other, other) = bind(Some(port)).await.unwrap();
    assert_ne!(other, port);
    drop(listener);
    assert_eq!(bind(Some(port)).await.unwrap().1, port);
}

#[tokio::test]
async fn an_open_port_takes_connections() {
    let (listener, port) = bind(None).await.unwrap();
    let (stop, stopping) = watch::channel(false);
    let serving = tokio::spawn(serve_port(listener, stopping));
    let socket = TcpSocket::new_v4().unwrap();
    let mut stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    stop.send_replace(true);
    serving.await.unwrap();
}
