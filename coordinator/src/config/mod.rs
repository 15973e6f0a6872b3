//! Settings: defaults, overridden by a TOML file, environment variables and flags, in one validated struct.

mod closest_name;
mod host_check;
mod mail;
mod operator;
mod setting_table;
mod settings_file;
mod tls;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use parallax_core::effective::ConfirmationPolicy;
use parallax_core::plan::PlanLimits;

pub use self::mail::{MailTls, MailTransport, OutgoingMailConfig};
pub use self::operator::OperatorConfig;
use self::setting_table::{SETTINGS, Setting};
pub use self::setting_table::{base_url, root_domain};
pub use self::tls::{AcmeConfig, DomainsConfig, TlsConfig};

/// Prefix of all environment variables.
const PREFIX: &str = "PARALLAX_";
/// Suffix of a variable that names a file with the value, for secrets mounted as files.
const FILE_SUFFIX: &str = "_FILE";
/// Maximum size of a file with one value, in bytes.
const MAX_VALUE_FILE: u64 = 64 * 1024;
/// Maximum edit distance at which an unknown variable counts as a typo; others belong to other programs.
const MAX_TYPO_DISTANCE: usize = 2;

/// All settings of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// Folder of the store, the certificate authority and the admin socket; mode 0700.
    pub data: PathBuf,
    /// Key file that seals customers' secrets in the store; none stores them unencrypted.
    pub secrets_key_file: Option<PathBuf>,
    /// Confirmation of failures.
    pub confirmation: ConfirmationPolicy,
    /// API, pages and pings.
    pub http: HttpConfig,
    /// TLS for the API and pages, if no proxy provides it.
    pub tls: TlsConfig,
    /// Certificates by ACME.
    pub acme: AcmeConfig,
    /// Checks of pages' custom domains.
    pub domains: DomainsConfig,
    /// Connections of agents.
    pub mesh: MeshConfig,
    /// Health and metrics for the operator.
    pub admin: AdminConfig,
    /// Destination of operator alerts.
    pub operator: OperatorConfig,
    /// Limits of the plans.
    pub plans: PlanLimits,
    /// Outgoing requests.
    pub deliver: DeliveryConfig,
    /// The store.
    pub store: StoreConfig,
    /// Outgoing mail.
    pub mail: OutgoingMailConfig,
    /// Logging.
    pub log: LogConfig,
}

/// API, pages and pings. These settings are at the top level of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Listening address; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// Public URL for people and pings, without a trailing slash; none: the listening address.
    pub base_url: Option<String>,
    /// Domain whose subdomains are the pages' addresses.
    pub root_domain: Option<String>,
    /// Requests an API key may make per minute.
    pub requests_per_minute: u32,
}

/// Connections of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshConfig {
    /// Listening UDP address; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// Name of the mesh that agents display, 1 to 60 characters.
    pub name: String,
    /// Maximum concurrent connections, including joining hosts.
    pub max_agents: usize,
    /// Lifetime of an agent's certificate in seconds; agents renew it after two thirds of it.
    pub certificate_life: i64,
}

/// Health and metrics for the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdminConfig {
    /// Listening address; none: disabled.
    pub listen: Option<SocketAddr>,
}

/// Outgoing requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryConfig {
    /// Allows private addresses, for tests and the demo.
    pub allow_private: bool,
    /// URL of Telegram's Bot API, without a trailing slash.
    pub telegram_url: String,
    /// URL of PagerDuty's Events API, without a trailing slash.
    pub pagerduty_url: String,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Cache memory, in bytes.
    pub cache_bytes: u64,
    /// Seconds between two snapshots.
    pub snapshot_seconds: u64,
    /// Number of newest snapshots kept.
    pub snapshots_hourly: usize,
    /// Number of days whose last snapshot is kept.
    pub snapshots_daily: usize,
}

/// Logging, to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// Filter in the syntax of `tracing`: `info`, `warn,parallax_mesh=debug`, `warn,parallax=debug` for everything of Parallax.
    pub filter: String,
    /// Format of a line.
    pub format: LogFormat,
}

/// Format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// Settings given by flags, which override all others.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--data`
    pub data: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<SocketAddr>,
    /// `--base-url`
    pub base_url: Option<String>,
    /// `--root-domain`
    pub root_domain: Option<String>,
    /// `--mesh-listen`
    pub mesh_listen: Option<SocketAddr>,
    /// `--admin-listen`
    pub admin_listen: Option<SocketAddr>,
}

/// Invalid settings, with every fault on a line of its own.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Values that break a rule.
    #[error("{}", lines(.0))]
    Invalid(Vec<ConfigFault>),
}

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// Origin: `coordinator.toml:3: listen` or `PARALLAX_LISTEN`.
    pub origin: String,
    /// The rule, in words that follow the origin.
    pub rule: String,
    /// True if it was given by an environment variable, not by the file.
    pub is_from_environment: bool,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("parallax-data"),
            secrets_key_file: None,
            confirmation: ConfirmationPolicy::OtherNetwork,
            http: HttpConfig {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
                base_url: None,
                root_domain: None,
                requests_per_minute: 120,
            },
            tls: TlsConfig::default(),
            acme: AcmeConfig::default(),
            domains: DomainsConfig::default(),
            mesh: MeshConfig {
                listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7443)),
                name: "parallax".to_owned(),
                max_agents: 1024,
                certificate_life: 30 * 86_400,
            },
            admin: AdminConfig::default(),
            operator: OperatorConfig::default(),
            plans: PlanLimits::default(),
            deliver: DeliveryConfig {
                allow_private: false,
                telegram_url: "https://api.telegram.org".to_owned(),
                pagerduty_url: "https://events.pagerduty.com".to_owned(),
            },
            store: StoreConfig {
                cache_bytes: 16 << 20,
                snapshot_seconds: 3_600,
                snapshots_hourly: 24,
                snapshots_daily: 7,
            },
            mail: OutgoingMailConfig::default(),
            log: LogConfig { filter: "info".to_owned(), format: LogFormat::Text },
        }
    }
}

