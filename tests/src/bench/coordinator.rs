//! Installations of any size, written directly to the store, and the real coordinator running on them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use parallax_coordinator::app;
use parallax_coordinator::config::CoordinatorConfig;
use parallax_core::check::{Check, HttpCheck, KeywordMode, Method};
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::ProbeResponse;
use parallax_core::id::MonitorId;
use parallax_core::machine::{MachineOutput, MachineState, MachineStep, MonitorMachine};
use parallax_core::monitor::{Monitor, MonitorSettings, NewMonitor};
use parallax_core::observation::{Measurements, Observation, ProbeOutcome};
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, NetworkNo, Region, Vantage, VantageNo};
use parallax_mesh::members::InviteRequest;
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Op, Store};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{now_ms, process_usage};
use crate::installation::ReadyFile;
use crate::process::{TestProcess, binary};

/// Longest start of a coordinator.
const START: Duration = Duration::from_secs(300);
/// Writes per commit while an installation is created.
pub(super) const WRITES_PER_COMMIT: usize = 20_000;

/// An installation without a running coordinator.
pub(super) struct BenchInstallation {
    pub(super) folder: TempDir,
    pub(super) monitors: Vec<Monitor>,
    /// Agent tokens, one per region.
    pub(super) tokens: Vec<(Region, String)>,
}

/// A coordinator that is ready.
pub(super) struct BenchCoordinator {
    pub(super) process: TestProcess,
    pub(super) ready: ReadyFile,
    /// Time from process start to the ready file.
    pub(super) start_time: Duration,
    /// CPU seconds used during the start.
    pub(super) start_cpu: f64,
}

