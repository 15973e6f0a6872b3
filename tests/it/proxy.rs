//! A proxy in front, Debian's caddy with the settings of `deploy/Caddyfile`: a certificate for each page, for nobody else.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use parallax_tests::eventually::eventually;
use parallax_tests::installation::Coordinator;
use parallax_tests::outside::{lacking, program};
use parallax_tests::ports::ports;
use parallax_tests::process::Process;
use parallax_tests::visits::visit;
use tempfile::TempDir;

/// Longest start of the proxy, and longest wait for a certificate.
const START: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn caddy_asks_which_names_are_ours() {
    let Some(caddy) = program("caddy") else {
        lacking("proxy::caddy_asks_which_names_are_ours", "no caddy", "apt-get install caddy");
        return;
    };
    let [plain, admin, tls] = ports();
    let config = format!(
        "base_url = \"https://status.test:{tls}\"\nroot_domain = \"pages.test\"\n\
         [admin]\nlisten = \"127.0.0.1:{admin}\"\n"
    );
    let coordinator = Coordinator::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
    let account = coordinator.account("pro");
    let folder = TempDir::new().unwrap();
    let ask = |domain: &str| {
        visit(&format!("http://127.0.0.1:{admin}/ask?domain={domain}"), folder.path(), &[]).status
    };
    let page = format!("{}.pages.test", account.slug);
    assert_eq!((ask("status.test"), ask(&page)), (200, 200));
    for stranger in ["other.test", "none.pages.test", "pages.test", "127.0.0.1", "localhost", ""] {
        assert_eq!(ask(stranger), 404, "{stranger}");
    }

    let settings = include_str!("../../deploy/Caddyfile")
        .replace("127.0.0.1:9090", &format!("127.0.0.1:{admin}"))
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{plain}"))
        .replace("https:// {", &format!("https://:{tls} {{"))
        // Certificates of its own, since no authority is to be asked.
        .replacen(
            "{\n",
            "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n",
            1,
        );
    let file = folder.path().join("Caddyfile");
    std::fs::write(&file, settings).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
    command.env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
    let mut caddy = Process::start("caddy", command, folder.path());
    let over = |host: &str, path: &str| visit(&format!("https://{host}:{tls}{path}"), &file, &["--insecure"]);
    let seen = eventually("the page is served through caddy", START, async || {
        assert!(caddy.running(), "caddy ended: {}", caddy.log());
        Some(over(&page, "/status.json")).filter(|seen| seen.status == 200)
    })
    .await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert_eq!(over("status.test", "/api/v1/openapi.json").status, 200);
    for stranger in ["other.test", "none.pages.test"] {
        assert_eq!(over(stranger, "/").exit, 35, "{stranger}");
    }
}
