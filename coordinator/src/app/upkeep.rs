//! The history's upkeep: what is done in slices beside other work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::history::{self, History};
use crate::storage::Store;

/// Pause while nothing is due.
const UPKEEP: Duration = Duration::from_secs(1);
/// Pause between two looks for events that are no longer kept.
const TRIM: Duration = Duration::from_secs(60);

/// Seals, rolls up and trims, in slices beside other work.
pub(super) async fn keep_history(history: Arc<History>, store: Store, clock: Clock) {
    let windows = history::stored_windows();
    let mut trimmed: Option<Instant> = None;
    loop {
        if trimmed.is_none_or(|at| at.elapsed() >= TRIM) {
            match history::trim_events(&store, clock.now()).await {
                Ok(true) => {}
                Ok(false) => trimmed = Some(Instant::now()),
                Err(error) => {
                    tracing::error!(%error, "old events can't be dropped; trying again");
                    trimmed = Some(Instant::now());
                }
            }
        }
        match history.upkeep(&store, clock.now(), &windows).await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(UPKEEP).await,
            Err(error) => {
                tracing::error!(%error, "the history can't be kept up; trying again");
                tokio::time::sleep(UPKEEP).await;
            }
        }
    }
}
