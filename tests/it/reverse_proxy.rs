//! A reverse proxy in front, Debian's caddy or nginx with the settings from `deploy/`: certificates for known
//! hostnames only, and visitors' own addresses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use parallax_tests::curl::fetch;
use parallax_tests::eventually::eventually;
use parallax_tests::free_ports::free_ports;
use parallax_tests::installation::CoordinatorProcess;
use parallax_tests::process::TestProcess;
use parallax_tests::reference_servers::{find_program, skip_missing};
use serde_json::json;
use tempfile::TempDir;

/// Longest start of the proxy, and longest wait for a certificate.
const START: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn caddy_asks_which_names_are_ours() {
    let Some(caddy) = find_program("caddy") else {
        skip_missing("proxy::caddy_asks_which_names_are_ours", "no caddy", "apt-get install caddy");
        return;
    };
    let [plain, admin, tls] = free_ports();
    let config = format!(
        "base_url = \"https://status.test:{tls}\"\nroot_domain = \"pages.test\"\n\
         [admin]\nlisten = \"127.0.0.1:{admin}\"\n"
    );
    let coordinator = CoordinatorProcess::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
    let account = coordinator.create_account("pro");
    let folder = TempDir::new().unwrap();
    let ask = |domain: &str| fetch(&format!("http://127.0.0.1:{admin}/ask?domain={domain}"), folder.path(), &[]).status;
    let page = format!("{}.pages.test", account.slug);
    assert_eq!((ask("status.test"), ask(&page)), (200, 200));
    for stranger in ["other.test", "none.pages.test", "pages.test", "127.0.0.1", "localhost", ""] {
        assert_eq!(ask(stranger), 404, "{stranger}");
    }

    let settings = include_str!("../../deploy/Caddyfile")
        .replace("127.0.0.1:9090", &format!("127.0.0.1:{admin}"))
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{plain}"))
        .replace("https:// {", &format!("https://:{tls} {{"))
        // Internal certificates, since there is no public authority.
        .replacen("{\n", "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n", 1);
    let file = folder.path().join("Caddyfile");
    std::fs::write(&file, settings).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
    command.env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
    let mut caddy = TestProcess::start("caddy", command, folder.path());
    let over = |host: &str, path: &str| fetch(&format!("https://{host}:{tls}{path}"), &file, &["--insecure"]);
    let seen = eventually("the page is served through caddy", START, async || {
        assert!(caddy.is_running(), "caddy ended: {}", caddy.log());
        Some(over(&page, "/status.json")).filter(|seen| seen.status == 200)
    })
    .await;
    assert!(seen.body().contains("Page under test"), "{}", seen.text);
    assert_eq!(over("status.test", "/api/v1/openapi.json").status, 200);
    for stranger in ["other.test", "none.pages.test"] {
        assert_eq!(over(stranger, "/").exit, 35, "{stranger}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_through_a_proxy_is_shown_with_the_address_of_its_job() {
    let needed = [("nginx", find_program("nginx")), ("caddy", find_program("caddy"))];
    let [(_, Some(nginx)), (_, Some(caddy))] = needed else {
        skip_missing(
            "proxy::a_ping_through_a_proxy_is_shown_with_the_address_of_its_job",
            "no nginx or caddy",
            "apt-get install nginx caddy",
        );
        return;
    };
    let [plain, admin, by_nginx, by_caddy] = free_ports();
    let config = format!("[admin]\nlisten = \"127.0.0.1:{admin}\"\n");
    let mut coordinator = CoordinatorProcess::serve_at(SocketAddr::from(([127, 0, 0, 1], plain)), &config).await;
    let account = coordinator.create_account("pro");
    let job = json!({"type": "heartbeat", "name": "Backup", "periodMinutes": 60, "graceMinutes": 5});
    let job = account.client.create_monitor(&account.page, &job).await;
    let path = job["heartbeat"]["pingUrl"].as_str().unwrap().strip_prefix(&coordinator.ready.base_url).unwrap();

    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let host = at.to_str().unwrap();
    // TLS is not part of this test: visitors elsewhere are simulated over plain TCP by the PROXY protocol header of a
    // load balancer. Debian's caddy does not support that.
    let server = include_str!("../../deploy/nginx.conf")
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{plain}"))
        .replace("listen 443 ssl http2;", &format!("listen 127.0.0.1:{by_nginx} proxy_protocol;"))
        .replace("ssl_certificate /etc/parallax/tls.pem;", "set_real_ip_from 127.0.0.1;")
        .replace("ssl_certificate_key /etc/parallax/tls.key;", "real_ip_header proxy_protocol;")
        .replace("status.example.com *.status.example.com", "status.test");
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {host}/{kind};\n"))
        .concat();
    let settings = format!(
        "daemon off;\nmaster_process off;\nuser root;\npid {host}/nginx.pid;\nerror_log stderr;\n\
         events {{ worker_connections 256; }}\nhttp {{ access_log off;\n{temporary}{server} }}\n"
    );
    std::fs::write(at.join("nginx.conf"), settings).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-p").arg(at).arg("-e").arg(at.join("error.log")).arg("-c").arg(at.join("nginx.conf"));
    let mut nginx = TestProcess::start("nginx", command, at);
    let settings = include_str!("../../deploy/Caddyfile")
        .replace("127.0.0.1:9090", &format!("127.0.0.1:{admin}"))
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{plain}"))
        .replace("https:// {\n\ttls {\n\t\ton_demand\n\t}\n", &format!("http://:{by_caddy} {{\n"))
        .replacen("{\n", "{\n\tadmin off\n", 1);
    std::fs::write(at.join("Caddyfile"), settings).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(at.join("Caddyfile"));
    command.env("XDG_DATA_HOME", at).env("XDG_CONFIG_HOME", at);
    let mut caddy = TestProcess::start("caddy", command, at);

    for (port, told, address) in [
        (by_nginx, "PROXY TCP4 203.0.113.7 127.0.0.1 50000 443\r\n", "203.0.113.7"),
        (by_nginx, "PROXY TCP6 2001:db8::7 ::1 50000 443\r\n", "2001:db8::7"),
        (by_caddy, "", "127.0.0.1"),
    ] {
        // An address claimed by the visitor is ignored.
        let asked = format!(
            "{told}GET {path} HTTP/1.1\r\nHost: status.test\r\nX-Forwarded-For: 198.51.100.1\r\n\
             Forwarded: for=198.51.100.2\r\nConnection: close\r\n\r\n"
        );
        eventually("a ping comes through the proxy", START, async || {
            assert!(nginx.is_running() && caddy.is_running(), "a proxy ended: {} {}", nginx.log(), caddy.log());
            answer_of(port, &asked).filter(|answer| answer.starts_with("HTTP/1.1 200"))
        })
        .await;
        let id = job["id"].as_str().unwrap();
        let kept = account.client.get(&format!("/pages/{}/monitors/{id}/pings", account.page)).await.expect_status(200);
        assert_eq!(kept["pings"][0]["address"], address, "{kept}");
    }

    // While the coordinator is down, the proxies log that, but not the secret in the path.
    coordinator.process.kill();
    for (port, told) in [(by_nginx, "PROXY TCP4 203.0.113.7 127.0.0.1 50000 443\r\n"), (by_caddy, "")] {
        let asked = format!("{told}GET {path} HTTP/1.1\r\nHost: status.test\r\nConnection: close\r\n\r\n");
        let answer = answer_of(port, &asked).unwrap();
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    }
    caddy.wait_for_log("connection refused", START).await;
    let token = path.strip_prefix("/ping/").unwrap();
    let logs = [nginx.log(), std::fs::read_to_string(at.join("error.log")).unwrap_or_default(), caddy.log()];
    assert!(logs.iter().all(|log| !log.contains(token)), "{logs:#?}");
}

/// Sends those bytes and returns the response; `None` if there is none.
fn answer_of(port: u16, asked: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(START)).ok()?;
    stream.write_all(asked.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
