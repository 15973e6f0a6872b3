//! A fake mesh for operators, with the given agents.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::time::HOUR;
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::Region;

use super::START;
use crate::mesh::{AgentInvite, InstallationFigures, IssuedInvitation, MeshAdministration, MeshState, OpenInvitation};
use crate::{ServiceError, ServiceResult};

/// Agents and invitations, kept in memory.
#[derive(Debug, Clone, Default)]
pub struct FakeMembers(Arc<Mutex<MeshState>>, Arc<Mutex<InstallationFigures>>);

impl FakeMembers {
    pub fn set(&self, state: MeshState) {
        *self.0.lock().unwrap() = state;
    }

    pub fn set_installation(&self, figures: InstallationFigures) {
        *self.1.lock().unwrap() = figures;
    }

    fn change(&self, act: impl FnOnce(&mut MeshState) -> bool) -> BoxFuture<'_, ServiceResult<()>> {
        let is_found = act(&mut self.0.lock().unwrap());
        std::future::ready(if is_found { Ok(()) } else { Err(ServiceError::NotFound) }).boxed()
    }
}

impl MeshAdministration for FakeMembers {
    fn state(&self) -> BoxFuture<'_, ServiceResult<MeshState>> {
        std::future::ready(Ok(self.0.lock().unwrap().clone())).boxed()
    }

    fn installation(&self) -> BoxFuture<'_, InstallationFigures> {
        std::future::ready(self.1.lock().unwrap().clone()).boxed()
    }

    fn invite<'a>(
        &'a self,
        invite: &'a AgentInvite,
        base_host: &'a str,
    ) -> BoxFuture<'a, ServiceResult<IssuedInvitation>> {
        let issue = || -> ServiceResult<IssuedInvitation> {
            let region: Region =
                invite.region.parse().map_err(|error| ValidationErrors::single("region", format!("{error}")))?;
            let mut state = self.0.lock().unwrap();
            let invitation = OpenInvitation {
                id: InvitationId::from_u128(state.invitations.len() as u128 + 1),
                name: invite.name.clone(),
                region,
                network: invite.network.clone(),
                expires_at: START + HOUR,
            };
            state.invitations.push(invitation.clone());
            Ok(IssuedInvitation { invitation, token: "secret".to_owned(), coordinator: format!("{base_host}:7443") })
        };
        std::future::ready(issue()).boxed()
    }

    fn revoke_invitation(&self, id: InvitationId) -> BoxFuture<'_, ServiceResult<()>> {
        self.change(|state| {
            let before = state.invitations.len();
            state.invitations.retain(|it| it.id != id);
            state.invitations.len() < before
        })
    }

    fn revoke(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        self.change(|state| {
            let agent = state.agents.iter_mut().find(|it| it.id == id);
            agent.map(|agent| agent.revoked_at = Some(START)).is_some()
        })
    }

    fn remove(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        self.change(|state| {
            let before = state.agents.len();
            state.agents.retain(|it| it.id != id);
            state.agents.len() < before
        })
    }
}
