//! A service over a store in memory with accounts, pages and a fake mesh: for tests of this crate and of those that use
//! it (feature `test-world`).

mod company;
mod fake_members;
mod fake_mesh;
mod fake_name_server;
mod fake_provider;
mod records;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_core::account::Account;
use parallax_core::check::Check;
use parallax_core::event::{EditKind, Event, EventKind, RoundReport};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::key::KeyAccess;
use parallax_core::machine::MachineView;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::observation::{CheckPhase, Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::page::Page;
use parallax_core::patch::PatchField;
use parallax_core::plan::PlanLimits;
use parallax_core::role::Role;
use parallax_core::time::{DAY, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, VantageNo};
use parallax_dial::DnsResolver;
use parallax_engine::{
    Arrival, CheckNowRequest, CheckNowResult, CheckNowSubject, DriverQuery, HeartbeatTokens, PingIntake,
};
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, JournalEvent, Store};
use tokio::sync::mpsc;
use tokio::time::sleep;

pub use self::company::{BROWSER, CompanyWorld};
pub use self::fake_members::FakeMembers;
pub use self::fake_mesh::FakeMesh;
pub use self::fake_name_server::FakeNameServer;
pub use self::fake_provider::{FakeProvider, ProviderFault, SignedClaims};
use crate::accounts::keys::NewKey;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::monitors::MonitorWithState;
use crate::people::{NewPerson, NewSession, ProviderClient};
use crate::secret_text::ApiKeyText;
use crate::*;

/// The driver's answers, by monitor.
pub type Views = Arc<Mutex<BTreeMap<MonitorId, MachineView>>>;

/// An owner with two pages and a stranger with one.
#[derive(Debug)]
pub struct World {
    pub service: Arc<Services>,
    /// Answers look-ups of TXT records.
    pub name_server: FakeNameServer,
    pub clock: Clock,
    pub views: Views,
    /// Views that the driver returns once it has processed the next edit.
    pub views_after_edit: Views,
    pub mesh: FakeMesh,
    /// Agents and invitations, for operators.
    pub members: FakeMembers,
    pub owner: Account,
    pub shop: Page,
    pub blog: Page,
    pub foreign: Page,
}

/// Start time of every test.
pub const START: Timestamp = Timestamp::from_millis(1_795_783_560_000);

pub async fn world() -> World {
    world_over(Store::in_memory().unwrap()).await
}

/// Same accounts and pages over a given store.
pub async fn world_over(store: Store) -> World {
    let clock = Clock::manual(START);
    let views = Views::default();
    let (queries, query_receiver) = mpsc::channel::<DriverQuery>(16);
    let views_after_edit = Views::default();
    answer_queries(query_receiver, Arc::clone(&views), Arc::clone(&views_after_edit));
    let settings = ServiceSettings {
        base_url: "https://status.example".to_owned(),
        root_domain: Some("pages.example".to_owned()),
        limits: PlanLimits { monitors: [2, 3, 100], ..PlanLimits::default() },
        allow_private: false,
        sends_mail: true,
        access_token_key: page_access::AccessTokenKey::new(&[7; 32]),
    };
    let mesh = FakeMesh::default();
    let statistics = Arc::new(mesh.clone());
    let (name_server, members) = (FakeNameServer::default(), FakeMembers::default());
    let service = Services::new(ServiceParts {
        queries,
        pings: store_pings(store.clone()),
        statistics,
        mesh: Arc::new(members.clone()),
        txt_lookup: Arc::new(name_server.clone()),
        provider_client: Some(provider_client()),
        ..ServiceParts::disconnected(store, clock.clone(), settings)
    });
    let owner = service.accounts.create("owner@example.com", None).await.unwrap();
    let other_account = service.accounts.create("stranger@example.com", None).await.unwrap();
    let shop = service.pages.create_as_operator(owner.id, "Shop", "shop").await.unwrap();
    clock.set(START + 1000);
    let blog = service.pages.create_as_operator(owner.id, "Blog", "journal").await.unwrap();
    let foreign = service.pages.create_as_operator(other_account.id, "Other", "other").await.unwrap();
    World { service, name_server, clock, views, views_after_edit, mesh, members, owner, shop, blog, foreign }
}

