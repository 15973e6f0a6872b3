//! Mesh membership in the store: the mesh's view of the records, and the operator's commands.

mod invitations;
mod records;
mod revocations;
mod rotation;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use parallax_certs::rotation::AuthorityStore;
use parallax_core::event::{Event, EventKind};
use parallax_core::id::InvitationId;
use parallax_core::member::{AgentRecord, IdentityState, InvitationState, name_key};
use parallax_core::vantage::{NetworkNo, VantageNo};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Expect, Op, Presence, Store, StoreError};

pub use self::invitations::{INVITATION_LIFE, InviteRequest};
pub use self::revocations::Revocations;
pub use self::rotation::{RotationCommand, RotationProgress};
pub use crate::AgentView;
use crate::{EnrolError, MeshError, NewAgent, RecordsError, Trust};

/// Attempts of a change that conflicts with other changes.
const MAX_ATTEMPTS: usize = 16;
/// Maximum characters of a name or a network's label.
const MAX_LABEL: usize = 60;

/// Reason why an operator's request fails.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// A field breaks a rule.
    #[error("{field} {rule}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// No agent has that name or id.
    #[error("no agent has the name or id {0:?}")]
    UnknownAgent(String),
    /// Several agents have that name.
    #[error("several agents have the name {0:?}: use the id")]
    Ambiguous(String),
    /// An agent or an open invitation has that name.
    #[error("name {name:?} is in use by {by}")]
    NameInUse {
        /// The name.
        name: String,
        /// The agent or invitation that has it, and the remedy.
        by: String,
    },
    /// No invitation has that name or id.
    #[error("no invitation has the name or id {0:?}; `parallax agent invitations` lists them")]
    UnknownInvitation(String),
    /// The invitation was used by the agent of that name.
    #[error("the invitation was used by the agent {0:?}: `parallax agent revoke` removes it")]
    InvitationUsed(String),
    /// The maximum number of invitations is open.
    #[error("1000 invitations are open, which is the maximum: `parallax agent revoke-invitation` revokes one")]
    TooManyInvitations,
    /// The system returned no random bytes for a secret.
    #[error(transparent)]
    Token(#[from] parallax_certs::CertsError),
    /// A step of a rotation would lock agents out.
    #[error(
        "{count} agents are not ready and would have to join again ({}): wait for them, revoke them, or use --force",
        named.join(", ")
    )]
    AgentsNotReady {
        /// Number of agents.
        count: usize,
        /// Names of some of them.
        named: Vec<String>,
    },
    /// The mesh could not apply the step; it is saved and takes effect at the next start.
    #[error("saved, but the running mesh can't apply it before the next start: {0}")]
    Mesh(#[from] MeshError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The members' records. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MemberStore {
    store: Store,
    clock: Clock,
    /// The authorities; each token carries the hash of the signing one's public key.
    authorities: Arc<Mutex<AuthorityStore>>,
    /// Notified when records change in a way that affects live connections.
    changed: Arc<tokio::sync::Notify>,
    /// The running mesh, in the copies that were connected to it.
    mesh: Option<Arc<MeshHooks>>,
    /// Serializes creating and revoking invitations.
    invite_lock: Arc<tokio::sync::Mutex<()>>,
    /// Stored outside the store; `None` in tests.
    revocations: Arc<tokio::sync::Mutex<Option<Revocations>>>,
}

/// Hooks of the running mesh.
struct MeshHooks {
    agents: Box<dyn Fn() -> Vec<AgentView> + Send + Sync>,
    set_trust: Box<dyn Fn(Trust) -> Result<(), MeshError> + Send + Sync>,
}

impl fmt::Debug for MeshHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeshHooks")
    }
}

impl MemberStore {
    /// Records in that store, with tokens for the signing authority.
    pub fn new(store: Store, clock: Clock, authorities: AuthorityStore) -> Self {
        let authorities = Arc::new(Mutex::new(authorities));
        Self {
            store,
            clock,
            authorities,
            changed: Arc::default(),
            mesh: None,
            invite_lock: Arc::default(),
            revocations: Arc::default(),
        }
    }

