//! Incidents, windows, series and deploy markers in the store: their records, and each page's lists by time.

use std::ops::Range;

use parallax_core::deploy::Deploy;
use parallax_core::id::{DeployId, IncidentId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::time::Timestamp;
use serde::de::DeserializeOwned;

use super::engine_error;
use super::layout::{self, TreeKey};
use super::pending::PendingChanges;
use super::record_read::{list, read_record, versioned};
use super::sealed_tree::SealedTree;
use crate::{PageCounts, Result, VersionedValue};

/// Stores an incident and its list entries, if its page exists.
pub(super) fn put_incident(pending: &mut PendingChanges<'_>, incident: &Incident) -> Result<()> {
    if !pending.contains(&layout::page(incident.page))? {
        return Ok(());
    }
    delete_list_entries(pending, incident.id)?;
    pending.put(list_key(layout::INCIDENTS_OF, incident), &())?;
    if incident.is_open() {
        pending.put(list_key(layout::OPEN_OF, incident), &())?;
    }
    if let Some(window) = MaintenanceWindow::of(incident) {
        pending.put(list_key(layout::WINDOWS_OF, incident), &window)?;
    }
    pending.put_document(layout::incident(incident.id), incident)
}

/// Deletes an incident.
pub(super) fn delete_incident(pending: &mut PendingChanges<'_>, id: IncidentId) -> Result<()> {
    delete_list_entries(pending, id)?;
    pending.delete(layout::incident(id))
}

/// Stores a series, if its page exists.
pub(super) fn put_series(pending: &mut PendingChanges<'_>, series: &Series) -> Result<()> {
    if !pending.contains(&layout::page(series.page))? {
        return Ok(());
    }
    if let Some((_, old)) = pending.document::<Series>(&layout::series(series.id))? {
        pending.delete(layout::series_entry(old.page, old.id))?;
    }
    pending.put(layout::series_entry(series.page, series.id), &series.stopped_at.is_none())?;
    pending.put_document(layout::series(series.id), series)
}

/// Deletes a page's stopped series, except the `keep_count` with the highest ids.
pub(super) fn delete_stopped_series(pending: &mut PendingChanges<'_>, page: PageId, keep_count: usize) -> Result<()> {
    let mut stopped = Vec::new();
    for (key, _) in pending.scan(layout::prefix_range(&layout::series_of(page)), usize::MAX)? {
        if pending.get::<bool>(&key)? == Some(false) {
            stopped.push(key);
        }
    }
    stopped.truncate(stopped.len().saturating_sub(keep_count));
    for key in stopped {
        let id = SeriesId::from_u128(layout::last_id(&key).unwrap_or_default());
        pending.delete(layout::series(id))?;
        pending.delete(key)?;
    }
    Ok(())
}

/// Stores a deploy marker, if its page exists.
pub(super) fn put_deploy(pending: &mut PendingChanges<'_>, deploy: &Deploy) -> Result<()> {
    if !pending.contains(&layout::page(deploy.page))? {
        return Ok(());
    }
    delete_deploy(pending, deploy.id)?;
    let key = layout::page_list_entry(layout::DEPLOYS_OF, deploy.page, deploy.at, deploy.id.to_u128());
    pending.put(key, &())?;
    pending.put_document(layout::deploy(deploy.id), deploy)
}

/// Deletes a deploy marker.
pub(super) fn delete_deploy(pending: &mut PendingChanges<'_>, id: DeployId) -> Result<()> {
    let key = layout::deploy(id);
    let Some((_, old)) = pending.document::<Deploy>(&key)? else { return Ok(()) };
    pending.delete(layout::page_list_entry(layout::DEPLOYS_OF, old.page, old.at, id.to_u128()))?;
    pending.delete(key)
}

/// Deletes a page's incidents, series and deploy markers.
pub(super) fn delete_all(pending: &mut PendingChanges<'_>, page: PageId) -> Result<()> {
    for id in ids(pending, &layout::page_list(layout::INCIDENTS_OF, page))? {
        delete_incident(pending, IncidentId::from_u128(id))?;
    }
    for id in ids(pending, &layout::page_list(layout::DEPLOYS_OF, page))? {
        delete_deploy(pending, DeployId::from_u128(id))?;
    }
    for id in ids(pending, &layout::series_of(page))? {
        let id = SeriesId::from_u128(id);
        pending.delete(layout::series_entry(page, id))?;
        pending.delete(layout::series(id))?;
    }
    Ok(())
}

/// Returns a page's newest records within a range of keys.
pub(super) fn newest<T: DeserializeOwned>(
    tree: &SealedTree,
    range: Range<TreeKey>,
    limit: usize,
    key: impl Fn(u128) -> TreeKey,
) -> Result<Vec<VersionedValue<T>>> {
    let mut records = Vec::new();
    if range.start >= range.end {
        return Ok(records);
    }
    for item in tree.range(range).keys().rev().take(limit) {
        let id = layout::last_id(&item.map_err(engine_error)?).unwrap_or_default();
        records.extend(read_record(tree, &key(id))?.map(versioned));
    }
    Ok(records)
}

/// Returns the oldest incidents and windows of a page.
pub(super) fn oldest(tree: &SealedTree, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Incident>>> {
    let mut records = Vec::new();
    for key in tree.scan_prefix(layout::page_list(layout::INCIDENTS_OF, page)).keys().take(limit) {
        let id = layout::last_id(&key.map_err(engine_error)?).unwrap_or_default();
        records.extend(read_record(tree, &layout::incident(IncidentId::from_u128(id)))?.map(versioned));
    }
    Ok(records)
}

/// Returns the newest incidents and windows of a page, or only the open ones; with `before`, those before that time
/// and id.
pub(super) fn incidents(
    tree: &SealedTree,
    (page, open): (PageId, bool),
    before: Option<(Timestamp, IncidentId)>,
    limit: usize,
) -> Result<Vec<VersionedValue<Incident>>> {
    let prefix = if open { layout::OPEN_OF } else { layout::INCIDENTS_OF };
    let Range { start, mut end } = layout::prefix_range(&layout::page_list(prefix, page));
    if let Some((at, id)) = before {
        end = layout::page_list_entry(prefix, page, at, id.to_u128());
    }
    newest(tree, start..end, limit, |id| layout::incident(IncidentId::from_u128(id)))
}

/// Returns the newest windows of a page, or of one of its monitors, that start within a range, oldest first.
pub(super) fn windows(
    tree: &SealedTree,
    (page, covering): (PageId, Option<MonitorId>),
    starts: &Range<Timestamp>,
    limit: usize,
) -> Result<Vec<MaintenanceWindow>> {
    let key = |at| layout::page_list_from(layout::WINDOWS_OF, page, at);
    let range = key(starts.start)..key(starts.end);
    if range.start >= range.end {
        return Ok(Vec::new());
    }
    let mut newest = Vec::new();
    for item in tree.range(range).rev() {
        if newest.len() >= limit {
            break;
        }
        let windows = list::<MaintenanceWindow>(tree, std::iter::once(item))?.into_iter().map(|(_, window)| window);
        newest.extend(windows.filter(|window| covering.is_none_or(|monitor| window.covers(monitor))));
    }
    newest.reverse();
    Ok(newest)
}

/// Counts a page's incidents and series from its lists.
pub(super) fn page_counts(tree: &SealedTree, page: PageId) -> Result<PageCounts> {
    let mut counts = PageCounts::default();
    for (prefix, count) in
        [(layout::OPEN_OF, &mut counts.open_incidents), (layout::INCIDENTS_OF, &mut counts.incidents)]
    {
        for key in tree.scan_prefix(layout::page_list(prefix, page)).keys() {
            key.map_err(engine_error)?;
            *count += 1;
        }
    }
    let series = list::<bool>(tree, tree.scan_prefix(layout::series_of(page)))?;
    counts.running_series = series.into_iter().filter(|(_, is_running)| *is_running).count();
    Ok(counts)
}

fn delete_list_entries(pending: &mut PendingChanges<'_>, id: IncidentId) -> Result<()> {
    let Some((_, old)) = pending.document::<Incident>(&layout::incident(id))? else { return Ok(()) };
    for prefix in [layout::INCIDENTS_OF, layout::OPEN_OF, layout::WINDOWS_OF] {
        pending.delete(list_key(prefix, &old))?;
    }
    Ok(())
}

fn list_key(prefix: &[u8], incident: &Incident) -> TreeKey {
    layout::page_list_entry(prefix, incident.page, incident.started_at, incident.id.to_u128())
}

fn ids(pending: &PendingChanges<'_>, prefix: &[u8]) -> Result<Vec<u128>> {
    let entries = pending.scan(layout::prefix_range(prefix), usize::MAX)?;
    Ok(entries.iter().filter_map(|(key, _)| layout::last_id(key)).collect())
}
