//! Administration of the mesh for the dashboard: the members' records with the running mesh.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::{Mesh, Region};
use parallax_engine::counters::EngineCounters;
use parallax_engine::mesh_problems;
use parallax_mesh::AgentView;
use parallax_mesh::members::{INVITATION_LIFE, InviteRequest, MemberError, MemberStore};
use parallax_runtime::clock::Clock;
use parallax_service::mesh::{
    AgentInvite, InstallationFigures, IssuedInvitation, MeshAdministration, MeshAgent, MeshState, OpenInvitation,
};
use parallax_service::{ServiceError, ServiceResult};
use tokio::sync::watch;

use super::installation::InstallationSources;

/// The members' records, connected to the running mesh.
pub(super) struct MemberAdministration {
    pub(super) members: MemberStore,
    /// The mesh as the rules see it.
    pub(super) mesh: watch::Receiver<Arc<Mesh>>,
    /// How failures are confirmed.
    pub(super) confirmation: ConfirmationPolicy,
    pub(super) counters: Arc<EngineCounters>,
    pub(super) clock: Clock,
    /// Lifetime of an agent's certificate, in seconds.
    pub(super) certificate_life: i64,
    /// UDP port of the mesh.
    pub(super) port: u16,
    /// Source of the installation's figures.
    pub(super) installation: InstallationSources,
}

impl fmt::Debug for MemberAdministration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberAdministration").field("port", &self.port).finish_non_exhaustive()
    }
}

impl MeshAdministration for MemberAdministration {
    fn state(&self) -> BoxFuture<'_, ServiceResult<MeshState>> {
        async move {
            let views = self.members.connected_agents();
            let live: BTreeMap<AgentId, AgentView> = views.into_iter().map(|view| (view.agent.id, view)).collect();
            let agents = self.members.agents().await.map_err(MemberError::from).map_err(service_error)?;
            let invitations = self.members.invitations().await.map_err(MemberError::from).map_err(service_error)?;
            let (now, problems) = (self.clock.now(), self.counters.mesh_problems());
            let problems = mesh_problems::to_operator_alerts(&problems).into_iter();
            let mesh = Arc::clone(&self.mesh.borrow());
            Ok(MeshState {
                agents: agents.iter().map(|agent| self.agent(agent, live.get(&agent.id), &mesh)).collect(),
                invitations: invitations.iter().filter(|it| it.is_open(now)).map(open_invitation).collect(),
                problems: problems.filter(|(_, holds)| *holds).map(|(problem, _)| problem).collect(),
                confirming: ConfirmingNetworks::of(&mesh, self.confirmation),
            })
        }
        .boxed()
    }

    fn installation(&self) -> BoxFuture<'_, InstallationFigures> {
        async move { self.installation.figures(&self.counters, self.clock.now()).await }.boxed()
    }

    fn invite<'a>(
        &'a self,
        invite: &'a AgentInvite,
        base_host: &'a str,
    ) -> BoxFuture<'a, ServiceResult<IssuedInvitation>> {
        async move {
            let region: Region =
                invite.region.parse().map_err(|error| ValidationErrors::single("region", format!("{error}")))?;
            let (name, network) = (invite.name.clone(), invite.network.clone());
            let request = InviteRequest { name, region, network, lifetime: INVITATION_LIFE };
            let (invitation, token) = self.members.invite(request).await.map_err(service_error)?;
            Ok(IssuedInvitation {
                invitation: open_invitation(&invitation),
                token: token.expose(),
                coordinator: format!("{base_host}:{}", self.port),
            })
        }
        .boxed()
    }

    fn revoke_invitation(&self, id: InvitationId) -> BoxFuture<'_, ServiceResult<()>> {
        async move { self.members.revoke_invitation(&id.to_string()).await.map(drop).map_err(service_error) }.boxed()
    }

    fn revoke(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        async move { self.members.revoke(&id.to_string()).await.map(drop).map_err(service_error) }.boxed()
    }

    fn remove(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        async move { self.members.remove(&id.to_string()).await.map(drop).map_err(service_error) }.boxed()
    }
}

impl MemberAdministration {
    fn agent(&self, record: &AgentRecord, live: Option<&AgentView>, mesh: &Mesh) -> MeshAgent {
        let from = record.identity.valid_from;
        let until = || Timestamp::from_millis(from.saturating_add(self.certificate_life).saturating_mul(SECOND));
        MeshAgent {
            id: record.id,
            name: record.name.clone(),
            region: record.region,
            network: record.network.clone(),
            joined_at: record.joined_at,
            revoked_at: record.revoked_at,
            connected_since: live.and_then(|live| live.connected_since),
            address: live.and_then(|live| live.remote).map(|address| address.to_string()),
            software: live.and_then(|live| live.software.clone()),
            clock_skew_ms: live.and_then(|live| live.skew_ms),
            is_clock_off: live.is_some_and(|live| live.is_clock_off),
            is_quarantined: live.is_some_and(|live| live.is_quarantined),
            contradicted: live.and_then(|live| live.contradicted.clone()),
            is_shared: live.is_some_and(|live| live.is_shared),
            faults: live.map(|live| live.faults.clone()).unwrap_or_default(),
            can_confirm: mesh.can_confirm(record.vantage_no),
            results: live.map_or(0, |live| live.results.received),
            dropped: live.map_or(0, |live| live.results.dropped),
            certificate_until: (from != 0).then(until),
        }
    }
}

fn open_invitation(invitation: &Invitation) -> OpenInvitation {
    OpenInvitation {
        id: invitation.id,
        name: invitation.name.clone(),
        region: invitation.region,
        network: invitation.network.clone(),
        expires_at: invitation.expires_at,
    }
}

fn service_error(error: MemberError) -> ServiceError {
    match error {
        MemberError::Invalid { field, rule } => ValidationErrors::single(field, rule).into(),
        MemberError::NameInUse { by, .. } => ValidationErrors::single("name", format!("is in use by {by}")).into(),
        MemberError::UnknownAgent(_) | MemberError::UnknownInvitation(_) => ServiceError::NotFound,
        MemberError::InvitationUsed(agent) => {
            let rule = format!("was used: {agent} has joined with it. To lock it out, revoke the agent");
            ValidationErrors::single("invitation", rule).into()
        }
        error @ (MemberError::Ambiguous(_) | MemberError::TooManyInvitations) => {
            ValidationErrors::whole_request(error.to_string()).into()
        }
        error => ServiceError::Internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_invitation_is_refused_with_the_reason() {
        let ServiceError::Invalid(errors) = service_error(MemberError::InvitationUsed("fra1".to_owned())) else {
            panic!("not a validation error")
        };
        let rules: Vec<String> = errors.iter().map(|error| format!("{} {}", error.field, error.rule)).collect();
        assert_eq!(rules, ["invitation was used: fra1 has joined with it. To lock it out, revoke the agent"]);
        for error in [MemberError::Ambiguous("a".to_owned()), MemberError::TooManyInvitations] {
            assert!(matches!(service_error(error), ServiceError::Invalid(_)));
        }
        assert!(matches!(service_error(MemberError::UnknownAgent("a".to_owned())), ServiceError::NotFound));
    }
}
