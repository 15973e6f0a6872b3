//! The mesh for operators: agents, invitations and problems. For everyone else these addresses don't exist.

mod agent;
mod installation;
mod new_agent;

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::time::Timestamp;
use parallax_service::mesh::{MeshAgent, OpenInvitation, require_operator};
use url::form_urlencoded;

use self::installation::installation_lines;
use super::SignedIn;
use super::forms::new_key;
use super::frame::frame;
use super::page_screen::reply;
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::mesh::{
    AgentRow, AgentTrouble, InvitationLine, MeshNotice, MeshScreen, agent_notices, certificate_text, fault_notices,
    problem_notices, region_lines, skew_text,
};
use crate::views::dashboard::{Frame, Section, time};

/// Maximum number of notices on the screen.
const MAX_NOTICES: usize = 20;

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        ("/app/mesh", vec![(GET, signed_in_route(|context, call| show(context, call).boxed()))]),
        (
            "/app/mesh/agents/new",
            vec![
                (GET, signed_in_route(|context, call| new_agent::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| new_agent::invite(context, call).boxed())),
            ],
        ),
        (
            "/app/mesh/invitations/{invitation}",
            vec![(GET, signed_in_route(|context, call| new_agent::show_invitation(context, call).boxed()))],
        ),
        (
            "/app/mesh/invitations/{invitation}/revoke",
            vec![(POST, signed_in_route(|context, call| new_agent::revoke(context, call).boxed()))],
        ),
        (
            "/app/mesh/agents/{agent}",
            vec![
                (GET, signed_in_route(|context, call| agent::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| agent::change(context, call).boxed())),
            ],
        ),
    ]
}

/// Frame of a screen for operators.
async fn operator_frame(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    section: Section,
) -> Result<Frame, ApiError> {
    require_operator(&call.caller.session)?;
    frame(context, call, None, section).await
}

/// `GET /app/mesh`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let frame = operator_frame(&context, &mut call, Section::Mesh).await?;
    let state = context.service.mesh.state(&call.caller.session).await?;
    let now = context.service.now();
    let rows: Vec<AgentRow> = state.agents.iter().map(|agent| row(agent, now)).collect();
    let mut notices = problem_notices(&state.problems, &state.confirming);
    notices.extend(state.agents.iter().zip(&rows).flat_map(|(agent, row)| notices_of(agent, row)));
    notices.extend(fault_notices(state.agents.iter().zip(&rows).filter_map(|(agent, row)| faults_of(agent, row))));
    notices.sort_by_key(|notice| notice.class != "down");
    let more = notices.len().saturating_sub(MAX_NOTICES);
    notices.truncate(MAX_NOTICES);
    let regions = region_lines(&rows, &state.confirming);
    let (revoked, agents) = rows.into_iter().partition(|row: &AgentRow| row.is_revoked);
    let invitations = state.invitations.iter().map(|it| invitation_line(it, now)).collect();
    let installation = installation_lines(&context.service.mesh.installation(&call.caller.session).await?, now);
    reply(&MeshScreen { frame, notices, more, regions, agents, revoked, invitations, installation, once: new_key() })
}

fn notices_of(agent: &MeshAgent, row: &AgentRow) -> Vec<MeshNotice> {
    if row.is_revoked {
        return Vec::new();
    }
    let trouble = AgentTrouble {
        is_shared: agent.is_shared,
        is_quarantined: agent.is_quarantined,
        contradicted: agent.contradicted.as_deref(),
    };
    agent_notices(row, trouble)
}

/// Returns the agent with the faults of its host, unless it is revoked.
fn faults_of<'a>(agent: &'a MeshAgent, row: &'a AgentRow) -> Option<(&'a AgentRow, &'a [String])> {
    (!row.is_revoked).then_some((row, agent.faults.as_slice()))
}

fn row(agent: &MeshAgent, now: Timestamp) -> AgentRow {
    let state = match (agent.revoked_at, agent.connected_since) {
        (Some(at), _) => ("none", "Revoked", time(at, now).text),
        (None, None) => ("down", "Not connected", String::new()),
        (None, Some(_)) if agent.is_quarantined => ("slow", "In quarantine", String::new()),
        (None, Some(_)) if !agent.can_confirm => {
            ("slow", "Confirms nothing", agent.faults.first().cloned().unwrap_or_default())
        }
        // Its host is faulty, but it still confirms: no other host is better.
        (None, Some(_)) if !agent.faults.is_empty() => ("slow", "Host fault", agent.faults.join("; ")),
        (None, Some(since)) => ("up", "Connected", format!("since {}", time(since, now).text)),
    };
    AgentRow {
        href: agent_href(agent.id),
        name: agent.name.clone(),
        region: agent.region,
        network: agent.network.clone(),
        state,
        version: agent.software.clone().unwrap_or_default(),
        clock: skew_text(agent.clock_skew_ms),
        is_clock_off: agent.is_clock_off,
        results: agent.results,
        dropped: agent.dropped,
        certificate: certificate_text(agent.certificate_until, now),
        is_connected: agent.connected_since.is_some(),
        is_revoked: agent.revoked_at.is_some(),
    }
}

fn invitation_line(invitation: &OpenInvitation, now: Timestamp) -> InvitationLine {
    InvitationLine {
        revoke: format!("{}/revoke", invitation_path(invitation.id)),
        name: invitation.name.clone(),
        href: invitation_href(invitation),
        about: format!("{}, {}", invitation.region.title(), invitation.network),
        expires_at: time(invitation.expires_at, now),
    }
}

/// Address of an agent's screen. By id: a name can be used again, and may be that of another screen.
fn agent_href(id: AgentId) -> String {
    format!("/app/mesh/agents/{id}")
}

/// Address of an invitation's screen.
fn invitation_path(id: InvitationId) -> String {
    format!("/app/mesh/invitations/{id}")
}

/// The same with the agent's name, by which it leads to the agent once the invitation was used.
fn invitation_href(invitation: &OpenInvitation) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair("name", &invitation.name).finish();
    format!("{}?{query}", invitation_path(invitation.id))
}
