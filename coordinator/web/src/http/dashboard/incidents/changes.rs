//! Changes of an incident or window by a form.

use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::{IncidentContext, data};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{Saved, SubmittedForm, changed, saved};
use crate::http::json_body::JsonObject;
use crate::views::dashboard::Toast;

/// Changes the incident by a form; returns where to go.
pub(super) async fn change(
    context: &HttpContext,
    caller: &Caller,
    incident: &IncidentContext,
    submitted: &SubmittedForm,
    current: &JsonObject,
) -> Saved {
    let form = data::normalize(&submitted.form);
    let edit = match changed(&form, current, |fields| body::read_change(fields)) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let path = Toast::address(&incident.href, "saved", 1);
    let answer = |_: &IncidentDetail| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    let (page, id) = (incident.page_screen.page.id, incident.detail.incident.id);
    saved(context.service.incidents.edit(caller, page, id, &edit, &once).await, |_| path.clone())
}
