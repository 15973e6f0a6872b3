//! Sample records for tests of this crate and of those that use it (feature `samples`), numbered for distinction.

mod audit;
mod people;

use std::path::Path;
use std::sync::Arc;

use parallax_core::account::Account;
use parallax_core::alert_settings::{AnnouncedOutage, AnnouncedOutages, FlappingUpdate};
use parallax_core::check::{Check, ComponentCheck, TcpCheck};
use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, MailMessage, Recipient};
use parallax_core::deploy::Deploy;
use parallax_core::destination::{Channel, DeliveryHealth, Destination};
use parallax_core::event::{EditKind, Event, EventKind};
use parallax_core::heartbeat::{PingKind, StoredPing};
use parallax_core::id::{
    AccountId, AgentId, BulletinId, DeliveryId, DeployId, DestinationId, IncidentId, InvitationId, KeyId, MonitorId,
    PageId, SeriesId, SubscriberId,
};
use parallax_core::incident::series::Series;
use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus, MonitorImpact};
use parallax_core::key::{ApiKey, KeyAccess};
use parallax_core::member::{AgentRecord, IdentityState, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::page::Page;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::plan::Plan;
use parallax_core::recurrence::{Frequency, Recurrence};
use parallax_core::subscriber::{Bulletin, Contact, Subscriber};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};

pub use self::audit::*;
pub use self::people::*;
use crate::memory::MemoryStore;
use crate::{Batch, Block, CommitReceipt, Op, Result, Rollup, StoreRead, StoreWrite, StoredResponse, disk};

/// A storage engine under test.
#[derive(Debug)]
pub struct TestStore {
    pub reader: Arc<dyn StoreRead>,
    pub writer: Box<dyn StoreWrite>,
}

impl TestStore {
    pub fn in_memory() -> Self {
        let memory = MemoryStore::new();
        Self { reader: Arc::new(memory.clone()), writer: Box::new(memory) }
    }

    pub fn on_disk(folder: &Path) -> Self {
        Self::open(folder).unwrap()
    }

    pub fn open(folder: &Path) -> Result<Self> {
        let (reader, writer) = disk::open(folder, small_options())?;
        Ok(Self { reader, writer })
    }

    pub fn commit(&mut self, batch: &Batch) -> Result<CommitReceipt> {
        self.writer.commit(std::slice::from_ref(batch)).remove(0)
    }

    pub fn write(&mut self, op: impl Into<Op>) -> CommitReceipt {
        self.commit(Batch::new().write(op)).unwrap()
    }

    pub fn tidy(&mut self) {
        while self.writer.clean_up().unwrap() {}
    }
}

/// Returns store settings with small disk limits.
pub fn small_options() -> disk::DiskOptions {
    disk::DiskOptions {
        cache: 8 << 20,
        ballast: 4096,
        refuse_below: 0,
        resume_above: 0,
        verify_up_to: u64::MAX,
        ..disk::DiskOptions::default()
    }
}

pub fn account_id(n: u128) -> AccountId {
    AccountId::from_u128(n)
}

pub fn page_id(n: u128) -> PageId {
    PageId::from_u128(n)
}

pub fn monitor_id(n: u128) -> MonitorId {
    MonitorId::from_u128(n)
}

pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub fn account(n: u128) -> Account {
    Account {
        id: account_id(n),
        email: format!("{n}@example.com"),
        plan: Plan::Pro,
        created_at: at(5),
        plan_since: None,
        is_set_up_dismissed: false,
        set_up_done: 0,
        factor_needed_since: None,
    }
}

pub fn page(n: u128, account: u128, slug: &str) -> Page {
    Page {
        name: format!("Page {n}"),
        description: Some("All of it".to_owned()),
        timezone: chrono_tz::Europe::Vienna,
        uptime_target: Some(99.9),
        show_deploys: true,
        ..Page::blank(page_id(n), account_id(account), slug.to_owned(), at(6))
    }
}

/// Builds a page with a custom hostname.
pub fn page_with_host(n: u128, slug: &str, host: &str) -> Page {
    Page { custom_domain: Some(host.to_owned()), ..page(n, n, slug) }
}

pub fn reserved_hostname(account: u128, until: i64) -> ReservedHostname {
    ReservedHostname { account: account_id(account), until: at(until) }
}