/// Reaches providers on this host.
fn provider_client() -> ProviderClient {
    // Never asked: providers of tests have addresses for names.
    let resolver = DnsResolver::with_servers(&[([127, 0, 0, 1], 9).into()]).unwrap();
    ProviderClient::new(resolver, true).unwrap()
}

/// A driver that stores pings, and answers checks on request.
pub(crate) fn store_pings(store: Store) -> PingIntake {
    let (inbox, mut arrivals) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut number = 0;
        while let Some(arrival) = arrivals.recv().await {
            let ping = match arrival {
                Arrival::Ping(ping) => ping,
                Arrival::CheckNow(request) => {
                    answer_check(request);
                    continue;
                }
                _ => continue,
            };
            number += 1;
            let stored = parallax_core::heartbeat::StoredPing { number, ..ping.ping };
            let mut batch = Batch::new();
            batch.write(parallax_store::Op::PutPing(ping.heartbeat.monitor, Box::new(stored)));
            store.commit(batch).await.unwrap();
            let _ = ping.on_durable.send(());
        }
    });
    PingIntake { inbox, tokens: HeartbeatTokens::default() }
}

/// Answers a check with one agent in Europe and none in Asia: an unsaved host whose name begins with `down` refuses
/// connections, and one with `slow` times out after eleven seconds.
fn answer_check(request: CheckNowRequest) {
    let CheckNowRequest { subject, reply, progress } = request;
    let (host, is_certificate, pinned) = match subject {
        CheckNowSubject::Unsaved(unsaved) => {
            let is_certificate = matches!(*unsaved.check, Check::Certificate(_));
            (unsaved.check.host(), is_certificate, unsaved.pinned)
        }
        CheckNowSubject::Monitor(_) => (String::new(), false, None),
    };
    let delay = if host.starts_with("slow") { Duration::from_secs(11) } else { Duration::ZERO };
    let failed = |failure| ProbeOutcome::Failed(Measurements::default(), failure);
    let outcome = if host.starts_with("down") {
        failed(Failure::Refused)
    } else if !delay.is_zero() {
        failed(Failure::Timeout(CheckPhase::Connect))
    } else {
        let expires_at = is_certificate.then_some(START + 62 * DAY);
        ProbeOutcome::Passed(Measurements { latency_ms: Some(40), expires_at, ..Measurements::default() })
    };
    let (vantage, network) = (VantageNo(0), NetworkNo(0));
    let (started, ended) = (START, START + 40);
    let regions = [Region::Europe, Region::Asia].into_iter().filter(|region| pinned.is_none_or(|it| it == *region));
    let results = regions.map(|region| {
        let outcome = outcome.clone();
        let observation = Observation { revision: 0, region, vantage, network, round: None, started, ended, outcome };
        let observation = (region == Region::Europe).then_some(observation);
        let vantage = observation.as_ref().map(|it| it.vantage);
        CheckNowResult { region, vantage, unsupported: false, unanswered: false, observation }
    });
    let results: Vec<CheckNowResult> = results.collect();
    let without = |result: &CheckNowResult| CheckNowResult { observation: None, ..result.clone() };
    progress.send_replace(results.iter().map(without).collect());
    tokio::spawn(async move {
        sleep(delay).await;
        let _ = reply.send(results);
    });
}

impl World {
    pub async fn key(&self, access: KeyAccess, page: Option<&Page>) -> ApiKeyText {
        let new = NewKey { account: self.owner.id, name: "Robot".to_owned(), access, page: page.map(|page| page.id) };
        self.service.keys.create(new).await.unwrap().1
    }

    /// The stored page.
    pub fn page(&self, id: PageId) -> Page {
        self.service.context.store().reader().page(id).unwrap().unwrap().value
    }

