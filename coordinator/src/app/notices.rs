//! What an operator can mend: looked for in the mesh, the store and the certificates, and told by the journal once it
//! lasts and once it is over. What was told is kept beside the journal, so that a restart tells nothing twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parallax_core::event::{Event, What};
use parallax_core::id::AgentId;
use parallax_core::member::Agent;
use parallax_core::notice::{Board, Matter, Notice, Topic};
use parallax_core::place::Region;
use parallax_core::time::{DAY, SECOND, Timestamp};

use super::doors::Certificates;
use crate::clock::Clock;
use crate::flow::counters::Counters;
use crate::flow::notices;
use crate::storage::{Batch, Op, Read, Result, Store, StoreError};
use crate::supervise::Watch;
use crate::tls::Pair;
use crate::tls::acme::Ending;

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// Looks after which the store's space is looked at again.
const SPACE_EVERY: u64 = 12;
/// Free bytes below which the store is short of space, well before it refuses writes.
const LOW: u64 = 512 << 20;
/// Free bytes from which it is no longer.
const ENOUGH: u64 = 768 << 20;
/// Milliseconds before the end of the authority's certificate from which that is told: time to have every agent follow.
const AUTHORITY_LEFT: i64 = 90 * DAY;
/// The same of the certificate in the operator's files, at most: time to have another one issued by hand.
const OWN_LEFT: i64 = 14 * DAY;
/// What a cursor is set to that stands for a topic: far beyond every event, so that it keeps none of them from being
/// trimmed. The lowest bit says whether it was told.
const MARK: u64 = 1 << 63;

/// What is looked at.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) counters: Arc<Counters>,
    pub(super) watch: Watch,
    /// Life of an agent's certificate, in seconds.
    pub(super) certificate_life: i64,
    /// When the certificate of the authority that signs ends, in seconds since the epoch.
    pub(super) authority_ends: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Those that visitors are shown.
    pub(super) certificates: Certificates,
}

