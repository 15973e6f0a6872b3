//! The key layout of the store: every prefix, its suffix, and the value.
//!
//! | prefix | then | value |
//! |---|---|---|
//! | `!s` | | schema, `u32` |
//! | `!m` | | [`Meta`](super::meta::Meta) |
//! | `da` `dp` `dm` `dk` `dg` `di` | id of account, page, monitor, key, agent, invitation | revision and record |
//! | `dn` `ds` `dd` | id of incident, series, deploy | revision and record |
//! | `dt` `du` `db` | id of destination, subscriber, bulletin | revision and record |
//! | `df` `do` | page | revision and alert settings, or announced outages |
//! | `dr` | idempotency name | revision and stored response |
//! | `xs` `xh` | slug, custom hostname | page id |
//! | `xp` | account, page | |
//! | `xm` | page, monitor | true if it counts for the plan's limit |
//! | `xk` | account, key | |
//! | `xn` `xo` | page, start, incident (open ones in `xo`) | |
//! | `xw` | page, start, incident that is a window | [`Window`](parallax_core::window::Window) |
//! | `xr` | page, series | true if it runs |
//! | `xd` | page, time, deploy | |
//! | `xt` `xu` `xb` `xl` | page (255s: none), destination, subscriber, bulletin, delivery | |
//! | `xc` | page, fingerprint of a contact | subscriber |
//! | `xe` | expiry, idempotency name | |
//! | `xi` | API key, expiry, rest of the idempotency name | bytes of the stored response |
//! | `xj` | API key | number of stored responses, and their bytes |
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
//! | `fb` `fh` `fd` | monitor, 8 hours, day or 32 days | [compacted](super::fold) blocks, hour and day roll-ups |
//! | `tc` | part | sequence and packed tails |
//! | `ns` `np` | | next slot, next vantage number |
//! | `nn` | network label | its number |
//! | `pl` | page, use of a picture | its bytes |
//! | `th` | reserved hostname | the account it is reserved for, and until when |
//! | `gm` | monitor | empty: its history is to be deleted |
//! | `+` | another key, part number | continuation of a value that is too long for one record |
//!
//! Numbers are big-endian, times with the sign bit flipped, so that key order is numeric order and a query is a key
//! range.

use std::ops::Range;

use parallax_core::heartbeat::PINGS_KEPT;
use parallax_core::id::{
    AccountId, AgentId, BulletinId, DeliveryId, DeployId, DestinationId, IncidentId, InvitationId, KeyId,
    MonitorId, PageId, SeriesId, SubscriberId,
};
use parallax_core::page::look::PictureUse;
use parallax_core::time::Timestamp;

/// The schema that this program writes, and the newest that it reads. 2: events are trimmed; 3: hours are compacted;
/// 4: alerts and subscribers; 5: page branding (see `migrate`).
pub(super) const SCHEMA: u32 = 5;

pub(super) type Key = Vec<u8>;

