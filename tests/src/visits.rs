//! Visits over TLS: an authority made for a test, certificates of it, and curl, which asks as a visitor's browser would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// An authority of a test's own.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, in PEM.
    pub file: PathBuf,
}

impl Authority {
    /// Makes it, and writes its certificate into the folder.
    pub fn new(folder: &Path) -> Self {
        let key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let file = folder.join("authority.pem");
        fs::write(&file, params.self_signed(&key).expect("authority").pem()).expect("file can be written");
        Self { issuer: Issuer::new(params, key), file }
    }

    /// A certificate for those names, good until that year's begin, and its key, in PEM.
    pub fn issue(&self, names: &[&str], year: i32) -> (String, String) {
        let key = KeyPair::generate().expect("key");
        let common = names.first().copied().unwrap_or_default();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("host names");
        params.distinguished_name.push(DnType::CommonName, common);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        (params.signed_by(&key, &self.issuer).expect("leaf").pem(), key.serialize_pem())
    }
}

/// What curl made of a request.
#[derive(Debug)]
pub struct Visit {
    /// Its exit status: 0 where there was an answer.
    pub exit: i32,
    /// `2` or `1.1`.
    pub version: String,
    /// The answer's status, 0 where there was none.
    pub status: u16,
    /// Head and body of the answer.
    pub text: String,
    /// What curl said of the connection.
    pub said: String,
}

impl Visit {
    /// Whether the head has that line, whatever the case of its name.
    pub fn has(&self, line: &str) -> bool {
        self.text.lines().any(|found| found.eq_ignore_ascii_case(line))
    }

    /// What follows the head.
    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

/// Asks for `url`, whose host is taken to be this one whatever its name, trusting the certificates of that file.
pub fn visit(url: &str, roots: &Path, more: &[&str]) -> Visit {
    let mark = "\n~~~ ";
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--verbose",
        "--include",
        "--max-time",
        "20",
        "--noproxy",
        "*",
    ]);
    command.args(["--connect-to", &format!("::127.0.0.1:{}", port(url))]).arg("--cacert").arg(roots);
    command.arg("--write-out").arg(format!("{mark}%{{http_version}} %{{http_code}}"));
    let output = command.args(more).arg(url).output().expect("curl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (text, end) = text.rsplit_once(mark).expect("curl writes its mark");
    let (version, status) = end.split_once(' ').expect("two words");
    Visit {
        exit: output.status.code().unwrap_or(-1),
        version: version.to_owned(),
        status: status.trim().parse().unwrap_or(0),
        text: text.to_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The port of a URL that has one.
fn port(url: &str) -> &str {
    let authority = url.split('/').nth(2).expect("a URL has a host");
    authority.rsplit_once(':').map_or("", |(_, port)| port)
}
