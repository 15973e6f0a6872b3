//! Sessions: found by the browser's cookie, listed, and ended.

use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_session::{LoginSession, LoginSessionId, MAX_SESSIONS};
use parallax_core::person::Person;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::second_factor::CompleteProof;
use super::{BrowserInfo, CurrentSession, NewSession, PeopleService, SessionToken};
use crate::{ServiceError, ServiceResult};

impl PeopleService {
    /// Returns the session of a cookie; none if there is no valid one, the person left its account, or the account needs
    /// company sign-in.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn authenticate(&self, token: &SessionToken) -> ServiceResult<Option<CurrentSession>> {
        let reader = self.context.store().reader();
        let Some(stored) = reader.login_session(token.id())? else { return Ok(None) };
        if !stored.value.is_valid(self.context.now()) {
            return Ok(None);
        }
        let (account, person) = (stored.value.account, stored.value.person);
        let (Some(member), Some(person)) = (reader.account_member(account, person)?, reader.person(person)?) else {
            return Ok(None);
        };
        if !self.accepts_session(&stored.value, &member.value)? {
            return Ok(None);
        }
        self.record_use(&stored);
        let (person, role) = (person.value, member.value.role);
        let factor_due = self.factor_due(&stored.value, &member.value, &person)?;
        Ok(Some(CurrentSession { session: stored.value, person, role, factor_due, address: None }))
    }

    /// Returns true while the session is valid and its person is in its account. It records no use.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn is_signed_in(&self, id: LoginSessionId) -> ServiceResult<bool> {
        let Some(session) = self.context.store().reader().login_session(id)?.map(|it| it.value) else {
            return Ok(false);
        };
        let member = self.context.store().reader().account_member(session.account, session.person)?;
        let Some(member) = member.map(|it| it.value) else { return Ok(false) };
        Ok(session.is_valid(self.context.now()) && self.accepts_session(&session, &member)?)
    }

    /// Lists the valid sessions of a person, the last used first. One by company sign-in sees those of its account.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn sessions(&self, current: &CurrentSession) -> ServiceResult<Vec<LoginSession>> {
        let mut sessions = self.valid_sessions(current.person.id).await?;
        sessions.retain(|session| is_reached(current, session));
        sessions.sort_by_key(|session| std::cmp::Reverse((session.last_used_at, session.created_at)));
        Ok(sessions)
    }

    /// Ends a session of a person, named by its [short id](LoginSessionId::short).
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if they have no such session.
    pub async fn end_session(&self, current: &CurrentSession, short_id: &str) -> ServiceResult<()> {
        let sessions = self.sessions(current).await?;
        let session = sessions.into_iter().find(|session| session.id.short() == short_id);
        let id = session.ok_or(ServiceError::NotFound)?.id;
        let mut batch = Batch::new();
        batch.write(Op::DeleteLoginSession(id));
        if id != current.session.id {
            self.context.log_ended_sessions(&current.caller(), (&current.person, 1), &mut batch);
        }
        self.uses.remove(&id);
        Ok(self.context.commit(Some(batch)).await?)
    }

    /// Ends all sessions of a person but this one, and returns their number.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be written.
    pub async fn end_other_sessions(&self, current: &CurrentSession) -> ServiceResult<usize> {
        let person = current.person.id;
        let others = self
            .context
            .commit_change(person.to_u128(), || async move {
                let mut batch = Batch::new();
                let is_other = |it: &LoginSession| it.id != current.session.id && is_reached(current, it);
                let others = self.end_sessions_of(person, is_other, &mut batch).await?;
                self.context.log_ended_sessions(&current.caller(), (&current.person, others.len()), &mut batch);
                Ok((others, Some(batch)))
            })
            .await?;
        others.iter().for_each(|id| self.uses.remove(id));
        Ok(others.len())
    }

    /// Ends the session of a cookie, if there is one.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be written.
    pub async fn sign_out(&self, token: &SessionToken) -> ServiceResult<()> {
        let id = token.id();
        self.uses.remove(&id);
        let mut batch = Batch::new();
        batch.write(Op::DeleteLoginSession(id));
        Ok(self.context.commit(Some(batch)).await?)
    }

    /// Writes a person unchanged in a batch that adds to their sessions or links. Whatever ends all of those at the same
    /// time expects the person as it was: it conflicts, is decided again, and ends the new ones, too. A batch that changes
    /// the person needs no call.
    pub(super) fn touch_person(person: VersionedValue<Person>, batch: &mut Batch) {
        batch.expect(Expect::Person(person.value.id, Presence::At(person.revision))).write(person.value);
    }

    /// Adds a new session to a batch, which [writes its person](Self::touch_person). It replaces the browser's old one,
    /// expired ones, and the oldest of too many.
    pub(super) async fn add_session(
        &self,
        proof: &CompleteProof,
        is_kept: bool,
        browser: &BrowserInfo,
        batch: &mut Batch,
    ) -> ServiceResult<NewSession> {
        let (now, token, person) = (self.context.now(), SessionToken::random(), proof.person());
        let session = LoginSession {
            id: token.id(),
            person,
            account: proof.account(),
            created_at: now,
            last_used_at: now,
            is_kept,
            network: browser.network.clone(),
            user_agent: browser.user_agent.clone(),
            confirmed_at: proof.confirmed_at().unwrap_or(now),
            is_company: proof.company_subject().is_some(),
            company_subject: proof.company_subject(),
        };
        let stored = self.context.store().read(move |store| store.login_sessions_of(person)).await?;
        let mut stored: Vec<LoginSession> = stored.into_iter().map(|it| it.value).collect();
        stored.sort_by_key(|session| (session.is_valid(now), session.created_at));
        let valid = stored.iter().filter(|session| session.is_valid(now)).count();
        let ended = stored.len() - valid.min(MAX_SESSIONS - 1);
        for old in stored.iter().take(ended) {
            batch.write(Op::DeleteLoginSession(old.id));
        }
        if let Some(old) = &browser.old_session {
            batch.write(Op::DeleteLoginSession(old.id()));
        }
        batch.expect(Expect::LoginSession(session.id, Presence::Absent)).write(session.clone());
        Ok(NewSession { token, session })
    }

    /// Moves a session to another account of its person, in a batch, which [writes the person](Self::touch_person):
    /// under a new id, and no younger than it is.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the session has ended.
    pub(super) fn move_session(
        &self,
        current: &CurrentSession,
        account: AccountId,
        batch: &mut Batch,
    ) -> ServiceResult<NewSession> {
        let (token, old) = (SessionToken::random(), current.session.id);
        let stored = self.context.store().reader().login_session(old)?.ok_or(ServiceError::NotFound)?;
        let session = LoginSession { id: token.id(), account, ..stored.value };
        batch.expect(Expect::LoginSession(old, Presence::At(stored.revision))).write(Op::DeleteLoginSession(old));
        batch.expect(Expect::LoginSession(session.id, Presence::Absent)).write(session.clone());
        Ok(NewSession { token, session })
    }

    /// Ends the sessions of a person that match, in a batch, and returns their ids. One that begins or moves at the same
    /// time is not missed: it [writes the person](Self::touch_person).
    pub(super) async fn end_sessions_of(
        &self,
        person: PersonId,
        is_match: impl Fn(&LoginSession) -> bool,
        batch: &mut Batch,
    ) -> ServiceResult<Vec<LoginSessionId>> {
        batch.expect(Expect::Person(person, Presence::At(self.person(person)?.revision)));
        let stored = self.context.store().read(move |store| store.login_sessions_of(person)).await?;
        let ended: Vec<LoginSessionId> =
            stored.into_iter().map(|it| it.value).filter(is_match).map(|session| session.id).collect();
        for id in &ended {
            batch.write(Op::DeleteLoginSession(*id));
        }
        Ok(ended)
    }

    /// Expects that a session is valid still, in a batch: a request from before its end changes nothing.
    ///
    /// # Errors
    /// [`ServiceError::ConfirmationRequired`] if it has ended.
    pub(super) fn expect_session(&self, current: &CurrentSession, batch: &mut Batch) -> ServiceResult<()> {
        let id = current.session.id;
        self.context.store().reader().login_session(id)?.ok_or(ServiceError::ConfirmationRequired)?;
        batch.expect(Expect::LoginSession(id, Presence::Present));
        Ok(())
    }

    /// Signs a person in without a password, for tests.
    #[cfg(any(test, feature = "test-world"))]
    #[allow(clippy::unwrap_used, reason = "for tests only")]
    pub async fn test_session(&self, account: AccountId, person: PersonId) -> NewSession {
        let (browser, mut batch) = (BrowserInfo::default(), Batch::new());
        let proof = CompleteProof::for_tests((account, person));
        let session = self.add_session(&proof, true, &browser, &mut batch).await.unwrap();
        self.context.store().commit(batch).await.unwrap();
        session
    }

    pub(super) async fn valid_sessions(&self, person: PersonId) -> ServiceResult<Vec<LoginSession>> {
        let (now, stored) =
            (self.context.now(), self.context.store().read(move |store| store.login_sessions_of(person)).await?);
        Ok(stored.into_iter().map(|it| it.value).filter(|session| session.is_valid(now)).collect())
    }

    /// Records the session's use in the background.
    fn record_use(&self, stored: &VersionedValue<LoginSession>) {
        let (id, now) = (stored.value.id, self.context.now());
        if !stored.value.is_use_recorded(now) || !self.uses.begin(id, now) {
            return;
        }
        let mut batch = Batch::new();
        batch.expect(Expect::LoginSession(id, Presence::At(stored.revision)));
        batch.write(LoginSession { last_used_at: now, ..stored.value.clone() });
        let store = self.context.store().clone();
        tokio::spawn(async move {
            // Ended in the meantime, or recorded by another request: nothing to do.
            if let Err(error) = store.commit(batch).await {
                tracing::debug!(%error, "the last use of a session was not recorded");
            }
        });
    }
}

/// Returns true if a session may list and end another one of its person: a company's provider has no say elsewhere.
fn is_reached(current: &CurrentSession, other: &LoginSession) -> bool {
    !current.session.is_company || other.account == current.session.account
}
