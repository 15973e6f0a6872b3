//! Rotation of the mesh's authority, driven by the operator one step at a time; no step locks an agent out unless
//! forced.

use std::str::FromStr;
use std::sync::{Arc, MutexGuard, PoisonError};

use parallax_certs::rotation::{AuthorityStore, RotationPhase};
use parallax_core::time::SECOND;

use super::{MemberError, MemberStore};
use crate::{HeldCredentials, Trust};

/// Maximum number of unready agents named.
const MAX_NAMED: usize = 10;

/// Command of an operator on a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationCommand {
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

impl FromStr for RotationCommand {
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
pub struct RotationProgress {
    /// Its phase.
    pub phase: RotationPhase,
    /// SHA-256 of the public key of the authority that signs, in hexadecimal.
    pub signing: String,
    /// The same hash of the other trusted authority.
    pub other: Option<String>,
    /// Number of enrolled agents.
    pub agents: usize,
    /// Names of agents that the next phase would lock out.
    pub not_ready: Vec<String>,
}

impl MemberStore {
    /// Performs a step of a rotation and returns the progress after it.
    ///
    /// # Errors
    /// [`MemberError::AgentsNotReady`] for a step that would lock agents out, unless forced; [`MemberError::Token`] for one
    /// that does not fit the phase or can't be saved.
    pub async fn rotate(&self, step: RotationCommand, force: bool) -> Result<RotationProgress, MemberError> {
        let phase = self.authorities().phase();
        let is_ready: Option<fn(&HeldCredentials, &AuthorityStore) -> bool> = match (step, phase) {
            (RotationCommand::Switch, RotationPhase::Spreading) => Some(trusts_both),
            (RotationCommand::Finish, RotationPhase::Switched) | (RotationCommand::Abort, RotationPhase::Spreading) => {
                Some(uses_signing)
            }
            _ => None,
        };
        if let Some(is_ready) = is_ready.filter(|_| !force) {
            let (_, names) = self.not_ready(is_ready).await?;
            if !names.is_empty() {
                return Err(MemberError::AgentsNotReady { count: names.len(), named: truncate_names(names) });
            }
        }
        self.perform_step(step, phase).await?;
        self.progress().await
    }

    async fn perform_step(&self, step: RotationCommand, phase: RotationPhase) -> Result<(), MemberError> {
        if step == RotationCommand::Status {
            return Ok(());
        }
        let (authorities, now) = (Arc::clone(&self.authorities), self.clock.now().as_millis().div_euclid(SECOND));
        let task = tokio::task::spawn_blocking(move || -> Result<Trust, MemberError> {
            let mut authorities = authorities.lock().unwrap_or_else(PoisonError::into_inner);
            match (step, phase) {
                (RotationCommand::Start, _) => authorities.start(now)?,
                (RotationCommand::Switch, _) => authorities.switch()?,
                (RotationCommand::Finish, _) => authorities.finish()?,
                (RotationCommand::Abort, RotationPhase::Switched) => authorities.switch_back()?,
                (RotationCommand::Abort, _) => authorities.abandon()?,
                (RotationCommand::Status, _) => {}
            }
            Ok(Trust::from(&*authorities))
        });
        // It fails only if the task panicked; the state of the files is unknown then.
        let trust =
            task.await.map_err(|error| MemberError::Store(parallax_store::StoreError::Io(error.to_string())))??;
        tracing::warn!(phase = %self.authorities().phase(), "the rotation of the mesh's authority entered a new phase");
        if let Some(mesh) = &self.mesh {
            (mesh.set_trust)(trust)?;
        }
        Ok(())
    }

    async fn progress(&self) -> Result<RotationProgress, MemberError> {
        let phase = self.authorities().phase();
        let is_ready = if phase == RotationPhase::Spreading { trusts_both } else { uses_signing };
        let (agents, waiting) = self.not_ready(is_ready).await?;
        let authorities = self.authorities();
        Ok(RotationProgress {
            phase,
            signing: hex::encode(authorities.signing().key_hash()),
            other: authorities.other_trusted().map(|other| hex::encode(other.key_hash())),
            agents,
            not_ready: if phase == RotationPhase::Stable { Vec::new() } else { waiting },
        })
    }

    /// Returns the number of enrolled agents, and the names of those that are not known to be ready.
    async fn not_ready(
        &self,
        is_ready: impl Fn(&HeldCredentials, &AuthorityStore) -> bool,
    ) -> Result<(usize, Vec<String>), MemberError> {
        let mut agents = self.agents().await?;
        agents.retain(|agent| agent.revoked_at.is_none());
        let connected = self.connected_agents();
        let authorities = self.authorities();
        let is_known_ready = |id| {
            let view = connected.iter().find(|view| view.agent.id == id);
            view.and_then(|view| view.credentials.as_ref())
                .is_some_and(|credentials| is_ready(credentials, &authorities))
        };
        let count = agents.len();
        Ok((count, agents.into_iter().filter(|agent| !is_known_ready(agent.id)).map(|agent| agent.name).collect()))
    }

    fn authorities(&self) -> MutexGuard<'_, AuthorityStore> {
        self.authorities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trusts_both(credentials: &HeldCredentials, authorities: &AuthorityStore) -> bool {
    let trusts = |hash: [u8; 32]| credentials.trusts.contains(&hash);
    trusts(authorities.signing().key_hash()) && authorities.other_trusted().is_none_or(|other| trusts(other.key_hash()))
}

/// Returns true if an agent keeps working when only the signing authority is trusted.
fn uses_signing(credentials: &HeldCredentials, authorities: &AuthorityStore) -> bool {
    let signing = authorities.signing().key_hash();
    credentials.trusts.contains(&signing) && credentials.certified_by == Some(signing)
}

fn truncate_names(mut names: Vec<String>) -> Vec<String> {
    names.truncate(MAX_NAMED);
    names
}
