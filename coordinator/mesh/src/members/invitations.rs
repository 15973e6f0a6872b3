//! Invitations: creating, listing, revoking, and removing old ones.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use parallax_certs::token::{JoinToken, JoinTokenId};
use parallax_core::id::InvitationId;
use parallax_core::member::{Invitation, InvitationState, name_key};
use parallax_core::time::{DAY, HOUR, Timestamp};
use parallax_core::vantage::Region;
use parallax_store::{Batch, Expect, Op, Presence, StoreError, VersionedValue};

use super::{MAX_ATTEMPTS, MemberError, MemberStore, normalize_network, validate_label};

/// Default lifetime of an invitation, in milliseconds.
pub const INVITATION_LIFE: i64 = HOUR;
/// Maximum lifetime of an invitation, in milliseconds.
const MAX_INVITATION_LIFE: i64 = 30 * DAY;
/// Milliseconds after expiry during which an invitation is kept, so that a host with its token still gets a specific
/// error.
const RETENTION: i64 = DAY;
/// Maximum number of open invitations, and of closed ones.
const MAX_INVITATIONS: usize = 1_000;
/// Interval at which old invitations are removed.
const SWEEP: Duration = Duration::from_secs(3_600);

/// An operator's request for an invitation.
#[derive(Debug, Clone)]
pub struct InviteRequest {
    /// Name for the agent: 1 to 60 characters, unlike every other agent's.
    pub name: String,
    /// Region of the agent.
    pub region: Region,
    /// Label of its network (AS number or provider): 1 to 60 characters.
    pub network: String,
    /// Lifetime of the invitation, in milliseconds: a minute to 30 days.
    pub lifetime: i64,
}

