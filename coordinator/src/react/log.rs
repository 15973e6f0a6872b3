//! Log lines of alerts: one for each event that people are notified about.

use parallax_core::event::{AlertKind, Change, Status, What};
use parallax_core::incident::{News, Told};
use parallax_core::place::RegionSet;
use tracing::info;

use crate::storage::Recorded;

/// Logs a notifiable event, once, when the alert consumer has passed it.
pub(super) fn event(recorded: &Recorded) {
    let event = &recorded.event;
    let page = event.page.map(tracing::field::display);
    let monitor = event.monitor.map(tracing::field::display);
    match &event.what {
        What::Changed(change) => {
            let Some(said) = said(change) else { return };
            let since = tracing::field::display(change.since);
            let reason = change.reason.as_ref().map(tracing::field::display);
            let seconds = change.duration_ms.map(|ms| ms / 1000);
            let regions = regions(change.down_from);
            info!(page, monitor, since, regions, reason, seconds, "{said}");
        }
        What::Steady(_) => info!(page, monitor, "monitor is stable again"),
        What::Incident(told) => {
            let Some(said) = of_incident(told) else { return };
            info!(page, incident = %told.incident, "{said}");
        }
        _ => {}
    }
}

fn said(change: &Change) -> Option<&'static str> {
    Some(match change.alert? {
        AlertKind::WentDown => "monitor went down",
        AlertKind::StillDown => "monitor is still down",
        AlertKind::Recovered if change.to == Status::Slow => "monitor recovered but is slow",
        AlertKind::Recovered => "monitor recovered",
        AlertKind::WentSlow => "monitor became slow",
        AlertKind::BackToNormal => "monitor is back to normal speed",
    })
}

/// Regions that it is down from; `None` if that is all of them or it is not down.
fn regions(down_from: Option<RegionSet>) -> Option<String> {
    down_from.map(|regions| regions.iter().map(|region| region.name()).collect::<Vec<_>>().join(","))
}

fn of_incident(told: &Told) -> Option<&'static str> {
    match told.news {
        News::Opened => Some("incident opened"),
        News::Resolved => Some("incident resolved"),
        _ => None,
    }
}
