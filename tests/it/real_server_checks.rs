//! Checks of reference servers as customers run them, nginx and bind9: by `parallax-agent check`, and through a
//! coordinator.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use parallax_tests::eventually::{API_PERIOD, eventually_every};
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::process::{TestProcess, binary};
use parallax_tests::reference_servers::{KEYWORD, ReferenceServers};
use serde_json::{Value, json};

/// Longest check, and longest start of one.
const LIMIT: Duration = Duration::from_secs(60);
/// Longest wait until every monitor has had a round.
const ROUNDS: Duration = Duration::from_secs(40);

/// Expected result of a check: its outcome, and a part of its reason.
type ExpectedResult = (&'static str, &'static str);
const PASSED: ExpectedResult = ("passed", "");

const fn failed(reason: &'static str) -> ExpectedResult {
    ("failed", reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn http_checks_of_nginx_say_what_is_so() {
    let Some(peers) = ReferenceServers::start("peers::http_checks_of_nginx_say_what_is_so").await else {
        return;
    };
    let (plain, packed) = (format!("http://good.test:{}", peers.http), format!("http://good.test:{}", peers.brotli));
    let mut checks = Checks::new(&peers);
    let asked = |coding: &str| vec!["--header".to_owned(), format!("Accept-Encoding:{coding}")];
    for (base, path, more) in [
        (&plain, "/text.txt", vec![]),
        (&plain, "/text.txt", asked("gzip")),
        (&packed, "/text.txt", asked("br")),
        (&plain, "/zlib", vec![]),
        (&plain, "/raw", vec![]),
        (&plain, "/zstd", vec![]),
    ] {
        for (keyword, flags, said) in [
            (KEYWORD, vec![], PASSED),
            ("never there", vec![], failed("keyword missing")),
            (KEYWORD, vec!["--absent".to_owned()], failed("keyword present")),
        ] {
            let words = ["http", &format!("{base}{path}"), "--keyword", keyword].map(str::to_owned).to_vec();
            checks.expect([words, more.clone(), flags].concat(), said);
        }
    }
    let mut say =
        |line: String, said: ExpectedResult| checks.expect(line.split(' ').map(str::to_owned).collect(), said);
    say(format!("http {plain}/text.txt --keyword never --absent"), PASSED);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        say(format!("http {plain}/echo --method {method} --keyword method={method}"), PASSED);
    }
    for method in ["POST", "PUT", "PATCH"] {
        say(format!("http {plain}/echo --method {method} --body in=full --keyword body=in=full"), PASSED);
    }
    say(format!("http {plain}/echo --header X-Key:secret --keyword key=secret"), PASSED);
    say(format!("http {plain}/echo --keyword agent=Parallax"), PASSED);
    say(format!("http {plain}/text.txt --method HEAD"), PASSED);
    say(format!("http {plain}/503 --method HEAD"), failed("unexpected status 503"));
    say(format!("http {plain}/204"), PASSED);
    say(format!("http {plain}/503"), failed("unexpected status 503"));
    say(format!("http {plain}/503 --expect-status 503"), PASSED);
    say(format!("http {plain}/text.txt --expect-status 204"), failed("unexpected status 200"));
    say(format!("http {plain}/text.txt --method POST"), failed("unexpected status 405"));
    say(format!("http {plain}/303 --keyword fine"), PASSED);
    say(format!("http {plain}/303 --expect-status 303"), PASSED);
    say(format!("http {plain}/loop"), failed("too many redirects"));
    say(format!("http {plain}/secure --keyword fine"), PASSED);
    say(format!("http http://two.test:{}/text.txt", peers.http), PASSED);
    say(format!("http http://good.test:{}/", peers.closed_port), failed("connection refused"));
    say(format!("http http://none.test:{}/", peers.http), failed("name not found"));
    checks.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_nginx_over_tls_say_what_is_so() {
    let Some(peers) = ReferenceServers::start("peers::checks_of_nginx_over_tls_say_what_is_so").await else {
        return;
    };
    let port = peers.https;
    let mut checks = Checks::new(&peers);
    let mut say =
        |line: String, said: ExpectedResult| checks.expect(line.split(' ').map(str::to_owned).collect(), said);
    say(format!("http https://good.test:{port}/text.txt"), PASSED);
    say(format!("http https://good.test:{port}/text.txt --method HEAD"), PASSED);
    say(format!("http https://good.test:{port}/text.txt --keyword fine"), PASSED);
    for words in ["HTTP/2.0", "TLSv1.3", "good.test"] {
        say(format!("http https://good.test:{port}/version --keyword {words}"), PASSED);
    }
    // Browsers follow redirects from HTTPS to HTTP, so it is no outage.
    say(format!("http https://good.test:{port}/plain --keyword fine"), PASSED);
    say(format!("http https://good.test:{}/", peers.http), failed("does not speak TLS"));
    for (name, said) in [
        ("good", PASSED),
        ("expired", failed("certificate expired")),
        ("wrong", failed("certificate for another name")),
        ("stranger", failed("certificate from an unknown issuer")),
    ] {
        say(format!("http https://{name}.test:{port}/text.txt"), said);
        say(format!("certificate {name}.test:{port}"), said);
    }
    // The certificate expires in 2090.
    say(format!("certificate good.test:{port} --warn-days 30000"), failed("certificate ends in"));
    say(format!("certificate good.test:{}", peers.closed_port), failed("connection refused"));
    let said = checks.all().await;
    for (line, said) in said.iter().filter(|(line, _)| line.starts_with("certificate")) {
        let year = if line.contains("expired") { "2021-01-01T00:00:00Z" } else { "2090-01-01T00:00:00Z" };
        assert!(said["expiresAt"] == year || line.contains(&peers.closed_port.to_string()), "{line}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_and_tcp_checks_of_real_servers_say_what_is_so() {
    let Some(peers) = ReferenceServers::start("peers::dns_and_tcp_checks_of_real_servers_say_what_is_so").await else {
        return;
    };
    let mut checks = Checks::new(&peers);
    let mut say =
        |line: String, said: ExpectedResult| checks.expect(line.split(' ').map(str::to_owned).collect(), said);
    for (line, said) in [
        ("good.test", PASSED),
        ("good.test --expect 127.0.0.1", PASSED),
        ("good.test --expect 127.0.0.2", failed("expected text not in the answer: 127.0.0.1")),
        ("two.test --expect 127.0.0.99", PASSED),
        ("good.test --record AAAA --expect 2001:0db8::0007", PASSED),
        ("www.test --record CNAME --expect GOOD.test.", PASSED),
        ("www.test --expect 127.0.0.1", PASSED),
        ("test --record MX --expect mail.test", PASSED),
        ("test --record TXT --expect include:_spf.example", PASSED),
        ("test --record TXT --expect INCLUDE:_spf.example", failed("expected text not in the answer")),
        ("test --record NS --expect ns2.test", PASSED),
        ("many.test --record TXT --expect 99", PASSED),
        ("many.test --record TXT --expect 100", failed("expected text not in the answer")),
        ("none.test", failed("name not found")),
        ("bare.test", failed("no record of this type")),
        ("good.test --record MX", failed("no record of this type")),
        ("www.broken.test", failed("name servers answer with code 2")),
    ] {
        say(format!("dns {line}"), said);
    }
    say(format!("tcp good.test:{}", peers.http), PASSED);
    say(format!("tcp 127.0.0.1:{}", peers.https), PASSED);
    say(format!("tcp two.test:{}", peers.http), PASSED);
    say(format!("tcp good.test:{}", peers.closed_port), failed("connection refused"));
    say(format!("tcp none.test:{}", peers.http), failed("name not found"));
    say("ping good.test".to_owned(), PASSED);
    checks.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn monitors_of_real_servers_are_told_by_the_api() {
    let Some(peers) = ReferenceServers::start("peers::monitors_of_real_servers_are_told_by_the_api").await else {
        return;
    };
    let config = "confirmation = \"repeat\"\n[plans.pro]\ninterval_seconds = 10\n";
    let coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await;
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    let mut agent = AgentProcess::new("fra1", peers.folder(), None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", &peers.settings]);
    coordinator.wait_for_agents(1).await;
    let account = coordinator.create_account("pro");
    let (client, page) = (&account.client, &account.page);
    let (http, https) = (peers.http, peers.https);
    let monitors = [
        (json!({"url": format!("http://good.test:{http}/text.txt"), "keyword": KEYWORD}), None),
        (
            json!({"url": format!("http://good.test:{http}/echo"), "method": "PUT", "headers": {"X-Key": "k"},
            "body": "b", "keyword": "method=PUT key=k body=b"}),
            None,
        ),
        (json!({"url": format!("http://good.test:{http}/503"), "expectStatus": 503}), None),
        (json!({"url": format!("https://good.test:{https}/version"), "keyword": "HTTP/2.0"}), None),
        (json!({"url": format!("https://expired.test:{https}/")}), Some("certificate expired")),
        (json!({"type": "certificate", "host": "good.test", "port": https}), None),
        (
            json!({"type": "certificate", "host": "wrong.test", "port": https}),
            Some("certificate does not match the name"),
        ),
        (json!({"type": "dns", "host": "test", "dnsType": "TXT", "dnsExpect": "include:_spf.example"}), None),
        (json!({"type": "dns", "host": "many.test", "dnsType": "TXT", "dnsExpect": "record 99"}), None),
        (json!({"type": "dns", "host": "none.test"}), Some("the name does not exist")),
        (json!({"type": "dns", "host": "www.broken.test"}), Some("the name servers return an error")),
        (json!({"type": "tcp", "host": "good.test", "port": http}), None),
        (json!({"type": "tcp", "host": "good.test", "port": peers.closed_port}), Some("connection refused")),
    ];
    for (body, _) in &monitors {
        client.create_monitor(page, body).await;
    }
    let seen = eventually_every(API_PERIOD * 2, "every monitor has its verdict", ROUNDS, async || {
        let seen = client.monitors(page).await;
        let judged = seen.iter().zip(&monitors).all(|(own, (_, error))| {
            let status = if error.is_some() { "down" } else { "up" };
            own["status"] == status
        });
        judged.then_some(seen)
    })
    .await;
    for (own, (body, error)) in seen.iter().zip(&monitors) {
        let reason = own["lastCheck"]["error"].as_str();
        assert_eq!(reason, *error, "{body}: {own}");
        if body["type"] == "certificate" {
            assert!(own["expiresAt"].as_str().is_some_and(|at| at.starts_with("2090-01-01")), "{own}");
        }
    }
}

/// Checks that run concurrently, as an operator starts them.
struct Checks<'a> {
    peers: &'a ReferenceServers,
    expected: Vec<(Vec<String>, ExpectedResult)>,
}

impl<'a> Checks<'a> {
    fn new(peers: &'a ReferenceServers) -> Self {
        Self { peers, expected: Vec::new() }
    }

    fn expect(&mut self, words: Vec<String>, said: ExpectedResult) {
        self.expected.push((words, said));
    }

    /// Runs them, and returns each result with its command line.
    async fn all(self) -> Vec<(String, Value)> {
        let mut running = Vec::new();
        for (number, (words, said)) in self.expected.into_iter().enumerate() {
            let mut command = Command::new(binary("parallax-agent"));
            command.arg("check").args(&words).args([
                "--json",
                "--allow-private",
                "--allow-own-host",
                "--config",
                &self.peers.settings,
            ]);
            let process = TestProcess::start(&format!("check-{number}"), command, self.peers.folder());
            running.push((words.join(" "), said, process));
        }
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for (line, (outcome, reason), mut process) in running {
            let code = process.wait_for_exit(LIMIT).await.code();
            let report: Value = serde_json::from_str(&process.log()).unwrap_or_default();
            let expected = if outcome == "passed" { 0 } else { 3 };
            let told = report["error"].as_str().unwrap_or_default();
            let fits = if reason.is_empty() { told.is_empty() } else { told.contains(reason) };
            if report["outcome"] != outcome || code != Some(expected) || !fits {
                wrong.push(format!("{line}: {code:?} {}, and not {outcome} {reason}", process.log()));
            }
            all.push((line, report));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        all
    }
}
