//! Builds the deliverer, the domain look-ups and the service settings from the configuration.

use std::sync::Arc;

use parallax_certs::secret::MeshSecret;
use parallax_dial::Resolver;
use url::Url;

use super::AppError;
use crate::clock::Clock;
use crate::config::Config;
use crate::deliver::channel::Bases;
use crate::deliver::webhook::Client;
use crate::deliver::{DeliverError, Deliverer, Settings};
use crate::domains::Records;
use crate::react::notices::Notices;
use crate::service::{self, Service};
use crate::storage::Store;

/// Destinations of operator alerts; `base_url` is the installation's address.
pub(super) fn notices(config: &Config, base_url: &str) -> Notices {
    let operator = &config.operator;
    let installation = base_url.split_once("://").map_or(base_url, |(_, host)| host).to_owned();
    Notices { by_mail: operator.mail.is_some(), by_webhook: operator.hook().is_some(), installation }
}

/// The resolver for custom domains.
pub(super) fn resolver(config: &Config) -> Result<Resolver, AppError> {
    let servers = &config.domains.resolvers;
    let resolver = if servers.is_empty() { Resolver::system() } else { Resolver::with_servers(servers) };
    resolver.map_err(|error| AppError::Domains(error.to_string()))
}

/// The look-up of TXT records for custom domains.
pub(super) fn records(config: &Config) -> Result<Arc<Records>, AppError> {
    Ok(Arc::new(Records::of(resolver(config)?)))
}

/// Builds the deliverer, which is not started yet.
pub(super) fn deliverer(
    config: &Config,
    store: &Store,
    clock: &Clock,
    service: &Service,
) -> Result<Deliverer, AppError> {
    let client = Client::new(config.deliver.allow_private, &[])?;
    let base = |text: &str| Url::parse(text).map_err(|error| DeliverError::Setup(error.to_string()));
    let settings = Settings {
        bases: Bases {
            telegram: base(&config.deliver.telegram_url)?,
            pagerduty: base(&config.deliver.pagerduty_url)?,
        },
        base_url: service.base_url().to_owned(),
        root_domain: config.http.root_domain.clone(),
        operator_mail: config.operator.mail.clone(),
        operator_hook: config.operator.hook(),
    };
    let mailer = Arc::new(super::mail::mailer(&config.mail)?);
    let wake = service.outgoing();
    let deliverer = Deliverer::new(store.clone(), clock.clone(), client, mailer, settings, wake);
    let service = service.clone();
    deliverer.link_stops(move |destination| service.stop_url(destination));
    Ok(deliverer)
}

/// Builds the service's settings.
pub(super) fn service_settings(config: &Config, base_url: String, secret: &MeshSecret) -> service::Settings {
    service::Settings {
        base_url,
        root_domain: config.http.root_domain.clone(),
        limits: config.plans,
        allow_private: config.deliver.allow_private,
        doors: service::doors::DoorKey::new(&secret.secret_for("visitors")),
    }
}
