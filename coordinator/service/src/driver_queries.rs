//! Current monitor states, queried from the driver.

use std::time::Duration;

use parallax_core::id::MonitorId;
use parallax_core::machine::MachineView;
use parallax_engine::MachineQuery;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::context::ServiceContext;
use super::{ServiceError, ServiceResult};

/// Time that the driver gets to answer; after that its monitors count as unknown.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Seconds until a retry of a change that needs the driver's answer.
const RETRY_SECONDS: u32 = 5;

impl ServiceContext {
    /// Returns one view for each monitor, in the same order; unknown for monitors that the driver does not know
    /// (yet), and for all of them if it does not answer in time.
    pub(super) async fn monitor_views(&self, monitors: Vec<MonitorId>) -> Vec<MachineView> {
        let count = monitors.len();
        if count == 0 {
            return Vec::new();
        }
        let mut views = self.query_driver(monitors, 0).await.unwrap_or_else(|| {
            // Without a driver (commands on a stopped store, the first start) no state is known, which is no fault.
            if !self.queries.is_closed() {
                tracing::warn!(
                    wanted = count,
                    "the driver did not report monitor states in time: they are shown as unknown"
                );
            }
            Vec::new()
        });
        views.resize_with(count, || None);
        views.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Returns the view of a monitor for a change that depends on its state.
    ///
    /// # Errors
    /// [`ServiceError::Busy`] if the driver does not answer in time: then the state is not known.
    pub(super) async fn reported_view(&self, monitor: MonitorId) -> ServiceResult<MachineView> {
        let views = self.query_driver(vec![monitor], 0).await;
        let mut views = views.ok_or(ServiceError::Busy { seconds: RETRY_SECONDS })?;
        Ok(views.pop().flatten().unwrap_or_default())
    }

    /// Waits until the driver has processed the edits up to that event, so that the next answer shows their effect on
    /// monitors. If it does not answer in time, the edit is still valid.
    pub(super) async fn await_edit(&self, edit: u64) {
        if self.query_driver(Vec::new(), edit).await.is_none() {
            tracing::debug!(edit, "the driver did not confirm an edit in time");
        }
    }

    async fn query_driver(&self, monitors: Vec<MonitorId>, after: u64) -> Option<Vec<Option<MachineView>>> {
        let (answer, reply) = oneshot::channel();
        let exchange = async {
            let query = MachineQuery { monitors, after_event: after, reply: answer };
            self.queries.send(query.into()).await.ok()?;
            reply.await.ok()
        };
        timeout(TIMEOUT, exchange).await.ok().flatten()
    }
}
