//! Rotation of the mesh's authority, driven by the operator one step at a time; no step locks an agent out unless
//! forced.

use std::str::FromStr;
use std::sync::{Arc, MutexGuard, PoisonError};

use parallax_certs::rotation::{Authorities, Phase};
use parallax_core::time::SECOND;

use super::{MemberError, Roll};
use crate::mesh::{Held, Trust};

/// Maximum number of unready agents named.
const NAMED: usize = 10;

/// Command of an operator on a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Show the progress.
    Status,
    /// Create the next authority.
    Start,
    /// Let the next authority sign.
    Switch,
    /// Remove the old authority.
    Finish,
    /// Go one phase back.
    Abort,
}

impl FromStr for Step {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "status" => Ok(Self::Status),
            "start" => Ok(Self::Start),
            "switch" => Ok(Self::Switch),
            "finish" => Ok(Self::Finish),
            "abort" => Ok(Self::Abort),
            _ => Err("must be status, start, switch, finish or abort"),
        }
    }
}

/// Progress of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its phase.
    pub phase: Phase,
    /// SHA-256 of the public key of the authority that signs, in hexadecimal.
    pub signing: String,
    /// The same hash of the other trusted authority.
    pub other: Option<String>,
    /// Number of enrolled agents.
    pub agents: usize,
    /// Names of agents that the next phase would lock out.
    pub waiting: Vec<String>,
}

impl Roll {
    /// Performs a step of a rotation and returns the progress after it.
    ///
    /// # Errors
    /// [`MemberError::Waiting`] for a step that would lock agents out, unless forced; [`MemberError::Token`] for one
    /// that does not fit the phase or can't be saved.
    pub async fn rotate(&self, step: Step, force: bool) -> Result<Progress, MemberError> {
        let phase = self.authorities().phase();
        let is_ready: Option<fn(&Held, &Authorities) -> bool> = match (step, phase) {
            (Step::Switch, Phase::Spreading) => Some(trusts_both),
            (Step::Finish, Phase::Switched) | (Step::Abort, Phase::Spreading) => Some(is_of_signing),
            _ => None,
        };
        if let Some(is_ready) = is_ready.filter(|_| !force) {
            let (_, named) = self.not_ready(is_ready).await?;
            if !named.is_empty() {
                return Err(MemberError::Waiting { count: named.len(), named: some(named) });
            }
        }
        self.take(step, phase).await?;
        self.progress().await
    }

    async fn take(&self, step: Step, phase: Phase) -> Result<(), MemberError> {
        if step == Step::Status {
            return Ok(());
        }
        let (held, now) = (Arc::clone(&self.authorities), self.clock.now().as_millis().div_euclid(SECOND));
        let taken = tokio::task::spawn_blocking(move || -> Result<Trust, MemberError> {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            match (step, phase) {
                (Step::Start, _) => held.start(now)?,
                (Step::Switch, _) => held.switch()?,
                (Step::Finish, _) => held.finish()?,
                (Step::Abort, Phase::Switched) => held.switch_back()?,
                (Step::Abort, _) => held.abandon()?,
                (Step::Status, _) => {}
            }
            Ok(Trust::from(&*held))
        });
        // It fails only if the task panicked; the state of the files is unknown then.
        let trust = taken
            .await
            .map_err(|error| MemberError::Store(crate::storage::StoreError::Io(error.to_string())))??;
        tracing::warn!(phase = %self.authorities().phase(), "the rotation of the mesh's authority entered a new phase");
        if let Some(mesh) = self.mesh.get() {
            (mesh.set_trust)(trust)?;
        }
        Ok(())
    }

    async fn progress(&self) -> Result<Progress, MemberError> {
        let phase = self.authorities().phase();
        let is_ready = if phase == Phase::Spreading { trusts_both } else { is_of_signing };
        let (agents, waiting) = self.not_ready(is_ready).await?;
        let held = self.authorities();
        Ok(Progress {
            phase,
            signing: hex(held.signing().key_hash()),
            other: held.other().map(|other| hex(other.key_hash())),
            agents,
            waiting: if phase == Phase::Settled { Vec::new() } else { waiting },
        })
    }

    /// Returns the number of enrolled agents, and the names of those that are not known to be ready.
    async fn not_ready(
        &self,
        is_ready: impl Fn(&Held, &Authorities) -> bool,
    ) -> Result<(usize, Vec<String>), MemberError> {
        let mut agents = self.agents().await?;
        agents.retain(|agent| agent.revoked_at.is_none());
        let connected = self.connected();
        let authorities = self.authorities();
        let knows = |id| {
            let view = connected.iter().find(|view| view.agent.id == id);
            view.and_then(|view| view.held.as_ref()).is_some_and(|held| is_ready(held, &authorities))
        };
        let count = agents.len();
        Ok((count, agents.into_iter().filter(|agent| !knows(agent.id)).map(|agent| agent.name).collect()))
    }

    fn authorities(&self) -> MutexGuard<'_, Authorities> {
        self.authorities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trusts_both(held: &Held, authorities: &Authorities) -> bool {
    let trusts = |hash: [u8; 32]| held.trusts.contains(&hash);
    trusts(authorities.signing().key_hash())
        && authorities.other().is_none_or(|other| trusts(other.key_hash()))
}

/// Returns true if an agent keeps working when only the signing authority is trusted.
fn is_of_signing(held: &Held, authorities: &Authorities) -> bool {
    let signing = authorities.signing().key_hash();
    held.trusts.contains(&signing) && held.certified_by == Some(signing)
}

fn some(mut names: Vec<String>) -> Vec<String> {
    names.truncate(NAMED);
    names
}

fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