    /// Commits an empty batch and returns its number.
    pub async fn revision(&self) -> u64 {
        self.service.context.store().commit(Batch::new()).await.unwrap().revision
    }

    /// Appends an event to the journal.
    pub async fn happened(&self, event: parallax_core::event::Event) {
        let mut batch = Batch::new();
        batch.event(event);
        self.service.context.store().commit(batch).await.unwrap();
    }

    /// Reports of a monitor's rounds and of its checks on request, newest first.
    pub fn round_reports(&self, monitor: MonitorId) -> Vec<RoundReport> {
        let events = self.service.context.store().reader().events_of_many(&[monitor], None, 1000).unwrap();
        let report = |event: JournalEvent| match event.event.kind {
            EventKind::Round(report) => Some(report),
            _ => None,
        };
        events.into_iter().filter_map(report).collect()
    }

    /// Stores a page as given, including fields that no call can set yet.
    pub async fn put_page(&self, page: Page) {
        let mut batch = Batch::new();
        let event = EventKind::PageEdited(EditKind::Changed);
        batch.event(Event { at: self.service.now(), page: Some(page.id), monitor: None, kind: event });
        batch.write(page);
        self.service.context.store().commit(batch).await.unwrap();
    }

    /// A write key of another account.
    pub async fn stranger_key(&self) -> ApiKeyText {
        let account = self.foreign.account;
        let new = NewKey { account, name: "Stranger".to_owned(), access: KeyAccess::Write, page: None };
        self.service.keys.create(new).await.unwrap().1
    }

    /// A revoked write key of the owner.
    pub async fn revoked_key(&self) -> ApiKeyText {
        let text = self.key(KeyAccess::Write, None).await;
        let id = self.service.keys.authenticate(text.reveal()).unwrap().key().unwrap().id;
        self.service.keys.revoke(id).await.unwrap();
        text
    }

    /// A new member of the owner's account with that role, signed in.
    pub async fn signed_in(&self, role: Role) -> NewSession {
        self.signed_in_at(&self.owner, role).await
    }

    /// A new member of that account with that role, signed in.
    pub async fn signed_in_at(&self, account: &Account, role: Role) -> NewSession {
        let number = self.service.people.members(account.id).await.unwrap().len();
        let email = format!("{}-{number}-of-{}", role.name(), account.email);
        let new = NewPerson { email, name: String::new(), role, password: None };
        let person = self.service.people.add_as_operator(account.id, &new).await.unwrap();
        self.service.people.test_session(account.id, person.id).await
    }

    pub async fn caller(&self, access: KeyAccess) -> Caller {
        let key = self.key(access, None).await;
        self.service.keys.authenticate(key.reveal()).unwrap()
    }

    pub async fn make(&self, caller: &Caller, name: &str) -> ServiceResult<MonitorWithState> {
        match self.service.monitors.create(caller, self.shop.id, &http(name), &each_time()).await? {
            RequestOutcome::Fresh(shown) => Ok(shown),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
        }
    }
}

pub fn http(name: &str) -> MonitorEdit {
    let mut edit = MonitorEdit { name: PatchField::Value(name.to_owned()), ..MonitorEdit::default() };
    edit.check.url = PatchField::Value("https://example.com".to_owned());
    edit
}

pub fn each_time<T>() -> IdempotentRequest<'static, T> {
    IdempotentRequest::new(None, &|_| Vec::new())
}

/// A driver that returns the given views; once it is asked to process an edit, also those for after it.
fn answer_queries(mut queries: mpsc::Receiver<DriverQuery>, views: Views, views_after_edit: Views) {
    tokio::spawn(async move {
        while let Some(query) = queries.recv().await {
            let DriverQuery::Views(query) = query else { continue };
            let answer = {
                let mut reported = views.lock().unwrap();
                if query.after_event > 0 {
                    reported.append(&mut views_after_edit.lock().unwrap());
                }
                query.monitors.iter().map(|id| reported.get(id).cloned()).collect()
            };
            let _ = query.reply.send(answer);
        }
    });
}
