//! An authority that issues certificates by ACME, Debian's pebble, and the name server that it asks, Debian's bind9: it
//! looks at each proof itself, as a public one would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::eventually::eventually;
use crate::outside::{lacking, program};
use crate::ports::{port, ports};
use crate::process::{Process, output};
use crate::visits::{Authority, visit};

/// Longest start of a peer.
const START: Duration = Duration::from_secs(60);

/// What every zone begins with; its number goes up with each change.
const ZONE: &str =
    "$TTL 1\n@ SOA ns.test. hostmaster.test. {NUMBER} 60 60 60 1\n@ NS ns.test.\nns A 127.0.0.1\n";

/// Name server and authority.
#[derive(Debug)]
pub struct Issuer {
    /// Port of the name server.
    pub name_server: u16,
    /// URL of the authority's directory.
    pub directory: String,
    /// File of the certificate by which the authority itself is known.
    pub roots: PathBuf,
    management: u16,
    pebble: Process,
    named: Process,
    changes: u32,
    folder: TempDir,
}

impl Issuer {
    /// Starts them. The authority looks at port `http` of a name, and issues for `seconds`. Where one is not installed
    /// the test is left out, or fails if `PARALLAX_REQUIRE_PEERS` is 1.
    pub async fn start(test: &str, http: u16, seconds: u32) -> Option<Self> {
        let (Some(named), Some(pebble)) = (program("named"), program("pebble")) else {
            lacking(test, "no bind9 or pebble", "apt-get install bind9 pebble");
            return None;
        };
        let folder = TempDir::new().expect("temporary folder");
        let at = folder.path().to_owned();
        let name_server = port();
        let zone = at.join("zone");
        fs::create_dir(&zone).expect("folder can be made");
        write(&zone.join("root.zone"), include_str!("outside/root.zone"));
        write(&zone.join("test.zone"), &zone_of(0, ""));
        let settings = include_str!("outside/named.conf").replace("{FOLDER}", &at.to_string_lossy());
        write(&at.join("named.conf"), &settings.replace("{DNS}", &name_server.to_string()));
        let mut command = Command::new(named);
        command.args(["-g", "-c"]).arg(at.join("named.conf"));
        let mut named = Process::start("named", command, &at);
        named.says("running", START).await;

        let authority = Authority::new(&at);
        let (certificate, key) = authority.issue(&["127.0.0.1", "localhost"], 2090);
        write(&at.join("pebble.pem"), &certificate);
        write(&at.join("pebble.key"), &key);
        let [listen, management, tls] = ports();
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
        let mut pebble = Process::start("pebble", command, &at);
        let directory = format!("https://127.0.0.1:{listen}/dir");
        let roots = authority.file;
        eventually("pebble answers", START, async || {
            assert!(pebble.running(), "pebble ended: {}", pebble.log());
            (visit(&directory, &roots, &[]).status == 200).then_some(())
        })
        .await;
        Some(Self { name_server, directory, roots, management, pebble, named, changes: 0, folder })
    }

    /// Has the name server say these lines of the zone `test` from now on.
    pub async fn say(&mut self, lines: &str) {
        self.changes += 1;
        write(&self.folder.path().join("zone/test.zone"), &zone_of(self.changes, lines));
        let mut kill = Command::new("kill");
        kill.args(["-HUP", &self.named.id().to_string()]);
        output(kill).unwrap_or_else(|fault| panic!("{fault}"));
        self.named.says(&format!("zone test/IN: loaded serial {}", self.changes + 1), START).await;
    }

    /// Whether the authority's log names that hostname: it tells of each order and each look.
    pub fn was_asked_for(&self, name: &str) -> bool {
        self.pebble.log().contains(name)
    }

    /// Ends both; their files stay.
    pub fn stop(&mut self) {
        self.pebble.kill();
        self.named.kill();
    }

    /// Writes the root of what it issues into the folder; gives the file.
    pub fn issued_root(&self) -> PathBuf {
        let seen = visit(&format!("https://127.0.0.1:{}/roots/0", self.management), &self.roots, &[]);
        assert_eq!(seen.status, 200, "{}", seen.said);
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
