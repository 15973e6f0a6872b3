//! The shipped systemd units and settings in a booted systemd, by the commands in `deploy/README.md`.

use std::time::Duration;

use parallax_tests::eventually::print_note;
use parallax_tests::systemd_container::SystemdContainer;
use serde_json::{Value, json};

/// Longest wait on a busy host.
const SOON: Duration = Duration::from_secs(60);
/// Longest wait for the watchdog of a stopped service, and for its next start.
const RESTART: Duration = Duration::from_secs(180);
/// The container's own public address; the second is another host, which is checked.
const OWN: &str = "5.10.0.2";
const SITE: &str = "5.20.0.2";

/// Returns the README's block of commands that contains `having`.
fn block(having: &str) -> String {
    let text = include_str!("../../deploy/README.md");
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let found = blocks.into_iter().find(|block| block.contains(having));
    let found = found.unwrap_or_else(|| panic!("deploy/README.md has no commands with {having:?}"));
    found.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_units_run_as_the_readme_says() {
    let Some(machine) = SystemdContainer::boot("units::the_units_run_as_the_readme_says") else { return };
    network(&machine);
    install(&machine);
    let key = coordinator(&machine);
    agent(&machine);
    checks(&machine, &key);
    own_addresses(&machine, &key);
    bounds(&machine);
    backups(&machine, &key);
    watchdogs(&machine);
    stops(&machine);
}

/// Sets up a public address of the container, and a neighbouring host with a site.
fn network(machine: &SystemdContainer) {
    machine.run(&format!(
        "ip link set lo up; ip address add {OWN}/32 dev lo
         ip netns add site; ip link add near type veth peer name far netns site
         ip address add 5.20.0.1/24 dev near; ip link set near up
         ip -n site address add {SITE}/24 dev far; ip -n site link set far up; ip -n site link set lo up
         ip -n site route add default via 5.20.0.1; ip route add default via {SITE}
         echo 'nameserver {SITE}' >/etc/resolv.conf
         mkdir /srv/site; echo fine >/srv/site/index.html; mkdir /srv/own; echo inside-only >/srv/own/index.html
         systemd-run --quiet --unit=site ip netns exec site python3 -m http.server 80 -d /srv/site
         systemd-run --quiet --unit=own python3 -m http.server 81 -d /srv/own --bind {OWN}"
    ));
    let up = format!("curl -sf http://{SITE}/ && curl -sf http://{OWN}:81/");
    machine.retry("both sites are there", SOON, &up);
}

fn install(machine: &SystemdContainer) {
    machine.run(&block("install -m 0755 target/release/parallax /usr"));
    machine.run(
        "settings=/etc/parallax/coordinator.toml
         sed -i 's|^base_url = .*|base_url = \"http://127.0.0.1\"|; s|^listen = \"127.0.0.1:8080\"|listen = \"0.0.0.0:80\"|
                 s|^filter = \"info\"|filter = \"info,parallax_notify::deliver=debug\"|' $settings",
    );
    machine.run("parallax check-config");
    machine.run(
        "sed -i 's|^# secrets_key_file = |secrets_key_file = |' /etc/parallax/coordinator.toml
         grep -q '^secrets_key_file' /etc/parallax/coordinator.toml",
    );
    let missing = machine.try_run("parallax check-config").unwrap_err();
    assert!(missing.contains("secrets_key_file: "), "{missing}");
    machine.run(&block("new-secrets-key /etc"));
    assert!(machine.run(&block("parallax check-config")).contains("listen = \"0.0.0.0:80\""));
    for unit in ["parallax", "parallax-agent"] {
        let file = if unit == "parallax" { "coordinator" } else { "agent" };
        machine.run(&format!("install -m 0755 target/release/{unit} /usr/local/bin/"));
        machine.run(&format!("install -m 0644 deploy/{file}.service /etc/systemd/system/{unit}.service"));
        let faults = machine.run(&format!("systemd-analyze verify --man=no {unit}.service 2>&1 | grep {unit} || true"));
        assert_eq!(faults, "", "systemd-analyze verify");
        let score = machine.run(&format!("systemd-analyze security --no-pager {unit}.service | tail -n 1"));
        print_note(&format!("{unit}.service: {}", score.trim().trim_start_matches('→').trim()));
    }
}

/// A settings error fails the start with its reason; then `start` returns once everything serves. Returns a key.
fn coordinator(machine: &SystemdContainer) -> String {
    machine.run("systemctl daemon-reload; cp /etc/parallax/coordinator.toml /etc/parallax/good.toml");
    machine.run("sed -i 's|^listen = \"0.0.0.0:80\"|listen = \"nowhere\"|' /etc/parallax/coordinator.toml");
    machine.try_run("systemctl start parallax").unwrap_err();
    let shipped = include_str!("../../deploy/coordinator.toml");
    let line = shipped.lines().position(|line| line.starts_with("listen = ")).expect("it says where to listen");
    machine.wait_for_log("parallax", &format!("coordinator.toml:{}: listen must be", line + 1));
    machine.run("systemctl stop parallax; mv /etc/parallax/good.toml /etc/parallax/coordinator.toml");
    machine.run("systemctl reset-failed parallax || true");

    machine.run(&block("enable --now parallax\n"));
    // No polling: when `start` returns, it already listens on a port below 1024.
    machine.run("curl -sf http://127.0.0.1/api/v1/openapi.json >/dev/null");
    let status = machine.run("systemctl show parallax -p StatusText -p Type");
    assert!(status.contains("StatusText=Serving http://127.0.0.1") && status.contains("Type=notify"), "{status}");

    // A reload without certificate files must not restart it.
    let before = pid(machine, "parallax");
    machine.run("systemctl reload parallax");
    let made = machine.run(&block("account create"));
    assert_eq!(pid(machine, "parallax"), before);
    let (_, key) = made.rsplit_once("\n{").expect("the key comes last");
    let key = json_of(&format!("{{{key}"));
    key["key"].as_str().expect("a key is shown once").to_owned()
}

/// Before it has joined, the agent fails to start and explains how to join; afterwards it starts while it connects.
fn agent(machine: &SystemdContainer) {
    let token = json_of(
        &machine.run(&format!("alias px='sudo -u parallax parallax'\n{} --json", block("agent invite --name").trim())),
    );
    let token = token["token"].as_str().expect("a token is shown once");
    let join =
        block("parallax-agent join").replace("TOKEN", token).replace("status.example.com:7443", "127.0.0.1:7443");
    let (before, rest) = join.split_once("sudo -u").expect("the agent joins by sudo");
    machine.run(before);
    machine.run(&block("/etc/parallax/agent-keys/secrets-key"));
    machine.run(
        "sed -i 's|^coordinator = .*|coordinator = \"127.0.0.1:7443\"|
                 s|^# secrets_key_file = |secrets_key_file = |' /etc/parallax/agent.toml",
    );
    machine.try_run("systemctl start parallax-agent").unwrap_err();
    machine.wait_for_log("parallax-agent", "no identity yet; join a mesh first");
    machine.run("systemctl stop parallax-agent");
    machine.run(&format!("sudo -u{rest}"));
    let status = machine.run("systemctl show parallax-agent -p StatusText -p ActiveState");
    assert!(status.contains("StatusText=Running checks as fra1 (europe, AS24940)"), "{status}");
    let connected = "sudo -u parallax-agent parallax-agent status";
    machine.retry("the agent is connected", SOON, connected);
}

/// Checks run under the agent's unit, including raw sockets, and a heartbeat receives a ping.
fn checks(machine: &SystemdContainer, key: &str) {
    let page = page(machine, key);
    let make = |body: Value| {
        let (status, made) = machine.api(key, "POST", &format!("/pages/{page}/monitors"), &body.to_string());
        assert_eq!(status, 201, "{made}");
        made["monitor"].clone()
    };
    let site = make(json!({"name": "Site", "url": format!("http://{SITE}/")}));
    let echo = make(json!({"name": "Echo", "type": "ping", "host": SITE}));
    let job = make(json!({"type": "heartbeat", "name": "Job", "periodMinutes": 60, "graceMinutes": 5}));
    machine.run(&format!("curl -sf '{}'", job["heartbeat"]["pingUrl"].as_str().unwrap()));
    for monitor in [&site, &echo, &job] {
        let id = monitor["id"].as_str().unwrap();
        let up = format!(
            "curl -sf -H 'Authorization: Bearer {key}' 'http://127.0.0.1/api/v1/pages/{page}/monitors/{id}' \
             | grep '\"status\": *\"up\"' || {{ sleep 1; false; }}"
        );
        machine.retry(&format!("{} is up", monitor["name"]), SOON, &up);
    }
}

fn page(machine: &SystemdContainer, key: &str) -> String {
    let (_, pages) = machine.api(key, "GET", "/pages", "");
    pages["pages"][0]["id"].as_str().expect("there is a page").to_owned()
}

/// A customer's webhook can't reach the host's own addresses, which the unit must allow the service to read.
fn own_addresses(machine: &SystemdContainer, key: &str) {
    let path = format!("/pages/{}/destinations", page(machine, key));
    let post = |name: &str, url: String| {
        let hook = json!({"type": "webhook", "name": name, "url": url});
        let (status, made) = machine.api(key, "POST", &path, &hook.to_string());
        assert_eq!(status, 201, "{made}");
        let id = made["destination"]["id"].as_str().unwrap();
        machine.api(key, "POST", &format!("{path}/{id}/test"), "{}").1["delivery"].clone()
    };
    post("Outwards", format!("http://{SITE}/"));
    machine.wait_for_log("site", "POST / ");
    let refused = post("Inwards", format!("http://{OWN}:81/"));
    assert!(!refused.to_string().contains("inside-only"), "{refused}");
    assert_ne!(refused["status"], "delivered", "{refused}");
    let visits = machine.run("journalctl --no-pager -o cat -u own");
    assert!(!visits.contains("POST"), "the host's own site was reached: {visits}");
    let log = machine.run("journalctl --no-pager -o cat -u parallax");
    assert!(!log.contains("own addresses can't be read"), "{log}");
}

/// Memory is limited, core dumps are off, and a watchdog is set.
fn bounds(machine: &SystemdContainer) {
    for (unit, memory) in [("parallax", 4_u64 << 30), ("parallax-agent", 512 << 20)] {
        let pid = pid(machine, unit);
        let limits = machine.run(&format!("grep 'Max core' /proc/{pid}/limits"));
        assert_eq!(limits.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{unit}: {limits}");
        let shown = machine.run(&format!("systemctl show {unit} -p MemoryMax -p WatchdogUSec --value"));
        assert_eq!(shown.trim(), format!("1min\n{memory}"), "{unit}");
    }
}

fn pid(machine: &SystemdContainer, unit: &str) -> String {
    machine.run(&format!("systemctl show {unit} -p MainPID --value")).trim().to_owned()
}

/// A backup is written where it was asked for; a store that root restores or compacts stays the service user's.
fn backups(machine: &SystemdContainer, key: &str) {
    let told = json_of(&machine.run("parallax backup /tmp/by-root --json"));
    assert_eq!(told["file"], "/tmp/by-root", "{told}");
    machine.run("alias px='sudo -u parallax parallax'\npx backup /tmp/by-service; px backup - >/tmp/streamed");
    for file in ["by-root", "by-service", "streamed"] {
        let whole = json_of(&machine.run(&format!("parallax verify /tmp/{file} --json")));
        assert_eq!(whole["healthy"], true, "{file}: {whole}");
    }
    assert_eq!(machine.run("stat -c '%U %a' /tmp/by-root").trim(), "root 600");
    let refused = machine.try_run("parallax backup /tmp/by-root").unwrap_err();
    assert!(refused.contains("already exists; use --force to replace it"), "{refused}");
    machine.run("parallax backup /tmp/by-root --force");
    let refused = machine.try_run("parallax backup - >/dev/full").unwrap_err();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert_eq!(machine.run("ls -A /tmp | grep part || true"), "", "nothing is left of it");

    machine.run("systemctl stop parallax");
    for command in ["restore /tmp/by-root", "restore /tmp/by-service", "compact", "verify", "account list"] {
        machine.run(&format!("parallax {command}"));
        let roots = machine.run("find /var/lib/parallax -not -user parallax");
        assert_eq!(roots, "", "after `parallax {command}` by root");
    }
    // A key file that root rotates stays the service user's, so the service can start with it.
    machine.run("parallax new-secrets-key --rotate /etc/parallax/keys/secrets-key");
    let facts = machine.run("stat -c '%U %G %a' /etc/parallax/keys/secrets-key");
    assert_eq!(facts.trim(), "parallax parallax 600");
    machine.run("systemctl start parallax");
    assert_eq!(machine.api(key, "GET", "/me", "").0, 200);
}

/// A hung service is restarted. The units' own watchdog timeout is restored afterwards: a stall of this host is no
/// fault.
fn watchdogs(machine: &SystemdContainer) {
    for unit in ["parallax", "parallax-agent"] {
        let folder = format!("/run/systemd/system/{unit}.service.d");
        machine.run(&format!(
            "mkdir -p {folder}; printf '[Service]\\nWatchdogSec=20s\\n' >{folder}/watchdog.conf
             systemctl daemon-reload; systemctl restart {unit}"
        ));
        let stuck = pid(machine, unit);
        machine.run(&format!("kill -STOP {stuck}"));
        let renewed = format!(
            "systemctl is-active --quiet {unit} && [ \"$(systemctl show {unit} -p MainPID --value)\" != {stuck} ] \
             || {{ sleep 0.5; false; }}"
        );
        machine.retry(&format!("{unit} is restarted"), RESTART, &renewed);
        // At least one: on a busy host there may have been others.
        machine.wait_for_log(unit, "Watchdog timeout");
        machine.wait_for_log(unit, &format!("Killing process {stuck} "));
        machine.run(&format!("rm -r {folder}; systemctl daemon-reload; systemctl restart {unit}"));
    }
}

/// Both services stop within their timeout.
fn stops(machine: &SystemdContainer) {
    for unit in ["parallax-agent", "parallax"] {
        let stopping = format!("systemctl stop {unit}; systemctl show {unit} -p Result -p ActiveState");
        let ended = machine.run(&stopping);
        assert!(ended.contains("Result=success") && ended.contains("ActiveState=inactive"), "{unit}: {ended}");
    }
}
