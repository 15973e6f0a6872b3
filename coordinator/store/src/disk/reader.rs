//! The reading side of the store on disk: answers queries from the tree.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::StoredPing;
use parallax_core::id::{AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};
use serde::de::DeserializeOwned;
use sled::IVec;

use super::compaction::{self, CompactedPiece, HistoryKind, NO_REGION};
use super::idempotency::ResponseRecord;
use super::layout::{self, SCHEMA, TreeKey};
use super::meta::StoreState;
use super::record_read::{key_after, list, read_record, seq_of, versioned};
use super::sealed_tree::SealedTree;
use super::{SharedStore, cache_eviction, engine_error, files, incidents, integrity, monitor_events, snapshot};
use crate::{
    Block, Checkpoint, JournalEvent, PageCounts, ReadingsEntry, Result, Rollup, StoreCounts, StoreRead, StoreSize,
    StoredResponse, VersionedValue, WrittenSnapshot,
};

/// Records of an unbounded list read at once, before a commit may come between.
const SLICE: usize = 256;

#[derive(Debug)]
pub(super) struct DiskReader(Arc<SharedStore>);

impl DiskReader {
    pub(super) fn new(shared: Arc<SharedStore>) -> Self {
        Self(shared)
    }

    /// Runs a query at one point in time. A panic of sled on a damaged page becomes an error.
    pub(super) fn query<T>(&self, read: impl FnOnce(&SealedTree) -> Result<T>) -> Result<T> {
        self.0.query(read)
    }

    pub(super) fn record<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>> {
        self.query(|tree| read_record(tree, key))
    }

    pub(super) fn document<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<VersionedValue<T>>> {
        Ok(self.record(key)?.map(versioned))
    }

    /// Returns the first records of a range, read in slices.
    pub(super) fn first<T: DeserializeOwned>(&self, range: Range<TreeKey>, limit: usize) -> Result<Vec<(IVec, T)>> {
        let Range { mut start, end } = range;
        let mut records = Vec::new();
        loop {
            let count = SLICE.min(limit - records.len());
            let slice = self.query(|tree| {
                let slice = list(tree, tree.range(start..end.clone()).take(count))?;
                cache_eviction::record_uses(tree, slice.iter().map(|(key, _)| key.as_ref()));
                Ok(slice)
            })?;
            let Some((last, _)) = slice.last() else { return Ok(records) };
            start = key_after(last);
            records.extend(slice);
        }
    }

    /// Returns all records with a prefix.
    pub(super) fn all<T: DeserializeOwned>(&self, prefix: &[u8]) -> Result<Vec<(IVec, T)>> {
        self.first(layout::prefix_range(prefix), usize::MAX)
    }

    fn documents<T: DeserializeOwned>(&self, prefix: &[u8]) -> Result<Vec<VersionedValue<T>>> {
        Ok(self.all(prefix)?.into_iter().map(|(_, document)| versioned(document)).collect())
    }

    /// Returns the documents whose ids end the keys of an index.
    pub(super) fn indexed<T, F>(&self, index: &[u8], key: F) -> Result<Vec<VersionedValue<T>>>
    where
        T: DeserializeOwned,
        F: Fn(u128) -> TreeKey,
    {
        self.query(|tree| {
            let mut records = Vec::new();
            for item in tree.scan_prefix(index).keys() {
                let id = layout::last_id(&item.map_err(engine_error)?).unwrap_or_default();
                records.extend(read_record(tree, &key(id))?.map(versioned));
            }
            Ok(records)
        })
    }

    fn within<T: DeserializeOwned>(&self, keys: Range<TreeKey>, monitor: MonitorId) -> Result<Vec<(i64, T)>> {
        self.query(|tree| {
            if keys.start >= keys.end || !tree.contains_key(layout::monitor(monitor)).map_err(engine_error)? {
                return Ok(Vec::new());
            }
            let records = list(tree, tree.range(keys))?.into_iter();
            Ok(records.map(|(key, value)| (layout::last_time(&key).unwrap_or_default(), value)).collect())
        })
    }

