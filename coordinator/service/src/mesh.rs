//! Administration of the mesh by signed-in operators: agents, invitations and problems.
//!
//! The records belong to the mesh, which this crate does not know: the program implements [`MeshAdministration`].

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::operator_alert::OperatorProblem;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;

use crate::people::CurrentSession;
use crate::{ServiceError, ServiceResult};

/// An agent, as its operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshAgent {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: Region,
    /// Label of its network.
    pub network: String,
    /// Time at which it joined.
    pub joined_at: Timestamp,
    /// Time at which it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Start of its connection; `None` while it is not connected.
    pub connected_since: Option<Timestamp>,
    /// Address of its connection.
    pub address: Option<String>,
    /// Version of its program, as it last reported.
    pub software: Option<String>,
    /// Its wall clock minus the coordinator's, in milliseconds.
    pub clock_skew_ms: Option<i64>,
    /// True if that is more than two seconds either way.
    pub is_clock_off: bool,
    /// True if its rounds do not count.
    pub is_quarantined: bool,
    /// Agents that contradict it, and how often.
    pub contradicted: Option<String>,
    /// True if two hosts use its identity.
    pub is_shared: bool,
    /// Faults of its host, as text.
    pub faults: Vec<String>,
    /// True if it can confirm other agents' failures now.
    pub can_confirm: bool,
    /// Results received since the coordinator's start.
    pub results: u64,
    /// Results that it dropped for lack of space since then.
    pub dropped: u64,
    /// End of its certificate.
    pub certificate_until: Option<Timestamp>,
}

/// An invitation that was not used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenInvitation {
    /// Its id.
    pub id: InvitationId,
    /// Name of the agent to be.
    pub name: String,
    /// Region of the agent to be.
    pub region: Region,
    /// Label of its network.
    pub network: String,
    /// End of its validity.
    pub expires_at: Timestamp,
}

/// The mesh at one moment.
#[derive(Debug, Clone, Default)]
pub struct MeshState {
    /// Agents in the order of their numbers, revoked ones among them.
    pub agents: Vec<MeshAgent>,
    /// Open invitations, oldest first.
    pub invitations: Vec<OpenInvitation>,
    /// Problems of the mesh as a whole.
    pub problems: Vec<OperatorProblem>,
    /// How failures are confirmed, and from how many networks.
    pub confirming: ConfirmingNetworks,
}

/// An agent to invite, as sent.
#[derive(Debug, Clone, Default)]
pub struct AgentInvite {
    /// Its name.
    pub name: String,
    /// Name of its region.
    pub region: String,
    /// Label of its network.
    pub network: String,
}

/// An invitation with its token, which is returned only once.
#[derive(Clone)]
pub struct IssuedInvitation {
    /// The invitation.
    pub invitation: OpenInvitation,
    /// Its token.
    pub token: String,
    /// Address of the coordinator that the agent connects to, as `HOST:PORT`.
    pub coordinator: String,
}

impl fmt::Debug for IssuedInvitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedInvitation").field("invitation", &self.invitation).finish_non_exhaustive()
    }
}

/// Figures of the installation; what isn't known is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallationFigures {
    /// Version of the program.
    pub version: Option<String>,
    /// Time of the newest snapshot of the store, which was read back and verified.
    pub snapshot_at: Option<Timestamp>,
    /// Bytes of the store.
    pub store_bytes: Option<u64>,
    /// Bytes that are free on its disk, and those of the whole disk.
    pub disk: Option<(u64, u64)>,
    /// Rounds stored a minute, on average since the start.
    pub rounds_per_minute: Option<u64>,
    /// Average time of a commit, in microseconds.
    pub commit_micros: Option<u64>,
    /// End of the mesh's certificate authority.
    pub authority_until: Option<Timestamp>,
}

/// The mesh's records.
pub trait MeshAdministration: Send + Sync + fmt::Debug {
    /// Returns the present state.
    fn state(&self) -> BoxFuture<'_, ServiceResult<MeshState>>;

