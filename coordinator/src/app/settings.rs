//! Builds the deliverer, the domain look-ups and the service settings from the configuration.

use std::sync::Arc;

use parallax_certs::mesh_secret::MeshSecret;
use parallax_dial::DnsResolver;
use url::Url;

use super::AppError;
use crate::clock::Clock;
use crate::config::CoordinatorConfig;
use crate::domain_verification::TxtResolver;
use crate::notify::consumers::operator_alerts::OperatorAlertConsumer;
use crate::notify::deliver::channel::ServiceUrls;
use crate::notify::deliver::http_client::DeliveryClient;
use crate::notify::deliver::{Deliverer, DeliveryError, DeliverySettings};
use crate::service::{self, Services};
use crate::storage::Store;

/// Destinations of operator alerts; `base_url` is the installation's address.
pub(super) fn alert_destinations(config: &CoordinatorConfig, base_url: &str) -> OperatorAlertConsumer {
    let operator = &config.operator;
    let installation = base_url.split_once("://").map_or(base_url, |(_, host)| host).to_owned();
    OperatorAlertConsumer {
        by_mail: operator.mail.is_some(),
        by_webhook: operator.signed_webhook().is_some(),
        installation,
    }
}

/// The resolver for custom domains.
pub(super) fn resolver(config: &CoordinatorConfig) -> Result<DnsResolver, AppError> {
    let servers = &config.domains.resolvers;
    let resolver = if servers.is_empty() { DnsResolver::system() } else { DnsResolver::with_servers(servers) };
    resolver.map_err(|error| AppError::Domains(error.to_string()))
}

/// The look-up of TXT records for custom domains.
pub(super) fn txt_resolver(config: &CoordinatorConfig) -> Result<Arc<TxtResolver>, AppError> {
    Ok(Arc::new(TxtResolver::new(resolver(config)?)))
}

/// Builds the deliverer, which is not started yet.
pub(super) fn deliverer(
    config: &CoordinatorConfig,
    store: &Store,
    clock: &Clock,
    service: &Services,
) -> Result<Deliverer, AppError> {
    let client = DeliveryClient::new(config.deliver.allow_private, &[])?;
    let base = |text: &str| Url::parse(text).map_err(|error| DeliveryError::Setup(error.to_string()));
    let settings = DeliverySettings {
        service_urls: ServiceUrls {
            telegram: base(&config.deliver.telegram_url)?,
            pagerduty: base(&config.deliver.pagerduty_url)?,
        },
        base_url: service.base_url().to_owned(),
        root_domain: config.http.root_domain.clone(),
        operator_mail: config.operator.mail.clone(),
        operator_hook: config.operator.signed_webhook(),
    };
    let mailer = Arc::new(super::mail::mailer(&config.mail)?);
    let wake = service.deliveries_due();
    let deliverer = Deliverer::new(store.clone(), clock.clone(), client, mailer, settings, wake);
    let destinations = Arc::clone(&service.destinations);
    deliverer.set_stop_links(move |destination| destinations.stop_url(destination));
    Ok(deliverer)
}

/// Builds the service's settings.
pub(super) fn service_settings(
    config: &CoordinatorConfig,
    base_url: String,
    secret: &MeshSecret,
) -> service::ServiceSettings {
    service::ServiceSettings {
        base_url,
        root_domain: config.http.root_domain.clone(),
        limits: config.plans,
        allow_private: config.deliver.allow_private,
        access_token_key: service::page_access::AccessTokenKey::new(&secret.secret_for("visitors")),
    }
}