/// Looks at everything that an operator can mend, as long as the coordinator runs.
pub(super) async fn watch(sources: Sources) {
    let mut lookout = None;
    loop {
        match look(&mut lookout, &sources).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::error!(%error, "what the operator is to be told can't be kept; trying again")
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn look(lookout: &mut Option<Lookout>, sources: &Sources) -> Result<()> {
    let known = match lookout.take() {
        Some(known) => known,
        None => Lookout::start(sources.clone()).await?,
    };
    lookout.insert(known).look().await
}

/// Whoever looks, and knows what was told.
struct Lookout {
    of: Sources,
    board: Board,
    space: Option<(Matter, bool)>,
    looks: u64,
}

impl Lookout {
    /// A lookout that knows what was told before.
    async fn start(of: Sources) -> Result<Self> {
        let told = of.store.read(told).await?;
        Ok(Self { of, board: Board::with(told), space: None, looks: 0 })
    }

    /// One look at everything.
    async fn look(&mut self) -> Result<()> {
        let now = self.of.clock.now();
        if self.looks.is_multiple_of(SPACE_EVERY) {
            self.space = space(self.of.store.read(|read| read.footprint()).await?.free);
        }
        self.looks += 1;
        let agents = self.of.store.read(|read| read.agents()).await?;
        let agents: Vec<Agent> = agents.into_iter().map(|agent| agent.value).collect();
        let mut matters = notices::matters(&self.of.counters.notices());
        matters.extend(self.space.clone());
        matters.push(authority((self.of.authority_ends)(), now));
        matters.push(hosts(self.of.certificates.told.ending()));
        matters.extend(self.of.certificates.shown.own().map(|own| own_ending(&own, now)));
        let broken = self.of.watch.broken_lately();
        matters.push((Matter::PartsBroken(broken), broken > 0));
        matters.extend(agents.iter().filter_map(|agent| certificate(agent, self.of.certificate_life, now)));
        let present: BTreeSet<AgentId> =
            agents.iter().filter(|agent| agent.revoked_at.is_none()).map(|agent| agent.id).collect();
        for topic in self.board.forget_others(&present) {
            self.keep(topic, false, None).await?;
        }
        for notice in self.board.look(&matters, self.of.clock.steady()) {
            let event = Event { at: now, page: None, monitor: None, what: What::Notice(notice.clone()) };
            self.keep(notice.matter.topic(), !notice.ended, Some(event)).await?;
            self.board.note(&notice);
            say(&notice);
        }
        Ok(())
    }

    async fn keep(&self, topic: Topic, told: bool, event: Option<Event>) -> Result<()> {
        let mut batch = Batch::new();
        batch.write(Op::SetCursor(cursor(topic), MARK | u64::from(told)));
        batch.events.extend(event);
        self.of.store.commit(batch).await.map(drop)
    }
}

fn say(notice: &Notice) {
    let matter = &notice.matter;
    if notice.ended {
        tracing::info!(?matter, "the operator is told that this is over");
    } else {
        tracing::warn!(?matter, "the operator is told of this");
    }
}

fn cursor(topic: Topic) -> String {
    format!("notice-{topic}")
}

/// What was told and is not over.
fn told(read: &dyn Read) -> Result<BTreeSet<Topic>> {
    let regions = || std::iter::once(None).chain(Region::ALL.into_iter().map(Some));
    let agents = read.agents()?.into_iter().map(|agent| Topic::CertificateEnding(agent.value.id));
    let topics = regions()
        .map(Topic::NobodyConnected)
        .chain(regions().map(Topic::OneNetwork))
        .chain([Topic::StoreLow, Topic::AuthorityEnding, Topic::PartsBroken])
        .chain([Topic::HostsEnding, Topic::OwnEnding])
        .chain(agents);
    let mut told = BTreeSet::new();
    for topic in topics {
        if read.cursor(&cursor(topic))? & 1 == 1 {
            told.insert(topic);
        }
    }
    Ok(told)
}

/// Whether that much free space is too little; between the bounds it stays as it was told.
fn space(free: u64) -> Option<(Matter, bool)> {
    (!(LOW..ENOUGH).contains(&free)).then_some((Matter::StoreLow(free), free < LOW))
}

/// Whether the certificate of the authority, which ends at that second, is near its end.
fn authority(ends: i64, now: Timestamp) -> (Matter, bool) {
    let ends_at = Timestamp::from_millis(ends.saturating_mul(SECOND));
    (Matter::AuthorityEnding(ends_at), ends_at.since(now) < AUTHORITY_LEFT)
}

/// Whether certificates of hostnames are near their end unrenewed.
fn hosts(ending: Option<Ending>) -> (Matter, bool) {
    let holds = ending.is_some();
    // Once it is over, there is none to be named.
    let none = || Ending { first: String::new(), count: 0, ends_at: Timestamp::from_millis(0) };
    let Ending { first, count, ends_at } = ending.unwrap_or_else(none);
    (Matter::HostsEnding { first, count, ends_at }, holds)
}

/// Whether the operator's own certificate is near its end: a sixth of its life before, but two weeks at most.
fn own_ending(own: &Pair, now: Timestamp) -> (Matter, bool) {
    let near = (own.not_after.since(own.not_before) / 6).min(OWN_LEFT);
    (Matter::OwnEnding(own.not_after), own.not_after.since(now) < near)
}

/// Whether the agent's certificate is near its end. Agents renew it from two thirds of its life on, so that one which has
/// less than a sixth left failed for long. None for what no certificate is noted of.
fn certificate(agent: &Agent, life: i64, now: Timestamp) -> Option<(Matter, bool)> {
    let from = agent.standing.valid_from;
    if agent.revoked_at.is_some() || from == 0 {
        return None;
    }
    let ends_at = Timestamp::from_millis(from.saturating_add(life).saturating_mul(SECOND));
    let left = ends_at.since(now);
    Some((Matter::CertificateEnding { agent: agent.id, ends_at }, left < life.saturating_mul(SECOND) / 6))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use parallax_core::notice::PATIENCE;

    use super::*;
    use crate::storage::contract::samples::{agent, at};

    /// Nothing that is to be told.
    fn sources(store: &Store, clock: &Clock) -> Sources {
        Sources {
            store: store.clone(),
            clock: clock.clone(),
            counters: Arc::default(),
            watch: Watch::default(),
            certificate_life: 9,
            authority_ends: Arc::new(|| i64::MAX / 2_000),
            certificates: Certificates::default(),
        }
    }

    fn notices(store: &Store) -> Vec<Notice> {
        let events = store.reader().events_after(0, 99).unwrap();
        let notice = |what: &What| match what {
            What::Notice(notice) => Some(notice.clone()),
            _ => None,
        };
        events.iter().filter_map(|recorded| notice(&recorded.event.what)).collect()
    }

    #[test]
    fn space_is_short_below_one_bound_and_enough_above_another() {
        for (free, expected) in [(0, Some(true)), (LOW - 1, Some(true)), (LOW, None), (ENOUGH, Some(false))] {
            assert_eq!(space(free).map(|(_, low)| low), expected, "{free}");
        }
    }

    #[test]
    fn a_certificate_is_near_its_end_in_the_last_sixth_of_its_life() {
        let life = 30 * 86_400;
        let mut agent = agent(1);
        agent.standing.valid_from = 0;
        assert_eq!(certificate(&agent, life, at(0)), None, "none was noted");
        agent.standing.valid_from = 1;
        let ends = |now| certificate(&agent, life, at(now)).map(|(_, ends)| ends);
        assert_eq!((ends(25 * DAY), ends(25 * DAY + 1001)), (Some(false), Some(true)));
    }

    #[tokio::test]
    async fn each_matter_is_in_the_journal_once_over_any_restart() {
        let store = Store::in_memory().unwrap();
        let life = 30 * 86_400;
        let mut failing = agent(1);
        failing.standing.valid_from = 1;
        let mut batch = Batch::new();
        batch.write(failing.clone());
        store.commit(batch).await.unwrap();
        let clock = Clock::by_hand(at(29 * DAY));
        let lookout = async || {
            let sources = Sources { certificate_life: life, ..sources(&store, &clock) };
            let mut lookout = Lookout::start(sources).await.unwrap();
            // The store in memory has no disk that could be full.
            for _ in 0..3 {
                lookout.looks = 1;
                lookout.look().await.unwrap();
                clock.set(clock.now() + PATIENCE);
            }
        };
        lookout().await;
        lookout().await;
        let ends_at = at(life * SECOND + SECOND);
        let ending = |ends_at, ended| Notice {
            matter: Matter::CertificateEnding { agent: failing.id, ends_at },
            ended,
        };
        assert_eq!(notices(&store), [ending(ends_at, false)]);
        let mut batch = Batch::new();
        let mut renewed = failing.clone();
        renewed.standing.valid_from = 29 * 86_400;
        batch.write(renewed);
        store.commit(batch).await.unwrap();
        lookout().await;
        lookout().await;
        assert_eq!(notices(&store)[1..], [ending(at(59 * DAY), true)]);
    }

    #[tokio::test]
    async fn the_authoritys_end_is_told_three_months_before_and_once_when_it_is_exchanged() {
        let store = Store::in_memory().unwrap();
        let clock = Clock::by_hand(at(0));
        let ends = Arc::new(AtomicI64::new(100 * 86_400));
        let known = Arc::clone(&ends);
        let authority_ends = Arc::new(move || known.load(Ordering::Relaxed));
        let sources = Sources { authority_ends, ..sources(&store, &clock) };
        let mut lookout = Lookout::start(sources).await.unwrap();
        let mut look = async |days: i64| {
            clock.set(at(days * DAY));
            for _ in 0..2 {
                lookout.looks = 1;
                lookout.look().await.unwrap();
                clock.set(clock.now() + PATIENCE);
            }
            notices(&store).len()
        };
        assert_eq!((look(9).await, look(11).await, look(12).await), (0, 1, 1));
        ends.store(7_000 * 86_400, Ordering::Relaxed);
        assert_eq!(look(13).await, 2);
        let [first, second] = notices(&store).try_into().unwrap();
        let about = |notice: Notice| (notice.matter, notice.ended);
        assert_eq!(about(first), (Matter::AuthorityEnding(at(100 * DAY)), false));
        assert_eq!(about(second), (Matter::AuthorityEnding(at(7_000 * DAY)), true));
    }

    #[tokio::test]
    async fn parts_that_broke_off_and_the_files_end_are_told_once_and_once_when_they_are_over() {
        use rcgen::{CertificateParams, KeyPair, date_time_ymd};

        let pair = |until| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec!["status.example".to_owned()]).unwrap();
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
            Pair::read(&params.self_signed(&key).unwrap().pem(), &key.serialize_pem()).unwrap()
        };
        let (old, new) = (pair(2021), pair(2030));
        let (old_ends, new_ends) = (old.not_after, new.not_after);
        let store = Store::in_memory().unwrap();
        let clock = Clock::by_hand(old_ends - 20 * DAY);
        let sources = sources(&store, &clock);
        let shown = sources.certificates.shown.clone();
        shown.put_own(old);
        let mut rooms = sources.watch.rooms();
        let watch = sources.watch.clone();
        let mut lookout = Lookout::start(sources).await.unwrap();
        let mut look = async |at: Timestamp| {
            clock.set(at);
            for _ in 0..2 {
                lookout.looks = 1;
                lookout.look().await.unwrap();
                clock.set(clock.now() + PATIENCE);
            }
            notices(&store).into_iter().map(|notice| (notice.matter, notice.ended)).collect::<Vec<_>>()
        };
        assert_eq!(look(old_ends - 15 * DAY).await, []);
        let near = (Matter::OwnEnding(old_ends), false);
        assert_eq!(look(old_ends - 14 * DAY + 1).await, std::slice::from_ref(&near));
        shown.put_own(new);
        let told = [near, (Matter::OwnEnding(new_ends), true)];
        assert_eq!(look(old_ends - 13 * DAY).await, told);
        rooms.hold("guest", async { panic!("on purpose") });
        watch.lost().await;
        let broken = [&told[..], &[(Matter::PartsBroken(1), false)]].concat();
        assert_eq!(look(old_ends - 12 * DAY).await, broken);
        assert_eq!(look(old_ends - 11 * DAY).await, broken);
    }
}
