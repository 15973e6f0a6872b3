//! The reading side of the store on disk: answers queries from the tree.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::deploy::Deploy;
use parallax_core::event::Event;
use parallax_core::heartbeat::Ping;
use parallax_core::id::{
    AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId,
};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::Key as ApiKey;
use parallax_core::machine::State;
use parallax_core::member::{Agent, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page::domain::Freed;
use parallax_core::page::look::PictureUse;
use parallax_core::place::{NetworkNo, PlaceNo, Region};
use parallax_core::time::Timestamp;
use parallax_core::window::Window;
use serde::de::DeserializeOwned;
use sled::IVec;

use super::fold::{self, Kind, NO_REGION, Piece};
use super::layout::{self, Key, SCHEMA};
use super::load::{behind, list, load, seq_of, versioned};
use super::meta::Meta;
use super::remembered::Answer;
use super::sealing::Records;
use super::{Shared, cache, calendar, failed, files, snapshot, tally};
use crate::storage::{
    Block, Checkpoint, Entry, Exported, Footprint, Read, Recorded, Remembered, Result, Rollup, Standing,
    StoreError, Versioned, Whole,
};

/// Records of an unbounded list read at once, before a commit may come between.
const SLICE: usize = 256;

#[derive(Debug)]
pub(super) struct Reader(Arc<Shared>);

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Runs a query at one point in time. A panic of sled on a damaged page becomes an error.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&Records) -> Result<T>) -> Result<T> {
        let _gate = self.0.reading();
        catch_unwind(AssertUnwindSafe(|| question(&self.0.records)))
            .unwrap_or_else(|_| Err(StoreError::Damaged("the engine can't read one of its pages".to_owned())))
    }

    pub(super) fn one<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>> {
        self.ask(|tree| load(tree, key))
    }

    pub(super) fn document<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<Versioned<T>>> {
        Ok(self.one(key)?.map(versioned))
    }

    /// Returns the first records of a range, read in slices.
    fn first<T: DeserializeOwned>(&self, range: Range<Key>, limit: usize) -> Result<Vec<(IVec, T)>> {
        let Range { mut start, end } = range;
        let mut found = Vec::new();
        loop {
            let most = SLICE.min(limit - found.len());
            let slice = self.ask(|tree| {
                let slice = list(tree, tree.range(start..end.clone()).take(most))?;
                cache::walked(tree, slice.iter().map(|(key, _)| key.as_ref()));
                Ok(slice)
            })?;
            let Some((last, _)) = slice.last() else { return Ok(found) };
            start = behind(last);
            found.extend(slice);
        }
    }

    /// Returns all records with a prefix.
    pub(super) fn all<T: DeserializeOwned>(&self, prefix: &[u8]) -> Result<Vec<(IVec, T)>> {
        self.first(layout::beginning(prefix), usize::MAX)
    }

    fn documents<T: DeserializeOwned>(&self, prefix: &[u8]) -> Result<Vec<Versioned<T>>> {
        Ok(self.all(prefix)?.into_iter().map(|(_, document)| versioned(document)).collect())
    }

    /// Returns the documents whose ids end the keys of an index.
    pub(super) fn indexed<T, F>(&self, index: &[u8], key: F) -> Result<Vec<Versioned<T>>>
    where
        T: DeserializeOwned,
        F: Fn(u128) -> Key,
    {
        self.ask(|tree| {
            let mut found = Vec::new();
            for item in tree.scan_prefix(index).keys() {
                let id = layout::last_id(&item.map_err(failed)?).unwrap_or_default();
                found.extend(load(tree, &key(id))?.map(versioned));
            }
            Ok(found)
        })
    }

    fn within<T: DeserializeOwned>(&self, keys: Range<Key>, monitor: MonitorId) -> Result<Vec<(i64, T)>> {
        self.ask(|tree| {
            if keys.start >= keys.end || !tree.contains_key(layout::monitor(monitor)).map_err(failed)? {
                return Ok(Vec::new());
            }
            let found = list(tree, tree.range(keys))?.into_iter();
            Ok(found.map(|(key, value)| (layout::last_time(&key).unwrap_or_default(), value)).collect())
        })
    }

    /// Returns a monitor's hours or days, compacted or not.
    fn history(
        &self,
        kind: Kind,
        monitor: MonitorId,
        region: u8,
        range: Range<i64>,
    ) -> Result<BTreeMap<i64, Piece>> {
        self.ask(|tree| {
            if !tree.contains_key(layout::monitor(monitor)).map_err(failed)? {
                return Ok(BTreeMap::new());
            }
            fold::read(tree, kind, monitor, region, range)
        })
    }

    fn rollups(&self, kind: Kind, monitor: MonitorId, range: Range<i64>) -> Result<Vec<Rollup>> {
        let found = self.history(kind, monitor, NO_REGION, range)?.into_iter();
        Ok(found.map(|(at, (_, bytes))| Rollup { monitor, at, bytes }).collect())
    }

    fn meta(&self) -> Result<Meta> {
        Ok(self.one(layout::META_KEY)?.unwrap_or_else(Meta::new))
    }
}

