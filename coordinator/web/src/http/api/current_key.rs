//! The current API key, and its account's plan.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::check::CheckKind;
use parallax_core::destination::ChannelKind;
use parallax_service::accounts::usage::PlanUsage;
use parallax_service::{Caller, ServiceError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// The response to `GET /me`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct MeDocument {
    key: KeyDocument,
    plan: PlanDocument,
}

/// A key as the API returns it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Key")]
pub(in crate::http) struct KeyDocument {
    /// Key id.
    id: String,
    /// Name given at creation.
    name: String,
    #[schemars(with = "value_schemas::Access")]
    access: &'static str,
    /// The one page the key reaches; null means every page.
    page_id: Option<String>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

/// Plan of the key's account: limits and usage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Plan")]
struct PlanDocument {
    #[schemars(with = "value_schemas::PlanName")]
    name: &'static str,
    /// Monitors of the account, not counting component monitors.
    monitors: Quota,
    /// Pages of the account.
    pages: Quota,
    /// Requests the key may make per minute.
    requests_per_minute: u32,
    /// Seconds between two checks of an http, tcp, dns or ping monitor in a region.
    check_interval_seconds: u32,
    /// Seconds between two checks of a certificate monitor.
    certificate_interval_seconds: u32,
    /// Seconds between two checks of a domain monitor.
    domain_interval_seconds: u32,
    /// Seconds between two checks of a vendor's status page; null if the plan has no component monitors.
    component_interval_seconds: Option<u32>,
    features: PlanFeaturesDocument,
}

/// A limit of the plan and its usage, which may be above the limit after a change to a smaller plan.
#[derive(Debug, Serialize, JsonSchema)]
struct Quota {
    /// Number in use.
    used: u64,
    /// Maximum number.
    limit: u64,
}

/// Features of the plan.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlanFeatures")]
struct PlanFeaturesDocument {
    /// Alerts and updates can be sent by mail.
    email: bool,
    /// Alerts can be sent to webhooks and chats.
    webhooks: bool,
    /// Region settings and per-region thresholds are applied, not only stored.
    regions: bool,
    /// Monitors can follow a vendor's status page.
    components: bool,
}

/// `GET /api/v1/me`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let key = call.caller.key().ok_or(ServiceError::NotFound)?;
    let usage = context.service.accounts.usage(&call.caller).await?;
    let document = MeDocument {
        key: KeyDocument {
            id: key.id.to_string(),
            name: key.name.clone(),
            access: key.access.name(),
            page_id: key.page.map(|page| page.to_string()),
            created_at: key.created_at.to_string(),
        },
        plan: plan(&usage, context.key_limit.limit()),
    };
    // Plain JSON: the plan's number of monitors never had an old name.
    Ok(HttpResponse::json(StatusCode::OK, &document))
}

fn plan(usage: &PlanUsage, requests_per_minute: u32) -> PlanDocument {
    let PlanUsage { plan, limits, .. } = usage;
    let seconds = |kind| limits.interval_ms(*plan, kind).unwrap_or_default() / 1000;
    let quota = |used: usize, limit: u64| Quota { used: used as u64, limit };
    PlanDocument {
        name: plan.name(),
        monitors: quota(usage.monitors, limits.monitors(*plan).into()),
        pages: quota(usage.pages, usage.max_pages as u64),
        requests_per_minute,
        check_interval_seconds: seconds(CheckKind::Http),
        certificate_interval_seconds: seconds(CheckKind::Certificate),
        domain_interval_seconds: seconds(CheckKind::Domain),
        component_interval_seconds: plan.has_components().then(|| seconds(CheckKind::Component)),
        features: PlanFeaturesDocument {
            email: true,
            webhooks: plan.has_channel(ChannelKind::Webhook),
            regions: plan.uses_regions(),
            components: plan.has_components(),
        },
    }
}
