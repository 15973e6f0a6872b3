//! Queries of the store in memory.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::Path;

use parallax_core::account::Account;
use parallax_core::deploy::Deploy;
use parallax_core::heartbeat::{MAX_STORED_PINGS, StoredPing};
use parallax_core::id::{AccountId, AgentId, DeployId, IncidentId, InvitationId, KeyId, MonitorId, PageId, SeriesId};
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

use super::MemoryStore;
use crate::{
    Block, Checkpoint, JournalEvent, PageCounts, ReadingsEntry, Result, Rollup, StoreCounts, StoreError, StoreRead,
    StoreSize, StoredResponse, VersionedValue, WrittenSnapshot,
};

impl StoreRead for MemoryStore {
    fn account(&self, id: AccountId) -> Result<Option<VersionedValue<Account>>> {
        Ok(self.read().accounts.get(&id).cloned())
    }

    fn accounts(&self) -> Result<Vec<VersionedValue<Account>>> {
        Ok(self.read().accounts.values().cloned().collect())
    }

    fn page(&self, id: PageId) -> Result<Option<VersionedValue<Page>>> {
        Ok(self.read().pages.get(&id).cloned())
    }

    fn page_by_slug(&self, slug: &str) -> Result<Option<VersionedValue<Page>>> {
        let state = self.read();
        Ok(state.slugs.get(slug).and_then(|id| state.pages.get(id)).cloned())
    }

    fn page_by_host(&self, host: &str) -> Result<Option<VersionedValue<Page>>> {
        let state = self.read();
        Ok(state.hosts.get(host).and_then(|id| state.pages.get(id)).cloned())
    }

    fn picture(&self, page: PageId, usage: PictureUse) -> Result<Option<Vec<u8>>> {
        Ok(self.read().pictures.get(&(page, usage)).cloned())
    }

    fn reserved_hostname(&self, host: &str) -> Result<Option<ReservedHostname>> {
        Ok(self.read().reserved_hostnames.get(host).copied())
    }

    fn pages(&self) -> Result<Vec<VersionedValue<Page>>> {
        Ok(self.read().pages.values().cloned().collect())
    }

    fn pages_of(&self, account: AccountId) -> Result<Vec<VersionedValue<Page>>> {
        Ok(self.read().pages.values().filter(|page| page.value.account == account).cloned().collect())
    }

    fn monitor(&self, id: MonitorId) -> Result<Option<VersionedValue<Monitor>>> {
        Ok(self.read().monitors.get(&id).cloned())
    }

    fn monitors_after(&self, after: Option<MonitorId>, limit: usize) -> Result<Vec<VersionedValue<Monitor>>> {
        let range = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        Ok(self.read().monitors.range(range).map(|(_, monitor)| monitor).take(limit).cloned().collect())
    }

    fn monitors_of(&self, page: PageId) -> Result<Vec<VersionedValue<Monitor>>> {
        let state = self.read();
        let mut records: Vec<_> = state.monitors.values().filter(|it| it.value.page == page).cloned().collect();
        records.sort_by_key(|monitor| (monitor.value.position, monitor.value.id));
        Ok(records)
    }

    fn key(&self, id: KeyId) -> Result<Option<VersionedValue<ApiKey>>> {
        Ok(self.read().keys.get(&id).cloned())
    }

    fn keys_of(&self, account: AccountId) -> Result<Vec<VersionedValue<ApiKey>>> {
        Ok(self.read().keys.values().filter(|key| key.value.account == account).cloned().collect())
    }

    fn agent(&self, id: AgentId) -> Result<Option<VersionedValue<AgentRecord>>> {
        Ok(self.read().agents.get(&id).cloned())
    }

    fn agents(&self) -> Result<Vec<VersionedValue<AgentRecord>>> {
        Ok(self.read().agents.values().cloned().collect())
    }

    fn invitation(&self, id: InvitationId) -> Result<Option<VersionedValue<Invitation>>> {
        Ok(self.read().invitations.get(&id).cloned())
    }

    fn invitations(&self) -> Result<Vec<VersionedValue<Invitation>>> {
        Ok(self.read().invitations.values().cloned().collect())
    }