impl Read for Reader {
    fn account(&self, id: AccountId) -> Result<Option<Versioned<Account>>> {
        self.document(&layout::account(id))
    }

    fn accounts(&self) -> Result<Vec<Versioned<Account>>> {
        self.documents(layout::ACCOUNTS)
    }

    fn page(&self, id: PageId) -> Result<Option<Versioned<Page>>> {
        self.document(&layout::page(id))
    }

    fn page_by_slug(&self, slug: &str) -> Result<Option<Versioned<Page>>> {
        self.ask(|tree| {
            let Some(id) = load::<PageId>(tree, &layout::slug(slug))? else { return Ok(None) };
            Ok(load(tree, &layout::page(id))?.map(versioned))
        })
    }

    fn page_by_host(&self, host: &str) -> Result<Option<Versioned<Page>>> {
        self.ask(|tree| {
            let Some(id) = load::<PageId>(tree, &layout::own_host(host))? else { return Ok(None) };
            Ok(load(tree, &layout::page(id))?.map(versioned))
        })
    }

    fn picture(&self, page: PageId, usage: PictureUse) -> Result<Option<Vec<u8>>> {
        self.one(&layout::picture(page, usage))
    }

    fn freed(&self, host: &str) -> Result<Option<Freed>> {
        self.one(&layout::freed(host))
    }

    fn pages(&self) -> Result<Vec<Versioned<Page>>> {
        self.documents(layout::PAGES)
    }

    fn pages_of(&self, account: AccountId) -> Result<Vec<Versioned<Page>>> {
        self.indexed(&layout::pages_of(account), |id| layout::page(PageId::from_u128(id)))
    }

    fn monitor(&self, id: MonitorId) -> Result<Option<Versioned<Monitor>>> {
        self.document(&layout::monitor(id))
    }

    fn monitors_after(&self, after: Option<MonitorId>, limit: usize) -> Result<Vec<Versioned<Monitor>>> {
        let Range { mut start, end } = layout::beginning(layout::MONITORS);
        if let Some(after) = after {
            start = behind(&layout::monitor(after));
        }
        Ok(self.first(start..end, limit)?.into_iter().map(|(_, document)| versioned(document)).collect())
    }

    fn monitors_of(&self, page: PageId) -> Result<Vec<Versioned<Monitor>>> {
        let key = |id| layout::monitor(MonitorId::from_u128(id));
        let mut found: Vec<Versioned<Monitor>> = self.indexed(&layout::monitors_of(page), key)?;
        found.sort_by_key(|monitor| (monitor.value.position, monitor.value.id));
        Ok(found)
    }

    fn key(&self, id: KeyId) -> Result<Option<Versioned<ApiKey>>> {
        self.document(&layout::key(id))
    }

