//! Tests of the attribution of failures with resolvers that are partly dead, recover, or serve an isolated
//! network.
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use parallax_dial::{BlockedAddressMode, DialError, DialGuard, DialPolicy, DnsRecordKind, DnsResolver, Host, HostName};
use tokio::{net::UdpSocket, time::Instant};

/// The server's answer to one query: a response code with no records, an address, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptedAnswer {
    Code(u8),
    Address,
    Silence,
}

const SERVFAIL: ScriptedAnswer = ScriptedAnswer::Code(2);
const NXDOMAIN: ScriptedAnswer = ScriptedAnswer::Code(3);

/// Starts a name server whose answers `say` decides by name (lower case, no trailing dot) and type.
async fn server(say: impl Fn(&str, u16) -> ScriptedAnswer + Send + 'static) -> DnsResolver {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut packet).await {
            if let Some(reply) = reply(&packet[..len], &say) {
                let _ = socket.send_to(&reply, from).await;
            }
        }
    });
    DnsResolver::with_servers(&[address]).unwrap().with_limit(Duration::from_millis(500))
}

fn reply(packet: &[u8], say: &impl Fn(&str, u16) -> ScriptedAnswer) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while packet[at] != 0 {
        let len = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + len]).to_ascii_lowercase());
        at += 1 + len;
    }
    let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
    let (code, has_address) = match say(&labels.join("."), kind) {
        ScriptedAnswer::Code(code) => (code, false),
        ScriptedAnswer::Address => (0, kind == 1),
        ScriptedAnswer::Silence => return None,
    };
    let mut out = packet[..2].to_vec();
    out.extend([0x81, 0x80 | code, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
    out.extend(&packet[12..at + 5]);
    if has_address {
        out.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 1]);
    }
    Some(out)
}

async fn resolve(resolver: &DnsResolver, host: &str) -> Result<(), DialError> {
    let Ok(Host::Name(name)) = Host::parse(host) else { panic!("{host}") };
    resolver.addresses(&name, Instant::now() + Duration::from_secs(10)).await.map(drop)
}

fn zone(name: &str) -> HostName {
    let Ok(Host::Name(zone)) = Host::parse(name) else { panic!("{name}") };
    zone
}

#[tokio::test]
async fn a_resolver_with_only_cached_answers_is_no_fault_of_the_name() {
    for rest in [SERVFAIL, ScriptedAnswer::Code(5), ScriptedAnswer::Silence] {
        let resolver = server(move |name, _| match name {
            "" | "com" | "cached.example" => ScriptedAnswer::Address,
            _ => rest,
        })
        .await;
        assert_eq!(resolve(&resolver, "cached.example").await, Ok(()), "{rest:?}");
        assert_eq!(resolve(&resolver, "shop.example").await, Err(DialError::ResolverDead), "{rest:?}");
        let name = zone("shop.example");
        let by = Instant::now() + Duration::from_secs(10);
        let result = resolver.records(&name, DnsRecordKind::Mx, by).await;
        assert_eq!(result.map(drop), Err(DialError::ResolverDead), "{rest:?}");
        let alive = resolver.check_alive(Instant::now() + Duration::from_secs(5)).await;
        assert_eq!(alive, Err(DialError::ResolverDead), "{rest:?}");
    }
}

#[tokio::test]
async fn a_name_is_at_fault_if_the_resolver_answers_other_names() {
    for (answer, error) in [
        (SERVFAIL, DialError::ServFail { code: 2 }),
        (NXDOMAIN, DialError::NotFound),
        (ScriptedAnswer::Silence, DialError::DnsTimeout),
    ] {
        let resolver = server(move |name, _| match name {
            "shop.example" => answer,
            "" => ScriptedAnswer::Address,
            _ => NXDOMAIN,
        })
        .await;
        assert_eq!(resolve(&resolver, "shop.example").await, Err(error), "{answer:?}");
    }
}

#[tokio::test]
async fn one_zone_that_fails_does_not_make_a_resolver_dead() {
    for dead in ["com", "org", "de"] {
        let resolver = server(move |name, _| match name {
            "" => ScriptedAnswer::Address,
            name if name.ends_with(&format!(".{dead}")) => ScriptedAnswer::Silence,
            _ => NXDOMAIN,
        })
        .await;
        assert_eq!(resolver.check_alive(Instant::now() + Duration::from_secs(5)).await, Ok(()), "{dead}");
    }
}

