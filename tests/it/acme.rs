//! ACME certificates from an authority that validates for itself: new hostnames, renewal, and a start without the
//! authority.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_tests::acme_authority::AcmeAuthority;
use parallax_tests::curl::{CurlResponse, fetch};
use parallax_tests::eventually::eventually;
use parallax_tests::free_ports::free_ports;
use parallax_tests::installation::CoordinatorProcess;

/// Lifetime of a certificate, in seconds; it is renewed when a third is left.
const LIFE: u32 = 60;
/// Polling interval.
const BETWEEN: Duration = Duration::from_secs(1);
/// Longest wait for a first certificate.
const ISSUED: Duration = Duration::from_secs(40);
/// Longest wait for a renewal.
const RENEWED: Duration = Duration::from_secs(90);

/// A coordinator that orders certificates, and its HTTPS port.
struct AcmeCoordinator {
    coordinator: CoordinatorProcess,
    tls: u16,
}

impl AcmeCoordinator {
    async fn start(issuer: &AcmeAuthority, plain: u16) -> Self {
        let [tls] = free_ports();
        let config = format!(
            "base_url = \"https://status.test:{tls}\"\nroot_domain = \"pages.test\"\n\
             [tls]\nlisten = \"127.0.0.1:{tls}\"\n\
             [acme]\nenabled = true\ndirectory = {:?}\nroots = {:?}\ncontact = \"ops@example.com\"\n\
             [domains]\nresolvers = \"127.0.0.1:{}\"\n",
            issuer.directory, issuer.roots, issuer.name_server
        );
        let coordinator = CoordinatorProcess::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
        Self { coordinator, tls }
    }

    fn over(&self, host: &str, path: &str, roots: &Path, more: &[&str]) -> CurlResponse {
        fetch(&format!("https://{host}:{}{path}", self.tls), roots, more)
    }

    /// Waits until the host is served with a certificate of that root.
    async fn is_served(&self, host: &str, path: &str, roots: &Path) -> CurlResponse {
        eventually(&format!("{host} has its certificate"), ISSUED, async || {
            Some(self.over(host, path, roots, &[])).filter(|seen| seen.status == 200)
        })
        .await
    }
}