    fn keys_of(&self, account: AccountId) -> Result<Vec<Versioned<ApiKey>>> {
        self.indexed(&layout::keys_of(account), |id| layout::key(KeyId::from_u128(id)))
    }

    fn agent(&self, id: AgentId) -> Result<Option<Versioned<Agent>>> {
        self.document(&layout::agent(id))
    }

    fn agents(&self) -> Result<Vec<Versioned<Agent>>> {
        self.documents(layout::AGENTS)
    }

    fn invitation(&self, id: InvitationId) -> Result<Option<Versioned<Invitation>>> {
        self.document(&layout::invitation(id))
    }

    fn invitations(&self) -> Result<Vec<Versioned<Invitation>>> {
        self.documents(layout::INVITATIONS)
    }

    fn incident(&self, id: IncidentId) -> Result<Option<Versioned<Incident>>> {
        self.document(&layout::incident(id))
    }

    fn incidents_of(
        &self,
        page: PageId,
        open: bool,
        before: Option<(Timestamp, IncidentId)>,
        limit: usize,
    ) -> Result<Vec<Versioned<Incident>>> {
        self.ask(|tree| calendar::incidents(tree, (page, open), before, limit))
    }

    fn oldest_incidents(&self, page: PageId, limit: usize) -> Result<Vec<Versioned<Incident>>> {
        self.ask(|tree| calendar::oldest(tree, page, limit))
    }

    fn standing(&self, page: PageId) -> Result<Standing> {
        self.ask(|tree| calendar::standing(tree, page))
    }

    fn open_incidents(&self) -> Result<Vec<Versioned<Incident>>> {
        self.indexed(layout::OPEN_OF, |id| layout::incident(IncidentId::from_u128(id)))
    }

