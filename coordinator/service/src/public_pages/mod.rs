//! Data of public pages: overall status, page view, details of monitors and incidents, feeds and calendar.

pub mod explanation;
mod feed_data;
mod monitor_past;
pub mod overview;
pub mod page_view;

use std::sync::Arc;

use super::context::ServiceContext;
use super::incidents::IncidentService;
use super::monitors::MonitorService;
use super::monitors::history::HistoryService;

/// Computes the data of public pages from the other services. It owns nothing and changes nothing; visitors need an
/// [`AuthorizedPage`](super::page_access::authorize::AuthorizedPage).
#[derive(Debug)]
pub struct PublicPageService {
    context: Arc<ServiceContext>,
    monitors: Arc<MonitorService>,
    incidents: Arc<IncidentService>,
    history: Arc<HistoryService>,
}

impl PublicPageService {
    pub(super) fn new(
        context: &Arc<ServiceContext>,
        monitors: &Arc<MonitorService>,
        incidents: &Arc<IncidentService>,
        history: &Arc<HistoryService>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            monitors: Arc::clone(monitors),
            incidents: Arc::clone(incidents),
            history: Arc::clone(history),
        }
    }
}