    /// Returns a function that reads the expiry of the signing authority's certificate, in seconds since the epoch.
    pub fn authority_expiry(&self) -> impl Fn() -> i64 + Send + Sync + use<> {
        let authorities = Arc::clone(&self.authorities);
        move || authorities.lock().unwrap_or_else(PoisonError::into_inner).signing().validity().not_after
    }

    /// Returns the same records connected to the running mesh, which was started with a copy that is not.
    #[must_use]
    pub fn connected_to_mesh(
        self,
        agents: impl Fn() -> Vec<AgentView> + Send + Sync + 'static,
        set_trust: impl Fn(Trust) -> Result<(), MeshError> + Send + Sync + 'static,
    ) -> Self {
        let hooks = MeshHooks { agents: Box::new(agents), set_trust: Box::new(set_trust) };
        Self { mesh: Some(Arc::new(hooks)), ..self }
    }

    /// Returns the agents as the mesh sees them now; empty without a mesh.
    pub fn connected_agents(&self) -> Vec<AgentView> {
        self.mesh.as_ref().map_or_else(Vec::new, |mesh| (mesh.agents)())
    }

    /// Resolves each time records change in a way that affects live connections.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Lists every agent in the order of their numbers.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        let agents = self.store.read(|read| read.agents()).await?;
        let mut agents: Vec<AgentRecord> = agents.into_iter().map(|agent| agent.value).collect();
        agents.sort_by_key(|agent| agent.vantage_no);
        Ok(agents)
    }

    /// Revokes an agent by name or id: its connection is closed, and it can never connect again.
    ///
    /// # Errors
    /// Fails if no agent or several have that name, or the store can't be written.
    pub async fn revoke(&self, name_or_id: &str) -> Result<AgentRecord, MemberError> {
        let mut agent = self.find_agent(name_or_id).await?;
        let now = self.clock.now();
        // The revocation file first: an acknowledged revocation must survive a restore.
        self.record_revocation(agent.id, agent.revoked_at.unwrap_or(now), false).await?;
        if agent.revoked_at.is_none() {
            agent.revoked_at = Some(now);
            let mut batch = Batch::new();
            let kind = EventKind::AgentRevoked(agent.id);
            batch.expect(Expect::Agent(agent.id, Presence::Present)).write(agent.clone());
            batch.event(Event { at: now, page: None, monitor: None, kind });
            self.store.commit(batch).await?;
        }
        self.changed.notify_one();
        Ok(agent)
    }

    /// Removes an agent by name or id: revoked, and no longer listed.
    ///
    /// # Errors
    /// As for [`MemberStore::revoke`].
    pub async fn remove(&self, name_or_id: &str) -> Result<AgentRecord, MemberError> {
        let agent = self.revoke(name_or_id).await?;
        self.record_revocation(agent.id, self.clock.now(), true).await?;
        let mut batch = Batch::new();
        batch.write(Op::DeleteAgent(agent.id));
        self.store.commit(batch).await?;
        self.changed.notify_one();
        Ok(agent)
    }

    async fn find_agent(&self, name_or_id: &str) -> Result<AgentRecord, MemberError> {
        let agents = self.agents().await?;
        if let Some(agent) = agents.iter().find(|agent| agent.id.to_string() == name_or_id) {
            return Ok(agent.clone());
        }
        let (exact, others): (Vec<AgentRecord>, Vec<AgentRecord>) =
            agents.into_iter().partition(|agent| agent.name == name_or_id);
        let key = name_key(name_or_id);
        let similar = others.into_iter().filter(|agent| name_key(&agent.name) == key);
        let mut matches = if exact.is_empty() { similar.collect() } else { exact }.into_iter();
        match (matches.next(), matches.next()) {
            (Some(agent), None) => Ok(agent),
            (Some(_), Some(_)) => Err(MemberError::Ambiguous(name_or_id.to_owned())),
            (None, _) => Err(MemberError::UnknownAgent(name_or_id.to_owned())),
        }
    }

    async fn try_enrol(
        &self,
        id: InvitationId,
        new_agent: &NewAgent,
    ) -> Result<Result<AgentRecord, EnrolError>, StoreError> {
        let read = self.store.reader();
        let Some(stored) = read.invitation(id)? else { return Ok(Err(EnrolError::Used)) };
        let (revision, mut invitation) = (stored.revision, stored.value);
        match invitation.state(new_agent.joined_at) {
            InvitationState::Used => return Ok(Err(EnrolError::Used)),
            InvitationState::Revoked => return Ok(Err(EnrolError::Revoked)),
            InvitationState::Open | InvitationState::Blocked | InvitationState::Expired => {}
        }
        let key = name_key(&invitation.name);
        if self.store.read(|read| read.agents()).await?.iter().any(|it| name_key(&it.value.name) == key) {
            return Ok(Err(EnrolError::NameTaken));
        }
        let vantage_no = read.next_vantage()?;
        let networks = read.networks()?;
        // A label typed in another case must not let a network confirm its own failures.
        let network_label = invitation.network.to_lowercase();
        let existing = networks.iter().find(|(label, _)| label.to_lowercase() == network_label);
        let mut batch = Batch::new();
        batch.expect(Expect::Invitation(id, Presence::At(revision))).expect(Expect::NextVantage(vantage_no));
        let (network, network_no) = if let Some((label, number)) = existing {
            (label.clone(), *number)
        } else {
            let number = u16::try_from(networks.len()).map_err(|_| StoreError::TooLarge("the list of networks"))?;
            batch.expect(Expect::Networks(networks.len()));
            batch.write(Op::PutNetwork(invitation.network.clone(), NetworkNo(number)));
            (invitation.network.clone(), NetworkNo(number))
        };
        let agent = AgentRecord {
            id: new_agent.id,
            vantage_no,
            name: invitation.name.clone(),
            region: invitation.region,
            network,
            network_no,
            joined_at: new_agent.joined_at,
            revoked_at: None,
            serial: new_agent.certificate.serial.clone(),
            identity: IdentityState { valid_from: new_agent.certificate.valid_from, ..IdentityState::default() },
        };
        invitation.used_by = Some(agent.id);
        let next = vantage_no.0.checked_add(1).ok_or(StoreError::TooLarge("the list of vantages"))?;
        batch.write(Op::SetNextVantage(VantageNo(next))).write(invitation).write(agent.clone());
        let kind = EventKind::AgentJoined(agent.id);
        batch.event(Event { at: new_agent.joined_at, page: None, monitor: None, kind });
        self.store.commit(batch).await?;
        Ok(Ok(agent))
    }

    /// Commits the batch that `change` makes of a record, and retries after a conflict.
    async fn commit_change<F>(&self, mut change: F) -> Result<(), RecordsError>
    where
        F: FnMut(&Store) -> Result<Option<Batch>, StoreError>,
    {
        for _ in 0..MAX_ATTEMPTS {
            let Some(batch) = change(&self.store).map_err(records_fault)? else { return Ok(()) };
            match self.store.commit(batch).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(records_fault(error)),
            }
        }
        Err(RecordsError("too many conflicting changes".to_owned()))
    }
}

fn validate_label(field: &'static str, text: &str) -> Result<String, MemberError> {
    let text = text.trim();
    let is_valid = (1..=MAX_LABEL).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if is_valid { Ok(text.to_owned()) } else { Err(MemberError::Invalid { field, rule: "must be 1 to 60 characters" }) }
}

/// Normalizes a network's label: an AS number as `AS64500`, however it was typed; others with single spaces.
fn normalize_network(label: &str) -> String {
    let lower = label.to_ascii_lowercase();
    let number = lower.strip_prefix("as").unwrap_or(&lower).trim_start();
    let is_plain = number.bytes().all(|digit| digit.is_ascii_digit());
    match number.parse::<u32>() {
        Ok(number) if is_plain => format!("AS{number}"),
        Ok(_) | Err(_) => label.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn records_fault(error: StoreError) -> RecordsError {
    RecordsError(error.to_string())
}

#[cfg(test)]
pub(crate) mod tests;