pub fn monitor(n: u128, page: u128, position: u32) -> Monitor {
    Monitor {
        id: monitor_id(n),
        page: page_id(page),
        slot: n as u32,
        revision: 1,
        name: format!("Monitor {n}"),
        group: None,
        check: Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 }),
        slow_threshold_ms: None,
        slow_thresholds: None,
        latency_regions: None,
        pinned_region: Some(Region::Asia),
        position,
        paused: false,
        created_at: at(7),
        acknowledgement: None,
    }
}

pub fn component(n: u128, page: u128) -> Monitor {
    let check = ComponentCheck { url: "https://status.example.com".to_owned(), component: None };
    Monitor { check: Check::Component(check), ..monitor(n, page, 0) }
}

pub fn key(n: u128, account: u128) -> ApiKey {
    ApiKey {
        id: KeyId::from_u128(n),
        account: account_id(account),
        name: format!("Key {n}"),
        access: KeyAccess::Write,
        page: None,
        hash: [n as u8; 32],
        created_at: at(8),
        last_used_at: None,
    }
}

pub fn agent(n: u16) -> AgentRecord {
    AgentRecord {
        id: AgentId::from_u128(u128::from(n)),
        vantage_no: VantageNo(n),
        name: format!("agent-{n}"),
        region: Region::Africa,
        network: "one".to_owned(),
        network_no: NetworkNo(0),
        joined_at: at(9),
        revoked_at: None,
        serial: vec![n as u8; 16],
        identity: IdentityState {
            previous_serial: vec![1; 16],
            valid_from: 1_800_000_000,
            suspended_until: Some(at(11)),
        },
    }
}

pub fn invitation(n: u128, used_by: Option<AgentId>) -> Invitation {
    Invitation {
        id: InvitationId::from_u128(n),
        secret_hash: [3; 32],
        name: "agent".to_owned(),
        region: Region::Oceania,
        network: "two".to_owned(),
        created_at: at(10),
        expires_at: at(11),
        wrong_secrets: 0,
        used_by,
        revoked_at: None,
    }
}

pub fn incident(n: u128, page: u128, started: i64, open: bool) -> Incident {
    Incident {
        id: IncidentId::from_u128(n),
        page: page_id(page),
        kind: IncidentKind::Incident,
        title: format!("Incident {n}"),
        status: if open { IncidentStatus::Investigating } else { IncidentStatus::Resolved },
        impact: Impact::Partial,
        started_at: at(started),
        ends_at: None,
        resolved_at: (!open).then(|| at(started + 5)),
        automatic: false,
        notify: true,
        remind: Vec::new(),
        series: None,
        postmortem: None,
        affected: vec![MonitorImpact { monitor: monitor_id(1), impact: None }],
        updates: Vec::new(),
        has_begun: true,
        reminded_until: at(0),
        created_at: at(13),
        edited_at: Some(at(14)),
        planned_at: None,
    }
}

pub fn window(n: u128, page: u128, started: i64, open: bool) -> Incident {
    let status = if open { IncidentStatus::Scheduled } else { IncidentStatus::Completed };
    let ends_at = Some(at(started + 10));
    Incident { kind: IncidentKind::Maintenance, status, ends_at, ..incident(n, page, started, open) }
}

pub fn series(n: u128, page: u128, stopped_at: Option<i64>) -> Series {
    let recurrence = Recurrence { frequency: Frequency::Monthly, zone: chrono_tz::Europe::Vienna, first: at(14) };
    Series {
        id: SeriesId::from_u128(n),
        page: page_id(page),
        recurrence,
        length: 10,
        next_index: 1,
        stopped_at: stopped_at.map(at),
        title: format!("Series {n}"),
        message: String::new(),
        affected: Vec::new(),
        remind: Vec::new(),
        notify: true,
    }
}

pub fn deploy(n: u128, page: u128, deployed_at: i64) -> Deploy {
    Deploy {
        id: DeployId::from_u128(n),
        page: page_id(page),
        version: format!("v{n}"),
        url: None,
        note: None,
        monitors: None,
        at: at(deployed_at),
        created_at: at(15),
    }
}

pub fn destination(n: u128, page: u128) -> Destination {
    Destination {
        id: DestinationId::from_u128(n),
        page: page_id(page),
        name: format!("Destination {n}"),
        channel: Channel::Email { to: "on-call@example.com".to_owned() },
        events: None,
        monitors: None,
        enabled: true,
        health: DeliveryHealth::default(),
        created_at: at(16),
        evidence_link: false,
    }
}

