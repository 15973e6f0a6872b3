//! An installation as large as wanted, made straight in its store, and the real coordinator on it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use parallax_coordinator::app;
use parallax_coordinator::config::Config;
use parallax_coordinator::members::Wish;
use parallax_coordinator::storage::disk::Options;
use parallax_coordinator::storage::{Batch, Op, Store};
use parallax_core::check::{Check, HttpCheck, KeywordMode, Method};
use parallax_core::event::Answer;
use parallax_core::id::MonitorId;
use parallax_core::machine::{Machine, Output, State, Step};
use parallax_core::monitor::{Monitor, Seat, Settings};
use parallax_core::observation::{Facts, Observation, Outcome};
use parallax_core::page::Page;
use parallax_core::place::{Mesh, NetworkNo, Place, PlaceNo, Region};
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::Timestamp;
use parallax_core::watch::{Confirmation, Watch};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{gauge, now_ms};
use crate::installation::Ready;
use crate::process::{Process, binary};

/// Longest start that is waited for.
const START: Duration = Duration::from_secs(300);
/// Writes that one commit of the making holds.
pub(super) const AT_ONCE: usize = 20_000;

/// An installation that no coordinator runs on.
pub(super) struct Made {
    pub(super) folder: TempDir,
    pub(super) monitors: Vec<Monitor>,
    /// One agent's token for each region.
    pub(super) tokens: Vec<(Region, String)>,
}

/// A coordinator that is ready.
pub(super) struct Running {
    pub(super) process: Process,
    pub(super) ready: Ready,
    /// From its start to the ready file.
    pub(super) took: Duration,
    /// CPU seconds of the same time.
    pub(super) cpu: f64,
}

/// Makes an account on that plan with one page and its monitors, each in steady state, and invites one agent in each
/// of the first `regions` regions.
pub(super) async fn make(monitors: u32, regions: usize, plan: Plan) -> Made {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config { data: folder.path().join("data"), ..Config::default() };
    let opened = app::open(&config).await.expect("a new installation");
    let account = opened.service.create_account("owner@example.com", Some(plan)).await.expect("an account");
    let page = opened.service.create_page(account.id, "Page", "page").await.expect("a page");
    let mut tokens = Vec::new();
    for region in Region::ALL.into_iter().take(regions) {
        let network = format!("AS{}", 64_500 + region.index());
        let wish = Wish { name: region.name().to_owned(), region, network, life: 3_600_000 };
        let (_, token) = opened.members.invite(wish).await.expect("an invitation");
        tokens.push((region, token.expose()));
    }
    opened.close().await;
    let monitors: Vec<Monitor> = (0..monitors).map(|slot| monitor(slot, &page)).collect();
    let state = steady(&monitors[0], &page, plan, regions);
    let made = Made { folder, monitors, tokens };
    let store = made.store().await;
    for some in made.monitors.chunks(AT_ONCE / 2) {
        let mut batch = Batch::new();
        for monitor in some {
            batch.write(monitor.clone());
            batch.write(Op::PutMachine(monitor.id, Box::new(state.clone())));
        }
        store.commit(batch).await.expect("a commit");
    }
    let mut batch = Batch::new();
    batch.write(Op::SetNextSlot(u32::try_from(made.monitors.len()).expect("a number of monitors")));
    store.commit(batch).await.expect("a commit");
    store.close().await;
    made
}

impl Made {
    /// The store, while no coordinator runs.
    pub(super) async fn store(&self) -> Store {
        let folder = self.folder.path().join("data").join("store");
        let opened = tokio::task::spawn_blocking(move || Store::on_disk(&folder, Options::default()));
        opened.await.expect("no panic").expect("the store opens")
    }

