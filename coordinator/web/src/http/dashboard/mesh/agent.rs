//! One agent for operators: its figures, and how it is revoked.

use std::sync::Arc;

use parallax_core::id::AgentId;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::mesh::{MeshAgent, MeshState};
use percent_encoding::percent_decode_str;

use super::{agent_href, faults_of, invitation_href, notices_of, operator_frame, row};
use crate::http::HttpContext;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm};
use crate::http::dashboard::page_screen::reply_with;
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::mesh::{AgentScreen, fault_notices};
use crate::views::dashboard::{Section, Toast, time};

/// Acts of the form. The form names its act, so that a second click does not do the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentAct {
    Revoke,
    Forget,
}

impl AgentAct {
    fn of(form: &Form) -> Option<Self> {
        match form.text("act") {
            "revoke" => Some(Self::Revoke),
            "forget" => Some(Self::Forget),
            _ => None,
        }
    }

    /// Address that reports the act as done.
    fn result(self) -> String {
        let toast = match self {
            Self::Revoke => "agent-revoked",
            Self::Forget => "agent-forgotten",
        };
        Toast::address("/app/mesh", toast, 1)
    }
}

/// `GET /app/mesh/agents/{agent}`: the agent of that id. A name leads to the agent or invitation that has it.
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let state = context.service.mesh.state(&call.caller.session).await?;
    match agent_in_path(&call, &state)? {
        Some(agent) => draw(&context, &mut call, agent, (&Form::default(), None)).await,
        None => redirect_by_name(&state, &name_in_path(&call)?),
    }
}

/// `POST /app/mesh/agents/{agent}`: revokes the agent, or removes a revoked one from the list.
pub(super) async fn change(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let state = context.service.mesh.state(&call.caller.session).await?;
    let Ok(id) = call.path_param("agent")?.parse::<AgentId>() else {
        return redirect_by_name(&state, &name_in_path(&call)?);
    };
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(&agent_href(id)));
    }
    let form = SubmittedForm::read(&mut call).await?.form;
    let Some(act) = AgentAct::of(&form) else { return Ok(see_other(&agent_href(id))) };
    let agent = state.agents.iter().find(|it| it.id == id);
    let agent = match (act, agent, agent.is_some_and(|agent| agent.revoked_at.is_some())) {
        (AgentAct::Revoke, Some(agent), false) | (AgentAct::Forget, Some(agent), true) => agent,
        // Done before, such as by the first of two clicks.
        (AgentAct::Revoke, ..) | (AgentAct::Forget, None, _) => return Ok(see_other(&act.result())),
        (AgentAct::Forget, Some(_), false) => return Ok(see_other(&agent_href(id))),
    };
    if form.text("name").trim() != agent.name.trim() {
        let errors = ValidationErrors::single("name", "must be the name of the agent");
        let refusal = FormRefusal::of(ServiceError::Invalid(errors))?;
        return draw(&context, &mut call, agent, (&form, Some(refusal))).await;
    }
    let (mesh, session) = (&context.service.mesh, &call.caller.session);
    let done = match act {
        AgentAct::Revoke => mesh.revoke(session, id).await,
        AgentAct::Forget => mesh.remove(session, id).await,
    };
    match done {
        // Not found: another request forgot it meanwhile.
        Ok(()) | Err(ServiceError::NotFound) => Ok(see_other(&act.result())),
        Err(error) => Err(error.into()),
    }
}

/// Redirects to the agent of that name, or to its invitation.
pub(super) fn redirect_by_name(state: &MeshState, name: &str) -> HandlerResult {
    let invitation = || state.invitations.iter().find(|it| it.name == name).map(invitation_href);
    let href = find(state, name).map(|agent| agent_href(agent.id)).or_else(invitation);
    Ok(see_other(&href.ok_or(ServiceError::NotFound)?))
}

fn name_in_path(call: &RoutedRequest<SignedIn>) -> Result<String, ApiError> {
    Ok(percent_decode_str(call.path_param("agent")?).decode_utf8_lossy().into_owned())
}

fn agent_in_path<'a>(call: &RoutedRequest<SignedIn>, state: &'a MeshState) -> Result<Option<&'a MeshAgent>, ApiError> {
    let id = call.path_param("agent")?.parse::<AgentId>().ok();
    Ok(state.agents.iter().find(|it| Some(it.id) == id))
}

/// The agent of that name; one that is not revoked first, since a name can be used again.
fn find<'a>(state: &'a MeshState, name: &str) -> Option<&'a MeshAgent> {
    let named = || state.agents.iter().filter(|it| it.name == name);
    named().find(|it| it.revoked_at.is_none()).or_else(|| named().next_back())
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    agent: &MeshAgent,
    (form, refusal): (&Form, Option<FormRefusal>),
) -> HandlerResult {
    let (now, frame) = (context.service.now(), operator_frame(context, call, Section::Mesh).await?);
    let (view, status) = form.drawn(&call.caller.form_token, refusal);
    let row = row(agent, now);
    let mut notices = notices_of(agent, &row);
    notices.extend(fault_notices(faults_of(agent, &row)));
    let screen = AgentScreen {
        notices,
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
