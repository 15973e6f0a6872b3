//! Certificates by ACME, from an authority that looks for itself: names that appear, renewals, and a start without it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::Coordinator;
use parallax_tests::issuer::Issuer;
use parallax_tests::ports::ports;
use parallax_tests::visits::{Visit, visit};

/// Life of a certificate, in seconds; it is renewed when a third of it is left.
const LIFE: u32 = 60;
/// Between two requests of those who wait.
const BETWEEN: Duration = Duration::from_secs(1);
/// Until a name has its certificate.
const ISSUED: Duration = Duration::from_secs(40);
/// Until one was renewed.
const RENEWED: Duration = Duration::from_secs(90);

/// A coordinator that orders its certificates, and where it is reached.
struct Ordering {
    coordinator: Coordinator,
    tls: u16,
}

impl Ordering {
    async fn start(issuer: &Issuer, plain: u16) -> Self {
        let [tls] = ports();
        let config = format!(
            "base_url = \"https://status.test:{tls}\"\nroot_domain = \"pages.test\"\n\
             [tls]\nlisten = \"127.0.0.1:{tls}\"\n\
             [acme]\nenabled = true\ndirectory = {:?}\nroots = {:?}\ncontact = \"ops@example.com\"\n\
             [domains]\nresolvers = \"127.0.0.1:{}\"\n",
            issuer.directory, issuer.roots, issuer.name_server
        );
        let coordinator = Coordinator::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
        Self { coordinator, tls }
    }

    fn over(&self, host: &str, path: &str, roots: &Path, more: &[&str]) -> Visit {
        visit(&format!("https://{host}:{}{path}", self.tls), roots, more)
    }

    /// Waits until the host is served with a certificate of that root.
    async fn is_served(&self, host: &str, path: &str, roots: &Path) -> Visit {
        eventually(&format!("{host} has its certificate"), ISSUED, async || {
            Some(self.over(host, path, roots, &[])).filter(|seen| seen.status == 200)
        })
        .await
    }
}

/// The line in which curl tells a certificate's end.
fn end(seen: &Visit) -> String {
    let line = seen.said.lines().find(|line| line.contains("expire date"));
    line.unwrap_or_else(|| panic!("no end in {}", seen.said)).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_issued_renewed_and_kept() {
    let [plain] = ports();
    let Some(mut issuer) = Issuer::start("acme::certificates_are_issued_renewed_and_kept", plain, LIFE).await
    else {
        return;
    };
    issuer.say("status A 127.0.0.1\n*.pages A 127.0.0.1").await;
    let root = issuer.issued_root();
    let mut ordering = Ordering::start(&issuer, plain).await;
    let base = ordering.is_served("status.test", "/api/v1/openapi.json", &root).await;
    let account = ordering.coordinator.account("pro");
    let page = format!("{}.pages.test", account.slug);
    let seen = ordering.is_served(&page, "/status.json", &root).await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert_eq!(ordering.over("none.pages.test", "/", &root, &[]).exit, 35, "a page that is none has none");
    // The keys are their owner's alone.
    let folder = ordering.coordinator.data().join("tls");
    for name in [format!("{page}.pem"), "status.test.pem".to_owned()] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let first = end(&base);
    eventually("the certificate is renewed", RENEWED, async || {
        let seen = ordering.over("status.test", "/api/v1/openapi.json", &root, &[]);
        assert_eq!(seen.status, 200, "it is good all the time: {}", seen.said);
        (end(&seen) != first).then_some(())
    })
    .await;
    // What was issued is shown at once after a start, though nobody is there to issue.
    issuer.stop();
    ordering.coordinator.process.terminate();
    ordering.coordinator.process.ended(Duration::from_secs(20)).await;
    ordering.coordinator.restart().await;
    let seen = ordering.over("status.test", "/api/v1/openapi.json", &root, &[]);
    assert_eq!(seen.status, 200, "{}", seen.said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_served_at_its_owners_domain_once_that_is_shown_to_be_the_owners() {
    let [plain] = ports();
    let test = "acme::a_page_is_served_at_its_owners_domain_once_that_is_shown_to_be_the_owners";
    let Some(mut issuer) = Issuer::start(test, plain, 86_400).await else { return };
    let address = "status A 127.0.0.1\nshop A 127.0.0.1";
    let elsewhere = "status A 127.0.0.1\nshop A 192.0.2.1";
    issuer.say(elsewhere).await;
    let root = issuer.issued_root();
    let ordering = Ordering::start(&issuer, plain).await;
    let account = ordering.coordinator.account("pro");
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
    // Until then it is nobody's: no certificate, and no page for whoever asks for it all the same.
    let unverified = || {
        assert_eq!(ordering.over("shop.test", "/", &root, &["--insecure"]).exit, 35);
        let named = ["--header", "Host: shop.test"];
        let seen = ordering.over(base, "/status.json", &root, &named);
        assert_eq!((seen.status, seen.body()), (421, ""), "{}", seen.text);
    };
    unverified();
    let value = claim["recordValue"].as_str().unwrap();
    issuer.say(&format!("{elsewhere}\n_parallax-challenge.shop TXT \"{value}x\"")).await;
    let check = format!("{page}/domain/check");
    // A look is taken once in ten seconds, and a key's requests are counted: who asks without a pause uses them up.
    let looked = async || {
        tokio::time::sleep(BETWEEN).await;
        let (status, seen) = ask("POST", &check, "");
        (status == 200).then_some(seen)
    };
    let refused = eventually("the look is answered", ISSUED, looked).await;
    let problem = refused["domainVerification"]["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("another value"), "{refused}");
    unverified();
    issuer.say(&format!("{elsewhere}\n_parallax-challenge.shop TXT \"{value}\"")).await;
    // Looked for by itself, too: whichever comes first.
    eventually("the domain is verified", ISSUED, async || {
        let _ = looked().await;
        (ask("GET", &page, "").1["customDomain"] == "shop.test").then_some(())
    })
    .await;
    // The domain is the owner's, but leads elsewhere: the authority, which counts failures, is not asked for it.
    let problem = eventually("the owner is told", ISSUED, async || {
        tokio::time::sleep(BETWEEN).await;
        ask("GET", &page, "").1["customDomainProblem"].as_str().map(str::to_owned)
    })
    .await;
    assert!(problem.ends_with("; point it to status.test"), "{problem}");
    assert!(!issuer.was_asked_for("shop.test"));
    issuer.say(&format!("{address}\n_parallax-challenge.shop TXT \"{value}\"")).await;
    let seen = ordering.is_served("shop.test", "/status.json", &root).await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert!(issuer.was_asked_for("shop.test"), "the authority's log names what it is asked for");
    assert_eq!(ask("GET", &page, "").1["customDomainProblem"], serde_json::Value::Null);
    assert_eq!(ordering.over("shop.test", "/api/v1/me", &root, &[]).status, 404, "the page alone is there");
    // Given up, it is nobody's again.
    assert_eq!(ask("PATCH", &address_of_it, r#"{"customDomain": null}"#).0, 200);
    eventually("the certificate is no longer shown", ISSUED, async || {
        (ordering.over("shop.test", "/", &root, &["--insecure"]).exit == 35).then_some(())
    })
    .await;
    unverified();
}
