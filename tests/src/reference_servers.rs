//! Reference servers that agents check as they would a customer's: Debian's nginx and bind9, on free ports of
//! loopback.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::eventually::{eventually, skip_test};
use crate::free_ports::free_ports;
use crate::process::TestProcess;

/// Environment variable; if 1, a server that is not installed is a failure.
const REQUIRE: &str = "PARALLAX_REQUIRE_PEERS";
/// Longest start of a server.
const START: Duration = Duration::from_secs(60);
/// Folders where Debian installs servers, which are not on every user's `PATH`.
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
/// Path of nginx's brotli module on Debian.
const BROTLI: &str = "/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so";

/// Text that every served document contains.
pub const KEYWORD: &str = "everything is fine here";

/// A web server, a name server, and the authority of the web server's certificates.
#[derive(Debug)]
pub struct ReferenceServers {
    /// Port of HTTP with gzip.
    pub http: u16,
    /// Port of HTTP with brotli.
    pub brotli: u16,
    /// Port of HTTPS with HTTP/2 and one certificate per name.
    pub https: u16,
    /// Port where nobody listens.
    pub closed_port: u16,
    /// Agent settings that use this name server and trust this authority.
    pub settings: String,
    _nginx: TestProcess,
    _named: TestProcess,
    folder: TempDir,
}

impl ReferenceServers {
    /// Starts the servers. If one is not installed, the test is skipped, or fails if `PARALLAX_REQUIRE_PEERS` is 1.
    pub async fn start(test: &str) -> Option<Self> {
        let found =
            (find_program("nginx"), find_program("named"), Some(PathBuf::from(BROTLI)).filter(|at| at.is_file()));
        let (Some(nginx), Some(named), Some(brotli_module)) = found else {
            skip_missing(test, "no nginx or bind9", "apt-get install nginx libnginx-mod-http-brotli-filter bind9");
            return None;
        };
        let folder = TempDir::new().expect("temporary folder");
        let at = folder.path();
        let [http, brotli, https, inner, nobody, name_server] = free_ports();
        write_texts(&at.join("www"));
        write_certificates(at);
        let fill = |template: &str| {
            let numbers =
                [("HTTP", http), ("BROTLI", brotli), ("HTTPS", https), ("INNER", inner), ("DNS", name_server)];
            let text = template.replace("{FOLDER}", &at.to_string_lossy());
            let text = text.replace("{BROTLI_MODULE}", &brotli_module.to_string_lossy());
            numbers.iter().fold(text, |text, (name, port)| text.replace(&format!("{{{name}}}"), &port.to_string()))
        };
        let zone = at.join("zone");
        fs::create_dir(&zone).expect("folder can be made");
        write(&zone.join("root.zone"), include_str!("outside/root.zone"));
        write(&zone.join("test.zone"), &zone_of_test());
        write(&at.join("named.conf"), &fill(include_str!("outside/named.conf")));
        write(&at.join("nginx.conf"), &fill(include_str!("outside/nginx.conf")));
        let settings = at.join("agent.toml");
        let trust = at.join("ca.pem");
        write(&settings, &format!("resolvers = [\"127.0.0.1:{name_server}\"]\ntrust = [\"{}\"]\n", trust.display()));

        let mut command = Command::new(named);
        command.args(["-g", "-c"]).arg(at.join("named.conf"));
        let mut named = TestProcess::start("named", command, at);
        named.wait_for_log("running", START).await;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(at).arg("-e").arg(at.join("error.log")).arg("-c").arg(at.join("nginx.conf"));
        let mut nginx = TestProcess::start("nginx", command, at);
        eventually("nginx listens", START, async || {
            assert!(nginx.is_running(), "nginx ended: {}", nginx.log());
            std::net::TcpStream::connect(("127.0.0.1", https)).ok()
        })
        .await;
        let settings = settings.to_string_lossy().into_owned();
        Some(Self { http, brotli, https, closed_port: nobody, settings, _nginx: nginx, _named: named, folder })
    }

    /// Returns the folder for the test's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Skips a test because a program is missing; fails it if `PARALLAX_REQUIRE_PEERS` is 1.
pub fn skip_missing(test: &str, why: &str, needed: &str) {
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{REQUIRE}=1, and peers are missing: {needed}");
    skip_test(test, why, needed);
}

/// Returns the path of a program on Debian, or `None` if it is not installed.
pub fn find_program(name: &str) -> Option<PathBuf> {
    PROGRAM_FOLDERS.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

/// Writes the text as it is, and in the encodings that nginx serves only from files.
fn write_texts(www: &Path) {
    fs::create_dir(www).expect("folder can be made");
    let text = format!("{}\n{KEYWORD}\n{}", "padding ".repeat(4096), "more of it ".repeat(64));
    write(&www.join("text.txt"), &text);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(text.as_bytes()).and_then(|()| raw.write_all(text.as_bytes())).expect("memory can be written");
    for (name, coded) in [("zlib", zlib.finish()), ("raw", raw.finish()), ("zstd", Ok(zstd(&text)))] {
        fs::write(www.join(name), coded.expect("memory can be written")).expect("file can be written");
    }
}

/// Returns one frame with one stored block (RFC 8878, section 3.1.1): a single segment with its size in four bytes.
fn zstd(text: &str) -> Vec<u8> {
    let size = u32::try_from(text.len()).expect("the text is short");
    let block = ((size << 3) | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &size.to_le_bytes(), &block[..3], text.as_bytes()].concat()
}

/// Writes an authority and its leaf certificates (valid, expired, for another name), and a self-signed one.
fn write_certificates(folder: &Path) {
    let key = KeyPair::generate().expect("key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("authority");
    write(&folder.join("ca.pem"), &authority.pem());
    let issuer = Issuer::new(params, key);
    let leaf = |name: &str, year: i32, is_signed: bool| -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a host name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let leaf = if is_signed { params.signed_by(&key, &issuer) } else { params.self_signed(&key) };
        (leaf.expect("leaf"), key)
    };
    for (file, name, year, is_signed) in [
        ("good", "good.test", 2090, true),
        ("expired", "expired.test", 2021, true),
        ("wrong", "another.test", 2090, true),
        ("stranger", "stranger.test", 2090, false),
    ] {
        let (leaf, key) = leaf(name, year, is_signed);
        write(&folder.join(format!("{file}.pem")), &leaf.pem());
        write(&folder.join(format!("{file}.key")), &key.serialize_pem());
    }
}

/// Returns the zone, which has a name whose records exceed one datagram.
fn zone_of_test() -> String {
    let many = (0..100).map(|n| format!("many TXT \"record {n} of many, long enough to fill a datagram together\"\n"));
    include_str!("outside/test.zone").to_owned() + &many.collect::<String>()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
