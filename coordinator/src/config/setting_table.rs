//! The table of settings: name, rule and output format of each, used for the file, the environment and
//! `check-config`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use parallax_core::effective::ConfirmationPolicy;

use super::{CoordinatorConfig, LogFormat, mail, operator, tls};

/// Allowed seconds of an interval.
const INTERVAL: RangeInclusive<u64> = 5..=86_400;
/// Allowed monitors of a plan.
const MONITORS: RangeInclusive<u64> = 1..=1_000_000;
/// Allowed number of incidents and maintenance windows that an account keeps.
const INCIDENTS: RangeInclusive<u64> = 100..=1_000_000;
/// Allowed lifetime of an agent's certificate, in seconds.
const CERTIFICATE_LIFE: RangeInclusive<u64> = 15..=31_536_000;
/// Allowed characters of a mesh's name.
const MESH_NAME: RangeInclusive<usize> = 1..=60;

/// Type of a value in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    /// A string in quotes.
    Text,
    /// A whole number.
    Number,
    /// A boolean.
    Boolean,
}

/// A setting.
pub(super) struct Setting {
    /// Dotted name.
    pub(super) name: &'static str,
    /// Type of its value in the file.
    pub(super) value_type: ValueType,
    read: fn(&mut CoordinatorConfig, &str) -> Result<(), String>,
    /// Formats the value as in a settings file; none if it is not set.
    pub(super) format: fn(&CoordinatorConfig) -> Option<String>,
}

impl Setting {
    /// Sets the value, or returns the rule that the text breaks; for a secret, without the text.
    pub(super) fn apply(&self, config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
        (self.read)(config, text).map_err(|rule| match self.name {
            "operator.webhook_secret" | "mail.password" => rule,
            _ => format!("{rule}, not {text:?}"),
        })
    }
}

macro_rules! text {
    ($name:literal, $read:expr, $show:expr) => {
        Setting { name: $name, value_type: ValueType::Text, read: $read, format: $show }
    };
}

macro_rules! number {
    ($name:literal, $range:expr, $unit:literal, |$config:ident| $field:expr) => {
        Setting {
            name: $name,
            value_type: ValueType::Number,
            read: |$config, text| {
                let value = number(text, $range)?.saturating_mul($unit);
                $field = value.try_into().map_err(|_| "is too large".to_owned())?;
                Ok(())
            },
            format: |$config| Some(($field / $unit).to_string()),
        }
    };
}

macro_rules! switch {
    ($name:literal, |$config:ident| $field:expr) => {
        Setting {
            name: $name,
            value_type: ValueType::Boolean,
            read: |$config, text| flag(text).map(|it| $field = it),
            format: |$config| Some($field.to_string()),
        }
    };
}