/// Returns the line of curl's log with the certificate's expiry.
fn end(seen: &CurlResponse) -> String {
    let line = seen.log.lines().find(|line| line.contains("expire date"));
    line.unwrap_or_else(|| panic!("no end in {}", seen.log)).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_issued_renewed_and_kept() {
    let [plain] = free_ports();
    let Some(mut issuer) = AcmeAuthority::start("acme::certificates_are_issued_renewed_and_kept", plain, LIFE).await
    else {
        return;
    };
    issuer.set_zone("status A 127.0.0.1\n*.pages A 127.0.0.1").await;
    let root = issuer.write_root();
    let mut ordering = AcmeCoordinator::start(&issuer, plain).await;
    let base = ordering.is_served("status.test", "/api/v1/openapi.json", &root).await;
    let account = ordering.coordinator.create_account("pro");
    let page = format!("{}.pages.test", account.slug);
    let seen = ordering.is_served(&page, "/status.json", &root).await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert_eq!(ordering.over("none.pages.test", "/", &root, &[]).exit, 35, "a page that is none has none");
    // Keys are readable by their owner only.
    let folder = ordering.coordinator.data().join("tls");
    for name in [format!("{page}.pem"), "status.test.pem".to_owned()] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let first = end(&base);
    eventually("the certificate is renewed", RENEWED, async || {
        let seen = ordering.over("status.test", "/api/v1/openapi.json", &root, &[]);
        assert_eq!(seen.status, 200, "it is good all the time: {}", seen.log);
        (end(&seen) != first).then_some(())
    })
    .await;
    // Issued certificates are served right after a restart, though the authority is down.
    issuer.stop();
    ordering.coordinator.process.terminate();
    ordering.coordinator.process.wait_for_exit(Duration::from_secs(20)).await;
    ordering.coordinator.restart().await;
    let seen = ordering.over("status.test", "/api/v1/openapi.json", &root, &[]);
    assert_eq!(seen.status, 200, "{}", seen.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_served_at_its_owners_domain_once_that_is_shown_to_be_the_owners() {
    let [plain] = free_ports();
    let test = "acme::a_page_is_served_at_its_owners_domain_once_that_is_shown_to_be_the_owners";
    let Some(mut issuer) = AcmeAuthority::start(test, plain, 86_400).await else { return };
    let address = "status A 127.0.0.1\nshop A 127.0.0.1";
    let elsewhere = "status A 127.0.0.1\nshop A 192.0.2.1";
    issuer.set_zone(elsewhere).await;
    let root = issuer.write_root();
    let ordering = AcmeCoordinator::start(&issuer, plain).await;
    let account = ordering.coordinator.create_account("pro");
    let base = "status.test";
    ordering.is_served(base, "/api/v1/openapi.json", &root).await;
    let bearer = format!("Authorization: Bearer {}", account.key);
    let page = format!("/api/v1/pages/{}", account.page);
    let address_of_it = format!("{page}/address");
    let ask = |method: &str, path: &str, body: &str| {
        let more = ["--request", method, "--header", &bearer, "--header", "Content-Type: application/json"];
        let more = [&more[..], &["--data", body]].concat();
        let seen = ordering.over(base, path, &root, &more);
        let body: serde_json::Value = serde_json::from_str(seen.body()).unwrap_or_default();
        (seen.status, body["page"].clone())
    };
    let (status, claimed) = ask("PATCH", &address_of_it, r#"{"customDomain": "shop.test"}"#);
    let claim = &claimed["domainVerification"];
    assert_eq!((status, &claim["recordName"]), (200, &"_parallax-challenge.shop.test".into()), "{claimed}");
    // Until it is verified, the hostname is unknown: no certificate is served, and no page to clients that ignore
    // that.
    let unverified = || {
        assert_eq!(ordering.over("shop.test", "/", &root, &["--insecure"]).exit, 35);
        let named = ["--header", "Host: shop.test"];
        let seen = ordering.over(base, "/status.json", &root, &named);
        assert_eq!((seen.status, seen.body()), (421, ""), "{}", seen.text);
    };
    unverified();
    let value = claim["recordValue"].as_str().unwrap();
    issuer.set_zone(&format!("{elsewhere}\n_parallax-challenge.shop TXT \"{value}x\"")).await;
    let check = format!("{page}/domain/check");
    // A hostname is checked at most once in ten seconds, and a key's requests are limited, so the test polls slowly.
    let looked = async || {
        tokio::time::sleep(BETWEEN).await;
        let (status, seen) = ask("POST", &check, "");
        (status == 200).then_some(seen)
    };
    let refused = eventually("the look is answered", ISSUED, looked).await;
    let problem = refused["domainVerification"]["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("another value"), "{refused}");
    unverified();
    issuer.set_zone(&format!("{elsewhere}\n_parallax-challenge.shop TXT \"{value}\"")).await;
    // The scheduled check may come first; either verifies the domain.
    eventually("the domain is verified", ISSUED, async || {
        let _ = looked().await;
        (ask("GET", &page, "").1["customDomain"] == "shop.test").then_some(())
    })
    .await;
    // The domain is the owner's but does not point here: it is not ordered, since the authority limits failed
    // validations.
    let problem = eventually("the page shows the problem", ISSUED, async || {
        tokio::time::sleep(BETWEEN).await;
        ask("GET", &page, "").1["customDomainProblem"].as_str().map(str::to_owned)
    })
    .await;
    assert!(problem.ends_with("; point it to status.test"), "{problem}");
    assert!(!issuer.saw_hostname("shop.test"));
    issuer.set_zone(&format!("{address}\n_parallax-challenge.shop TXT \"{value}\"")).await;
    let seen = ordering.is_served("shop.test", "/status.json", &root).await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert!(issuer.saw_hostname("shop.test"), "the authority's log names what it is asked for");
    assert_eq!(ask("GET", &page, "").1["customDomainProblem"], serde_json::Value::Null);
    assert_eq!(ordering.over("shop.test", "/api/v1/me", &root, &[]).status, 404, "the page alone is there");
    // Once removed, the hostname is unknown again.
    assert_eq!(ask("PATCH", &address_of_it, r#"{"customDomain": null}"#).0, 200);
    eventually("the certificate is no longer shown", ISSUED, async || {
        (ordering.over("shop.test", "/", &root, &["--insecure"]).exit == 35).then_some(())
    })
    .await;
    unverified();
}
