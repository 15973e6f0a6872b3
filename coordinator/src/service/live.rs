//! The monitors' present state, asked of the driver.

use std::time::Duration;

use parallax_core::id::MonitorId;
use parallax_core::machine::View;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Service;
use crate::flow::Query;

/// How long the driver may take; later its monitors count as unknown.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// One view for each monitor, in the same order; unknown for those that the driver does not know (yet), and for
    /// all of them where it does not answer in time.
    pub(super) async fn views(&self, monitors: Vec<MonitorId>) -> Vec<View> {
        let wanted = monitors.len();
        if wanted == 0 {
            return Vec::new();
        }
        let mut views = self.ask(monitors, 0).await.unwrap_or_else(|| {
            tracing::warn!(wanted, "the driver does not say how monitors are: they are shown as unknown");
            Vec::new()
        });
        views.resize_with(wanted, || None);
        views.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Waits until the driver has read the edits up to that event, so that the next answer shows what they make of
    /// monitors. Where it does not answer in time the edit stands all the same.
    pub(super) async fn followed(&self, edit: u64) {
        if self.ask(Vec::new(), edit).await.is_none() {
            tracing::debug!(edit, "the driver did not say that it has read an edit");
        }
    }

    async fn ask(&self, monitors: Vec<MonitorId>, after: u64) -> Option<Vec<Option<View>>> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            self.0.queries.send(Query { monitors, after, answer }).await.ok()?;
            answered.await.ok()
        };
        timeout(PATIENCE, asking).await.ok().flatten()
    }
}
