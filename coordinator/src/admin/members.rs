//! The mesh's members as an operator sees them, and what an operator does with them.

use std::collections::BTreeMap;

use parallax_core::member::{Agent, Invitation};
use parallax_core::place::Region;
use parallax_core::time::{SECOND, Timestamp};
use serde_json::{Value, json};

use super::Fault;
use crate::members::{INVITATION_LIFE, MemberError, Roll, Wish, is_open};

pub(super) async fn invite(
    roll: &Roll,
    name: &str,
    region: &str,
    network: &str,
    valid_seconds: Option<u32>,
) -> Result<Value, Fault> {
    let region: Region = region.parse().map_err(|rule| Fault::new("invalid", format!("region {rule}")))?;
    let life = valid_seconds.map_or(INVITATION_LIFE, |seconds| i64::from(seconds) * SECOND);
    let wish = Wish { name: name.to_owned(), region, network: network.to_owned(), life };
    let (invitation, token) = roll.invite(wish).await?;
    let mut view = invited(&invitation);
    view["token"] = json!(token.expose());
    Ok(view)
}

/// Agents in the order of their numbers, then invitations that are still of use.
pub(super) async fn list(roll: &Roll, now: Timestamp) -> Result<Value, Fault> {
    let live: BTreeMap<_, _> = roll.connected().into_iter().map(|view| (view.agent.id, view)).collect();
    let mut members = Vec::new();
    for agent in roll.agents().await.map_err(MemberError::from)? {
        let mut view = enrolled(&agent);
        if let Some(live) = live.get(&agent.id).filter(|live| live.connected_since.is_some()) {
            view["status"] = json!("connected");
            view["connected"] = json!(true);
            view["connectedSince"] = json!(live.connected_since.map(|since| since.to_string()));
            view["address"] = json!(live.remote.map(|remote| remote.to_string()));
            view["software"] = json!(live.software);
            view["clockSkewMs"] = json!(live.skew_ms);
            view["clockOff"] = json!(live.is_clock_off);
            view["quarantined"] = json!(live.is_quarantined);
            view["shared"] = json!(live.is_shared);
            view["faults"] = json!(live.faults);
            let skew = live.skew_ms.filter(|_| live.is_clock_off);
            view["trouble"] = json!(trouble(live.is_quarantined, live.is_shared, skew, &live.faults));
        }
        members.push(view);
    }
    let mut invitations = roll.invitations().await.map_err(MemberError::from)?;
    invitations.retain(|invitation| is_open(invitation, now));
    members.extend(invitations.iter().map(invited));
    Ok(Value::Array(members))
}

pub(super) async fn revoke(roll: &Roll, agent: &str) -> Result<Value, Fault> {
    Ok(enrolled(&roll.revoke(agent).await?))
}

pub(super) async fn forget(roll: &Roll, agent: &str) -> Result<Value, Fault> {
    let mut view = enrolled(&roll.forget(agent).await?);
    view["status"] = json!("forgotten");
    Ok(view)
}

/// What is wrong with an agent that is connected, in a line; none where nothing is. The skew is that of a clock that is
/// off, in milliseconds.
fn trouble(quarantined: bool, shared: bool, skew: Option<i64>, faults: &[String]) -> Option<String> {
    let told = [
        quarantined.then(|| "quarantined".to_owned()),
        shared.then(|| "two hosts share its identity".to_owned()),
        skew.map(|skew| format!("clock {:+.1} s off", skew as f64 / 1000.0)),
    ];
    let told: Vec<String> = told.into_iter().flatten().chain(faults.iter().cloned()).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn enrolled(agent: &Agent) -> Value {
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

fn invited(invitation: &Invitation) -> Value {
    json!({
        "id": invitation.id.to_string(),
        "name": invitation.name,
        "region": invitation.region.name(),
        "network": invitation.network,
        "status": "invited",
        "connected": false,
        "expiresAt": invitation.expires_at.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_in_a_line_and_none_is_no_words() {
        assert_eq!(trouble(false, false, None, &[]), None);
        let told = trouble(true, false, Some(-3240), &["no IPv6".to_owned()]).unwrap();
        assert_eq!(told, "quarantined, clock -3.2 s off, no IPv6");
    }
}