/// Every setting, section by section, in output order.
pub(super) const SETTINGS: &[Setting] = &[
    text!("data", read_data, |config| Some(quoted(&config.data.to_string_lossy()))),
    text!("secrets_key_file", |c, text| tls::read_file(text).map(|it| c.secrets_key_file = it), |c| {
        c.secrets_key_file.as_ref().map(|file| quoted(&file.to_string_lossy()))
    }),
    text!("listen", |config, text| address(text).map(|it| config.http.listen = it), |config| {
        Some(quoted(&config.http.listen.to_string()))
    }),
    text!("base_url", |config, text| base_url(text).map(|it| config.http.base_url = Some(it)), |config| {
        config.http.base_url.as_deref().map(quoted)
    }),
    text!("root_domain", |config, text| root_domain(text).map(|it| config.http.root_domain = Some(it)), |config| {
        config.http.root_domain.as_deref().map(quoted)
    }),
    number!("requests_per_minute", 1..=1_000_000_000, 1, |config| config.http.requests_per_minute),
    text!("confirmation", read_confirmation, |config| Some(quoted(confirmation(config.confirmation)))),
    text!("tls.listen", |config, text| address(text).map(|it| config.tls.listen = Some(it)), |config| {
        config.tls.listen.map(|listen| quoted(&listen.to_string()))
    }),
    text!("tls.certificate", |c, text| tls::read_file(text).map(|it| c.tls.certificate = it), |c| {
        c.tls.certificate.as_ref().map(|file| quoted(&file.to_string_lossy()))
    }),
    text!("tls.key", |c, text| tls::read_file(text).map(|it| c.tls.key = it), |c| {
        c.tls.key.as_ref().map(|file| quoted(&file.to_string_lossy()))
    }),
    switch!("tls.redirect", |config| config.tls.redirect),
    switch!("acme.enabled", |config| config.acme.enabled),
    text!("acme.directory", tls::read_directory, |c| Some(quoted(&c.acme.directory))),
    text!("acme.contact", tls::read_contact, |c| c.acme.contact.as_deref().map(quoted)),
    text!("acme.roots", |c, text| tls::read_file(text).map(|it| c.acme.roots = it), |c| {
        c.acme.roots.as_ref().map(|file| quoted(&file.to_string_lossy()))
    }),
    text!("domains.resolvers", tls::read_resolvers, |c| tls::show_resolvers(c).as_deref().map(quoted)),
    text!("mesh.listen", |config, text| address(text).map(|it| config.mesh.listen = it), |config| {
        Some(quoted(&config.mesh.listen.to_string()))
    }),
    text!("mesh.name", read_mesh_name, |config| Some(quoted(&config.mesh.name))),
    number!("mesh.max_agents", 1..=60_000, 1, |config| config.mesh.max_agents),
    number!("mesh.certificate_life_seconds", CERTIFICATE_LIFE, 1, |c| c.mesh.certificate_life),
    text!("admin.listen", |config, text| address(text).map(|it| config.admin.listen = Some(it)), |config| {
        config.admin.listen.map(|listen| quoted(&listen.to_string()))
    }),
    text!("operator.mail", operator::read_mail, |c| c.operator.mail.as_deref().map(quoted)),
    text!("operator.webhook", operator::read_webhook, |c| c.operator.webhook.as_deref().map(quoted)),
    text!("operator.webhook_secret", operator::read_secret, |c| {
        c.operator.webhook_secret.as_ref().map(|_| quoted("(hidden)"))
    }),
    number!("plans.certificate_interval_seconds", INTERVAL, 1000, |c| c.plans.certificate_interval_ms),
    number!("plans.domain_interval_seconds", INTERVAL, 1000, |c| c.plans.domain_interval_ms),
    number!("plans.component_interval_seconds", INTERVAL, 1000, |c| c.plans.component_interval_ms),
    number!("plans.free.monitors", MONITORS, 1, |c| c.plans.monitors[0]),
    number!("plans.free.interval_seconds", INTERVAL, 1000, |c| c.plans.interval_ms[0]),
    number!("plans.free.incidents", INCIDENTS, 1, |c| c.plans.incidents[0]),
    number!("plans.hobby.monitors", MONITORS, 1, |c| c.plans.monitors[1]),
    number!("plans.hobby.interval_seconds", INTERVAL, 1000, |c| c.plans.interval_ms[1]),
    number!("plans.hobby.incidents", INCIDENTS, 1, |c| c.plans.incidents[1]),
    number!("plans.pro.monitors", MONITORS, 1, |c| c.plans.monitors[2]),
    number!("plans.pro.interval_seconds", INTERVAL, 1000, |c| c.plans.interval_ms[2]),
    number!("plans.pro.incidents", INCIDENTS, 1, |c| c.plans.incidents[2]),
    number!("plans.pro.components", MONITORS, 1, |c| c.plans.components),
    text!("mail.transport", mail::read_transport, |c| Some(quoted(c.mail.transport.name()))),
    text!("mail.host", mail::read_host, |c| c.mail.host.as_deref().map(quoted)),
    Setting {
        name: "mail.port",
        value_type: ValueType::Number,
        read: |c, text| {
            let port = number(text, 1..=65_535)?;
            c.mail.port = u16::try_from(port).ok();
            Ok(())
        },
        format: |c| c.mail.port.map(|port| port.to_string()),
    },
    text!("mail.tls", mail::read_tls, |c| Some(quoted(c.mail.tls.name()))),
    text!("mail.ca", mail::read_ca, |c| c.mail.ca.as_ref().map(|ca| quoted(&ca.to_string_lossy()))),
    text!("mail.username", mail::read_username, |c| c.mail.username.as_deref().map(quoted)),
    text!("mail.password", mail::read_password, |c| c.mail.password.as_ref().map(|_| quoted("(hidden)"))),
    text!("mail.from", mail::read_from, |c| c.mail.from.as_deref().map(quoted)),
    text!("mail.reply_to", mail::read_reply_to, |c| c.mail.reply_to.as_deref().map(quoted)),
    text!("mail.folder", mail::read_folder, |c| {
        c.mail.folder.as_ref().map(|folder| quoted(&folder.to_string_lossy()))
    }),
    switch!("deliver.allow_private", |config| config.deliver.allow_private),
    text!("deliver.telegram_url", |c, text| base_url(text).map(|it| c.deliver.telegram_url = it), |c| {
        Some(quoted(&c.deliver.telegram_url))
    }),
    text!("deliver.pagerduty_url", |c, text| base_url(text).map(|it| c.deliver.pagerduty_url = it), |c| {
        Some(quoted(&c.deliver.pagerduty_url))
    }),
    number!("store.cache_bytes", (1 << 20)..=(1 << 40), 1, |c| c.store.cache_bytes),
    number!("store.snapshot_seconds", 1..=86_400, 1, |c| c.store.snapshot_seconds),
    number!("store.snapshots_hourly", 1..=10_000, 1, |c| c.store.snapshots_hourly),
    number!("store.snapshots_daily", 0..=10_000, 1, |c| c.store.snapshots_daily),
    text!("log.filter", read_filter, |config| Some(quoted(&config.log.filter))),
    text!("log.format", read_format, |config| {
        Some(quoted(match config.log.format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }))
    }),
];

