//! Changes of an incident or window by a form, and the form as it is drawn again after a refusal.

use ::http::StatusCode;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::{IncidentContext, data};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, LOADED, Saved, SubmittedForm, loaded, result_path};
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
    let mut changes = FormBody::change(&form, current);
    let edit = body::read_change(&mut changes);
    let conflicts = changes.into_conflicts();
    if !conflicts.is_empty() {
        return Ok(Err(FormRefusal::conflict(conflicts)));
    }
    let path = Toast::address(&incident.href, "saved", 1);
    let answer = |_: &IncidentDetail| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    let (page, id) = (incident.scene.page.id, incident.detail.incident.id);
    match context.service.incidents.edit(caller, page, id, &edit, &once).await {
        Ok(outcome) => Ok(Ok(result_path(outcome, |_| path.clone()))),
        Err(error) => Ok(Err(FormRefusal::of(error)?)),
    }
}

/// The form as it is drawn again. After a conflict it is about the current values, so that saving it again keeps what
/// was typed.
pub(super) fn redrawn(mut form: Form, refusal: &FormRefusal, current: &JsonObject) -> Form {
    if refusal.status == StatusCode::CONFLICT {
        form.set(LOADED, loaded(current));
    }
    form
}