    /// Returns a monitor's hours or days, compacted or not.
    fn history(
        &self,
        kind: HistoryKind,
        monitor: MonitorId,
        region: u8,
        range: Range<i64>,
    ) -> Result<BTreeMap<i64, CompactedPiece>> {
        self.query(|tree| {
            if !tree.contains_key(layout::monitor(monitor)).map_err(engine_error)? {
                return Ok(BTreeMap::new());
            }
            compaction::read(tree, kind, monitor, region, range)
        })
    }

    fn rollups(&self, kind: HistoryKind, monitor: MonitorId, range: Range<i64>) -> Result<Vec<Rollup>> {
        let records = self.history(kind, monitor, NO_REGION, range)?.into_iter();
        Ok(records.map(|(at, (_, bytes))| Rollup { monitor, at, bytes }).collect())
    }

    fn meta(&self) -> Result<StoreState> {
        Ok(self.record(layout::META_KEY)?.unwrap_or_else(StoreState::new))
    }
}

impl StoreRead for DiskReader {
    fn account(&self, id: AccountId) -> Result<Option<VersionedValue<Account>>> {
        self.document(&layout::account(id))
    }

    fn accounts(&self) -> Result<Vec<VersionedValue<Account>>> {
        self.documents(layout::ACCOUNTS)
    }

    fn page(&self, id: PageId) -> Result<Option<VersionedValue<Page>>> {
        self.document(&layout::page(id))
    }

    fn page_by_slug(&self, slug: &str) -> Result<Option<VersionedValue<Page>>> {
        self.query(|tree| {
            let Some(id) = read_record::<PageId>(tree, &layout::slug(slug))? else { return Ok(None) };
            Ok(read_record(tree, &layout::page(id))?.map(versioned))
        })
    }

    fn page_by_host(&self, host: &str) -> Result<Option<VersionedValue<Page>>> {
        self.query(|tree| {
            let Some(id) = read_record::<PageId>(tree, &layout::custom_host(host))? else { return Ok(None) };
            Ok(read_record(tree, &layout::page(id))?.map(versioned))
        })
    }

    fn picture(&self, page: PageId, usage: PictureUse) -> Result<Option<Vec<u8>>> {
        self.record(&layout::picture(page, usage))
    }

    fn reserved_hostname(&self, host: &str) -> Result<Option<ReservedHostname>> {
        self.record(&layout::reserved_hostname(host))
    }

    fn pages(&self) -> Result<Vec<VersionedValue<Page>>> {
        self.documents(layout::PAGES)
    }

    fn pages_of(&self, account: AccountId) -> Result<Vec<VersionedValue<Page>>> {
        self.indexed(&layout::pages_of(account), |id| layout::page(PageId::from_u128(id)))
    }

    fn monitor(&self, id: MonitorId) -> Result<Option<VersionedValue<Monitor>>> {
        self.document(&layout::monitor(id))
    }

    fn monitors_after(&self, after: Option<MonitorId>, limit: usize) -> Result<Vec<VersionedValue<Monitor>>> {
        let Range { mut start, end } = layout::prefix_range(layout::MONITORS);
        if let Some(after) = after {
            start = key_after(&layout::monitor(after));
        }
        Ok(self.first(start..end, limit)?.into_iter().map(|(_, document)| versioned(document)).collect())
    }

    fn monitors_of(&self, page: PageId) -> Result<Vec<VersionedValue<Monitor>>> {
        let key = |id| layout::monitor(MonitorId::from_u128(id));
        let mut records: Vec<VersionedValue<Monitor>> = self.indexed(&layout::monitors_of(page), key)?;
        records.sort_by_key(|monitor| (monitor.value.position, monitor.value.id));
        Ok(records)
    }

