//! The key layout of the store: every prefix, its suffix, and the value.
//!
//! | prefix | then | value |
//! |---|---|---|
//! | `!s` | | schema, `u32` |
//! | `!m` | | [`StoreState`](super::meta::StoreState) |
//! | `da` `dp` `dm` `dk` `dg` `di` | id of account, page, monitor, key, agent, invitation | revision and record |
//! | `dn` `ds` `dd` | id of incident, series, deploy | revision and record |
//! | `dt` `du` `db` | id of destination, subscriber, bulletin | revision and record |
//! | `de` `dj` `dy` `dl` `dz` | person; account, person; account; hash of a session, of a link | revision and record |
//! | `df` `do` | page | revision and alert settings, or announced outages |
//! | `dr` | idempotency name | revision and stored response |
//! | `xs` `xh` | slug, custom hostname | page id |
//! | `xp` `xk` | account, page; account, key | |
//! | `xm` | page, monitor | true if it counts for the plan's limit |
//! | `xn` `xo` | page, start, incident (open ones in `xo`) | |
//! | `xw` | page, start, incident that is a window | [window](parallax_core::maintenance_window) |
//! | `xr` | page, series | true if it runs |
//! | `xd` | page, time, deploy | |
//! | `xt` `xu` `xb` `xl` | page (255s: none), destination, subscriber, bulletin, delivery | |
//! | `xc` `xa` `xg` | page, fingerprint of a contact; email address; email domain | subscriber; person; account |
//! | `xy` `xq` `xz` | person, account; person, session; account or person, link | |
//! | `xe` | expiry, idempotency name | |
//! | `xi` | API key, expiry, rest of the idempotency name | bytes of the stored response |
//! | `xj` | API key | number of stored responses, and their bytes |
//! | `al` `an` | account, number; account | entry of the audit log; its oldest and next number |
//! | `xv` | monitor, event sequence | |
//! | `ms` | monitor | machine state |
//! | `pi` | monitor, ping number modulo the pings kept per monitor | ping |
//! | `ev` | sequence | event |
//! | `cu` | name | sequence |
//! | `or` | sequence | readings |
//! | `vd` | delivery | revision and record |
//! | `vq` | waiting delivery | ordering key, position in it, and due time |
//! | `vb` | unfinished bulletin | |
//! | `bl` | monitor, region, hour | slot and packed readings |
//! | `rh` `rd` | monitor, hour or day | packed statistics |
//! | `fb` `fh` `fd` | monitor, 8 hours, day or 32 days | [compacted](super::compaction) blocks, hour and day roll-ups |
//! | `tc` | part | sequence and packed tails |
//! | `ns` `np` `nn` | ; ; network label | next slot; next vantage number; the network's number |
//! | `pl` | page, use of a picture | its bytes |
//! | `th` | reserved hostname | the account it is reserved for, and until when |
//! | `gm` | monitor | empty: its history is to be deleted |
//! | `+` | another key, part number | continuation of a value that is too long for one record |
//!
//! Numbers are big-endian, times with the sign bit flipped, so that key order is numeric order and a query is a key
//! range.

use std::ops::Range;

use parallax_core::heartbeat::MAX_STORED_PINGS;
use parallax_core::id::{
    AccountId, AgentId, BulletinId, DeliveryId, DeployId, DestinationId, IncidentId, InvitationId, KeyId, MonitorId,
    PageId, SeriesId, SubscriberId,
};
use parallax_core::page::branding::PictureUse;
use parallax_core::time::Timestamp;

/// The schema that this program writes, and the newest that it reads. 2: events are trimmed; 3: hours are compacted;
/// 4: alerts and subscribers; 5: page branding (see `migrate`).
pub(super) const SCHEMA: u32 = 5;

pub(super) type TreeKey = Vec<u8>;

