//! Builds settings of the service and the engine, and the domain look-ups, from the configuration.

use std::sync::Arc;

use parallax_certs::mesh_secret::MeshSecret;
use parallax_dial::DnsResolver;
use parallax_engine::restore::VerdictSettings;
use parallax_service as service;
use parallax_service::domain_verification::TxtResolver;
use parallax_service::people::ProviderClient;

use super::AppError;
use crate::config::{CoordinatorConfig, MailTransport};

/// The operator's settings of verdicts.
pub(super) const fn verdict_settings(config: &CoordinatorConfig) -> VerdictSettings {
    VerdictSettings { plan_limits: config.plans, confirmation: config.confirmation }
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

/// The client for the providers of company sign-in, which customers choose.
pub(super) fn provider_client(config: &CoordinatorConfig) -> Result<ProviderClient, AppError> {
    let client = ProviderClient::new(resolver(config)?, config.deliver.allow_private);
    client.map_err(|error| AppError::Domains(error.to_string()))
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
        sends_mail: config.mail.transport != MailTransport::None,
        access_token_key: service::page_access::AccessTokenKey::new(&secret.secret_for("visitors")),
    }
}
