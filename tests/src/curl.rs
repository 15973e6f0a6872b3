//! Requests over TLS: a test certificate authority, its certificates, and curl as the client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A certificate authority of one test.
#[derive(Debug)]
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// File with its certificate, in PEM.
    pub file: PathBuf,
}

impl TestAuthority {
    /// Creates it, and writes its certificate to the folder.
    pub fn new(folder: &Path) -> Self {
        let key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let file = folder.join("authority.pem");
        fs::write(&file, params.self_signed(&key).expect("authority").pem()).expect("file can be written");
        Self { issuer: Issuer::new(params, key), file }
    }

    /// Issues a certificate for `names`, valid until the start of `year`. Returns certificate and key, in PEM.
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

/// Result of a request by curl.
#[derive(Debug)]
pub struct CurlResponse {
    /// Exit status: 0 if there was a response.
    pub exit: i32,
    /// HTTP version: `2` or `1.1`.
    pub version: String,
    /// HTTP status; 0 if there was no response.
    pub status: u16,
    /// Head and body of the response.
    pub text: String,
    /// Log of curl about the connection.
    pub log: String,
}

impl CurlResponse {
    /// Returns true if the head contains that line; the header name is compared without case.
    pub fn has_header(&self, line: &str) -> bool {
        self.text.lines().any(|found| found.eq_ignore_ascii_case(line))
    }

    /// Returns the body.
    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

/// Requests `url` from this host whatever its hostname, trusting the certificates in `roots`.
pub fn fetch(url: &str, roots: &Path, more: &[&str]) -> CurlResponse {
    let mark = "\n~~~ ";
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--verbose", "--include", "--max-time", "20", "--noproxy", "*"]);
    command.args(["--connect-to", &format!("::127.0.0.1:{}", port(url))]).arg("--cacert").arg(roots);
    command.arg("--write-out").arg(format!("{mark}%{{http_version}} %{{http_code}}"));
    let output = command.args(more).arg(url).output().expect("curl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (text, end) = text.rsplit_once(mark).expect("curl writes its mark");
    let (version, status) = end.split_once(' ').expect("two words");
    CurlResponse {
        exit: output.status.code().unwrap_or(-1),
        version: version.to_owned(),
        status: status.trim().parse().unwrap_or(0),
        text: text.to_owned(),
        log: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the port of a URL that has one.
fn port(url: &str) -> &str {
    let authority = url.split('/').nth(2).expect("a URL has a host");
    authority.rsplit_once(':').map_or("", |(_, port)| port)
}