pub(super) const SCHEMA_KEY: &[u8] = b"!s";
pub(super) const META_KEY: &[u8] = b"!m";
pub(super) const NEXT_SLOT: &[u8] = b"ns";
pub(super) const NEXT_PLACE: &[u8] = b"np";

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
pub(super) const GONE: &[u8] = b"gm";
pub(super) const FREED: &[u8] = b"th";
/// Prefixes of compacted blocks, hour roll-ups and day roll-ups.
pub(super) const FOLDED_BLOCKS: &[u8] = b"fb";
pub(super) const FOLDED_HOURS: &[u8] = b"fh";
pub(super) const FOLDED_DAYS: &[u8] = b"fd";
pub(super) const PARTS: &[u8] = b"+";
pub(super) const OWN: &[u8] = b"!";
pub(super) fn account(id: AccountId) -> Key {
    join(ACCOUNTS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn page(id: PageId) -> Key {
    join(PAGES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn monitor(id: MonitorId) -> Key {
    join(MONITORS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn key(id: KeyId) -> Key {
    join(b"dk", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn agent(id: AgentId) -> Key {
    join(AGENTS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn invitation(id: InvitationId) -> Key {
    join(INVITATIONS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn incident(id: IncidentId) -> Key {
    join(b"dn", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn series(id: SeriesId) -> Key {
    join(SERIES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn deploy(id: DeployId) -> Key {
    join(b"dd", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn destination(id: DestinationId) -> Key {
    join(b"dt", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn subscriber(id: SubscriberId) -> Key {
    join(b"du", &[&id.to_u128().to_be_bytes()])
}

pub(super) fn contact(page: PageId, fingerprint: [u8; 16]) -> Key {
    join(b"xc", &[&page.to_u128().to_be_bytes(), &fingerprint])
}

pub(super) fn bulletin(id: BulletinId) -> Key {
    join(BULLETINS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn open_bulletin(id: BulletinId) -> Key {
    join(OPEN_BULLETINS, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn telling(page: PageId) -> Key {
    on_page(b"df", page)
}

pub(super) fn outages(page: PageId) -> Key {
    on_page(b"do", page)
}

pub(super) fn delivery(id: DeliveryId) -> Key {
    join(DELIVERIES, &[&id.to_u128().to_be_bytes()])
}

pub(super) fn queued(id: DeliveryId) -> Key {
    join(QUEUED, &[&id.to_u128().to_be_bytes()])
}

/// Returns the prefix of a page's deliveries; without a page, of the operator's.
pub(super) fn deliveries_of(page: Option<PageId>) -> Key {
    join(b"xl", &[&page.map_or(u128::MAX, PageId::to_u128).to_be_bytes()])
}

pub(super) fn delivery_of(page: Option<PageId>, id: u128) -> Key {
    join(&deliveries_of(page), &[&id.to_be_bytes()])
}

/// Returns the key of a page's list entry by id.
pub(super) fn listed(prefix: &[u8], page: PageId, id: u128) -> Key {
    join(&on_page(prefix, page), &[&id.to_be_bytes()])
}

/// Returns the prefix of a page's list.
pub(super) fn on_page(prefix: &[u8], page: PageId) -> Key {
    join(prefix, &[&page.to_u128().to_be_bytes()])
}

/// Returns the first possible key of a page's list at a time.
pub(super) fn on_page_from(prefix: &[u8], page: PageId, at: Timestamp) -> Key {
    join(&on_page(prefix, page), &[&time(at.as_millis())])
}

/// Returns the key of a page's list entry by time and id.
pub(super) fn on_page_at(prefix: &[u8], page: PageId, at: Timestamp, id: u128) -> Key {
    join(&on_page_from(prefix, page, at), &[&id.to_be_bytes()])
}

pub(super) fn series_of(page: PageId) -> Key {
    join(b"xr", &[&page.to_u128().to_be_bytes()])
}

pub(super) fn series_on(page: PageId, series: SeriesId) -> Key {
    join(&series_of(page), &[&series.to_u128().to_be_bytes()])
}

pub(super) fn remembered(name: &str) -> Key {
    join(b"dr", &[name.as_bytes()])
}

pub(super) fn slug(slug: &str) -> Key {
    join(b"xs", &[slug.as_bytes()])
}

pub(super) fn own_host(host: &str) -> Key {
    join(b"xh", &[host.as_bytes()])
}

pub(super) fn freed(host: &str) -> Key {
    join(FREED, &[host.as_bytes()])
}

pub(super) fn picture(page: PageId, usage: PictureUse) -> Key {
    join(&on_page(b"pl", page), &[&[usage as u8]])
}

pub(super) fn pages_of(account: AccountId) -> Key {
    join(b"xp", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn page_of(account: AccountId, page: PageId) -> Key {
    join(&pages_of(account), &[&page.to_u128().to_be_bytes()])
}

pub(super) fn monitors_of(page: PageId) -> Key {
    join(b"xm", &[&page.to_u128().to_be_bytes()])
}

pub(super) fn monitor_of(page: PageId, monitor: MonitorId) -> Key {
    join(&monitors_of(page), &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn keys_of(account: AccountId) -> Key {
    join(b"xk", &[&account.to_u128().to_be_bytes()])
}

pub(super) fn key_of(account: AccountId, key: KeyId) -> Key {
    join(&keys_of(account), &[&key.to_u128().to_be_bytes()])
}

pub(super) fn expiry(at: Timestamp, name: &str) -> Key {
    join(b"xe", &[&time(at.as_millis()), name.as_bytes()])
}

/// Returns the key range of everything that expired at or before then.
pub(super) fn expired(now: Timestamp) -> Range<Key> {
    join(b"xe", &[])..join(b"xe", &[&time(now.as_millis().saturating_add(1))])
}

/// Returns the idempotency name at the end of an [`expiry`] key.
pub(super) fn expired_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(10..)?).ok()
}

pub(super) fn events_of(monitor: MonitorId) -> Key {
    join(b"xv", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn event_of(monitor: MonitorId, seq: u64) -> Key {
    join(&events_of(monitor), &[&seq.to_be_bytes()])
}

pub(super) fn machine(monitor: MonitorId) -> Key {
    join(MACHINES, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn pings_of(monitor: MonitorId) -> Key {
    join(b"pi", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn ping(monitor: MonitorId, number: u64) -> Key {
    join(&pings_of(monitor), &[&(number % PINGS_KEPT).to_be_bytes()])
}

pub(super) fn event(seq: u64) -> Key {
    join(EVENTS, &[&seq.to_be_bytes()])
}

pub(super) fn cursor(reader: &str) -> Key {
    join(CURSORS, &[reader.as_bytes()])
}

pub(super) fn readings(seq: u64) -> Key {
    join(READINGS, &[&seq.to_be_bytes()])
}

pub(super) fn blocks_of(monitor: MonitorId) -> Key {
    join(b"bl", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn block(monitor: MonitorId, region: u8, hour: i64) -> Key {
    join(&blocks_of(monitor), &[&[region], &time(hour)])
}

pub(super) fn hours_of(monitor: MonitorId) -> Key {
    join(b"rh", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn hour(monitor: MonitorId, hour: i64) -> Key {
    join(&hours_of(monitor), &[&time(hour)])
}

pub(super) fn days_of(monitor: MonitorId) -> Key {
    join(b"rd", &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn day(monitor: MonitorId, day: i64) -> Key {
    join(&days_of(monitor), &[&time(day)])
}

/// Returns the prefix of a monitor's compacted records.
pub(super) fn folded_of(prefix: &[u8], monitor: MonitorId) -> Key {
    join(prefix, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn folded(prefix: &[u8], monitor: MonitorId, span: i64) -> Key {
    join(&folded_of(prefix, monitor), &[&time(span)])
}

pub(super) fn checkpoint(part: u32) -> Key {
    join(CHECKPOINTS, &[&part.to_be_bytes()])
}

pub(super) fn network(label: &str) -> Key {
    join(NETWORKS, &[label.as_bytes()])
}

pub(super) fn gone(monitor: MonitorId) -> Key {
    join(GONE, &[&monitor.to_u128().to_be_bytes()])
}

pub(super) fn part(key: &[u8], number: u16) -> Key {
    join(PARTS, &[key, &number.to_be_bytes()])
}

/// Returns the range of all keys with a prefix.
pub(super) fn beginning(prefix: &[u8]) -> Range<Key> {
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
    last_seq(key).map(|turned| (turned ^ SIGN).cast_signed())
}

/// Returns the part number at the end of a [`checkpoint`] key.
pub(super) fn last_part(key: &[u8]) -> Option<u32> {
    key.last_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

const SIGN: u64 = 1 << 63;

pub(super) fn time(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ SIGN).to_be_bytes()
}

pub(super) fn join(prefix: &[u8], rest: &[&[u8]]) -> Key {
    let mut key = Vec::with_capacity(prefix.len() + rest.iter().map(|part| part.len()).sum::<usize>());
    key.extend_from_slice(prefix);
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

#[cfg(test)]
mod tests;