impl MemberStore {
    /// Lists all stored invitations, oldest first, including used, revoked and expired ones.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn invitations(&self) -> Result<Vec<Invitation>, StoreError> {
        let stored = self.store.read(|read| read.invitations()).await?;
        let mut invitations: Vec<Invitation> = stored.into_iter().map(|invitation| invitation.value).collect();
        invitations.sort_by_key(|invitation| (invitation.created_at, invitation.id));
        Ok(invitations)
    }

    /// Creates an invitation. The token is returned only here and stored nowhere.
    ///
    /// # Errors
    /// Fails if a field breaks its rule, the name is in use, too many invitations are open, or the store can't be
    /// written.
    pub async fn invite(&self, request: InviteRequest) -> Result<(Invitation, JoinToken), MemberError> {
        let name = validate_label("name", &request.name)?;
        let network = normalize_network(&validate_label("network", &request.network)?);
        if !(60_000..=MAX_INVITATION_LIFE).contains(&request.lifetime) {
            return Err(MemberError::Invalid { field: "valid seconds", rule: "must be 60 to 2592000" });
        }
        // One at a time, so that a name is used once.
        let _guard = self.invite_lock.lock().await;
        let now = self.clock.now();
        let stored = self.store.read(|read| read.invitations()).await?;
        self.check_available(&name, &stored, now).await?;
        let id = InvitationId::new(now, rand::random());
        let authority = self.authorities.lock().unwrap_or_else(PoisonError::into_inner).signing().key_hash();
        let token = JoinToken::generate(JoinTokenId(id.to_u128()), authority)?;
        let invitation = Invitation {
            id,
            secret_hash: token.secret.hash().0,
            name,
            region: request.region,
            network,
            created_at: now,
            expires_at: now + request.lifetime,
            wrong_secrets: 0,
            used_by: None,
            revoked_at: None,
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Invitation(id, Presence::Absent)).write(invitation.clone());
        removable(&stored, now).into_iter().for_each(|id| {
            batch.write(Op::DeleteInvitation(id));
        });
        self.store.commit(batch).await?;
        Ok((invitation, token))
    }

    /// Revokes an invitation by its id or by the name that it is for: its token becomes invalid, and the name is free
    /// again. Idempotent.
    ///
    /// # Errors
    /// Fails if there is no such invitation, it was already used, or the store can't be written.
    pub async fn revoke_invitation(&self, name_or_id: &str) -> Result<Invitation, MemberError> {
        let _guard = self.invite_lock.lock().await;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let now = self.clock.now();
            let VersionedValue { revision, value: mut invitation } = self.find_invitation(name_or_id, now).await?;
            match invitation.state(now) {
                InvitationState::Used => return Err(MemberError::InvitationUsed(invitation.name)),
                InvitationState::Revoked => return Ok(invitation),
                InvitationState::Open | InvitationState::Blocked | InvitationState::Expired => {}
            }
            invitation.revoked_at = Some(now);
            let mut batch = Batch::new();
            batch.expect(Expect::Invitation(invitation.id, Presence::At(revision))).write(invitation.clone());
            match self.store.commit(batch).await {
                Ok(_) => {
                    tracing::info!(invitation = %invitation.id, name = invitation.name, "invitation revoked");
                    return Ok(invitation);
                }
                // A host is joining with it or has sent a wrong secret.
                Err(StoreError::Conflict(_)) if attempts < MAX_ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes old invitations hourly, as long as the coordinator runs.
    pub async fn run_invitation_cleanup(self) {
        loop {
            match self.remove_old_invitations().await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::error!(%error, "old invitations can't be removed; trying again"),
            }
            tokio::time::sleep(SWEEP).await;
        }
    }

    pub(super) async fn remove_old_invitations(&self) -> Result<(), StoreError> {
        let stored = self.store.read(|read| read.invitations()).await?;
        let mut batch = Batch::new();
        for id in removable(&stored, self.clock.now()) {
            batch.write(Op::DeleteInvitation(id));
        }
        if batch.is_empty() { Ok(()) } else { self.store.commit(batch).await.map(drop) }
    }

    /// Refuses a name that an agent or an open invitation has, and an invitation beyond the maximum.
    async fn check_available(
        &self,
        name: &str,
        stored: &[VersionedValue<Invitation>],
        now: Timestamp,
    ) -> Result<(), MemberError> {
        let key = name_key(name);
        let in_use = |by| MemberError::NameInUse { name: name.to_owned(), by };
        if let Some(agent) = self.agents().await?.into_iter().find(|agent| name_key(&agent.name) == key) {
            return Err(in_use(format!(
                "the agent {id}: choose another, or `parallax agent forget {id}` first",
                id = agent.id
            )));
        }
        let open = || stored.iter().map(|it| &it.value).filter(|it| it.is_open(now));
        if let Some(other) = open().find(|other| name_key(&other.name) == key) {
            return Err(in_use(format!(
                "the open invitation {id}: choose another, or `parallax agent revoke-invitation {id}` first",
                id = other.id
            )));
        }
        if open().count() >= MAX_INVITATIONS { Err(MemberError::TooManyInvitations) } else { Ok(()) }
    }

    async fn find_invitation(
        &self,
        name_or_id: &str,
        now: Timestamp,
    ) -> Result<VersionedValue<Invitation>, MemberError> {
        let stored = self.store.read(|read| read.invitations()).await?;
        let key = name_key(name_or_id);
        let by_id = stored.iter().find(|it| it.value.id.to_string() == name_or_id);
        let by_name = || stored.iter().find(|it| it.value.is_open(now) && name_key(&it.value.name) == key);
        let invitation = by_id.or_else(by_name).cloned();
        invitation.ok_or_else(|| MemberError::UnknownInvitation(name_or_id.to_owned()))
    }
}

/// Invitations to remove: those that expired more than a day ago, and the oldest closed ones beyond the maximum.
fn removable(stored: &[VersionedValue<Invitation>], now: Timestamp) -> BTreeSet<InvitationId> {
    let mut closed: Vec<&Invitation> = stored.iter().map(|it| &it.value).filter(|it| !it.is_open(now)).collect();
    closed.sort_by_key(|it| (it.created_at, it.id));
    let excess = closed.len().saturating_sub(MAX_INVITATIONS);
    let is_old = |it: &Invitation| now.since(it.expires_at) >= RETENTION;
    closed.iter().enumerate().filter(|(n, it)| *n < excess || is_old(it)).map(|(_, it)| it.id).collect()
}
