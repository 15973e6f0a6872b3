//! Invitation of an agent: the form, and the command to copy, which is shown once.

use std::collections::BTreeSet;
use std::sync::Arc;

use parallax_core::id::InvitationId;
use parallax_core::vantage::Region;
use parallax_service::ServiceError;
use parallax_service::hosts::url_hostname;
use parallax_service::mesh::{AgentInvite, IssuedInvitation, MeshState, require_operator};

use super::agent::redirect_by_name;
use super::{invitation_line, invitation_path, operator_frame};
use crate::http::HttpContext;
use crate::http::dashboard::confirm::ask_to_confirm;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm, new_key};
use crate::http::dashboard::frame::without_scheme;
use crate::http::dashboard::page_screen::{reply, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::mesh::{NewAgentForm, WaitingScreen};
use crate::views::dashboard::{Section, Toast};

/// `GET /app/mesh/agents/new`
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    draw(&context, &mut call, &Form::default(), None).await
}

/// `POST /app/mesh/agents/new`: the reply has the token, which is stored nowhere. So it is no redirect; sent again, the
/// form is refused because the name is in use.
pub(super) async fn invite(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let form = SubmittedForm::read(&mut call).await?.form;
    let text = |name| form.text(name).trim().to_owned();
    let invite = AgentInvite { name: text("name"), region: text("region"), network: text("network") };
    let base = context.service.base_url();
    let host = url_hostname(base).unwrap_or_else(|| host_of(base));
    match context.service.mesh.invite(&call.caller.session, &invite, &host).await {
        Ok(issued) => {
            let frame = operator_frame(&context, &mut call, Section::Mesh).await?;
            let invitation = invitation_line(&issued.invitation, context.service.now());
            reply(&WaitingScreen { frame, invitation, commands: commands(&issued), once: new_key() })
        }
        Err(error) => draw(&context, &mut call, &form, Some(FormRefusal::of(error)?)).await,
    }
}

/// `GET /app/mesh/invitations/{invitation}`: the invitation while it is open, later the agent of the name in the query.
pub(super) async fn show_invitation(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let state = context.service.mesh.state(&call.caller.session).await?;
    let id: InvitationId = call.id("invitation")?;
    let Some(invitation) = state.invitations.iter().find(|it| it.id == id) else {
        return redirect_by_name(&state, Form::parse(call.query.as_bytes())?.text("name"));
    };
    let invitation = invitation_line(invitation, context.service.now());
    let frame = operator_frame(&context, &mut call, Section::Mesh).await?;
    reply(&WaitingScreen { frame, invitation, commands: Vec::new(), once: new_key() })
}

/// `POST /app/mesh/invitations/{invitation}/revoke`
pub(super) async fn revoke(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let session = &call.caller.session;
    require_operator(session)?;
    let id: InvitationId = call.id("invitation")?;
    if context.service.people.require_confirmed(session).is_err() {
        return Ok(ask_to_confirm(&invitation_path(id)));
    }
    match context.service.mesh.revoke_invitation(session, id).await {
        // Not found: it was revoked long ago and is no longer stored.
        Ok(()) | Err(ServiceError::NotFound) => Ok(see_other(&Toast::address("/app/mesh", "invitation-revoked", 1))),
        Err(error) => Err(error.into()),
    }
}

/// Host of a base URL that has an IP address, without its port.
fn host_of(base_url: &str) -> String {
    let address = without_scheme(base_url);
    address.rsplit_once(':').filter(|(host, _)| !host.ends_with(':')).map_or(address, |(host, _)| host).to_owned()
}

/// Ways to run an agent, each with its command.
fn commands(issued: &IssuedInvitation) -> Vec<(&'static str, String)> {
    let IssuedInvitation { token, coordinator, .. } = issued;
    vec![
        ("Join", format!("parallax-agent join --coordinator {coordinator} --token {token}")),
        ("Then run it", "parallax-agent run".to_owned()),
    ]
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let frame = operator_frame(context, call, Section::Mesh).await?;
    let state = context.service.mesh.state(&call.caller.session).await?;
    let (view, status) = form.drawn(&call.caller.form_token, refusal);
    let regions = Region::ALL.map(|region| (region.name(), region.title())).into();
    reply_with(&NewAgentForm { frame, form: view, regions, networks: networks(&state) }, status)
}

/// Networks of each region that has any.
fn networks(state: &MeshState) -> Vec<(&'static str, String)> {
    let of = |region: Region| {
        let members = state.agents.iter().filter(|it| it.region == region && it.revoked_at.is_none());
        let names: BTreeSet<&str> = members.map(|it| it.network.as_str()).collect();
        (!names.is_empty()).then(|| (region.title(), names.into_iter().collect::<Vec<_>>().join(", ")))
    };
    Region::ALL.into_iter().filter_map(of).collect()
}