    fn windows_of(
        &self,
        page: PageId,
        covering: Option<MonitorId>,
        starts: Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<Window>> {
        self.ask(|tree| calendar::windows(tree, (page, covering), &starts, limit))
    }

    fn series(&self, id: SeriesId) -> Result<Option<Versioned<Series>>> {
        self.document(&layout::series(id))
    }

    fn running_series(&self) -> Result<Vec<Versioned<Series>>> {
        let mut all: Vec<Versioned<Series>> = self.documents(layout::SERIES)?;
        all.retain(|series| series.value.stopped_at.is_none());
        Ok(all)
    }

    fn deploy(&self, id: DeployId) -> Result<Option<Versioned<Deploy>>> {
        self.document(&layout::deploy(id))
    }

    fn deploys_of(&self, page: PageId, limit: usize) -> Result<Vec<Versioned<Deploy>>> {
        let range = layout::beginning(&layout::on_page(layout::DEPLOYS_OF, page));
        let key = |id| layout::deploy(DeployId::from_u128(id));
        self.ask(|tree| calendar::newest(tree, range, limit, key))
    }

    fn machine(&self, monitor: MonitorId) -> Result<Option<State>> {
        self.one(&layout::machine(monitor))
    }

    fn pings(&self, monitor: MonitorId) -> Result<Vec<Ping>> {
        let keys = layout::beginning(&layout::pings_of(monitor));
        let mut found: Vec<Ping> = self.within(keys, monitor)?.into_iter().map(|(_, ping)| ping).collect();
        found.sort_by_key(|ping| std::cmp::Reverse(ping.number));
        Ok(found)
    }

    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<Recorded>> {
        let events = layout::event(seq.saturating_add(1))..=layout::event(u64::MAX);
        let found = self.ask(|tree| list::<Event>(tree, tree.range(events).take(limit)))?.into_iter();
        Ok(found.map(|(key, event)| Recorded { seq: seq_of(&key), event }).collect())
    }

    fn events_of(&self, monitor: MonitorId, before: Option<u64>, limit: usize) -> Result<Vec<Recorded>> {
        let index = layout::event_of(monitor, 0)..layout::event_of(monitor, before.unwrap_or(u64::MAX));
        self.ask(|tree| {
            let mut found = Vec::new();
            if index.start >= index.end || !tree.contains_key(layout::monitor(monitor)).map_err(failed)? {
                return Ok(found);
            }
            for item in tree.range(index).keys().rev().take(limit) {
                let seq = seq_of(&item.map_err(failed)?);
                found.extend(load(tree, &layout::event(seq))?.map(|event| Recorded { seq, event }));
            }
            Ok(found)
        })
    }

    fn last_event(&self) -> Result<u64> {
        Ok(self.meta()?.last_event)
    }

    fn cursor(&self, reader: &str) -> Result<u64> {
        Ok(self.one(&layout::cursor(reader))?.unwrap_or(0))
    }

    fn readings_after(&self, seq: u64, limit: usize) -> Result<Vec<Entry>> {
        let entries = layout::readings(seq.saturating_add(1))..=layout::readings(u64::MAX);
        let found = self.ask(|tree| list::<Vec<Reading>>(tree, tree.range(entries).take(limit)))?.into_iter();
        Ok(found.map(|(key, readings)| Entry { seq: seq_of(&key), readings }).collect())
    }

    fn last_reading(&self) -> Result<u64> {
        Ok(self.meta()?.last_reading)
    }

    fn blocks(&self, monitor: MonitorId, region: Region, hours: Range<i64>) -> Result<Vec<Block>> {
        let found = self.history(Kind::Blocks, monitor, region as u8, hours)?.into_iter();
        Ok(found.map(|(hour, (slot, bytes))| Block { monitor, slot, region, hour, bytes }).collect())
    }

    fn hours(&self, monitor: MonitorId, hours: Range<i64>) -> Result<Vec<Rollup>> {
        self.rollups(Kind::Hours, monitor, hours)
    }

    fn days(&self, monitor: MonitorId, days: Range<i64>) -> Result<Vec<Rollup>> {
        self.rollups(Kind::Days, monitor, days)
    }

    fn checkpoints(&self, part: u32, limit: usize) -> Result<Vec<Checkpoint>> {
        let parts = layout::checkpoint(part)..layout::beginning(layout::CHECKPOINTS).end;
        let found = self.first::<(u64, Vec<u8>)>(parts, limit)?.into_iter();
        let part = |key: &[u8]| layout::last_part(key).unwrap_or_default();
        Ok(found.map(|(key, (through, bytes))| Checkpoint { part: part(&key), through, bytes }).collect())
    }

    fn next_slot(&self) -> Result<u32> {
        Ok(self.one(layout::NEXT_SLOT)?.unwrap_or(0))
    }

    fn next_place(&self) -> Result<PlaceNo> {
        Ok(self.one(layout::NEXT_PLACE)?.unwrap_or(PlaceNo(0)))
    }

    fn networks(&self) -> Result<BTreeMap<String, NetworkNo>> {
        let found = self.all(layout::NETWORKS)?.into_iter();
        let label = |key: &[u8]| String::from_utf8_lossy(key.get(2..).unwrap_or_default()).into_owned();
        Ok(found.map(|(key, number)| (label(&key), number)).collect())
    }

    fn remembered(&self, name: &str) -> Result<Option<Versioned<Remembered>>> {
        let found: Option<(u64, Answer)> = self.one(&layout::remembered(name))?;
        Ok(found.map(|(revision, (fingerprint, answer, expires_at))| Versioned {
            revision,
            value: Remembered { fingerprint, answer, expires_at },
        }))
    }

    fn export(&self, to: &Path) -> Result<Exported> {
        snapshot::export(&self.0, SCHEMA, to, false)
    }

    fn stream(&self, sink: &mut dyn std::io::Write) -> Result<()> {
        snapshot::stream(&self.0, SCHEMA, sink).map(drop)
    }

    fn verify(&self) -> Result<Whole> {
        tally::whole(&self.0)
    }

    fn footprint(&self) -> Result<Footprint> {
        let bytes = self.0.db.size_on_disk().map_err(failed)?;
        Ok(Footprint { bytes, blobs: self.0.blobs()?, free: files::free(&self.0.folder)? })
    }
}
