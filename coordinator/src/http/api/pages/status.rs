//! The status document of a page: what visitors may know, whatever the page's password.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::place::Region;
use serde_json::{Value, json};

use crate::http::Context;
use crate::http::api::bare;
use crate::http::api::incidents::view::public;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::monitors::Shown;
use crate::service::{Caller, Service, pages::Overview};

/// `GET /api/v1/pages/{page}/status`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let overview = context.service.overview(&call.caller, call.page()?).await?;
    Ok(Reply::written(StatusCode::OK, bare(&document(&context.service, &overview))))
}

fn document(service: &Service, overview: &Overview) -> Value {
    let page = &overview.page;
    json!({
        "page": {
            "id": page.id.to_string(),
            "name": page.name,
            "url": service.page_url(page),
            "description": page.description,
            "supportUrl": page.support_url,
            "timezone": page.timezone.name(),
        },
        "status": { "indicator": overview.indicator.name(), "headline": overview.headline },
        "monitors": overview.monitors.iter().map(monitor).collect::<Vec<_>>(),
        "incidents": overview.incidents.iter().map(public).collect::<Vec<_>>(),
        "maintenance": overview.maintenance.iter().map(public).collect::<Vec<_>>(),
        "generatedAt": service.now().as_millis(),
    })
}

/// Only what is public: never what is checked.
fn monitor(shown: &Shown) -> Value {
    let Shown { monitor, view, figure } = shown;
    json!({
        "id": monitor.id.to_string(),
        "name": monitor.name,
        "group": monitor.group,
        "type": monitor.check.kind().name(),
        "position": monitor.position,
        "status": view.status.name(),
        "since": view.since.map(|since| since.to_string()),
        "downFrom": view.down_from.map(|regions| regions.iter().map(Region::name).collect::<Vec<_>>()),
        "uptime24h": figure.uptime,
        "latencyMs24h": figure.latency_ms.filter(|_| monitor.check.kind().has_latency()),
    })
}
