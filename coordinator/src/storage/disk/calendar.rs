//! Incidents, windows, series and deploy markers in the store: their records, and each page's lists by time.

use std::ops::Range;

use parallax_core::deploy::Deploy;
use parallax_core::id::{DeployId, IncidentId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::time::Timestamp;
use parallax_core::window::Window;
use serde::de::DeserializeOwned;

use super::failed;
use super::layout::{self, Key};
use super::load::{list, load, versioned};
use super::pending::Pending;
use super::sealing::Records;
use super::stage::{document, put_document};
use crate::storage::{Result, Standing, Versioned};

/// Stores an incident and its list entries, if its page exists.
pub(super) fn put_incident(pending: &mut Pending<'_>, incident: &Incident) -> Result<()> {
    if !pending.contains(&layout::page(incident.page))? {
        return Ok(());
    }
    unlist(pending, incident.id)?;
    pending.put(listed(layout::INCIDENTS_OF, incident), &())?;
    if incident.is_open() {
        pending.put(listed(layout::OPEN_OF, incident), &())?;
    }
    if let Some(window) = Window::of(incident) {
        pending.put(listed(layout::WINDOWS_OF, incident), &window)?;
    }
    put_document(pending, layout::incident(incident.id), incident)
}

/// Deletes an incident.
pub(super) fn delete_incident(pending: &mut Pending<'_>, id: IncidentId) -> Result<()> {
    unlist(pending, id)?;
    pending.delete(layout::incident(id))
}

/// Stores a series, if its page exists.
pub(super) fn put_series(pending: &mut Pending<'_>, series: &Series) -> Result<()> {
    if !pending.contains(&layout::page(series.page))? {
        return Ok(());
    }
    if let Some((_, old)) = document::<Series>(pending, &layout::series(series.id))? {
        pending.delete(layout::series_on(old.page, old.id))?;
    }
    pending.put(layout::series_on(series.page, series.id), &series.stopped_at.is_none())?;
    put_document(pending, layout::series(series.id), series)
}

/// Deletes a page's stopped series, except the `kept` with the highest ids.
pub(super) fn drop_stopped(pending: &mut Pending<'_>, page: PageId, kept: usize) -> Result<()> {
    let mut stopped = Vec::new();
    for (key, _) in pending.scan(layout::beginning(&layout::series_of(page)), usize::MAX)? {
        if pending.get::<bool>(&key)? == Some(false) {
            stopped.push(key);
        }
    }
    stopped.truncate(stopped.len().saturating_sub(kept));
    for key in stopped {
        let id = SeriesId::from_u128(layout::last_id(&key).unwrap_or_default());
        pending.delete(layout::series(id))?;
        pending.delete(key)?;
    }
    Ok(())
}

/// Stores a deploy marker, if its page exists.
pub(super) fn put_deploy(pending: &mut Pending<'_>, deploy: &Deploy) -> Result<()> {
    if !pending.contains(&layout::page(deploy.page))? {
        return Ok(());
    }
    delete_deploy(pending, deploy.id)?;
    let key = layout::on_page_at(layout::DEPLOYS_OF, deploy.page, deploy.at, deploy.id.to_u128());
    pending.put(key, &())?;
    put_document(pending, layout::deploy(deploy.id), deploy)
}

/// Deletes a deploy marker.
pub(super) fn delete_deploy(pending: &mut Pending<'_>, id: DeployId) -> Result<()> {
    let key = layout::deploy(id);
    let Some((_, old)) = document::<Deploy>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::on_page_at(layout::DEPLOYS_OF, old.page, old.at, id.to_u128()))?;
    pending.delete(key)
}

/// Deletes a page's incidents, series and deploy markers.
pub(super) fn clear(pending: &mut Pending<'_>, page: PageId) -> Result<()> {
    for id in ids(pending, &layout::on_page(layout::INCIDENTS_OF, page))? {
        delete_incident(pending, IncidentId::from_u128(id))?;
    }
    for id in ids(pending, &layout::on_page(layout::DEPLOYS_OF, page))? {
        delete_deploy(pending, DeployId::from_u128(id))?;
    }
    for id in ids(pending, &layout::series_of(page))? {
        let id = SeriesId::from_u128(id);
        pending.delete(layout::series_on(page, id))?;
        pending.delete(layout::series(id))?;
    }
    Ok(())
}

