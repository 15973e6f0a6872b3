//! The service's figures out of the history: a page's monitors in one look, off the runtime.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::confirm;
use parallax_core::incident::MAX_WINDOW;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::place::{Mesh, RegionSet};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::watch::{Confirmation, Watch};
use tokio::sync::watch;

use crate::flow::warmup::Judging;
use crate::history::{self, History, Question};
use crate::service::figures::{Figure, Figures};
use crate::storage::Store;

/// Figures out of the history.
#[derive(Debug)]
pub(super) struct FromHistory {
    store: Store,
    history: Arc<History>,
    mesh: watch::Receiver<Arc<Mesh>>,
    judging: Judging,
}

impl FromHistory {
    /// Figures out of that history, for the mesh as it is at each look.
    pub(super) fn new(
        store: Store,
        history: Arc<History>,
        mesh: watch::Receiver<Arc<Mesh>>,
        judging: Judging,
    ) -> Self {
        Self { store, history, mesh, judging }
    }
}

impl Figures for FromHistory {
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>> {
        let mesh = Arc::clone(&self.mesh.borrow());
        let (history, page, monitors) = (Arc::clone(&self.history), page.clone(), monitors.to_vec());
        let count = monitors.len();
        let looked = self.store.read(move |read| {
            let plan = read.account(page.account)?.map_or(Plan::Free, |account| account.value.plan);
            let figure = |monitor: &Monitor| {
                // No window is longer than that, so none that reaches into the last day began before.
                let starts = now - (DAY + MAX_WINDOW)..now;
                let excluded = history::covering(read, monitor, starts)?;
                let question = Question { excluded, ..question(monitor, &page, plan, &mesh, now) };
                Ok(match history.figures(read, &question) {
                    Ok(figures) => Figure { uptime: figures.uptime_24h, latency_ms: figures.latency_ms_24h },
                    Err(error) => {
                        tracing::error!(monitor = %monitor.id, %error, "figures can't be worked out");
                        Figure::default()
                    }
                })
            };
            monitors.iter().map(figure).collect()
        });
        looked
            .map(move |looked| {
                looked.unwrap_or_else(|error| {
                    tracing::error!(%error, "figures can't be read");
                    vec![Figure::default(); count]
                })
            })
            .boxed()
    }

    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool {
        let Judging { limits, confirmation } = &self.judging;
        let watch = Watch::new(monitor, page, plan, limits, *confirmation);
        confirm::can_confirm(&watch, &self.mesh.borrow())
    }
}

/// Which regions count is the machine's own rule.
fn question(monitor: &Monitor, page: &Page, plan: Plan, mesh: &Mesh, now: Timestamp) -> Question {
    let watch = Watch::new(monitor, page, plan, &PlanLimits::default(), Confirmation::default());
    let counted = if watch.kind.is_regional() { watch.counted(mesh) } else { RegionSet::ALL };
    Question {
        monitor: monitor.id,
        slot: monitor.slot,
        counted,
        latency: watch.latency(mesh),
        excluded: Vec::new(),
        now,
    }
}