    /// Makes an invitation. `base_host` is the host of the base URL.
    fn invite<'a>(
        &'a self,
        invite: &'a AgentInvite,
        base_host: &'a str,
    ) -> BoxFuture<'a, ServiceResult<IssuedInvitation>>;

    /// Revokes an invitation.
    fn revoke_invitation(&self, id: InvitationId) -> BoxFuture<'_, ServiceResult<()>>;

    /// Revokes an agent: its connection is closed, and it can never connect again.
    fn revoke(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>>;

    /// Removes a revoked agent from the list.
    fn remove(&self, id: AgentId) -> BoxFuture<'_, ServiceResult<()>>;

    /// Returns figures of the installation.
    fn installation(&self) -> BoxFuture<'_, InstallationFigures> {
        std::future::ready(InstallationFigures::default()).boxed()
    }
}

/// A service without a mesh: there are no agents, and nobody can be invited.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMesh;

impl MeshAdministration for NoMesh {
    fn state(&self) -> BoxFuture<'_, ServiceResult<MeshState>> {
        std::future::ready(Ok(MeshState::default())).boxed()
    }

    fn invite<'a>(&'a self, _: &'a AgentInvite, _: &'a str) -> BoxFuture<'a, ServiceResult<IssuedInvitation>> {
        std::future::ready(Err(ServiceError::NotFound)).boxed()
    }

    fn revoke_invitation(&self, _: InvitationId) -> BoxFuture<'_, ServiceResult<()>> {
        std::future::ready(Err(ServiceError::NotFound)).boxed()
    }

    fn revoke(&self, _: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        std::future::ready(Err(ServiceError::NotFound)).boxed()
    }

    fn remove(&self, _: AgentId) -> BoxFuture<'_, ServiceResult<()>> {
        std::future::ready(Err(ServiceError::NotFound)).boxed()
    }
}

/// Administers the mesh for operators. For everyone else there is no mesh.
#[derive(Debug)]
pub struct MeshService {
    mesh: Arc<dyn MeshAdministration>,
}

impl MeshService {
    pub(crate) fn new(mesh: Arc<dyn MeshAdministration>) -> Self {
        Self { mesh }
    }

    /// Returns the present state.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a person who is no operator, and [`ServiceError::Internal`].
    pub async fn state(&self, current: &CurrentSession) -> ServiceResult<MeshState> {
        require_operator(current)?;
        self.mesh.state().await
    }

    /// Returns figures of the installation.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a person who is no operator.
    pub async fn installation(&self, current: &CurrentSession) -> ServiceResult<InstallationFigures> {
        require_operator(current)?;
        Ok(self.mesh.installation().await)
    }

    /// Makes an invitation, whose token is returned only here. `base_host` is the host of the base URL.
    ///
    /// # Errors
    /// As [`Self::state`]; [`ServiceError::Invalid`] for a field that breaks a rule, and a name in use.
    pub async fn invite(
        &self,
        current: &CurrentSession,
        invite: &AgentInvite,
        base_host: &str,
    ) -> ServiceResult<IssuedInvitation> {
        require_operator(current)?;
        self.mesh.invite(invite, base_host).await
    }

    /// Revokes an invitation.
    ///
    /// # Errors
    /// As [`Self::state`]; [`ServiceError::NotFound`] for an unknown invitation.
    pub async fn revoke_invitation(&self, current: &CurrentSession, id: InvitationId) -> ServiceResult<()> {
        require_operator(current)?;
        self.mesh.revoke_invitation(id).await
    }

    /// Revokes an agent for good.
    ///
    /// # Errors
    /// As [`Self::state`]; [`ServiceError::NotFound`] for an unknown agent.
    pub async fn revoke(&self, current: &CurrentSession, id: AgentId) -> ServiceResult<()> {
        require_operator(current)?;
        self.mesh.revoke(id).await
    }

    /// Removes a revoked agent from the list.
    ///
    /// # Errors
    /// As [`Self::revoke`].
    pub async fn remove(&self, current: &CurrentSession, id: AgentId) -> ServiceResult<()> {
        require_operator(current)?;
        self.mesh.remove(id).await
    }
}

/// Checks that a person operates the installation.
///
/// # Errors
/// [`ServiceError::NotFound`] if not: the operator's screens don't exist for others.
pub const fn require_operator(current: &CurrentSession) -> ServiceResult<()> {
    if current.is_operator() { Ok(()) } else { Err(ServiceError::NotFound) }
}