/// Reads the public URL: a scheme and a host, no path.
///
/// # Errors
/// The rule that the text breaks.
pub fn base_url(text: &str) -> Result<String, String> {
    let rule = || "must be http:// or https:// with a host and nothing after it".to_owned();
    let text = text.strip_suffix('/').unwrap_or(text);
    let uri: http::Uri = text.parse().map_err(|_| rule())?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    // The parser adds a path to a bare host, so the end of the text is compared.
    let is_bare = !host.is_empty() && !host.contains('@') && text.ends_with(host);
    if is_web && is_bare { Ok(text.to_owned()) } else { Err(rule()) }
}

/// Reads the domain whose subdomains are the pages' addresses.
///
/// # Errors
/// The rule that the text breaks.
pub fn root_domain(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= 253 && text.contains('.') && text.split('.').all(is_label) {
        Ok(text.to_owned())
    } else {
        Err("must be a domain name in lower case, such as status.example.com".to_owned())
    }
}

fn read_data(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("must be a folder".to_owned());
    }
    config.data = PathBuf::from(text);
    Ok(())
}

fn read_confirmation(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.confirmation = match text {
        "other-network" => ConfirmationPolicy::OtherNetwork,
        "repeat" => ConfirmationPolicy::Repeat,
        _ => return Err("must be \"other-network\" or \"repeat\"".to_owned()),
    };
    Ok(())
}

const fn confirmation(confirmation: ConfirmationPolicy) -> &'static str {
    match confirmation {
        ConfirmationPolicy::OtherNetwork => "other-network",
        ConfirmationPolicy::Repeat => "repeat",
    }
}

fn read_mesh_name(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    let name = text.trim();
    if !MESH_NAME.contains(&name.chars().count()) || name.chars().any(char::is_control) {
        return Err("must be 1 to 60 characters".to_owned());
    }
    config.mesh.name = name.to_owned();
    Ok(())
}

fn read_filter(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    parallax_primitives::log_filter::parse(text)?;
    config.log.filter = text.to_owned();
    Ok(())
}

fn read_format(config: &mut CoordinatorConfig, text: &str) -> Result<(), String> {
    config.log.format = match text {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => return Err("must be \"text\" or \"json\"".to_owned()),
    };
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    SocketAddr::from_str(text).map_err(|_| "must be an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let rule = || format!("must be a whole number from {} to {}", range.start(), range.end());
    text.parse().ok().filter(|value| range.contains(value)).ok_or_else(rule)
}

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "must be true or false".to_owned())
}

/// Quotes a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
