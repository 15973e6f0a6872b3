//! One agent for operators: its figures, and how it is revoked.

use std::sync::Arc;

use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::mesh::{MeshAgent, MeshState};
use percent_encoding::percent_decode_str;

use super::{invitation_line, notices_of, operator_frame, row};
use crate::http::HttpContext;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm, new_key};
use crate::http::dashboard::page_screen::{reply, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::mesh::{AgentScreen, WaitingScreen};
use crate::views::dashboard::{Section, Toast, time};

/// `GET /app/mesh/agents/{agent}`: the agent of that name, or its invitation.
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let state = context.service.mesh.state(&call.caller.session).await?;
    let name = name_of(&call)?;
    if find(&state, &name).is_some() {
        return draw(&context, &mut call, &state, &Form::default(), None).await;
    }
    let invitation = state.invitations.iter().find(|it| it.name == name).ok_or(ServiceError::NotFound)?;
    let invitation = invitation_line(invitation, context.service.now());
    let frame = operator_frame(&context, &mut call, Section::Mesh).await?;
    reply(&WaitingScreen { frame, invitation, commands: Vec::new(), once: new_key() })
}

/// `POST /app/mesh/agents/{agent}`: revokes the agent, or removes a revoked one from the list.
pub(super) async fn change(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let state = context.service.mesh.state(&call.caller.session).await?;
    let name = name_of(&call)?;
    let agent = find(&state, &name).ok_or(ServiceError::NotFound)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(&super::agent_href(&name)));
    }
    let form = SubmittedForm::read(&mut call).await?.form;
    if form.text("name").trim() != agent.name.trim() {
        let errors = ValidationErrors::single("name", "must be the name of the agent");
        let refusal = FormRefusal::of(ServiceError::Invalid(errors))?;
        return draw(&context, &mut call, &state, &form, Some(refusal)).await;
    }
    let mesh = &context.service.mesh;
    if agent.revoked_at.is_some() {
        mesh.remove(&call.caller.session, agent.id).await?;
        return Ok(see_other(&Toast::address("/app/mesh", "agent-forgotten", 1)));
    }
    mesh.revoke(&call.caller.session, agent.id).await?;
    Ok(see_other(&Toast::address("/app/mesh", "agent-revoked", 1)))
}

fn name_of(call: &RoutedRequest<SignedIn>) -> Result<String, ApiError> {
    Ok(percent_decode_str(call.path_param("agent")?).decode_utf8_lossy().into_owned())
}

/// The agent of that name; one that is not revoked first, since a name can be used again.
fn find<'a>(state: &'a MeshState, name: &str) -> Option<&'a MeshAgent> {
    let named = || state.agents.iter().filter(|it| it.name == name);
    named().find(|it| it.revoked_at.is_none()).or_else(|| named().next_back())
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    state: &MeshState,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let name = name_of(call)?;
    let agent = find(state, &name).ok_or(ServiceError::NotFound)?;
    let (now, frame) = (context.service.now(), operator_frame(context, call, Section::Mesh).await?);
    let (view, status) = form.drawn(&call.caller.form_token, refusal);
    let row = row(agent, now);
    let screen = AgentScreen {
        notices: notices_of(agent, &row),
        lines: lines(agent, now),
        asks_to_confirm: context.service.people.require_confirmed(&call.caller.session).is_err(),
        agent: row,
        form: view,
        frame,
    };
    reply_with(&screen, status)
}

/// Facts of an agent: label and text.
fn lines(agent: &MeshAgent, now: Timestamp) -> Vec<(&'static str, String)> {
    let unknown = || "–".to_owned();
    let mut lines = vec![
        ("Region", agent.region.title().to_owned()),
        ("Network", agent.network.clone()),
        ("Address", agent.address.clone().unwrap_or_else(unknown)),
        ("Version", agent.software.clone().unwrap_or_else(unknown)),
        ("Joined", time(agent.joined_at, now).text),
    ];
    lines.extend(agent.connected_since.map(|since| ("Connected since", time(since, now).text)));
    lines.extend(agent.certificate_until.map(|until| ("Certificate until", time(until, now).text)));
    lines
}
