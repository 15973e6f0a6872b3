//! Revocations in a file outside the store, so that restoring an older snapshot or backup reinstates no agent.
//!
//! The file has one line for each agent that was revoked or removed, written before the store's record. Each start
//! applies it to the store. Lines do not expire by the clock, which may be wrong; beyond the maximum the oldest are
//! dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parallax_certs::CertsError;
use parallax_certs::files;
use parallax_core::event::{Event, EventKind};
use parallax_core::id::AgentId;
use parallax_core::member::AgentRecord;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Op, Presence, StoreError};

use super::{MemberError, MemberStore};

/// File name in the data folder.
const FILE: &str = "revoked-agents";
/// Maximum number of lines; beyond that the oldest are dropped.
const MAX_LINES: usize = 10_000;
/// Maximum size of a file that is read, in bytes: room for that many lines.
const MAX_BYTES: u64 = 1 << 20;

/// The end of an agent's membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Revocation {
    at: Timestamp,
    is_removed: bool,
}

/// The revoked and removed agents, with their file.
#[derive(Debug)]
pub struct Revocations {
    path: PathBuf,
    entries: BTreeMap<AgentId, Revocation>,
}

impl Revocations {
    /// Reads the file of a data folder (mode 0700); a missing file counts as empty.
    ///
    /// # Errors
    /// [`CertsError`] if the file can't be read or is malformed.
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let path = folder.join(FILE);
        let text = files::read_secret_up_to(&path, MAX_BYTES)?.unwrap_or_default();
        let entries = text.lines().map(parse_line).collect::<Option<_>>();
        let rule = "is not a list of revoked agents; if you remove it, only the store's revocations apply";
        Ok(Self { entries: entries.ok_or(CertsError::InvalidFile { path: path.clone(), rule })?, path })
    }

    /// Records an agent. Durable on return.
    fn record(&mut self, agent: AgentId, revocation: Revocation) -> Result<(), CertsError> {
        self.record_all([(agent, revocation)])
    }

    fn record_all(&mut self, revocations: impl IntoIterator<Item = (AgentId, Revocation)>) -> Result<(), CertsError> {
        let mut entries = self.entries.clone();
        for (agent, revocation) in revocations {
            // A removed agent stays removed.
            let existing = entries.get(&agent).copied();
            let is_removed = revocation.is_removed || existing.is_some_and(|existing| existing.is_removed);
            let at = existing.map_or(revocation.at, |existing| existing.at);
            entries.insert(agent, Revocation { at, is_removed });
        }
        if entries == self.entries {
            return Ok(());
        }
        while entries.len() > MAX_LINES {
            let oldest = entries.iter().min_by_key(|(_, revocation)| revocation.at).map(|(agent, _)| *agent);
            oldest.and_then(|agent| entries.remove(&agent));
        }
        let text: String = entries.iter().map(|(agent, revocation)| format_line(*agent, *revocation)).collect();
        files::write_secret(&self.path, &text)?;
        self.entries = entries;
        Ok(())
    }
}

fn format_line(agent: AgentId, revocation: Revocation) -> String {
    let state = if revocation.is_removed { "forgotten" } else { "revoked" };
    format!("{agent} {state} {}\n", revocation.at.as_millis())
}

fn parse_line(line: &str) -> Option<(AgentId, Revocation)> {
    let mut fields = line.split(' ');
    let (agent, state, at) = (fields.next()?, fields.next()?, fields.next()?);
    let is_removed = match state {
        "forgotten" => true,
        "revoked" => false,
        _ => return None,
    };
    let at = Timestamp::from_millis(at.parse().ok()?);
    Some((agent.parse().ok()?, Revocation { at, is_removed }))
}

impl MemberStore {
    /// Records revocations in that file too.
    #[must_use]
    pub fn with_revocations(self, revocations: Revocations) -> Self {
        Self { revocations: Arc::new(tokio::sync::Mutex::new(Some(revocations))), ..self }
    }

    /// Records in the file that an agent is revoked or removed. Durable on return.
    pub(super) async fn record_revocation(
        &self,
        agent: AgentId,
        at: Timestamp,
        is_removed: bool,
    ) -> Result<(), MemberError> {
        let revocation = Revocation { at, is_removed };
        self.with_file(move |revocations| revocations.record(agent, revocation)).await
    }

    /// Returns true if the file lists the agent as revoked or removed.
    pub(super) async fn has_revocation(&self, agent: AgentId) -> bool {
        let guard = self.revocations.lock().await;
        guard.as_ref().is_some_and(|revocations| revocations.entries.contains_key(&agent))
    }

