//! An ACME certificate authority, Debian's pebble, and its name server, Debian's bind9. It validates each challenge
//! itself, as a public authority does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::curl::{TestAuthority, fetch};
use crate::eventually::eventually;
use crate::free_ports::{free_port, free_ports};
use crate::process::{TestProcess, output};
use crate::reference_servers::{find_program, skip_missing};

/// Longest start of either program.
const START: Duration = Duration::from_secs(60);

/// Start of every zone; the serial number is increased with each change.
const ZONE: &str = "$TTL 1\n@ SOA ns.test. hostmaster.test. {NUMBER} 60 60 60 1\n@ NS ns.test.\nns A 127.0.0.1\n";

/// The name server and the authority.
#[derive(Debug)]
pub struct AcmeAuthority {
    /// Port of the name server.
    pub name_server: u16,
    /// Directory URL of the authority.
    pub directory: String,
    /// File with the certificate of the authority's own HTTPS server.
    pub roots: PathBuf,
    management: u16,
    pebble: TestProcess,
    named: TestProcess,
    changes: u32,
    folder: TempDir,
}

impl AcmeAuthority {
    /// Starts both. The authority validates at port `http` of a name, and issues for `seconds`. If a program is
    /// missing, the test is skipped, or fails if `PARALLAX_REQUIRE_PEERS` is 1.
    pub async fn start(test: &str, http: u16, seconds: u32) -> Option<Self> {
        let (Some(named), Some(pebble)) = (find_program("named"), find_program("pebble")) else {
            skip_missing(test, "no bind9 or pebble", "apt-get install bind9 pebble");
            return None;
        };
        let folder = TempDir::new().expect("temporary folder");
        let at = folder.path().to_owned();
        let name_server = free_port();
        let zone = at.join("zone");
        fs::create_dir(&zone).expect("folder can be made");
        write(&zone.join("root.zone"), include_str!("outside/root.zone"));
        write(&zone.join("test.zone"), &zone_of(0, ""));
        let settings = include_str!("outside/named.conf").replace("{FOLDER}", &at.to_string_lossy());
        write(&at.join("named.conf"), &settings.replace("{DNS}", &name_server.to_string()));
        let mut command = Command::new(named);
        command.args(["-g", "-c"]).arg(at.join("named.conf"));
        let mut named = TestProcess::start("named", command, &at);
        named.wait_for_log("running", START).await;

        let authority = TestAuthority::new(&at);
        let (certificate, key) = authority.issue(&["127.0.0.1", "localhost"], 2090);
        write(&at.join("pebble.pem"), &certificate);
        write(&at.join("pebble.key"), &key);
        let [listen, management, tls] = free_ports();
        let settings = serde_json::json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{listen}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": at.join("pebble.pem"),
            "privateKey": at.join("pebble.key"),
            "httpPort": http,
            "tlsPort": tls,
            "certificateValidityPeriod": seconds,
        }});
        write(&at.join("pebble.json"), &settings.to_string());
        let mut command = Command::new(pebble);
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .arg("-config")
            .arg(at.join("pebble.json"));
        command.args(["-dnsserver", &format!("127.0.0.1:{name_server}")]);
        let mut pebble = TestProcess::start("pebble", command, &at);
        let directory = format!("https://127.0.0.1:{listen}/dir");
        let roots = authority.file;
        eventually("pebble answers", START, async || {
            assert!(pebble.is_running(), "pebble ended: {}", pebble.log());
            (fetch(&directory, &roots, &[]).status == 200).then_some(())
        })
        .await;
        Some(Self { name_server, directory, roots, management, pebble, named, changes: 0, folder })
    }

    /// Replaces the records of the zone `test`.
    pub async fn set_zone(&mut self, lines: &str) {
        self.changes += 1;
        write(&self.folder.path().join("zone/test.zone"), &zone_of(self.changes, lines));
        let mut kill = Command::new("kill");
        kill.args(["-HUP", &self.named.id().to_string()]);
        output(kill).unwrap_or_else(|fault| panic!("{fault}"));
        self.named.wait_for_log(&format!("zone test/IN: loaded serial {}", self.changes + 1), START).await;
    }

    /// Returns true if the authority's log contains that hostname: it logs each order and each validation.
    pub fn saw_hostname(&self, name: &str) -> bool {
        self.pebble.log().contains(name)
    }

    /// Stops both; their files stay.
    pub fn stop(&mut self) {
        self.pebble.kill();
        self.named.kill();
    }

    /// Writes the root certificate of the issuing chain to the folder, and returns the file.
    pub fn write_root(&self) -> PathBuf {
        let seen = fetch(&format!("https://127.0.0.1:{}/roots/0", self.management), &self.roots, &[]);
        assert_eq!(seen.status, 200, "{}", seen.log);
        let file = self.folder.path().join("issued.pem");
        write(&file, seen.body());
        file
    }
}

fn zone_of(changes: u32, lines: &str) -> String {
    format!("{}{lines}\n", ZONE.replace("{NUMBER}", &(changes + 1).to_string()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
