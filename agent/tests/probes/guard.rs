//! No check of any kind reaches an address inside, by literal, name, redirect or changed answer.

use std::time::Duration;

use parallax_agent::probe::run;
use parallax_dial::{
    Policy, Resolver,
    stub::{Answer, StubServer},
};
use parallax_protocol::{
    check::CheckSpec,
    result::{AddressClass, Failure, Outcome, OwnFault, Phase},
};

use crate::world::{Reply, Server, get, net_with, no_resolver, resolver_to};

fn refused(class: AddressClass) -> Outcome {
    Outcome::Failed(Failure::AddressNotAllowed { class })
}

#[tokio::test]
async fn literals_inside_are_refused_without_a_connection() {
    let server = Server::start(|_| Reply::ok("")).await;
    let port = server.address.port();
    let net = net_with(&no_resolver(), Policy::default(), &[]);
    for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:7f00:1]", "localhost"] {
        let check = CheckSpec::Http(get(&format!("http://{host}:{port}/")));
        assert_eq!(run(&check, &net).await.outcome, refused(AddressClass::Loopback), "{host}");
    }
    let check = CheckSpec::Http(get("http://169.254.169.254/latest/meta-data/"));
    assert_eq!(run(&check, &net).await.outcome, refused(AddressClass::LinkLocal));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let server = Server::start(|_| Reply::ok("")).await;
    let (_zone, resolver) = resolver_to(&["127.0.0.1", "10.0.0.1", "::1"]).await;
    let net = net_with(&resolver, Policy::default(), &[]);
    let check = CheckSpec::Http(get(&format!("http://inside.example:{}/", server.address.port())));
    assert!(matches!(run(&check, &net).await.outcome, Outcome::Failed(Failure::AddressNotAllowed { .. })));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_that_leads_to_a_denied_address_is_refused() {
    let inside = Server::start(|_| Reply::ok("secret")).await;
    let target = inside.address.port();
    for location in [
        format!("http://127.0.0.2:{target}/"),
        format!("http://hop.example:{target}/"),
        format!("http://[::ffff:127.0.0.2]:{target}/"),
    ] {
        let front = Server::start(move |_| Reply::redirect(302, &location)).await;
        let (_zone, resolver) = resolver_to(&["127.0.0.2"]).await;
        let deny = vec!["127.0.0.2".parse().unwrap()];
        let net = net_with(&resolver, Policy { allow_private: true, deny, ..Policy::default() }, &[]);
        let report = run(&CheckSpec::Http(get(&front.url("/"))), &net).await;
        assert_eq!(report.outcome, refused(AddressClass::Own));
        assert_eq!(front.requests().len(), 1);
    }
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_to_a_denied_address_between_hops_is_refused() {
    let server = Server::start(|_| Reply::redirect(302, "/again")).await;
    let zone = StubServer::start(|_, nth| {
        let address = if nth < 2 { "127.0.0.1" } else { "127.0.0.2" };
        Answer::Addresses(vec![address.parse().unwrap()])
    })
    .await
    .unwrap();
    let resolver = Resolver::with_servers(&[zone.address()]).unwrap();
    let deny = vec!["127.0.0.2".parse().unwrap()];
    let net = net_with(&resolver, Policy { allow_private: true, deny, ..Policy::default() }, &[]);
    let check = CheckSpec::Http(get(&format!("http://rebind.example:{}/", server.address.port())));
    assert_eq!(run(&check, &net).await.outcome, refused(AddressClass::Own));
    assert_eq!(zone.asked(), 4, "each hop asks anew");
}

#[tokio::test]
async fn names_that_do_not_resolve_have_their_own_words() {
    let zone = StubServer::start(|name, _| match name {
        "gone.example" => Answer::NxDomain,
        "empty.example" => Answer::Addresses(Vec::new()),
        "broken.example" => Answer::ServFail,
        _ => Answer::Silence,
    })
    .await
    .unwrap();
    let brief = Duration::from_secs(1);
    let resolver = Resolver::with_servers(&[zone.address()]).unwrap().limited_to(brief);
    let net = net_with(&resolver, Policy::default(), &[]);
    for (host, failure) in [
        ("gone.example", Failure::DnsNotFound),
        ("empty.example", Failure::DnsNoRecord),
        ("broken.example", Failure::DnsFailed { code: 2 }),
        ("silent.example", Failure::Timeout { phase: Phase::Dns }),
    ] {
        let check = CheckSpec::Http(get(&format!("http://{host}/")));
        assert_eq!(run(&check, &net).await.outcome, Outcome::Failed(failure), "{host}");
    }
    let dead = Resolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap().limited_to(brief);
    let net = net_with(&dead, Policy::default(), &[]);
    let check = CheckSpec::Http(get("http://any.example/"));
    assert_eq!(run(&check, &net).await.outcome, Outcome::Inconclusive(OwnFault::ResolverDead));
}