    /// Bytes of its store's files, the ballast left out.
    pub(super) fn bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut folders: Vec<PathBuf> = vec![self.folder.path().join("data").join("store")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let about = entry.metadata().expect("a file");
                if about.is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name() != "BALLAST" {
                    bytes += about.len();
                }
            }
        }
        bytes
    }

    /// Starts the coordinator on it, and waits until it is ready. The process is on `core` alone.
    pub(super) async fn serve(&self, core: Option<usize>) -> Running {
        let ready = self.folder.path().join("ready.json");
        // What an earlier start left.
        let _ = std::fs::remove_file(&ready);
        let mut command = Command::new(binary("parallax"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--mesh-listen", "127.0.0.1:0", "--data"]);
        command.arg(self.folder.path().join("data")).arg("--ready-file").arg(&ready);
        // Receivers are on loopback.
        command.env("PARALLAX_DELIVER_ALLOW_PRIVATE", "true");
        let begun = Instant::now();
        let mut process = Process::start("coordinator", command, self.folder.path());
        gauge::pin(process.id(), core);
        while begun.elapsed() < START && process.running() {
            if let Ok(text) = std::fs::read_to_string(&ready)
                && let Ok(ready) = serde_json::from_str(&text)
            {
                let (took, cpu) = (begun.elapsed(), gauge::cpu_seconds(process.id()));
                return Running { process, ready, took, cpu };
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the coordinator is not ready:\n{}", process.log());
    }
}

fn monitor(slot: u32, page: &Page) -> Monitor {
    let now = Timestamp::from_millis(now_ms());
    let mut random = [0; 10];
    random[..4].copy_from_slice(&slot.wrapping_mul(2_654_435_761).to_be_bytes());
    random[4..8].copy_from_slice(&slot.to_be_bytes());
    let settings = Settings {
        name: format!("Service number {slot}"),
        group: None,
        check: Check::Http(HttpCheck {
            url: format!("https://service-{slot}.example.com/health"),
            method: Method::Get,
            headers: Vec::new(),
            credentials: None,
            body: None,
            expect_status: None,
            keyword: None,
            keyword_mode: KeywordMode::Present,
        }),
        slow_threshold_ms: Some(2_000),
        slow_thresholds: None,
        latency_regions: None,
        pinned: None,
        paused: false,
    };
    let id = MonitorId::new(now + i64::from(slot), random);
    Monitor::new(Seat { id, page: page.id, slot, position: slot, now }, settings)
}

/// What the machine of a monitor remembers that has just passed everywhere.
fn steady(monitor: &Monitor, page: &Page, plan: Plan, regions: usize) -> State {
    let now = Timestamp::from_millis(now_ms());
    let place = |region: Region| Place {
        no: PlaceNo(u16::try_from(region.index()).expect("six regions")),
        region,
        network: NetworkNo(u16::try_from(region.index()).expect("six regions")),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    let mesh = Mesh::new(Region::ALL.into_iter().take(regions).map(place));
    let watch = Watch::new(monitor, page, plan, &PlanLimits::default(), Confirmation::default());
    let mut out = Vec::new();
    let mut machine = Machine::new(watch, &mut Step { now, mesh: &mesh, out: &mut out });
    let asked = std::mem::take(&mut out);
    for ask in asked.into_iter().filter_map(|output| match output {
        Output::Ask(ask) => Some(ask),
        Output::Reading(_) | Output::Happened(_) => None,
    }) {
        let place = mesh.place(ask.place).expect("a place of the mesh");
        let seen = Observation {
            revision: monitor.revision,
            region: place.region,
            place: place.no,
            network: place.network,
            round: None,
            started: now - 40,
            ended: now,
            outcome: Outcome::Passed(Facts { latency_ms: Some(40), ..Facts::default() }),
        };
        let mut step = Step { now, mesh: &mesh, out: &mut out };
        machine.handle_answer(ask.number, Answer::Seen(seen), &mut step);
    }
    machine.state().clone()
}

/// Response times as services have them: a base of 20 to 400 ms by monitor and region, jitter of 8 %, and one spike in
/// two hundred. The same in every run.
pub(super) struct Latencies(u64);

impl Latencies {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next response time of a monitor in a region, in ms.
    pub(super) fn next(&mut self, slot: u32, region: Region) -> u32 {
        let key = (u64::from(slot) * 6 + region.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        #[allow(clippy::cast_precision_loss, reason = "a fraction")]
        let base = 20.0 * 20f64.powf(key as f64 / (1u64 << 53) as f64);
        // The sum of twelve even numbers is near enough to normal, with a spread of one.
        let normal: f64 = (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0;
        let spike = if self.fraction() < 0.005 { 2.0 + 8.0 * self.fraction() } else { 1.0 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "10 s at most")]
        let latency = (base * (0.08 * normal).exp() * spike).clamp(1.0, 9_999.0).round() as u32;
        latency
    }

    /// Even, from 0 to 1.
    fn fraction(&mut self) -> f64 {
        // Xorshift (Marsaglia, Journal of Statistical Software 8.14, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        #[allow(clippy::cast_precision_loss, reason = "a fraction")]
        let fraction = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }
}

/// A reader of the store for what wants one.
pub(super) fn reader(store: &Store) -> Arc<dyn parallax_coordinator::storage::Read> {
    Arc::clone(store.reader())
}
