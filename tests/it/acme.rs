//! Certificates by ACME, from an authority that looks for itself: names that appear, renewals, and a start without it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::Coordinator;
use parallax_tests::issuer::Issuer;
use parallax_tests::outside::free;
use parallax_tests::visits::{Visit, visit};

/// Life of a certificate, in seconds; it is renewed when a third of it is left.
const LIFE: u32 = 60;
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
        let [tls] = free();
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
    let [plain] = free();
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
    drop(issuer);
    ordering.coordinator.process.terminate();
    ordering.coordinator.process.ended(Duration::from_secs(20)).await;
    ordering.coordinator.restart().await;
    let seen = ordering.over("status.test", "/api/v1/openapi.json", &root, &[]);
    assert_eq!(seen.status, 200, "{}", seen.said);
}