/// Creates an account on `plan` with one page and its monitors, each in steady state, and invites one agent in each of
/// the first `regions` regions.
pub(super) async fn create_installation(monitors: u32, regions: usize, plan: Plan) -> BenchInstallation {
    let folder = tempfile::tempdir().expect("a folder");
    let config = CoordinatorConfig { data: folder.path().join("data"), ..CoordinatorConfig::default() };
    let opened = app::open(&config).await.expect("a new installation");
    let account = opened.service.accounts.create("owner@example.com", Some(plan)).await.expect("an account");
    let page = opened.service.pages.create_as_operator(account.id, "Page", "page").await.expect("a page");
    let mut tokens = Vec::new();
    for region in Region::ALL.into_iter().take(regions) {
        let network = format!("AS{}", 64_500 + region.index());
        let wish = InviteRequest { name: region.name().to_owned(), region, network, lifetime: 3_600_000 };
        let (_, token) = opened.members.invite(wish).await.expect("an invitation");
        tokens.push((region, token.expose()));
    }
    opened.close().await;
    let monitors: Vec<Monitor> = (0..monitors).map(|slot| monitor(slot, &page)).collect();
    let state = steady_state(&monitors[0], &page, plan, regions);
    let made = BenchInstallation { folder, monitors, tokens };
    let store = made.open_store().await;
    for some in made.monitors.chunks(WRITES_PER_COMMIT / 2) {
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

impl BenchInstallation {
    /// Opens the store. No coordinator may be running.
    pub(super) async fn open_store(&self) -> Store {
        let folder = self.folder.path().join("data").join("store");
        let opened = tokio::task::spawn_blocking(move || Store::on_disk(&folder, DiskOptions::default()));
        opened.await.expect("no panic").expect("the store opens")
    }

    /// Returns the size of the store's files in bytes, without the ballast.
    pub(super) fn store_bytes(&self) -> u64 {
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

    /// Starts the coordinator, pinned to `core`, and waits until it is ready.
    pub(super) async fn serve(&self, core: Option<usize>) -> BenchCoordinator {
        let ready = self.folder.path().join("ready.json");
        // Left by an earlier start.
        let _ = std::fs::remove_file(&ready);
        let mut command = Command::new(binary("parallax"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--mesh-listen", "127.0.0.1:0", "--data"]);
        command.arg(self.folder.path().join("data")).arg("--ready-file").arg(&ready);
        // The receivers are on loopback.
        command.env("PARALLAX_DELIVER_ALLOW_PRIVATE", "true");
        let begun = Instant::now();
        let mut process = TestProcess::start("coordinator", command, self.folder.path());
        process_usage::pin(process.id(), core);
        while begun.elapsed() < START && process.is_running() {
            if let Ok(text) = std::fs::read_to_string(&ready)
                && let Ok(ready) = serde_json::from_str(&text)
            {
                let (took, cpu) = (begun.elapsed(), process_usage::cpu_seconds(process.id()));
                return BenchCoordinator { process, ready, start_time: took, start_cpu: cpu };
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
    let settings = MonitorSettings {
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
        pinned_region: None,
        paused: false,
    };
    let id = MonitorId::new(now + i64::from(slot), random);
    Monitor::new(NewMonitor { id, page: page.id, slot, position: slot, now }, settings)
}

/// Returns the state of a monitor that has just passed in every region.
fn steady_state(monitor: &Monitor, page: &Page, plan: Plan, regions: usize) -> MachineState {
    let now = Timestamp::from_millis(now_ms());
    let place = |region: Region| Vantage {
        no: VantageNo(u16::try_from(region.index()).expect("six regions")),
        region,
        network: NetworkNo(u16::try_from(region.index()).expect("six regions")),
        connected: true,
        quarantined: false,
        unfit: false,
    };
    let mesh = Mesh::new(Region::ALL.into_iter().take(regions).map(place));
    let watch = EffectiveSettings::new(monitor, page, plan, &PlanLimits::default(), ConfirmationPolicy::default());
    let mut out = Vec::new();
    let mut machine = MonitorMachine::new(watch, &mut MachineStep { now, mesh: &mesh, out: &mut out });
    let asked = std::mem::take(&mut out);
    for ask in asked.into_iter().filter_map(|output| match output {
        MachineOutput::Probe(ask) => Some(ask),
        MachineOutput::Reading(_) | MachineOutput::Event(_) => None,
    }) {
        let place = mesh.vantage(ask.vantage).expect("a place of the mesh");
        let seen = Observation {
            revision: monitor.revision,
            region: place.region,
            vantage: place.no,
            network: place.network,
            round: None,
            started: now - 40,
            ended: now,
            outcome: ProbeOutcome::Passed(Measurements { latency_ms: Some(40), ..Measurements::default() }),
        };
        let mut step = MachineStep { now, mesh: &mesh, out: &mut out };
        machine.handle_response(ask.number, ProbeResponse::Observed(seen), &mut step);
    }
    machine.state().clone()
}

/// Realistic response times: a base of 20 to 400 ms by monitor and region, jitter of 8 %, and one spike in 200.
/// Identical in every run.
pub(super) struct Latencies(u64);

impl Latencies {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Returns the next response time of a monitor in a region, in ms.
    pub(super) fn next(&mut self, slot: u32, region: Region) -> u32 {
        let key = (u64::from(slot) * 6 + region.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        #[allow(clippy::cast_precision_loss, reason = "a fraction")]
        let base = 20.0 * 20f64.powf(key as f64 / (1u64 << 53) as f64);
        // The sum of twelve uniform values is close enough to normal, with standard deviation 1.
        let normal: f64 = (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0;
        let spike = if self.fraction() < 0.005 { 2.0 + 8.0 * self.fraction() } else { 1.0 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "10 s at most")]
        let latency = (base * (0.08 * normal).exp() * spike).clamp(1.0, 9_999.0).round() as u32;
        latency
    }

    /// Returns a uniform value from 0 to 1.
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

/// Wraps the store as a reader.
pub(super) fn reader(store: &Store) -> Arc<dyn parallax_store::StoreRead> {
    Arc::clone(store.reader())
}