    fn key(&self, id: KeyId) -> Result<Option<VersionedValue<ApiKey>>> {
        self.document(&layout::key(id))
    }

    fn keys_of(&self, account: AccountId) -> Result<Vec<VersionedValue<ApiKey>>> {
        self.indexed(&layout::keys_of(account), |id| layout::key(KeyId::from_u128(id)))
    }

    fn agent(&self, id: AgentId) -> Result<Option<VersionedValue<AgentRecord>>> {
        self.document(&layout::agent(id))
    }

    fn agents(&self) -> Result<Vec<VersionedValue<AgentRecord>>> {
        self.documents(layout::AGENTS)
    }

    fn invitation(&self, id: InvitationId) -> Result<Option<VersionedValue<Invitation>>> {
        self.document(&layout::invitation(id))
    }

    fn invitations(&self) -> Result<Vec<VersionedValue<Invitation>>> {
        self.documents(layout::INVITATIONS)
    }

    fn incident(&self, id: IncidentId) -> Result<Option<VersionedValue<Incident>>> {
        self.document(&layout::incident(id))
    }

    fn incidents_of(
        &self,
        page: PageId,
        open: bool,
        before: Option<(Timestamp, IncidentId)>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Incident>>> {
        self.query(|tree| incidents::incidents(tree, (page, open), before, limit))
    }

    fn oldest_incidents(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Incident>>> {
        self.query(|tree| incidents::oldest(tree, page, limit))
    }

    fn page_counts(&self, page: PageId) -> Result<PageCounts> {
        self.query(|tree| incidents::page_counts(tree, page))
    }

    fn open_incidents(&self) -> Result<Vec<VersionedValue<Incident>>> {
        self.indexed(layout::OPEN_OF, |id| layout::incident(IncidentId::from_u128(id)))
    }

    fn windows_of(
        &self,
        page: PageId,
        covering: Option<MonitorId>,
        starts: Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<MaintenanceWindow>> {
        self.query(|tree| incidents::windows(tree, (page, covering), &starts, limit))
    }

    fn series(&self, id: SeriesId) -> Result<Option<VersionedValue<Series>>> {
        self.document(&layout::series(id))
    }

    fn running_series(&self) -> Result<Vec<VersionedValue<Series>>> {
        let mut all: Vec<VersionedValue<Series>> = self.documents(layout::SERIES)?;
        all.retain(|series| series.value.stopped_at.is_none());
        Ok(all)
    }

    fn deploy(&self, id: DeployId) -> Result<Option<VersionedValue<Deploy>>> {
        self.document(&layout::deploy(id))
    }

    fn deploys_of(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Deploy>>> {
        let range = layout::prefix_range(&layout::page_list(layout::DEPLOYS_OF, page));
        let key = |id| layout::deploy(DeployId::from_u128(id));
        self.query(|tree| incidents::newest(tree, range, limit, key))
    }

    fn machine(&self, monitor: MonitorId) -> Result<Option<MachineState>> {
        self.record(&layout::machine(monitor))
    }

    fn pings(&self, monitor: MonitorId) -> Result<Vec<StoredPing>> {
        let keys = layout::prefix_range(&layout::pings_of(monitor));
        let mut records: Vec<StoredPing> = self.within(keys, monitor)?.into_iter().map(|(_, ping)| ping).collect();
        records.sort_by_key(|ping| std::cmp::Reverse(ping.number));
        Ok(records)
    }

    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<JournalEvent>> {
        let events = layout::event(seq.saturating_add(1))..=layout::event(u64::MAX);
        let records = self.query(|tree| list::<Event>(tree, tree.range(events).take(limit)))?.into_iter();
        Ok(records.map(|(key, event)| JournalEvent { seq: seq_of(&key), event }).collect())
    }

    fn events_of_many(&self, monitors: &[MonitorId], before: Option<u64>, limit: usize) -> Result<Vec<JournalEvent>> {
        self.query(|tree| monitor_events::newest(tree, monitors, before, limit))
    }

    fn last_event(&self) -> Result<u64> {
        Ok(self.meta()?.last_event)
    }

    fn cursor(&self, reader: &str) -> Result<u64> {
        Ok(self.record(&layout::cursor(reader))?.unwrap_or(0))
    }

    fn readings_after(&self, seq: u64, limit: usize) -> Result<Vec<ReadingsEntry>> {
        let entries = layout::readings(seq.saturating_add(1))..=layout::readings(u64::MAX);
        let records = self.query(|tree| list::<Vec<Reading>>(tree, tree.range(entries).take(limit)))?.into_iter();
        Ok(records.map(|(key, readings)| ReadingsEntry { seq: seq_of(&key), readings }).collect())
    }

    fn last_reading(&self) -> Result<u64> {
        Ok(self.meta()?.last_reading)
    }

    fn blocks(&self, monitor: MonitorId, region: Region, hours: Range<i64>) -> Result<Vec<Block>> {
        let records = self.history(HistoryKind::Blocks, monitor, region as u8, hours)?.into_iter();
        Ok(records.map(|(hour, (slot, bytes))| Block { monitor, slot, region, hour, bytes }).collect())
    }

    fn hours(&self, monitor: MonitorId, hours: Range<i64>) -> Result<Vec<Rollup>> {
        self.rollups(HistoryKind::Hours, monitor, hours)
    }

    fn days(&self, monitor: MonitorId, days: Range<i64>) -> Result<Vec<Rollup>> {
        self.rollups(HistoryKind::Days, monitor, days)
    }

    fn checkpoints(&self, part: u32, limit: usize) -> Result<Vec<Checkpoint>> {
        let parts = layout::checkpoint(part)..layout::prefix_range(layout::CHECKPOINTS).end;
        let records = self.first::<(u64, Vec<u8>)>(parts, limit)?.into_iter();
        let part = |key: &[u8]| layout::last_part(key).unwrap_or_default();
        Ok(records.map(|(key, (through, bytes))| Checkpoint { part: part(&key), through, bytes }).collect())
    }

    fn next_slot(&self) -> Result<u32> {
        Ok(self.record(layout::NEXT_SLOT)?.unwrap_or(0))
    }

    fn next_vantage(&self) -> Result<VantageNo> {
        Ok(self.record(layout::NEXT_VANTAGE)?.unwrap_or(VantageNo(0)))
    }

    fn networks(&self) -> Result<BTreeMap<String, NetworkNo>> {
        let records = self.all(layout::NETWORKS)?.into_iter();
        let label = |key: &[u8]| String::from_utf8_lossy(key.get(2..).unwrap_or_default()).into_owned();
        Ok(records.map(|(key, number)| (label(&key), number)).collect())
    }

    fn stored_response(&self, name: &str) -> Result<Option<VersionedValue<StoredResponse>>> {
        let records: Option<(u64, ResponseRecord)> = self.record(&layout::stored_response(name))?;
        Ok(records.map(|(revision, (fingerprint, response, expires_at))| VersionedValue {
            revision,
            value: StoredResponse { fingerprint, response, expires_at },
        }))
    }

    fn export(&self, to: &Path) -> Result<WrittenSnapshot> {
        snapshot::export(&self.0, SCHEMA, to, false)
    }

    fn stream(&self, sink: &mut dyn std::io::Write) -> Result<()> {
        snapshot::stream(&self.0, SCHEMA, sink).map(drop)
    }

    fn verify(&self) -> Result<StoreCounts> {
        integrity::verify_store(&self.0)
    }

    fn size(&self) -> Result<StoreSize> {
        let bytes = self.0.db.size_on_disk().map_err(engine_error)?;
        let (free, capacity) = files::disk_bytes(&self.0.folder)?;
        Ok(StoreSize { bytes, oversized_pages: self.0.blobs()?, free, capacity })
    }
}