    /// Applies the revocation file to the store: agents that only a restore has brought back are revoked or removed
    /// again. Returns their names.
    ///
    /// # Errors
    /// Fails if the store or the file can't be read or written.
    pub async fn reapply_revocations(&self) -> Result<Vec<String>, MemberError> {
        let now = self.clock.now();
        let agents = self.agents().await?;
        // Agents that were revoked before the file existed.
        let earlier: Vec<_> = agents
            .iter()
            .filter_map(|agent| Some((agent.id, Revocation { at: agent.revoked_at?, is_removed: false })))
            .collect();
        let entries = {
            let (sender, entries) = tokio::sync::oneshot::channel();
            self.with_file(move |revocations| {
                // A full disk must not prevent the start: the store already has these.
                if let Err(error) = revocations.record_all(earlier) {
                    tracing::error!(%error, "the revocation file can't be written; a restore may reinstate agents");
                }
                // The receiver is awaited right below.
                let _ = sender.send(revocations.entries.clone());
                Ok(())
            })
            .await?;
            entries.await.unwrap_or_default()
        };
        let mut reapplied = Vec::new();
        for agent in agents {
            let Some(revocation) = entries.get(&agent.id) else { continue };
            if agent.revoked_at.is_some() && !revocation.is_removed {
                continue;
            }
            self.store.commit(reapply_batch(&agent, *revocation, now)).await?;
            reapplied.push(agent.name);
        }
        if !reapplied.is_empty() {
            self.changed.notify_one();
        }
        Ok(reapplied)
    }

    /// Expires all open invitations: after a restore it is unknown which were used since the snapshot.
    ///
    /// # Errors
    /// Fails if the store can't be read or written.
    pub async fn expire_invitations(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut open = self.invitations().await?;
        open.retain(|invitation| invitation.used_by.is_none() && invitation.expires_at > now);
        for invitation in &mut open {
            invitation.expires_at = now;
            let mut batch = Batch::new();
            batch.expect(Expect::Invitation(invitation.id, Presence::Present)).write(invitation.clone());
            self.store.commit(batch).await?;
        }
        Ok(open.len())
    }

    async fn with_file<F>(&self, update: F) -> Result<(), MemberError>
    where
        F: FnOnce(&mut Revocations) -> Result<(), CertsError> + Send + 'static,
    {
        let mut guard = Arc::clone(&self.revocations).lock_owned().await;
        let result = tokio::task::spawn_blocking(move || guard.as_mut().map_or(Ok(()), update)).await;
        // It fails only if the task panicked.
        Ok(result.map_err(|error| StoreError::Io(error.to_string()))??)
    }
}

fn reapply_batch(agent: &AgentRecord, revocation: Revocation, now: Timestamp) -> Batch {
    let mut batch = Batch::new();
    batch.expect(Expect::Agent(agent.id, Presence::Present));
    if agent.revoked_at.is_none() {
        batch.event(Event { at: now, page: None, monitor: None, kind: EventKind::AgentRevoked(agent.id) });
    }
    if revocation.is_removed {
        batch.write(Op::DeleteAgent(agent.id));
    } else {
        batch.write(AgentRecord { revoked_at: Some(revocation.at), ..agent.clone() });
    }
    batch
}

#[cfg(test)]
mod tests {
    use parallax_core::time::DAY;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn revoked(at: Timestamp) -> Revocation {
        Revocation { at, is_removed: false }
    }

    #[test]
    fn a_revocation_is_kept_regardless_of_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (AgentId::from_u128(1), AgentId::from_u128(2));
        let mut first = Revocations::open(folder.path()).unwrap();
        first.record(one, revoked(AT)).unwrap();
        first.record(one, Revocation { at: AT + DAY, is_removed: true }).unwrap();
        first.record(one, revoked(AT + 2 * DAY)).unwrap();
        let mut reopened = Revocations::open(folder.path()).unwrap();
        let forgotten = Revocation { at: AT, is_removed: true };
        assert_eq!(reopened.entries, BTreeMap::from([(one, forgotten)]));
        // A clock that is once years ahead.
        let later = AT + 3_650 * DAY;
        reopened.record(two, revoked(later)).unwrap();
        let entries = Revocations::open(folder.path()).unwrap().entries;
        assert_eq!(entries, BTreeMap::from([(one, forgotten), (two, revoked(later))]));
    }

    #[test]
    fn the_file_is_bounded_and_a_malformed_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut revocations = Revocations::open(folder.path()).unwrap();
        let many = (0..MAX_LINES as u128 + 5).map(|number| {
            let at = AT + i64::try_from(number).unwrap();
            (AgentId::from_u128(number), Revocation { at, is_removed: true })
        });
        revocations.record_all(many).unwrap();
        let read = Revocations::open(folder.path()).unwrap();
        assert_eq!(read.entries.len(), MAX_LINES);
        assert!(!read.entries.contains_key(&AgentId::from_u128(4)), "the oldest are dropped");
        files::write_secret(&folder.path().join(FILE), "somebody pardoned 1\n").unwrap();
        assert!(matches!(Revocations::open(folder.path()), Err(CertsError::InvalidFile { .. })));
    }
}
