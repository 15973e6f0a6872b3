//! The mesh's access to the members' records.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::event::{Event, EventKind};
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{AgentRecord, IdentityChange, IdentityUpdate, Invitation};
use parallax_core::quarantine::Contradictions;
use parallax_store::{Batch, Expect, Presence, StoreError};

use super::{MAX_ATTEMPTS, MemberStore, records_fault};
use crate::{EnrolError, MemberRecords, NewAgent, RecordsError};

impl MemberRecords for MemberStore {
    fn agents(&self) -> BoxFuture<'_, Result<Vec<AgentRecord>, RecordsError>> {
        async move { self.agents().await.map_err(records_fault) }.boxed()
    }

    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<AgentRecord>, RecordsError>> {
        async move { Ok(self.store.reader().agent(id).map_err(records_fault)?.map(|stored| stored.value)) }.boxed()
    }

    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool> {
        async move { self.has_revocation(id).await }.boxed()
    }

    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsError>> {
        async move { Ok(self.store.reader().invitation(id).map_err(records_fault)?.map(|stored| stored.value)) }.boxed()
    }

    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsError>> {
        self.commit_change(move |store| {
            let Some(stored) = store.reader().invitation(id)? else { return Ok(None) };
            let mut invitation = stored.value;
            invitation.wrong_secrets = invitation.wrong_secrets.saturating_add(1);
            let mut batch = Batch::new();
            batch.expect(Expect::Invitation(id, Presence::At(stored.revision))).write(invitation);
            Ok(Some(batch))
        })
        .boxed()
    }

    fn enrol(
        &self,
        id: InvitationId,
        new_agent: NewAgent,
    ) -> BoxFuture<'_, Result<Result<AgentRecord, EnrolError>, RecordsError>> {
        async move {
            for _ in 0..MAX_ATTEMPTS {
                match self.try_enrol(id, &new_agent).await {
                    Ok(agent) => return Ok(agent),
                    Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(records_fault(error)),
                }
            }
            Err(RecordsError("too many agents joined at the same time".to_owned()))
        }
        .boxed()
    }

    fn update(&self, id: AgentId, change: IdentityChange) -> BoxFuture<'_, Result<IdentityUpdate, RecordsError>> {
        async move {
            let mut update = IdentityUpdate::Unchanged;
            self.commit_change(|store| {
                update = IdentityUpdate::Unchanged;
                let Some(stored) = store.reader().agent(id)? else { return Ok(None) };
                let mut agent = stored.value;
                let was_shared = agent.identity.suspended_until.is_some();
                update = agent.apply(&change);
                if update != IdentityUpdate::Changed {
                    return Ok(None);
                }
                let mut batch = Batch::new();
                let is_shared = agent.identity.suspended_until.is_some();
                if is_shared != was_shared {
                    let kind = EventKind::QuarantineChanged(agent.vantage_no, is_shared, Contradictions::default());
                    batch.event(Event { at: self.clock.now(), page: None, monitor: None, kind });
                }
                batch.expect(Expect::Agent(id, Presence::At(stored.revision))).write(agent);
                Ok(Some(batch))
            })
            .await?;
            Ok(update)
        }
        .boxed()
    }
}
