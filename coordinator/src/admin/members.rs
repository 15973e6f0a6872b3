//! The operator's view of agents and invitations, and the commands on them.

use std::collections::BTreeMap;

use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::Region;
use parallax_mesh::members::{
    AgentView, INVITATION_LIFE, InviteRequest, MemberError, MemberStore, RotationCommand, RotationProgress,
};
use serde_json::{Value, json};

use super::CommandError;

pub(super) async fn invite(
    members: &MemberStore,
    name: &str,
    region: &str,
    network: &str,
    valid_seconds: Option<u32>,
) -> Result<Value, CommandError> {
    let region: Region = region.parse().map_err(|rule| CommandError::new("invalid", format!("region {rule}")))?;
    let life = valid_seconds.map_or(INVITATION_LIFE, |seconds| i64::from(seconds) * SECOND);
    let request = InviteRequest { name: name.to_owned(), region, network: network.to_owned(), lifetime: life };
    let (invitation, token) = members.invite(request).await?;
    let mut view = invitation_view(&invitation);
    view["token"] = json!(token.expose());
    Ok(view)
}

/// Lists agents by number, then open invitations.
pub(super) async fn list(member_store: &MemberStore, now: Timestamp) -> Result<Value, CommandError> {
    let live: BTreeMap<_, _> = member_store.connected_agents().into_iter().map(|view| (view.agent.id, view)).collect();
    let mut members = Vec::new();
    for agent in member_store.agents().await.map_err(MemberError::from)? {
        let mut view = agent_view(&agent);
        if let Some(live_agent) = live.get(&agent.id) {
            view["quarantined"] = json!(live_agent.is_quarantined);
            view["contradicted"] = json!(live_agent.contradicted);
            view["shared"] = json!(live_agent.is_shared);
            view["clockSkewMs"] = json!(live_agent.skew_ms);
            view["clockOff"] = json!(live_agent.is_clock_off);
            view["results"] = json!(live_agent.results.received);
            view["duplicates"] = json!(live_agent.results.duplicates);
            view["dropped"] = json!(live_agent.results.dropped);
            view["note"] = json!(status_note(live_agent));
        }
        if let Some(live) = live.get(&agent.id).filter(|live| live.connected_since.is_some()) {
            view["status"] = json!("connected");
            view["connected"] = json!(true);
            view["connectedSince"] = json!(live.connected_since.map(|since| since.to_string()));
            view["address"] = json!(live.remote.map(|remote| remote.to_string()));
            view["software"] = json!(live.software);
            view["faults"] = json!(live.faults);
        }
        members.push(view);
    }
    let mut invitations = member_store.invitations().await.map_err(MemberError::from)?;
    invitations.retain(|invitation| invitation.is_open(now));
    members.extend(invitations.iter().map(invitation_view));
    Ok(Value::Array(members))
}

/// Lists all stored invitations with their state, oldest first.
pub(super) async fn invitations(members: &MemberStore, now: Timestamp) -> Result<Value, CommandError> {
    let all = members.invitations().await.map_err(MemberError::from)?;
    Ok(all.iter().map(|invitation| invitation_state_view(invitation, now)).collect())
}

pub(super) async fn revoke_invitation(
    members: &MemberStore,
    invitation: &str,
    now: Timestamp,
) -> Result<Value, CommandError> {
    Ok(invitation_state_view(&members.revoke_invitation(invitation).await?, now))
}

pub(super) async fn revoke(members: &MemberStore, agent: &str) -> Result<Value, CommandError> {
    Ok(agent_view(&members.revoke(agent).await?))
}

pub(super) async fn remove(members: &MemberStore, agent: &str) -> Result<Value, CommandError> {
    let mut view = agent_view(&members.remove(agent).await?);
    view["status"] = json!("forgotten");
    Ok(view)
}

/// Takes a step in rotating the certificate authority and returns the progress.
pub(super) async fn rotate(members: &MemberStore, step: &str, force: bool) -> Result<Value, CommandError> {
    let step: RotationCommand = step.parse().map_err(|rule| CommandError::new("invalid", format!("step {rule}")))?;
    let RotationProgress { phase, signing, other, agents, not_ready: waiting } = members.rotate(step, force).await?;
    Ok(json!({
        "phase": phase.name(),
        "signing": signing,
        "alsoTrusted": other,
        "agents": agents,
        "ready": agents - waiting.len(),
        "waitingFor": waiting,
    }))
}

/// Returns a short summary of an agent's problems.
fn status_note(agent: &AgentView) -> Option<String> {
    let mut notes = Vec::new();
    if agent.is_shared {
        notes.push("two hosts use this identity".to_owned());
    } else if agent.is_quarantined {
        notes.push("quarantined".to_owned());
    }
    notes.extend(agent.contradicted.clone());
    if agent.is_superseded {
        notes.push("renewal refused for a superseded certificate: copied identity or restored folder".to_owned());
    }
    if let Some(skew) = agent.skew_ms.filter(|_| agent.is_clock_off) {
        notes.push(format!("clock is {skew} ms off"));
    }
    if agent.results.dropped > 0 {
        notes.push(format!("{} results dropped", agent.results.dropped));
    }
    notes.extend(agent.faults.iter().cloned());
    (!notes.is_empty()).then(|| notes.join(", "))
}

fn agent_view(agent: &AgentRecord) -> Value {
    json!({
        "id": agent.id.to_string(),
        "name": agent.name,
        "region": agent.region.name(),
        "network": agent.network,
        "status": if agent.revoked_at.is_some() { "revoked" } else { "away" },
        "connected": false,
        "joinedAt": agent.joined_at.to_string(),
        "revokedAt": agent.revoked_at.map(|at| at.to_string()),
    })
}

/// Builds an invitation's view with its state and the agent that used it.
fn invitation_state_view(invitation: &Invitation, now: Timestamp) -> Value {
    let mut view = invitation_view(invitation);
    view["status"] = json!(invitation.state(now).name());
    view["usedBy"] = json!(invitation.used_by.map(|agent| agent.to_string()));
    view["revokedAt"] = json!(invitation.revoked_at.map(|at| at.to_string()));
    view
}

fn invitation_view(invitation: &Invitation) -> Value {
    json!({
        "id": invitation.id.to_string(),
        "name": invitation.name,
        "region": invitation.region.name(),
        "network": invitation.network,
        "status": "invited",
        "connected": false,
        "createdAt": invitation.created_at.to_string(),
        "expiresAt": invitation.expires_at.to_string(),
    })
}
