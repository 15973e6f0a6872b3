//! Undo of a change that a person made a moment ago.
//!
//! A change of the dashboard that can be undone stores its inverse in its own batch, so neither is in the store without
//! the other. The record's revision is then the one that the change gave to every record that it wrote: an undo
//! expects all of them at that revision, and is one batch too. A record has the name of a hash of the token and the
//! person, is kept for ten minutes, and is sealed like every stored answer, since it may hold secrets. The store bounds
//! the records of an account in number and bytes, and evicts the oldest.

mod expiry;
mod record;
mod restore;

use std::sync::Arc;

use parallax_core::time::Timestamp;
use parallax_core::undo::{InverseChange, UndoObstacle};
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse};

use self::record::{UndoRecord, is_token, record_name};
use crate::accounts::keys::KeyService;
use crate::context::ServiceContext;
use crate::destinations::DestinationService;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::monitors::MonitorService;
use crate::subscribers::SubscriberService;
use crate::{Actor, Caller, ServiceResult};

/// Owns the records by which changes are undone.
#[derive(Debug)]
pub struct UndoService {
    context: Arc<ServiceContext>,
    monitors: Arc<MonitorService>,
    subscribers: Arc<SubscriberService>,
    destinations: Arc<DestinationService>,
    keys: Arc<KeyService>,
}

/// Services whose changes are undone.
#[derive(Debug)]
pub(crate) struct UndoParts {
    pub(crate) monitors: Arc<MonitorService>,
    pub(crate) subscribers: Arc<SubscriberService>,
    pub(crate) destinations: Arc<DestinationService>,
    pub(crate) keys: Arc<KeyService>,
}

/// Result of an undo.
#[derive(Debug, Clone)]
pub enum UndoOutcome {
    /// Everything is as before the change.
    Undone(RequestOutcome<()>),
    /// Nothing was changed, because of what happened since.
    Refused(Vec<UndoObstacle>),
    /// It was undone before.
    UndoneBefore,
    /// The person has no such change that can be undone: the ten minutes are over, or it never was theirs.
    Expired,
}

/// A change that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoableChange {
    /// Name and last use of the key that it revoked, if it did.
    pub revoked_key: Option<(String, Option<Timestamp>)>,
}

/// State of a record by the token of a person.
enum RecordState {
    Pending(u64, Box<StoredResponse>, InverseChange),
    Used,
    Nothing,
}

impl UndoService {
    pub(crate) fn new(context: &Arc<ServiceContext>, parts: UndoParts) -> Self {
        let UndoParts { monitors, subscribers, destinations, keys } = parts;
        Self { context: Arc::clone(context), monitors, subscribers, destinations, keys }
    }

    /// Returns the change that the caller can undo with that token; `None` if there is none.
    ///
    /// # Errors
    /// `ServiceError::Internal` if the store can't be read.
    pub fn pending(&self, caller: &Caller, token: &str) -> ServiceResult<Option<UndoableChange>> {
        Ok(match self.find(caller, token)? {
            RecordState::Pending(_, _, inverse) if caller.allows(inverse.permission()) => Some(UndoableChange {
                revoked_key: match inverse {
                    InverseChange::Key(key) => Some((key.name, key.last_used_at)),
                    _ => None,
                },
            }),
            _ => None,
        })
    }

    /// Returns true if the caller undid the change with that token.
    ///
    /// # Errors
    /// `ServiceError::Internal` if the store can't be read.
    pub fn is_undone(&self, caller: &Caller, token: &str) -> ServiceResult<bool> {
        Ok(matches!(self.find(caller, token)?, RecordState::Used))
    }

    /// Undoes the change with that token, which the caller made: all of it, or nothing.
    ///
    /// # Errors
    /// `ServiceError::RoleForbids` if their role may not make such a change any more, `ServiceError::PlanLimit` and
    /// `ServiceError::Invalid` if what was deleted has no place any more.
    pub async fn undo(
        &self,
        caller: &Caller,
        token: &str,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<UndoOutcome> {
        let inverse = match self.find(caller, token)? {
            RecordState::Pending(_, _, inverse) => Some(inverse),
            RecordState::Used | RecordState::Nothing => None,
        };
        // The locks under which such records are created, so that the last place is taken once.
        let page = inverse.as_ref().and_then(InverseChange::page);
        let lock_id = page.map_or(caller.account.to_u128(), |page| page.to_u128());
        let creating = match inverse {
            Some(InverseChange::Key(_)) => Some(self.context.create_lock.lock().await),
            _ => None,
        };
        let outcome = self.context.commit_change(lock_id, || self.decide(caller, token, once)).await;
        drop(creating);
        match inverse {
            // Added before the commit.
            Some(InverseChange::Key(key)) => self.keys.evict(&key),
            Some(InverseChange::Subscriber(it)) => self.subscribers.forget_counts(it.page),
            _ => {}
        }
        outcome
    }

    async fn decide(
        &self,
        caller: &Caller,
        token: &str,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<(UndoOutcome, Option<Batch>)> {
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok((UndoOutcome::Undone(RequestOutcome::Replayed(answer)), None));
        }
        let (revision, stored, inverse) = match self.find(caller, token)? {
            RecordState::Pending(revision, stored, inverse) => (revision, stored, inverse),
            RecordState::Used => return Ok((UndoOutcome::UndoneBefore, None)),
            RecordState::Nothing => return Ok((UndoOutcome::Expired, None)),
        };
        caller.require(inverse.permission())?;
        let mut batch = Batch::new();
        let obstacles = self.restore(caller, &inverse, revision, &mut batch).await?;
        if !obstacles.is_empty() {
            return Ok((UndoOutcome::Refused(obstacles), None));
        }
        self.context.note_editor(caller, &mut batch);
        self.context.log_change(caller, &mut batch)?;
        let name = record_name(caller, token);
        let used = StoredResponse { response: UndoRecord::used(), ..*stored };
        batch.expect(Expect::StoredResponse(name.clone(), Presence::At(revision)));
        batch.write(Op::PutStoredResponse(name, used));
        self.context.store_answer(once, &(), &mut batch)?;
        Ok((UndoOutcome::Undone(RequestOutcome::Fresh(())), Some(batch)))
    }

    fn find(&self, caller: &Caller, token: &str) -> ServiceResult<RecordState> {
        if !matches!(caller.actor, Actor::Person { .. }) || !is_token(token) {
            return Ok(RecordState::Nothing);
        }
        let stored = self.context.store().reader().stored_response(&record_name(caller, token))?;
        let Some(stored) = stored.filter(|stored| stored.value.expires_at > self.context.now()) else {
            return Ok(RecordState::Nothing);
        };
        Ok(match UndoRecord::read(&stored.value.response) {
            Some(UndoRecord::Pending(inverse)) => {
                RecordState::Pending(stored.revision, Box::new(stored.value), inverse)
            }
            Some(UndoRecord::Used) => RecordState::Used,
            // Of a newer version of this program.
            None => RecordState::Nothing,
        })
    }
}