impl CoordinatorConfig {
    /// Loads the settings: `defaults`, overridden by the file, then the `PARALLAX_…` variables, then the flags. A
    /// variable whose name ends in `_FILE` names a file with the value.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault; settings with a fault are not used at all.
    pub fn load(
        defaults: Self,
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let mut config = defaults;
        let mut faults = Vec::new();
        if let Some(path) = file {
            for entry in settings_file::read(path)? {
                let position = format!("{}:{}: {}", path.display(), entry.line, entry.name);
                let read = entry.value.and_then(|value| match find(&entry.name) {
                    Some(setting) => setting.apply(&mut config, &value),
                    None => Err(unknown(&entry.name)),
                });
                faults.extend(read.err().map(|rule| ConfigFault {
                    origin: position,
                    rule,
                    is_from_environment: false,
                }));
            }
        }
        for (variable, value) in sorted_variables(environment) {
            let read = apply_variable(&mut config, &variable, &value);
            faults.extend(read.err().map(|rule| ConfigFault { origin: variable, rule, is_from_environment: true }));
        }
        if !faults.is_empty() {
            return Err(ConfigError::Invalid(faults));
        }
        flags.apply(&mut config);
        let missing = config.operator.missing().map(|(name, rule)| (name.to_owned(), rule));
        let tls = config
            .tls
            .missing(&config.acme, config.http.base_url.as_deref())
            .map(|(name, rule)| (name.to_owned(), rule.to_owned()));
        let missing = missing.or(tls);
        match missing.or_else(|| config.mail.missing().map(|(name, rule)| (format!("mail.{name}"), rule))) {
            None => Ok(config),
            Some((position, rule)) => {
                Err(ConfigError::Invalid(vec![ConfigFault { origin: position, rule, is_from_environment: false }]))
            }
        }
    }

    /// Formats all settings as a settings file, including defaults.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for setting in SETTINGS {
            let (section_name, key) = setting.name.rsplit_once('.').unwrap_or(("", setting.name));
            if section_name != section {
                section = section_name;
                text.push_str(&format!("\n[{section}]\n"));
            }
            match (setting.format)(self) {
                Some(value) => text.push_str(&format!("{key} = {value}\n")),
                None => text.push_str(&format!("# {key} is not set\n")),
            }
        }
        text
    }
}

impl Flags {
    fn apply(&self, config: &mut CoordinatorConfig) {
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if let Some(listen) = self.listen {
            config.http.listen = listen;
        }
        if let Some(listen) = self.mesh_listen {
            config.mesh.listen = listen;
        }
        config.http.base_url = self.base_url.clone().or_else(|| config.http.base_url.take());
        config.http.root_domain = self.root_domain.clone().or_else(|| config.http.root_domain.take());
        config.admin.listen = self.admin_listen.or(config.admin.listen);
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.origin, self.rule)
    }
}

fn lines(faults: &[ConfigFault]) -> String {
    faults.iter().map(ConfigFault::to_string).collect::<Vec<_>>().join("\n")
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

fn unknown(name: &str) -> String {
    let names = SETTINGS.iter().map(|setting| setting.name);
    let sections = names.clone().filter_map(|name| name.rsplit_once('.')).map(|(section, _)| section);
    match closest_name::nearest(name, names.chain(sections)) {
        // A name with little in common would only mislead.
        Some((known, distance)) if distance * 2 <= name.chars().count().max(2) => {
            format!("is not a setting; did you mean {known}?")
        }
        Some(_) | None => "is not a setting".to_owned(),
    }
}

/// Returns the `PARALLAX_` variables, in a fixed order.
fn sorted_variables(environment: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut variables: Vec<_> = environment.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    variables.sort();
    variables
}

/// Applies one variable. Names unlike any setting belong to other programs (the agent, a container's service
/// links); a name close to a setting's is a typo and refused.
fn apply_variable(config: &mut CoordinatorConfig, variable: &str, value: &str) -> Result<(), String> {
    if let Some(setting) = SETTINGS.iter().find(|setting| variable_name(setting) == variable) {
        return setting.apply(config, value);
    }
    if let Some(name) = variable.strip_suffix(FILE_SUFFIX)
        && let Some(setting) = SETTINGS.iter().find(|setting| variable_name(setting) == name)
    {
        let path = Path::new(value);
        let file_value =
            settings_file::read_text(path, MAX_VALUE_FILE).map_err(|error| format!("names {value}: {error}"))?;
        return setting.apply(config, file_value.trim());
    }
    let names: Vec<String> = SETTINGS.iter().map(variable_name).collect();
    match closest_name::nearest(variable, names.iter().map(String::as_str)) {
        Some((known, distance)) if distance <= MAX_TYPO_DISTANCE => {
            Err(format!("is not a setting; did you mean {known}?"))
        }
        _ => Ok(()),
    }
}

fn variable_name(setting: &Setting) -> String {
    format!("{PREFIX}{}", setting.name.replace('.', "_").to_ascii_uppercase())
}

#[cfg(test)]
mod tests;
