//! Starts the journal consumers, and builds the deliverer that sends what they write.

use std::sync::Arc;

use parallax_notify::consumers::alerts::AlertConsumer;
use parallax_notify::consumers::evidence_links::EvidenceLinks;
use parallax_notify::consumers::operator_alerts::OperatorAlertConsumer;
use parallax_notify::deliver::channel::ServiceUrls;
use parallax_notify::deliver::http_client::DeliveryClient;
use parallax_notify::deliver::stop_links::StopLinks;
use parallax_notify::deliver::{Deliverer, DeliveryError, DeliverySettings};
use parallax_service::{ServiceSettings, Services};
use parallax_store::Store;
use url::Url;

use super::consumers::{self, Consumers};
use super::{AppError, StartContext, mail};
use crate::config::CoordinatorConfig;

/// The running consumers, and the deliverer.
pub(super) struct Notifications {
    pub(super) consumers: Consumers,
    /// Runs once the listeners do, since its messages link to them.
    pub(super) deliverer: Deliverer,
}

/// Starts the consumers and builds the deliverer.
pub(super) fn start(
    context: &StartContext,
    store: &Store,
    settings: &ServiceSettings,
    service: &Arc<Services>,
) -> Result<Notifications, AppError> {
    let StartContext { config, clock, supervisor } = context;
    let operator_alerts = alert_destinations(config, &settings.base_url);
    let wake = service.deliveries_due();
    let evidence = Arc::clone(&service.evidence);
    let evidence_links = EvidenceLinks::new(move |monitor, seq, now| evidence.url(monitor, seq, now));
    let alerts = AlertConsumer::new(settings.base_url.clone(), settings.root_domain.clone(), evidence_links);
    let consumers = consumers::start(store, clock, settings, alerts, operator_alerts, &wake, supervisor);
    Ok(Notifications { consumers, deliverer: deliverer(context, store, service)? })
}

/// Destinations of operator alerts; `base_url` is the installation's address.
fn alert_destinations(config: &CoordinatorConfig, base_url: &str) -> OperatorAlertConsumer {
    let operator = &config.operator;
    let installation = base_url.split_once("://").map_or(base_url, |(_, host)| host).to_owned();
    OperatorAlertConsumer {
        by_mail: operator.mail.is_some(),
        by_webhook: operator.signed_webhook().is_some(),
        installation,
    }
}

/// Builds the deliverer, which is not started yet.
fn deliverer(context: &StartContext, store: &Store, service: &Arc<Services>) -> Result<Deliverer, AppError> {
    let StartContext { config, clock, .. } = context;
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
    let mailer = Arc::new(mail::mailer(&config.mail)?);
    let (wake, destinations) = (service.deliveries_due(), Arc::clone(&service.destinations));
    let stop_links = StopLinks::new(move |destination| destinations.stop_url(destination));
    Ok(Deliverer::new(store.clone(), clock.clone(), client, mailer, settings, stop_links, wake))
}