/// Returns a page's newest records within a range of keys.
pub(super) fn newest<T: DeserializeOwned>(
    tree: &Records,
    range: Range<Key>,
    limit: usize,
    key: impl Fn(u128) -> Key,
) -> Result<Vec<Versioned<T>>> {
    let mut found = Vec::new();
    if range.start >= range.end {
        return Ok(found);
    }
    for item in tree.range(range).keys().rev().take(limit) {
        let id = layout::last_id(&item.map_err(failed)?).unwrap_or_default();
        found.extend(load(tree, &key(id))?.map(versioned));
    }
    Ok(found)
}

/// Returns the oldest incidents and windows of a page.
pub(super) fn oldest(tree: &Records, page: PageId, limit: usize) -> Result<Vec<Versioned<Incident>>> {
    let mut found = Vec::new();
    for key in tree.scan_prefix(layout::on_page(layout::INCIDENTS_OF, page)).keys().take(limit) {
        let id = layout::last_id(&key.map_err(failed)?).unwrap_or_default();
        found.extend(load(tree, &layout::incident(IncidentId::from_u128(id)))?.map(versioned));
    }
    Ok(found)
}

/// Returns the newest incidents and windows of a page, or only the open ones; with `before`, those before that time
/// and id.
pub(super) fn incidents(
    tree: &Records,
    (page, open): (PageId, bool),
    before: Option<(Timestamp, IncidentId)>,
    limit: usize,
) -> Result<Vec<Versioned<Incident>>> {
    let prefix = if open { layout::OPEN_OF } else { layout::INCIDENTS_OF };
    let Range { start, mut end } = layout::beginning(&layout::on_page(prefix, page));
    if let Some((at, id)) = before {
        end = layout::on_page_at(prefix, page, at, id.to_u128());
    }
    newest(tree, start..end, limit, |id| layout::incident(IncidentId::from_u128(id)))
}

/// Returns the newest windows of a page, or of one of its monitors, that start within a range, oldest first.
pub(super) fn windows(
    tree: &Records,
    (page, covering): (PageId, Option<MonitorId>),
    starts: &Range<Timestamp>,
    limit: usize,
) -> Result<Vec<Window>> {
    let key = |at| layout::on_page_from(layout::WINDOWS_OF, page, at);
    let range = key(starts.start)..key(starts.end);
    if range.start >= range.end {
        return Ok(Vec::new());
    }
    let mut newest = Vec::new();
    for item in tree.range(range).rev() {
        if newest.len() >= limit {
            break;
        }
        let windows = list::<Window>(tree, std::iter::once(item))?.into_iter().map(|(_, window)| window);
        newest.extend(windows.filter(|window| covering.is_none_or(|monitor| window.covers(monitor))));
    }
    newest.reverse();
    Ok(newest)
}

/// Counts a page's incidents and series from its lists.
pub(super) fn standing(tree: &Records, page: PageId) -> Result<Standing> {
    let mut standing = Standing::default();
    for (prefix, count) in
        [(layout::OPEN_OF, &mut standing.open), (layout::INCIDENTS_OF, &mut standing.incidents)]
    {
        for key in tree.scan_prefix(layout::on_page(prefix, page)).keys() {
            key.map_err(failed)?;
            *count += 1;
        }
    }
    let repeating = list::<bool>(tree, tree.scan_prefix(layout::series_of(page)))?;
    standing.repeating = repeating.into_iter().filter(|(_, runs)| *runs).count();
    Ok(standing)
}

fn unlist(pending: &mut Pending<'_>, id: IncidentId) -> Result<()> {
    let Some((_, old)) = document::<Incident>(pending, &layout::incident(id))? else { return Ok(()) };
    for prefix in [layout::INCIDENTS_OF, layout::OPEN_OF, layout::WINDOWS_OF] {
        pending.delete(listed(prefix, &old))?;
    }
    Ok(())
}

fn listed(prefix: &[u8], incident: &Incident) -> Key {
    layout::on_page_at(prefix, incident.page, incident.started_at, incident.id.to_u128())
}

fn ids(pending: &Pending<'_>, prefix: &[u8]) -> Result<Vec<u128>> {
    let found = pending.scan(layout::beginning(prefix), usize::MAX)?;
    Ok(found.iter().filter_map(|(key, _)| layout::last_id(key)).collect())
}
