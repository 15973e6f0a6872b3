//! TLS of the coordinator itself, tested with curl: both versions of HTTP, hostnames, redirects, reloads.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use parallax_tests::curl::{CurlResponse, TestAuthority, fetch};
use parallax_tests::eventually::eventually;
use parallax_tests::free_ports::free_ports;
use parallax_tests::installation::{CoordinatorProcess, TestAccount};
use parallax_tests::process::output;
use tempfile::TempDir;

/// Longest wait until a changed certificate is served.
const RELOAD: Duration = Duration::from_secs(20);
/// Names in the certificate.
const NAMES: [&str; 2] = ["status.test", "*.pages.test"];

/// A coordinator with TLS, and the authority of its certificate.
pub(crate) struct TlsCoordinator {
    pub(crate) coordinator: CoordinatorProcess,
    pub(crate) account: TestAccount,
    pub(crate) plain: u16,
    pub(crate) tls: u16,
    authority: TestAuthority,
    certificate: PathBuf,
    key: PathBuf,
    _folder: TempDir,
}

impl TlsCoordinator {
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let authority = TestAuthority::new(folder.path());
        let [certificate, key] = ["c.pem", "k.pem"].map(|name| folder.path().join(name));
        let [plain, tls] = free_ports();
        let config = format!(
            "base_url = \"https://status.test:{tls}\"\nroot_domain = \"pages.test\"\n\
             [tls]\nlisten = \"127.0.0.1:{tls}\"\ncertificate = {certificate:?}\nkey = {key:?}\n"
        );
        let (chain, secret) = authority.issue(&NAMES, 2080);
        std::fs::write(&certificate, chain).unwrap();
        std::fs::write(&key, secret).unwrap();
        let coordinator = CoordinatorProcess::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
        let account = coordinator.create_account("pro");
        Self { coordinator, account, plain, tls, authority, certificate, key, _folder: folder }
    }

    /// Returns the file with the root certificate.
    pub(crate) fn root_file(&self) -> &std::path::Path {
        &self.authority.file
    }

    /// Returns true if it serves a request.
    pub(crate) fn answers(&self) -> bool {
        self.over("status.test", "/api/v1/openapi.json", &[]).status == 200
    }

    fn over(&self, host: &str, path: &str, more: &[&str]) -> CurlResponse {
        fetch(&format!("https://{host}:{}{path}", self.tls), &self.authority.file, more)
    }

    fn in_the_clear(&self, host: &str, path: &str) -> CurlResponse {
        let header = format!("Host: {host}");
        fetch(&format!("http://127.0.0.1:{}{path}", self.plain), &self.authority.file, &["--header", &header])
    }

    fn hang_up(&self) {
        let mut kill = Command::new("kill");
        kill.args(["-HUP", &self.coordinator.ready.pid.to_string()]);
        output(kill).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_api_are_served_over_both_versions_of_http() {
    let secure = TlsCoordinator::start().await;
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        for tls in ["1.2", "1.3"] {
            let api = secure.over("status.test", "/api/v1/openapi.json", &[flag, "--tls-max", tls]);
            assert_eq!((api.exit, api.status, api.version.as_str()), (0, 200, version), "{}", api.log);
            assert!(api.has_header("strict-transport-security: max-age=15552000"), "{}", api.text);
        }
        let bearer = format!("Authorization: Bearer {}", secure.account.key);
        let me = secure.over("status.test", "/api/v1/me", &[flag, "--header", &bearer]);
        assert_eq!((me.status, me.version.as_str()), (200, version), "{}", me.text);
        let host = format!("{}.pages.test", secure.account.slug);
        let page = secure.over(&host, "/status.json", &[flag]);
        assert_eq!((page.status, page.version.as_str()), (200, version), "{}", page.text);
        assert!(page.body().contains("Page under test"), "{}", page.text);
        assert!(page.has_header("strict-transport-security: max-age=15552000"), "{}", page.text);
        // An unknown hostname, on a connection for a known one.
        for host in ["other.test", "pages.test", "status.test.other.test"] {
            let stranger = secure.over("status.test", "/", &[flag, "--header", &format!("Host: {host}")]);
            assert_eq!((stranger.status, stranger.body()), (421, ""), "{host}: {}", stranger.text);
        }
        let large = format!("X-Large: {}", "x".repeat(17_000));
        let refused = secure.over("status.test", "/", &[flag, "--header", &large]);
        assert!(refused.exit != 0 || refused.status == 431, "{refused:?}");
    }
    let old = secure.over("status.test", "/", &["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"]);
    assert_eq!(old.exit, 35, "{}", old.log);
    // An unknown hostname gets no certificate, whatever the request.
    let unknown = secure.over("other.test", "/", &["--insecure"]);
    assert_eq!(unknown.exit, 35, "{unknown:?}");
    assert!(unknown.log.contains("unrecognized name"), "{}", unknown.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plain_listener_leads_to_https_and_takes_pings() {
    let secure = TlsCoordinator::start().await;
    let (tls, slug) = (secure.tls, &secure.account.slug);
    for (host, path, to) in [
        ("status.test", "/p/x?y=1&z", format!("https://status.test:{tls}/p/x?y=1&z")),
        ("127.0.0.1", "/", format!("https://status.test:{tls}/")),
        (&format!("{slug}.pages.test"), "/history", format!("https://{slug}.pages.test:{tls}/history")),
    ] {
        let led = secure.in_the_clear(host, path);
        assert_eq!(led.status, 308, "{}", led.text);
        assert!(led.has_header(&format!("location: {to}")), "{}", led.text);
        assert!(!led.text.to_lowercase().contains("strict-transport"), "{}", led.text);
    }
    let stranger = secure.in_the_clear("other.test", "/");
    assert_eq!((stranger.status, stranger.body()), (421, ""), "{}", stranger.text);
    let challenge = secure.in_the_clear("status.test", "/.well-known/acme-challenge/none");
    assert_eq!((challenge.status, challenge.body()), (404, ""), "{}", challenge.text);
    let body = r#"{"type": "heartbeat", "name": "Backup", "periodMinutes": 60}"#;
    let bearer = format!("Authorization: Bearer {}", secure.account.key);
    let made = secure.over(
        "status.test",
        &format!("/api/v1/pages/{}/monitors", secure.account.page),
        &["--header", &bearer, "--header", "Content-Type: application/json", "--data", body],
    );
    let made: serde_json::Value = serde_json::from_str(made.body()).unwrap();
    let url = made["monitor"]["heartbeat"]["pingUrl"].as_str().unwrap();
    let path = url.strip_prefix(&format!("https://status.test:{tls}")).unwrap();
    for host in ["status.test", "inside.test"] {
        let ping = secure.in_the_clear(host, path);
        assert_eq!((ping.status, ping.body()), (200, "OK"), "{host}: {}", ping.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_shown_and_a_bad_one_changes_nothing() {
    let mut secure = TlsCoordinator::start().await;
    let until = |secure: &TlsCoordinator, year: i32| {
        let seen = secure.over("status.test", "/api/v1/openapi.json", &[]);
        assert_eq!(seen.status, 200, "{}", seen.log);
        seen.log.contains(&format!("expire date: Jan  1 00:00:00 {year} GMT"))
    };
    assert!(until(&secure, 2080));
    std::fs::write(&secure.key, "no key at all").unwrap();
    secure.hang_up();
    secure.coordinator.process.wait_for_log("the new certificate is invalid", RELOAD).await;
    assert!(until(&secure, 2080));
    let (chain, key) = secure.authority.issue(&NAMES, 2090);
    std::fs::write(&secure.certificate, chain).unwrap();
    std::fs::write(&secure.key, key).unwrap();
    secure.hang_up();
    eventually("the new certificate is shown", RELOAD, async || until(&secure, 2090).then_some(())).await;
}
