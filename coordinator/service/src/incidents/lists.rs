//! Lists of incidents and windows: read a few at a time, bounded in bytes, with only the newest updates in long
//! lists.

use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::incident::{Incident, IncidentKind, MAX_OPEN_BYTES, MAX_UNFINISHED};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_store::{StoreRead, VersionedValue};

use super::{IncidentFilter, IncidentService};
use crate::ServiceResult;

/// Incidents read per query: each may be as long as [`MAX_OPEN_BYTES`].
const AT_ONCE: usize = 4;
/// Maximum bytes of a list in the API; the first item is returned whatever its length.
pub(crate) const MAX_LIST: usize = 1 << 20;
/// Maximum number of incidents read for one filtered list.
const MAX_SCANNED: usize = 400;
/// Updates of each open incident and window in a page's own documents.
pub(crate) const OPEN_UPDATES: usize = 10;

/// Limits per incident in a list: its newest updates, up to that number and that many bytes of text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateLimits {
    pub(crate) updates: usize,
    pub(crate) bytes: usize,
}

/// An incident in a list, and the number of its updates omitted.
pub(crate) type TruncatedIncident = (VersionedValue<Incident>, usize);

type IncidentCursor = (Timestamp, IncidentId);

/// Returns up to `limit` incidents and windows of a page, newest first, in the order of [`StoreRead::incidents_of`],
/// each truncated as it is read.
pub(crate) fn list_truncated(
    store: &dyn StoreRead,
    (page, open): (PageId, bool),
    before: Option<IncidentCursor>,
    limit: usize,
    newest: UpdateLimits,
) -> parallax_store::Result<Vec<TruncatedIncident>> {
    let mut incidents = Vec::new();
    for_each_incident(store, (page, open), before, limit, |mut incident| {
        let has_more = incident.value.truncate_updates(newest.updates, newest.bytes);
        incidents.push((incident, has_more));
        true
    })?;
    Ok(incidents)
}

/// Returns those that pass the filter in full, at most [`MAX_LIST`] bytes; and the last one read if there are more.
pub(super) fn list_full(
    store: &dyn StoreRead,
    (page, filter): (PageId, IncidentFilter),
    before: Option<IncidentCursor>,
) -> parallax_store::Result<(Vec<Incident>, Option<IncidentId>)> {
    let (mut incidents, mut bytes, mut last, mut has_more) = (Vec::new(), 0, None, false);
    let is_filtered = filter.kind.is_some() || filter.monitor.is_some();
    let scanned = if is_filtered { MAX_SCANNED } else { filter.limit };
    let mut read = 0;
    for_each_incident(store, (page, filter.open), before, scanned.saturating_add(1), |incident| {
        let (id, is_wanted) = (incident.value.id, filter.admits(&incident.value));
        read += 1;
        bytes += if is_wanted { incident.value.bytes() } else { 0 };
        let is_full = is_wanted && (incidents.len() >= filter.limit || (bytes > MAX_LIST && !incidents.is_empty()));
        has_more = is_full || read > scanned;
        if has_more {
            return false;
        }
        last = Some(id);
        if is_wanted {
            incidents.push(incident.value);
        }
        true
    })?;
    Ok((incidents, last.filter(|_| has_more)))
}

impl IncidentFilter {
    fn admits(&self, incident: &Incident) -> bool {
        let affects = |monitor: MonitorId| {
            let covers_page = incident.kind == IncidentKind::Maintenance && incident.affected.is_empty();
            covers_page || incident.affected.iter().any(|affected| affected.monitor == monitor)
        };
        self.kind.is_none_or(|kind| incident.kind == kind) && self.monitor.is_none_or(affects)
    }
}

/// Passes them to `take` until it returns false.
fn for_each_incident(
    store: &dyn StoreRead,
    (page, open): (PageId, bool),
    mut before: Option<IncidentCursor>,
    limit: usize,
    mut take: impl FnMut(VersionedValue<Incident>) -> bool,
) -> parallax_store::Result<()> {
    let mut remaining = limit;
    while remaining > 0 {
        let count = remaining.min(AT_ONCE);
        let read = store.incidents_of(page, open, before, count)?;
        let is_last = read.len() < count;
        remaining -= read.len();
        for incident in read {
            before = Some((incident.value.started_at, incident.value.id));
            if !take(incident) {
                return Ok(());
            }
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

impl IncidentService {
    /// Refuses a change that would make a page's open incidents and windows longer than its documents may be. A
    /// change that shortens or ends one is always allowed.
    pub(super) async fn check_text_size(
        &self,
        page: &Page,
        before: Option<&Incident>,
        after: &Incident,
    ) -> ServiceResult<()> {
        let is_ended = before.is_some_and(Incident::is_open) && !after.is_open();
        if is_ended || before.is_some_and(|before| after.bytes() <= before.bytes()) {
            return Ok(());
        }
        let (id, page_id) = (after.id, page.id);
        let mut others_bytes = 0;
        if after.is_open() {
            others_bytes = self
                .context
                .store()
                .read(move |store| {
                    let mut sum = 0;
                    for_each_incident(store, (page_id, true), None, MAX_UNFINISHED, |incident| {
                        sum += if incident.value.id == id { 0 } else { incident.value.bytes() };
                        true
                    })?;
                    Ok(sum)
                })
                .await?;
        }
        if others_bytes + after.bytes() <= MAX_OPEN_BYTES {
            return Ok(());
        }
        let is_changed = |size_of: fn(&Incident) -> usize| before.map_or(0, size_of) < size_of(after);
        let field = if is_changed(|it| it.updates.len()) {
            "message"
        } else if is_changed(|it| it.postmortem.as_ref().map_or(0, String::len)) {
            "postmortem"
        } else if is_changed(|it| it.affected.len()) {
            "monitors"
        } else {
            "title"
        };
        Err(ValidationErrors::single(field, TEXT_LIMIT_RULE).into())
    }
}

/// Rule for exceeding [`MAX_OPEN_BYTES`].
const TEXT_LIMIT_RULE: &str =
    "is too long: a page's open incidents and maintenance hold at most 2 MiB of text; resolve some first";
