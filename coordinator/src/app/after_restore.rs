//! Handling of a restored store: agents revoked since the snapshot are revoked again, and open invitations expire.

use parallax_certs::rotation::AuthorityStore;
use parallax_mesh::members::{MemberError, MemberStore, Revocations};
use parallax_runtime::clock::Clock;
use parallax_store::Store;

use super::{AppError, slot_epoch};
use crate::config::CoordinatorConfig;

/// Opens the members' records and applies the revocations that are stored outside the store. Must run before any
/// agent can connect.
pub(super) async fn open_members(
    config: &CoordinatorConfig,
    store: &Store,
    clock: &Clock,
    authorities: AuthorityStore,
) -> Result<MemberStore, AppError> {
    let revocations = Revocations::open(&config.data).map_err(|error| AppError::Data(error.to_string()))?;
    let members = MemberStore::new(store.clone(), clock.clone(), authorities).with_revocations(revocations);
    let fault = |error: MemberError| AppError::Data(error.to_string());
    let reapplied = members.reapply_revocations().await.map_err(fault)?;
    if !reapplied.is_empty() {
        tracing::warn!(
            agents = reapplied.join(", "),
            "the store was restored: agents revoked since then were revoked again"
        );
    }
    // A restore removes the slot epoch, and a new store has none yet.
    if store.reader().cursor(slot_epoch::CURSOR)? == 0 {
        let ended = members.expire_invitations().await?;
        if ended > 0 {
            tracing::warn!(ended, "the store was restored: open invitations have expired; create new ones");
        }
        slot_epoch::load_or_create(store).await?;
    }
    Ok(members)
}