pub(super) const SCHEMA_KEY: &[u8] = b"!s";
pub(super) const META_KEY: &[u8] = b"!m";
pub(super) const NEXT_SLOT: &[u8] = b"ns";
pub(super) const NEXT_VANTAGE: &[u8] = b"np";

/// Prefixes that are read as a whole.
pub(super) const DOCUMENTS: &[u8] = b"d";
pub(super) const ACCOUNTS: &[u8] = b"da";
pub(super) const PAGES: &[u8] = b"dp";
pub(super) const MONITORS: &[u8] = b"dm";
pub(super) const AGENTS: &[u8] = b"dg";
pub(super) const INVITATIONS: &[u8] = b"di";
/// Prefixes of a page's lists by time: all incidents, open ones, windows, deploys; and its series.
pub(super) const INCIDENTS_OF: &[u8] = b"xn";
pub(super) const OPEN_OF: &[u8] = b"xo";
pub(super) const WINDOWS_OF: &[u8] = b"xw";
pub(super) const DEPLOYS_OF: &[u8] = b"xd";
pub(super) const SERIES: &[u8] = b"ds";
/// Prefixes of a page's notifications.
pub(super) const DESTINATIONS_OF: &[u8] = b"xt";
pub(super) const SUBSCRIBERS_OF: &[u8] = b"xu";
pub(super) const BULLETINS_OF: &[u8] = b"xb";
pub(super) const BULLETINS: &[u8] = b"db";
pub(super) const OPEN_BULLETINS: &[u8] = b"vb";
pub(super) const DELIVERIES: &[u8] = b"vd";
pub(super) const QUEUED: &[u8] = b"vq";
pub(super) const MACHINES: &[u8] = b"ms";
pub(super) const EVENTS: &[u8] = b"ev";
pub(super) const READINGS: &[u8] = b"or";
pub(super) const CURSORS: &[u8] = b"cu";
pub(super) const CHECKPOINTS: &[u8] = b"tc";
pub(super) const NETWORKS: &[u8] = b"nn";
pub(super) const DELETED_MONITORS: &[u8] = b"gm";
pub(super) const RESERVED_HOSTNAMES: &[u8] = b"th";
/// Prefixes of compacted blocks, hour roll-ups and day roll-ups.
pub(super) const COMPACTED_BLOCKS: &[u8] = b"fb";
pub(super) const COMPACTED_HOURS: &[u8] = b"fh";
pub(super) const COMPACTED_DAYS: &[u8] = b"fd";
pub(super) const PIECES: &[u8] = b"+";
pub(super) const INTERNAL: &[u8] = b"!";
pub(super) fn account(id: AccountId) -> TreeKey {
    join(ACCOUNTS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn page(id: PageId) -> TreeKey {
    join(PAGES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn monitor(id: MonitorId) -> TreeKey {
    join(MONITORS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn key(id: KeyId) -> TreeKey {
    join(b"dk", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn agent(id: AgentId) -> TreeKey {
    join(AGENTS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn invitation(id: InvitationId) -> TreeKey {
    join(INVITATIONS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn incident(id: IncidentId) -> TreeKey {
    join(b"dn", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn series(id: SeriesId) -> TreeKey {
    join(SERIES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn deploy(id: DeployId) -> TreeKey {
    join(b"dd", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn destination(id: DestinationId) -> TreeKey {
    join(b"dt", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn subscriber(id: SubscriberId) -> TreeKey {
    join(b"du", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn contact(page: PageId, fingerprint: [u8; 16]) -> TreeKey {
    join(b"xc", &[&page.to_u128().to_be_bytes(), &fingerprint])
}

pub(super) fn bulletin(id: BulletinId) -> TreeKey {
    join(BULLETINS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn open_bulletin(id: BulletinId) -> TreeKey {
    join(OPEN_BULLETINS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn alert_settings(page: PageId) -> TreeKey {
    page_list(b"df", page)
}

pub(super) fn announced_outages(page: PageId) -> TreeKey {
    page_list(b"do", page)
}

pub(super) fn delivery(id: DeliveryId) -> TreeKey {
    join(DELIVERIES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn queued(id: DeliveryId) -> TreeKey {
    join(QUEUED, &[&id.to_u128().to_be_bytes()])
}

/// Returns the prefix of a page's deliveries; without a page, of the operator's.
pub(super) fn deliveries_of(page: Option<PageId>) -> TreeKey {
    join(b"xl", &[&page.map_or(u128::MAX, PageId::to_u128).to_be_bytes()])
}

pub(super) fn delivery_of(page: Option<PageId>, id: u128) -> TreeKey {
    join(&deliveries_of(page), &[&id.to_be_bytes()])
}

/// Returns the key of a page's list entry by id.
pub(super) fn list_entry(prefix: &[u8], page: PageId, id: u128) -> TreeKey {
    join(&page_list(prefix, page), &[&id.to_be_bytes()])
}

/// Returns the prefix of a page's list.
pub(super) fn page_list(prefix: &[u8], page: PageId) -> TreeKey {
    join(prefix, &[&page.to_u128().to_be_bytes()])
}

/// Returns the first possible key of a page's list at a time.
pub(super) fn page_list_from(prefix: &[u8], page: PageId, at: Timestamp) -> TreeKey {
    join(&page_list(prefix, page), &[&time(at.as_millis())])
}

/// Returns the key of a page's list entry by time and id.
pub(super) fn page_list_entry(prefix: &[u8], page: PageId, at: Timestamp, id: u128) -> TreeKey {
    join(&page_list_from(prefix, page, at), &[&id.to_be_bytes()])
}

pub(super) fn series_of(page: PageId) -> TreeKey {
    join(b"xr", &[&page.to_u128().to_be_bytes()])
}

pub(super) fn series_entry(page: PageId, series: SeriesId) -> TreeKey {
    join(&series_of(page), &[&series.to_u128().to_be_bytes()])
}

pub(super) fn stored_response(name: &str) -> TreeKey {
    join(b"dr", &[name.as_bytes()])
}

pub(super) fn slug(slug: &str) -> TreeKey {
    join(b"xs", &[slug.as_bytes()])
}

pub(super) fn custom_host(host: &str) -> TreeKey {
    join(b"xh", &[host.as_bytes()])
}

pub(super) fn reserved_hostname(host: &str) -> TreeKey {
    join(RESERVED_HOSTNAMES, &[host.as_bytes()])
}

pub(super) fn picture(page: PageId, usage: PictureUse) -> TreeKey {
    join(&page_list(b"pl", page), &[&[usage as u8]])
}

pub(super) fn pages_of(account: AccountId) -> TreeKey {
    join(b"xp", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn page_of(account: AccountId, page: PageId) -> TreeKey {
    join(&pages_of(account), &[&page.to_u128().to_be_bytes()])
}

pub(super) fn monitors_of(page: PageId) -> TreeKey {
    join(b"xm", &[&page.to_u128().to_be_bytes()])
}

pub(super) fn monitor_of(page: PageId, monitor: MonitorId) -> TreeKey {
    join(&monitors_of(page), &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn keys_of(account: AccountId) -> TreeKey {
    join(b"xk", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn key_of(account: AccountId, key: KeyId) -> TreeKey {
    join(&keys_of(account), &[&key.to_u128().to_be_bytes()])
}

pub(super) fn expiry(at: Timestamp, name: &str) -> TreeKey {
    join(b"xe", &[&time(at.as_millis()), name.as_bytes()])
}

/// Returns the key range of everything that expired at or before then.
pub(super) fn expired(now: Timestamp) -> Range<TreeKey> {
    join(b"xe", &[])..join(b"xe", &[&time(now.as_millis().saturating_add(1))])
}

/// Returns the idempotency name at the end of an [`expiry`] key.
pub(super) fn expired_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(10..)?).ok()
}

pub(super) fn events_of(monitor: MonitorId) -> TreeKey {
    join(b"xv", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn event_of(monitor: MonitorId, seq: u64) -> TreeKey {
    join(&events_of(monitor), &[&seq.to_be_bytes()])
}

pub(super) fn machine(monitor: MonitorId) -> TreeKey {
    join(MACHINES, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn pings_of(monitor: MonitorId) -> TreeKey {
    join(b"pi", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn ping(monitor: MonitorId, number: u64) -> TreeKey {
    join(&pings_of(monitor), &[&(number % MAX_STORED_PINGS).to_be_bytes()])
}

pub(super) fn event(seq: u64) -> TreeKey {
    join(EVENTS, &[&seq.to_be_bytes()])
}

pub(super) fn cursor(name: &str) -> TreeKey {
    join(CURSORS, &[name.as_bytes()])
}

pub(super) fn readings(seq: u64) -> TreeKey {
    join(READINGS, &[&seq.to_be_bytes()])
}

pub(super) fn blocks_of(monitor: MonitorId) -> TreeKey {
    join(b"bl", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn block(monitor: MonitorId, region: u8, hour: i64) -> TreeKey {
    join(&blocks_of(monitor), &[&[region], &time(hour)])
}

pub(super) fn hours_of(monitor: MonitorId) -> TreeKey {
    join(b"rh", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn hour(monitor: MonitorId, hour: i64) -> TreeKey {
    join(&hours_of(monitor), &[&time(hour)])
}

pub(super) fn days_of(monitor: MonitorId) -> TreeKey {
    join(b"rd", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn day(monitor: MonitorId, day: i64) -> TreeKey {
    join(&days_of(monitor), &[&time(day)])
}

/// Returns the prefix of a monitor's compacted records.
pub(super) fn compacted_of(prefix: &[u8], monitor: MonitorId) -> TreeKey {
    join(prefix, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn compacted(prefix: &[u8], monitor: MonitorId, span: i64) -> TreeKey {
    join(&compacted_of(prefix, monitor), &[&time(span)])
}

pub(super) fn checkpoint(part: u32) -> TreeKey {
    join(CHECKPOINTS, &[&part.to_be_bytes()])
}

pub(super) fn network(label: &str) -> TreeKey {
    join(NETWORKS, &[label.as_bytes()])
}

pub(super) fn deleted_monitor(monitor: MonitorId) -> TreeKey {
    join(DELETED_MONITORS, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn piece(key: &[u8], number: u16) -> TreeKey {
    join(PIECES, &[key, &number.to_be_bytes()])
}

/// Returns the range of all keys with a prefix.
pub(super) fn prefix_range(prefix: &[u8]) -> Range<TreeKey> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        // No prefix of the table ends in 255 alone. Ids may; then the byte before is incremented.
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            break;
        }
    }
    prefix.to_vec()..end
}

/// Returns the 16-byte id at the end of a key.
pub(super) fn last_id(key: &[u8]) -> Option<u128> {
    key.last_chunk::<16>().map(|bytes| u128::from_be_bytes(*bytes))
}

/// Returns the 8-byte number at the end of a key.
pub(super) fn last_seq(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Returns the time, hour or day at the end of a key.
pub(super) fn last_time(key: &[u8]) -> Option<i64> {
    last_seq(key).map(|bits| (bits ^ SIGN).cast_signed())
}

/// Returns the part number at the end of a [`checkpoint`] key.
pub(super) fn last_part(key: &[u8]) -> Option<u32> {
    key.last_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

const SIGN: u64 = 1 << 63;

pub(super) fn time(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ SIGN).to_be_bytes()
}

pub(super) fn join(prefix: &[u8], rest: &[&[u8]]) -> TreeKey {
    let mut key = Vec::with_capacity(prefix.len() + rest.iter().map(|part| part.len()).sum::<usize>());
    key.extend_from_slice(prefix);
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

#[cfg(test)]
mod tests;