    fn incident(&self, id: IncidentId) -> Result<Option<VersionedValue<Incident>>> {
        Ok(self.read().incidents.get(&id).cloned())
    }

    fn incidents_of(
        &self,
        page: PageId,
        open: bool,
        before: Option<(Timestamp, IncidentId)>,
        limit: usize,
    ) -> Result<Vec<VersionedValue<Incident>>> {
        let state = self.read();
        let position = |it: &VersionedValue<Incident>| (it.value.started_at, it.value.id);
        let is_match = |it: &&VersionedValue<Incident>| {
            it.value.page == page && (it.value.is_open() || !open) && before.is_none_or(|before| position(it) < before)
        };
        let mut records: Vec<_> = state.incidents.values().filter(is_match).cloned().collect();
        records.sort_by_key(|it| std::cmp::Reverse(position(it)));
        records.truncate(limit);
        Ok(records)
    }

    fn oldest_incidents(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Incident>>> {
        let state = self.read();
        let mut records: Vec<_> = state.incidents.values().filter(|it| it.value.page == page).cloned().collect();
        records.sort_by_key(|it| (it.value.started_at, it.value.id));
        records.truncate(limit);
        Ok(records)
    }

    fn page_counts(&self, page: PageId) -> Result<PageCounts> {
        let state = self.read();
        let on_page = || state.incidents.values().filter(|it| it.value.page == page);
        let open = on_page().filter(|it| it.value.is_open()).count();
        let is_running = |it: &&VersionedValue<Series>| it.value.page == page && it.value.stopped_at.is_none();
        let series = state.series.values().filter(is_running).count();
        Ok(PageCounts { open_incidents: open, running_series: series, incidents: on_page().count() })
    }

    fn open_incidents(&self) -> Result<Vec<VersionedValue<Incident>>> {
        let mut records: Vec<_> = self.read().incidents.values().filter(|it| it.value.is_open()).cloned().collect();
        records.sort_by_key(|it| (it.value.page, it.value.started_at, it.value.id));
        Ok(records)
    }

    fn windows_of(
        &self,
        page: PageId,
        covering: Option<MonitorId>,
        starts: Range<Timestamp>,
        limit: usize,
    ) -> Result<Vec<MaintenanceWindow>> {
        let state = self.read();
        let mut records: Vec<&Incident> = state.incidents.values().map(|it| &it.value).collect();
        records.retain(|it| it.page == page && starts.contains(&it.started_at));
        records.sort_by_key(|it| (it.started_at, it.id));
        let mut windows: Vec<MaintenanceWindow> = records.into_iter().filter_map(MaintenanceWindow::of).collect();
        windows.retain(|window| covering.is_none_or(|monitor| window.covers(monitor)));
        windows.drain(..windows.len().saturating_sub(limit));
        Ok(windows)
    }

    fn series(&self, id: SeriesId) -> Result<Option<VersionedValue<Series>>> {
        Ok(self.read().series.get(&id).cloned())
    }

    fn running_series(&self) -> Result<Vec<VersionedValue<Series>>> {
        let state = self.read();
        Ok(state.series.values().filter(|it| it.value.stopped_at.is_none()).cloned().collect())
    }

    fn deploy(&self, id: DeployId) -> Result<Option<VersionedValue<Deploy>>> {
        Ok(self.read().deploys.get(&id).cloned())
    }

    fn deploys_of(&self, page: PageId, limit: usize) -> Result<Vec<VersionedValue<Deploy>>> {
        let state = self.read();
        let mut records: Vec<_> = state.deploys.values().filter(|it| it.value.page == page).cloned().collect();
        records.sort_by_key(|it| std::cmp::Reverse((it.value.at, it.value.id)));
        records.truncate(limit);
        Ok(records)
    }

    fn machine(&self, monitor: MonitorId) -> Result<Option<MachineState>> {
        Ok(self.read().machines.get(&monitor).cloned())
    }

    fn pings(&self, monitor: MonitorId) -> Result<Vec<StoredPing>> {
        let state = self.read();
        let mut records: Vec<_> = state.pings.range((monitor, 0)..(monitor, MAX_STORED_PINGS)).collect();
        records.sort_by_key(|(_, ping)| std::cmp::Reverse(ping.number));
        Ok(records.into_iter().map(|(_, ping)| ping.clone()).collect())
    }

    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<JournalEvent>> {
        let state = self.read();
        let events = state.events.range(seq.saturating_add(1)..).take(limit);
        Ok(events.map(|(seq, event)| JournalEvent { seq: *seq, event: event.clone() }).collect())
    }

    fn events_of_many(&self, monitors: &[MonitorId], before: Option<u64>, limit: usize) -> Result<Vec<JournalEvent>> {
        let state = self.read();
        let indexes = monitors.iter().filter_map(|monitor| state.events_of.get(monitor));
        let newest = indexes.flat_map(|seqs| seqs.range(..before.unwrap_or(u64::MAX)).rev().take(limit));
        let mut seqs: Vec<u64> = newest.copied().collect();
        seqs.sort_unstable_by_key(|seq| std::cmp::Reverse(*seq));
        let event = |seq| state.events.get(&seq).map(|event| JournalEvent { seq, event: event.clone() });
        Ok(seqs.into_iter().take(limit).filter_map(event).collect())
    }

    fn last_event(&self) -> Result<u64> {
        Ok(self.read().last_event)
    }

    fn cursor(&self, reader: &str) -> Result<u64> {
        Ok(self.read().cursors.get(reader).copied().unwrap_or(0))
    }

    fn readings_after(&self, seq: u64, limit: usize) -> Result<Vec<ReadingsEntry>> {
        let state = self.read();
        let entries = state.readings.range(seq.saturating_add(1)..).take(limit);
        Ok(entries.map(|(seq, readings)| ReadingsEntry { seq: *seq, readings: readings.clone() }).collect())
    }

    fn last_reading(&self) -> Result<u64> {
        Ok(self.read().last_reading)
    }

    fn blocks(&self, monitor: MonitorId, region: Region, hours: Range<i64>) -> Result<Vec<Block>> {
        let range = (monitor, region, hours.start)..(monitor, region, hours.end.max(hours.start));
        Ok(self.read().blocks.range(range).map(|(_, block)| block.clone()).collect())
    }

    fn hours(&self, monitor: MonitorId, hours: Range<i64>) -> Result<Vec<Rollup>> {
        let range = (monitor, hours.start)..(monitor, hours.end.max(hours.start));
        Ok(self.read().hours.range(range).map(|(_, rollup)| rollup.clone()).collect())
    }

    fn days(&self, monitor: MonitorId, days: Range<i64>) -> Result<Vec<Rollup>> {
        let range = (monitor, days.start)..(monitor, days.end.max(days.start));
        Ok(self.read().days.range(range).map(|(_, rollup)| rollup.clone()).collect())
    }

    fn checkpoints(&self, part: u32, limit: usize) -> Result<Vec<Checkpoint>> {
        Ok(self.read().checkpoints.range(part..).map(|(_, checkpoint)| checkpoint).take(limit).cloned().collect())
    }

    fn next_slot(&self) -> Result<u32> {
        Ok(self.read().next_slot)
    }

    fn next_vantage(&self) -> Result<VantageNo> {
        Ok(VantageNo(self.read().next_vantage))
    }

    fn networks(&self) -> Result<BTreeMap<String, NetworkNo>> {
        Ok(self.read().networks.clone())
    }

    fn stored_response(&self, name: &str) -> Result<Option<VersionedValue<StoredResponse>>> {
        Ok(self.read().stored_responses.get(name).cloned())
    }

    fn export(&self, _: &Path) -> Result<WrittenSnapshot> {
        Err(StoreError::Io("a store in memory has no snapshots".to_owned()))
    }

    fn stream(&self, _: &mut dyn std::io::Write) -> Result<()> {
        Err(StoreError::Io("a store in memory has no snapshots".to_owned()))
    }

    fn verify(&self) -> Result<StoreCounts> {
        Ok(StoreCounts::default())
    }

    fn size(&self) -> Result<StoreSize> {
        Ok(StoreSize::default())
    }
}
