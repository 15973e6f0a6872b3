//! The shipped units and settings in a booted systemd, by the commands that `deploy/README.md` gives.

use std::time::Duration;

use parallax_tests::eventually::note;
use parallax_tests::machine::Machine;
use serde_json::{Value, json};

/// Longest wait for what a host that is busy may take a while for.
const SOON: Duration = Duration::from_secs(60);
/// Longest wait for the watchdog of a stopped service, and for its next start.
const RESTART: Duration = Duration::from_secs(180);
/// The container's own public address, and what is checked: another host.
const OWN: &str = "5.10.0.2";
const SITE: &str = "5.20.0.2";

/// Blocks of the README's commands, each by words that only it has.
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
    let Some(machine) = Machine::boot("units::the_units_run_as_the_readme_says") else { return };
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

/// A public address of the host's own, and a neighbour with a site.
fn network(machine: &Machine) {
    machine.must(&format!(
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
    machine.eventually("both sites are there", SOON, &up);
}

fn install(machine: &Machine) {
    machine.must(&block("install -m 0755 target/release/parallax /usr"));
    machine.must(
        "settings=/etc/parallax/coordinator.toml
         sed -i 's|^base_url = .*|base_url = \"http://127.0.0.1\"|; s|^listen = \"127.0.0.1:8080\"|listen = \"0.0.0.0:80\"|
                 s|^filter = \"info\"|filter = \"info,parallax_coordinator::deliver=debug\"|' $settings",
    );
    machine.must("parallax check-config");
    machine.must(
        "sed -i 's|^# secrets_key_file = |secrets_key_file = |' /etc/parallax/coordinator.toml
         grep -q '^secrets_key_file' /etc/parallax/coordinator.toml",
    );
    let missing = machine.sh("parallax check-config").unwrap_err();
    assert!(missing.contains("secrets_key_file: "), "{missing}");
    machine.must(&block("new-secrets-key /etc"));
    assert!(machine.must(&block("parallax check-config")).contains("listen = \"0.0.0.0:80\""));
    for unit in ["parallax", "parallax-agent"] {
        let file = if unit == "parallax" { "coordinator" } else { "agent" };
        machine.must(&format!("install -m 0755 target/release/{unit} /usr/local/bin/"));
        machine.must(&format!("install -m 0644 deploy/{file}.service /etc/systemd/system/{unit}.service"));
        let faults = machine
            .must(&format!("systemd-analyze verify --man=no {unit}.service 2>&1 | grep {unit} || true"));
        assert_eq!(faults, "", "systemd-analyze verify");
        let score = machine.must(&format!("systemd-analyze security --no-pager {unit}.service | tail -n 1"));
        note(&format!("{unit}.service: {}", score.trim().trim_start_matches('→').trim()));
    }
}

/// A fault of the settings fails the start with its reason; then `start` returns once everything serves. Gives a key.
fn coordinator(machine: &Machine) -> String {
    machine.must("systemctl daemon-reload; cp /etc/parallax/coordinator.toml /etc/parallax/good.toml");
    machine.must("sed -i 's|^listen = \"0.0.0.0:80\"|listen = \"nowhere\"|' /etc/parallax/coordinator.toml");
    machine.sh("systemctl start parallax").unwrap_err();
    let shipped = include_str!("../../deploy/coordinator.toml");
    let line =
        shipped.lines().position(|line| line.starts_with("listen = ")).expect("it says where to listen");
    machine.says("parallax", &format!("coordinator.toml:{}: listen must be", line + 1));
    machine.must("systemctl stop parallax; mv /etc/parallax/good.toml /etc/parallax/coordinator.toml");
    machine.must("systemctl reset-failed parallax || true");

    machine.must(&block("enable --now parallax\n"));
    // Nothing is waited for: it listens on a port below 1024 by the time that `start` returns.
    machine.must("curl -sf http://127.0.0.1/api/v1/openapi.json >/dev/null");
    let status = machine.must("systemctl show parallax -p StatusText -p Type");
    assert!(
        status.contains("StatusText=Serving http://127.0.0.1") && status.contains("Type=notify"),
        "{status}"
    );

    // A reload without certificates in files is nothing to end for.
    let before = pid(machine, "parallax");
    machine.must("systemctl reload parallax");
    let made = machine.must(&block("account create"));
    assert_eq!(pid(machine, "parallax"), before);
    let (_, key) = made.rsplit_once("\n{").expect("the key comes last");
    let key = json_of(&format!("{{{key}"));
    key["key"].as_str().expect("a key is shown once").to_owned()
}

/// One that has not joined fails to start and says how to join; one that has is started while it connects.
fn agent(machine: &Machine) {
    let token = json_of(&machine.must(&format!(
        "alias px='sudo -u parallax parallax'\n{} --json",
        block("agent invite --name").trim()
    )));
    let token = token["token"].as_str().expect("a token is shown once");
    let join = block("parallax-agent join")
        .replace("TOKEN", token)
        .replace("status.example.com:7443", "127.0.0.1:7443");
    let (before, rest) = join.split_once("sudo -u").expect("the agent joins by sudo");
    machine.must(before);
    machine.must(&block("/etc/parallax/agent-keys/secrets-key"));
    machine.must(
        "sed -i 's|^coordinator = .*|coordinator = \"127.0.0.1:7443\"|
                 s|^# secrets_key_file = |secrets_key_file = |' /etc/parallax/agent.toml",
    );
    machine.sh("systemctl start parallax-agent").unwrap_err();
    machine.says("parallax-agent", "no identity yet; join a mesh first");
    machine.must("systemctl stop parallax-agent");
    machine.must(&format!("sudo -u{rest}"));
    let status = machine.must("systemctl show parallax-agent -p StatusText -p ActiveState");
    assert!(status.contains("StatusText=Running checks as fra1 (europe, AS24940)"), "{status}");
    let connected = "sudo -u parallax-agent parallax-agent status";
    machine.eventually("the agent is connected", SOON, connected);
}

/// Checks run under the agent's unit, raw sockets among them, and a heartbeat hears its job.
fn checks(machine: &Machine, key: &str) {
    let page = page(machine, key);
    let make = |body: Value| {
        let (status, made) = machine.api(key, "POST", &format!("/pages/{page}/monitors"), &body.to_string());
        assert_eq!(status, 201, "{made}");
        made["monitor"].clone()
    };
    let site = make(json!({"name": "Site", "url": format!("http://{SITE}/")}));
    let echo = make(json!({"name": "Echo", "type": "ping", "host": SITE}));
    let job = make(json!({"type": "heartbeat", "name": "Job", "periodMinutes": 60, "graceMinutes": 5}));
    machine.must(&format!("curl -sf '{}'", job["heartbeat"]["pingUrl"].as_str().unwrap()));
    for monitor in [&site, &echo, &job] {
        let id = monitor["id"].as_str().unwrap();
        let up = format!(
            "curl -sf -H 'Authorization: Bearer {key}' 'http://127.0.0.1/api/v1/pages/{page}/monitors/{id}' \
             | grep '\"status\": *\"up\"' || {{ sleep 1; false; }}"
        );
        machine.eventually(&format!("{} is up", monitor["name"]), SOON, &up);
    }
}

fn page(machine: &Machine, key: &str) -> String {
    let (_, pages) = machine.api(key, "GET", "/pages", "");
    pages["pages"][0]["id"].as_str().expect("there is a page").to_owned()
}

/// A customer's webhook does not reach the host's own addresses, which the unit has to let the service read.
fn own_addresses(machine: &Machine, key: &str) {
    let path = format!("/pages/{}/destinations", page(machine, key));
    let post = |name: &str, url: String| {
        let hook = json!({"type": "webhook", "name": name, "url": url});
        let (status, made) = machine.api(key, "POST", &path, &hook.to_string());
        assert_eq!(status, 201, "{made}");
        let id = made["destination"]["id"].as_str().unwrap();
        machine.api(key, "POST", &format!("{path}/{id}/test"), "{}").1["delivery"].clone()
    };
    post("Outwards", format!("http://{SITE}/"));
    machine.says("site", "POST / ");
    let refused = post("Inwards", format!("http://{OWN}:81/"));
    assert!(!refused.to_string().contains("inside-only"), "{refused}");
    assert_ne!(refused["status"], "delivered", "{refused}");
    let visits = machine.must("journalctl --no-pager -o cat -u own");
    assert!(!visits.contains("POST"), "the host's own site was reached: {visits}");
    let log = machine.must("journalctl --no-pager -o cat -u parallax");
    assert!(!log.contains("own addresses can't be read"), "{log}");
}

/// Memory is bounded, no core is dumped, and a watchdog is set.
fn bounds(machine: &Machine) {
    for (unit, memory) in [("parallax", 4_u64 << 30), ("parallax-agent", 512 << 20)] {
        let pid = pid(machine, unit);
        let limits = machine.must(&format!("grep 'Max core' /proc/{pid}/limits"));
        assert_eq!(limits.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{unit}: {limits}");
        let shown = machine.must(&format!("systemctl show {unit} -p MemoryMax -p WatchdogUSec --value"));
        assert_eq!(shown.trim(), format!("1min\n{memory}"), "{unit}");
    }
}

fn pid(machine: &Machine, unit: &str) -> String {
    machine.must(&format!("systemctl show {unit} -p MainPID --value")).trim().to_owned()
}

/// A backup lands where it was asked for; a store that root restores or compacts stays the service's.
fn backups(machine: &Machine, key: &str) {
    let told = json_of(&machine.must("parallax backup /tmp/by-root --json"));
    assert_eq!(told["file"], "/tmp/by-root", "{told}");
    machine
        .must("alias px='sudo -u parallax parallax'\npx backup /tmp/by-service; px backup - >/tmp/streamed");
    for file in ["by-root", "by-service", "streamed"] {
        let whole = json_of(&machine.must(&format!("parallax verify /tmp/{file} --json")));
        assert_eq!(whole["healthy"], true, "{file}: {whole}");
    }
    assert_eq!(machine.must("stat -c '%U %a' /tmp/by-root").trim(), "root 600");
    let refused = machine.sh("parallax backup /tmp/by-root").unwrap_err();
    assert!(refused.contains("already exists; use --force to replace it"), "{refused}");
    machine.must("parallax backup /tmp/by-root --force");
    let refused = machine.sh("parallax backup - >/dev/full").unwrap_err();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert_eq!(machine.must("ls -A /tmp | grep part || true"), "", "nothing is left of it");

    machine.must("systemctl stop parallax");
    for command in ["restore /tmp/by-root", "restore /tmp/by-service", "compact", "verify", "account list"] {
        machine.must(&format!("parallax {command}"));
        let roots = machine.must("find /var/lib/parallax -not -user parallax");
        assert_eq!(roots, "", "after `parallax {command}` by root");
    }
    // A key that root puts first stays the service's, which starts with it.
    machine.must("parallax new-secrets-key --rotate /etc/parallax/keys/secrets-key");
    let facts = machine.must("stat -c '%U %G %a' /etc/parallax/keys/secrets-key");
    assert_eq!(facts.trim(), "parallax parallax 600");
    machine.must("systemctl start parallax");
    assert_eq!(machine.api(key, "GET", "/me", "").0, 200);
}

/// One that stands still is restarted. The units' own time is set again afterwards: a stall of this host is no fault.
fn watchdogs(machine: &Machine) {
    for unit in ["parallax", "parallax-agent"] {
        let folder = format!("/run/systemd/system/{unit}.service.d");
        machine.must(&format!(
            "mkdir -p {folder}; printf '[Service]\\nWatchdogSec=20s\\n' >{folder}/watchdog.conf
             systemctl daemon-reload; systemctl restart {unit}"
        ));
        let stuck = pid(machine, unit);
        machine.must(&format!("kill -STOP {stuck}"));
        let renewed = format!(
            "systemctl is-active --quiet {unit} && [ \"$(systemctl show {unit} -p MainPID --value)\" != {stuck} ] \
             || {{ sleep 0.5; false; }}"
        );
        machine.eventually(&format!("{unit} is restarted"), RESTART, &renewed);
        // At least one: on a busy host others may have stood still by themselves.
        machine.says(unit, "Watchdog timeout");
        machine.says(unit, &format!("Killing process {stuck} "));
        machine.must(&format!("rm -r {folder}; systemctl daemon-reload; systemctl restart {unit}"));
    }
}

/// Both end by themselves, within their time.
fn stops(machine: &Machine) {
    for unit in ["parallax-agent", "parallax"] {
        let stopping = format!("systemctl stop {unit}; systemctl show {unit} -p Result -p ActiveState");
        let ended = machine.must(&stopping);
        assert!(
            ended.contains("Result=success") && ended.contains("ActiveState=inactive"),
            "{unit}: {ended}"
        );
    }
}
