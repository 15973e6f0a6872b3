//! The agent's settings: file, environment and flags, each overriding the previous one, in one validated
//! struct.

mod resolvers;

pub(crate) use resolvers::public_resolver;
pub use resolvers::{NameServers, PUBLIC_V4, PUBLIC_V6};

use crate::error::AgentError;
use crate::spool::Spool;
use parallax_dial::{AddressPrefix, DialPolicy, Host, HostName, SourceAddresses};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use url::Url;

/// Validated settings. Create them with [`AgentConfig::new`] and change fields, or read them with
/// [`AgentConfig::load`].
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Folder with identity, schedule and spool; mode 0700.
    pub data: PathBuf,
    /// The coordinator's `HOST:PORT`; `None` for the one from the join.
    pub coordinator: Option<String>,
    /// Source address of the mesh connection and of all checks; `None` leaves it to the system.
    pub source: Option<IpAddr>,
    /// Allows checks of loopback, private and other non-public addresses.
    pub allow_private: bool,
    /// Allows checks of this host itself, its address behind a NAT, and the coordinator.
    pub allow_own_host: bool,
    /// True if this host reaches IPv4 by NAT64.
    pub nat64: bool,
    /// Addresses that are never checked.
    pub deny: Vec<AddressPrefix>,
    /// Name servers for checks.
    pub resolvers: NameServers,
    /// Zones in which a working name server answers for random names; empty for some large ones.
    pub resolver_zones: Vec<HostName>,
    /// Root certificates that checks trust in addition to those of browsers.
    pub trust: Vec<CertificateDer<'static>>,
    /// The RDAP service for all domains; `None` for those of the registries.
    pub rdap: Option<Url>,
    /// Address of the list of the registries' RDAP services; `None` for IANA's.
    pub rdap_bootstrap: Option<Url>,
    /// Maximum size of the spool in bytes.
    pub spool_bytes: u64,
    /// Maximum number of concurrent checks.
    pub concurrency: usize,
    /// Key file that encrypts the schedule on disk; `None` stores it in plain text.
    pub secrets_key_file: Option<PathBuf>,
    /// Logs faults that keep this host from checking. Not a setting: a process with several agents logs them
    /// once for all of them.
    pub logs_readiness: bool,
}

/// Source of a setting, for messages.
#[derive(Debug, Clone, Copy)]
enum Origin {
    File,
    Environment,
    Flag,
}

/// Known settings, in the order of the sample file.
const SETTING_NAMES: [&str; 15] = [
    "data",
    "secrets_key_file",
    "coordinator",
    "source",
    "allow_private",
    "allow_own_host",
    "nat64",
    "deny",
    "resolvers",
    "trust",
    "resolver_zones",
    "rdap",
    "rdap_bootstrap",
    "spool_bytes",
    "concurrency",
];

/// Prefix of every environment variable.
const PREFIX: &str = "PARALLAX_AGENT_";