pub fn subscriber(n: u128, page: u128, fingerprint: u8) -> Subscriber {
    Subscriber {
        id: SubscriberId::from_u128(n),
        page: page_id(page),
        contact: Contact::Email(format!("{n}@example.com")),
        fingerprint: [fingerprint; 16],
        monitors: None,
        confirmed_at: Some(at(17)),
        token: [n as u8; 16],
        confirmation_sent_at: at(17),
        health: DeliveryHealth::default(),
        created_at: at(17),
        by_owner: false,
        queued_at: None,
    }
}

/// Builds a bulletin created in that millisecond.
pub fn bulletin(millis: i64, page: u128, done: bool) -> Bulletin {
    Bulletin {
        id: BulletinId::new(at(millis), [7; 10]),
        page: page_id(page),
        incident: IncidentId::from_u128(1),
        event: "incident.created".to_owned(),
        seq: 3,
        affected: Vec::new(),
        json: br#"{"event":"incident.created"}"#.to_vec(),
        mail: MailMessage { subject: "News".to_owned(), text: "It broke".to_owned(), html: "<p>It broke".to_owned() },
        created_at: at(millis),
        last_reached: None,
        is_complete: done,
    }
}

/// Builds a delivery created in that millisecond; `due` is when it is to be sent, `None` if it was sent.
pub fn delivery(millis: i64, page: Option<u128>, due: Option<i64>) -> Delivery {
    Delivery {
        id: DeliveryId::new(at(millis), [page.unwrap_or(9) as u8; 10]),
        page: page.map(page_id),
        to: Recipient::Destination(DestinationId::from_u128(1)),
        event: "went-down".to_owned(),
        monitor: Some(monitor_id(1)),
        incident: None,
        seq: 4,
        message: DeliveryMessage::Json(b"{}".to_vec()),
        is_single_attempt: false,
        created_at: at(millis),
        state: due.map_or(DeliveryState::Delivered(at(18)), |due| DeliveryState::Waiting(at(due))),
        attempts: Default::default(),
        attempt_log: Vec::new(),
        outage_start: None,
    }
}

pub fn outages(n: u128) -> AnnouncedOutages {
    let outage = AnnouncedOutage { since: at(19), reason: None, down_from: None, incident: None };
    let flapping_update = FlappingUpdate { incident: IncidentId::from_u128(n), update: None };
    AnnouncedOutages {
        down: [(monitor_id(n), outage)].into(),
        widest_scope: [(monitor_id(n), None)].into(),
        flapping: [(monitor_id(n), flapping_update)].into(),
    }
}

pub fn ping(number: u64, body: &[u8]) -> StoredPing {
    StoredPing {
        number,
        at: at(12),
        kind: PingKind::Failed(Some(3)),
        run: Some(7),
        run_ms: Some(80),
        method: "POST".to_owned(),
        client_ip: None,
        user_agent: "curl".to_owned(),
        body: body.to_vec(),
    }
}

pub fn event(n: i64, monitor: Option<u128>) -> Event {
    Event { at: at(n), page: None, monitor: monitor.map(monitor_id), kind: EventKind::MonitorEdited(EditKind::Changed) }
}

pub fn readings(count: u32, seed: u64) -> Vec<Reading> {
    let reading = |n| Reading {
        slot: n,
        region: Region::Europe,
        vantage: VantageNo(1),
        round: 29_000_000 + seed,
        due: at(1_795_783_560_000 + i64::from(n)),
        outcome: RoundOutcome::Passed,
        latency_ms: Some(40 + n % 400),
    };
    (0..count).map(reading).collect()
}

pub fn block(monitor: u128, region: Region, hour: i64, bytes: Vec<u8>) -> Block {
    Block { monitor: monitor_id(monitor), slot: monitor as u32, region, hour, bytes }
}

pub fn rollup(monitor: u128, at: i64, bytes: Vec<u8>) -> Rollup {
    Rollup { monitor: monitor_id(monitor), at, bytes }
}

pub fn stored_response(fingerprint: u8, expires_at: i64) -> StoredResponse {
    StoredResponse { fingerprint: [fingerprint; 32], response: vec![fingerprint; 100], expires_at: at(expires_at) }
}
