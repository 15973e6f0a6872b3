//! The mesh's access to the members' records.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::event::{Event, What};
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{Agent, Invitation, Note, Noted};
use parallax_core::quarantine::Contradictions;

use super::{Roll, TRIES, fault};
use crate::mesh::{EnrolRefusal, Members, Newcomer, RecordsFault};
use crate::storage::{Batch, Expect, Is, StoreError};

impl Members for Roll {
    fn agents(&self) -> BoxFuture<'_, Result<Vec<Agent>, RecordsFault>> {
        async move { self.agents().await.map_err(fault) }.boxed()
    }

    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<Agent>, RecordsFault>> {
        async move { Ok(self.store.reader().agent(id).map_err(fault)?.map(|found| found.value)) }.boxed()
    }

    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool> {
        async move { self.has_revocation(id).await }.boxed()
    }

    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsFault>> {
        async move { Ok(self.store.reader().invitation(id).map_err(fault)?.map(|found| found.value)) }.boxed()
    }

    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsFault>> {
        self.change(move |store| {
            let Some(found) = store.reader().invitation(id)? else { return Ok(None) };
            let mut invitation = found.value;
            invitation.wrong_tries = invitation.wrong_tries.saturating_add(1);
            let mut batch = Batch::new();
            batch.expect(Expect::Invitation(id, Is::At(found.revision))).write(invitation);
            Ok(Some(batch))
        })
        .boxed()
    }

    fn enrol(
        &self,
        id: InvitationId,
        newcomer: Newcomer,
    ) -> BoxFuture<'_, Result<Result<Agent, EnrolRefusal>, RecordsFault>> {
        async move {
            for _ in 0..TRIES {
                match self.try_enrol(id, &newcomer).await {
                    Ok(agent) => return Ok(agent),
                    Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(fault(error)),
                }
            }
            Err(RecordsFault("too many agents joined at the same time".to_owned()))
        }
        .boxed()
    }

    fn note(&self, id: AgentId, note: Note) -> BoxFuture<'_, Result<Noted, RecordsFault>> {
        async move {
            let mut noted = Noted::Same;
            self.change(|store| {
                noted = Noted::Same;
                let Some(found) = store.reader().agent(id)? else { return Ok(None) };
                let mut agent = found.value;
                let was_shared = agent.standing.shared_until.is_some();
                noted = agent.take_in(&note);
                if noted != Noted::Changed {
                    return Ok(None);
                }
                let mut batch = Batch::new();
                let is_shared = agent.standing.shared_until.is_some();
                if is_shared != was_shared {
                    let what = What::Quarantine(agent.place, is_shared, Contradictions::default());
                    batch.event(Event { at: self.clock.now(), page: None, monitor: None, what });
                }
                batch.expect(Expect::Agent(id, Is::At(found.revision))).write(agent);
                Ok(Some(batch))
            })
            .await?;
            Ok(noted)
        }
        .boxed()
    }
}