impl AgentConfig {
    /// Returns the defaults for this folder.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            coordinator: None,
            source: None,
            allow_private: false,
            allow_own_host: false,
            nat64: false,
            deny: Vec::new(),
            resolvers: NameServers::default(),
            resolver_zones: Vec::new(),
            trust: Vec::new(),
            rdap: None,
            rdap_bootstrap: None,
            spool_bytes: 256 << 20,
            concurrency: 512,
            secrets_key_file: None,
            logs_readiness: true,
        }
    }

    /// Reads the file, then `PARALLAX_AGENT_…` from `environment`, then `flags` (setting and value).
    ///
    /// # Errors
    /// [`AgentError::Setting`] or [`AgentError::SettingsFile`] with the setting, its source, and the rule; for an
    /// unknown one, the most similar known one.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, AgentError> {
        let mut values: BTreeMap<String, (Origin, String)> = BTreeMap::new();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(AgentError::file(path))?;
            let table: toml::Table = toml::from_str(&text).map_err(|error| AgentError::SettingsFile {
                field: path.display().to_string(),
                rule: error.to_string().trim().replace('\n', " "),
            })?;
            for (name, value) in table {
                check_known(&name, Origin::File)?;
                values.insert(name.clone(), (Origin::File, setting_text(&name, value)?));
            }
        }
        for (variable, value) in environment {
            if let Some(name) = variable.strip_prefix(PREFIX) {
                let name = name.to_ascii_lowercase();
                if matches!(name.as_str(), "config" | "log" | "log_format") {
                    continue;
                }
                check_known(&name, Origin::Environment)?;
                values.insert(name, (Origin::Environment, value));
            }
        }
        for (name, value) in flags {
            values.insert(name.to_owned(), (Origin::Flag, value));
        }
        let mut config = Self::new("parallax-agent-data");
        for (name, (origin, value)) in values {
            config.set(&name, value.trim()).map_err(|rule| setting_error(&name, origin, rule))?;
        }
        Ok(config)
    }

    /// Returns the policy for addresses that may be checked, and the source address.
    pub fn policy(&self) -> DialPolicy {
        let mut source = SourceAddresses::default();
        match self.source {
            Some(IpAddr::V4(v4)) => source.v4 = Some(v4),
            Some(IpAddr::V6(v6)) => source.v6 = Some(v6),
            None => {}
        }
        DialPolicy {
            allow_private: self.allow_private,
            allow_own_host: self.allow_own_host,
            nat64: self.nat64,
            deny: self.deny.clone(),
            source,
        }
    }

    /// Returns true if `dns` monitors use public name servers although all other checks use the host's own.
    pub fn uses_public_record_resolvers(&self) -> bool {
        self.resolvers == NameServers::Unset && !self.allow_private
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "data" if value.is_empty() => return Err("must not be empty".into()),
            "data" => self.data = value.into(),
            "coordinator" => self.coordinator = Some(parse_coordinator_address(value)?),
            "source" => self.source = Some(value.parse().map_err(|_| "must be an IP address")?),
            "allow_private" => self.allow_private = boolean(value)?,
            "allow_own_host" => self.allow_own_host = boolean(value)?,
            "nat64" => self.nat64 = boolean(value)?,
            "deny" => {
                self.deny =
                    list(value, |entry| entry.parse().map_err(|_| format!("{entry} is not an address or prefix")))?;
            }
            "resolvers" => self.resolvers = value.parse()?,
            "resolver_zones" => {
                self.resolver_zones = list(value, |entry| match Host::parse(entry) {
                    Ok(Host::Name(zone)) => Ok(zone),
                    Ok(Host::Ip(_)) | Err(_) => Err(format!("{entry} is not a zone")),
                })?;
            }
            "trust" => {
                let files = list(value, |entry| {
                    let unreadable = |error| format!("{entry}: {error}");
                    let pem = CertificateDer::pem_file_iter(entry).map_err(unreadable)?;
                    pem.collect::<Result<Vec<_>, _>>().map_err(unreadable)
                })?;
                self.trust = files.concat();
            }
            "rdap" | "rdap_bootstrap" => {
                let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                let url = Some(url.ok_or("must be an http or https URL")?);
                *(if name == "rdap" { &mut self.rdap } else { &mut self.rdap_bootstrap }) = url;
            }
            "spool_bytes" => {
                let bytes = value.parse().ok().filter(|&bytes| bytes >= Spool::MIN_LIMIT);
                self.spool_bytes = bytes.ok_or("must be a number of bytes, at least 1048576")?;
            }
            "concurrency" => {
                let checks = value.parse().ok().filter(|checks| (1..=20_000).contains(checks));
                self.concurrency = checks.ok_or("must be a number from 1 to 20000")?;
            }
            "secrets_key_file" if value.is_empty() => return Err("must be a file path".into()),
            "secrets_key_file" => self.secrets_key_file = Some(value.into()),
            _ => return Err("is unknown".into()),
        }
        Ok(())
    }
}

/// Validates a coordinator's address: a host or literal, a colon, a port.
///
/// # Errors
/// The rule it breaks.
pub fn parse_coordinator_address(value: &str) -> Result<String, String> {
    let port = value.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    match port.and_then(|port| port.parse::<u16>().ok()) {
        Some(port) if port > 0 => Ok(value.to_owned()),
        _ => Err("must be HOST:PORT".into()),
    }
}

fn boolean(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| "must be true or false".into())
}

fn list<T>(value: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(read).collect()
}

/// Converts a file's value to the text that the environment would contain.
fn setting_text(name: &str, value: toml::Value) -> Result<String, AgentError> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(_) | toml::Value::Boolean(_) => Ok(value.to_string()),
        toml::Value::Array(entries) => {
            let entries = entries.into_iter().map(|entry| setting_text(name, entry));
            Ok(entries.collect::<Result<Vec<_>, _>>()?.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => {
            Err(setting_error(name, Origin::File, "must be a text, a number, true or false, or a list".into()))
        }
    }
}

fn check_known(name: &str, origin: Origin) -> Result<(), AgentError> {
    if SETTING_NAMES.contains(&name) {
        return Ok(());
    }
    let nearest = SETTING_NAMES.iter().min_by_key(|known| distance(known, name)).copied().unwrap_or_default();
    Err(setting_error(name, origin, format!("is unknown; did you mean {nearest}?")))
}

fn setting_error(name: &str, origin: Origin, rule: String) -> AgentError {
    let field = match origin {
        Origin::File => name.to_owned(),
        Origin::Environment => format!("{PREFIX}{}", name.to_ascii_uppercase()),
        Origin::Flag => format!("--{}", name.replace('_', "-")),
    };
    match origin {
        Origin::File => AgentError::SettingsFile { field, rule },
        Origin::Environment | Origin::Flag => AgentError::Setting { field, rule },
    }
}

/// Returns the edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, cb) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *cell;
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = above;
            left = replaced.min(above + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