#[tokio::test]
async fn a_recovering_resolver_is_no_fault_of_the_name() {
    let is_dead = Arc::new(Mutex::new(true));
    let now = Arc::clone(&is_dead);
    let resolver = server(move |name, _| match name {
        "shop.example" => SERVFAIL,
        _ if *now.lock().unwrap() => SERVFAIL,
        "" => ScriptedAnswer::Address,
        _ => NXDOMAIN,
    })
    .await;
    assert_eq!(resolve(&resolver, "shop.example").await, Err(DialError::ResolverDead));
    *is_dead.lock().unwrap() = false;
    // The resolver is alive after the query, and was not before.
    assert_eq!(resolve(&resolver, "shop.example").await, Err(DialError::ResolverDead));
    assert_eq!(resolver.check_alive(Instant::now() + Duration::from_secs(5)).await, Ok(()));
}

#[tokio::test]
async fn a_query_during_which_the_resolver_recovered_is_no_fault_of_the_name() {
    let first_query = Arc::new(Mutex::new(None));
    let first = Arc::clone(&first_query);
    // Dead for the first 4.5 s of the query, well past the liveness check; the name is never answered.
    let resolver = server(move |name, _| {
        let begun = *first.lock().unwrap().get_or_insert_with(Instant::now);
        let is_dead = begun.elapsed() < Duration::from_millis(4_500);
        match name {
            "shop.example" => ScriptedAnswer::Silence,
            _ if is_dead => ScriptedAnswer::Silence,
            "" => ScriptedAnswer::Address,
            _ => NXDOMAIN,
        }
    })
    .await
    .with_limit(Duration::from_secs(5));
    assert_eq!(resolve(&resolver, "shop.example").await, Err(DialError::ResolverDead));
}

#[tokio::test]
async fn an_isolated_network_is_judged_by_its_own_zones() {
    let corp = |name: &str, _: u16| match name {
        "app.corp.internal" | "db.corp.internal" => ScriptedAnswer::Address,
        name if name.ends_with("corp.internal") => NXDOMAIN,
        _ => ScriptedAnswer::Code(5),
    };
    let resolver = server(corp).await;
    assert_eq!(resolve(&resolver, "app.corp.internal").await, Ok(()));
    assert_eq!(resolve(&resolver, "gone.corp.internal").await, Err(DialError::NotFound));
    // The same with zones that the operator names.
    let resolver = server(corp).await.with_liveness_zones(&[zone("corp.internal")]);
    assert_eq!(resolve(&resolver, "gone.corp.internal").await, Err(DialError::NotFound));
    // A name server that denies all of them counts as dead.
    let liar = server(|_, _| NXDOMAIN).await.with_liveness_zones(&[zone("corp.internal")]);
    assert_eq!(resolve(&liar, "gone.corp.internal").await, Err(DialError::ResolverDead));
}

#[tokio::test]
async fn concurrent_liveness_checks_share_one_query() {
    let questions = Arc::new(Mutex::new(0));
    let count = Arc::clone(&questions);
    let resolver = server(move |name, _| {
        if name.starts_with("px") {
            *count.lock().unwrap() += 1;
        }
        match name {
            "" => ScriptedAnswer::Address,
            name if name.ends_with("example") => SERVFAIL,
            _ => NXDOMAIN,
        }
    })
    .await;
    let guard = DialGuard::new(resolver, DialPolicy::default());
    let by = Instant::now() + Duration::from_secs(10);
    // Few enough that a busy host answers them in time.
    let resolutions = (0..40).map(|n| {
        let guard = guard.clone();
        async move {
            let host = Host::parse(&format!("shop{n}.example")).unwrap();
            guard.admit(&host, 80, BlockedAddressMode::DropBlocked, by).await.map(drop)
        }
    });
    let answers = futures_util::future::join_all(resolutions).await;
    assert!(answers.iter().all(|answer| *answer == Err(DialError::ServFail { code: 2 })), "{answers:?}");
    assert!(*questions.lock().unwrap() < 40, "{} questions", questions.lock().unwrap());
}
