//! The operator's metrics: counters of all modules, encoded for Prometheus at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::vantage::Region;
use parallax_engine::counters::EngineCounters;
use parallax_engine::mesh_problems::MeshProblem;
use parallax_mesh::{self as mesh, AgentView};
use parallax_notify::consumers::alerts::AlertConsumer;
use parallax_notify::deliver::counters::DeliveryCounters as Deliveries;
use parallax_runtime::supervisor::Supervisor;
use parallax_store::{Store, StoreSize};
use parallax_web::http;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::consumers;
use crate::admin::admin_http::MetricsRenderer;

/// Sources of the metrics. None of them keeps a module alive that is to stop.
pub(super) struct MetricSources {
    pub(super) driver: Arc<EngineCounters>,
    pub(super) http: Arc<http::HttpContext>,
    pub(super) mesh: Arc<mesh::MeshCounters>,
    pub(super) agents: Box<dyn Fn() -> Vec<AgentView> + Send + Sync>,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) alerts: Arc<AlertConsumer>,
    pub(super) store: Store,
    pub(super) supervisor: Supervisor,
}

impl MetricSources {
    /// Returns the function that writes the metrics page.
    pub(super) fn writer(self) -> MetricsRenderer {
        let sources = Arc::new(self);
        Arc::new(move || write(Arc::clone(&sources)).boxed())
    }
}

fn write(sources: Arc<MetricSources>) -> BoxFuture<'static, String> {
    async move {
        let store_size = sources.store.read(|read| read.size()).await.ok();
        let lag = sources.store.read(|read| consumers::consumer_lag(read)).await.ok();
        let agents = (sources.agents)();
        let mut registry = Registry::with_prefix("parallax");
        registry.register_collector(Box::new(Scrape { sources, store_size, consumer_lag: lag, agents }));
        let mut page = String::new();
        // Writing to a string can't fail.
        let _ = text::encode(&mut page, &registry);
        page
    }
    .boxed()
}

/// The values of one scrape.
struct Scrape {
    sources: Arc<MetricSources>,
    store_size: Option<StoreSize>,
    consumer_lag: Option<[(&'static str, u64); consumers::NAMES.len()]>,
    agents: Vec<AgentView>,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = MetricsEncoder(encoder);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.gauges("build_info", "The coordinator's version as a label; always 1", [(version, 1)])?;
        self.driver(&mut page)?;
        self.operator_alerts(&mut page)?;
        self.agents(&mut page)?;
        self.mesh(&mut page)?;
        self.http(&mut page)?;
        self.deliveries(&mut page)?;
        self.consumers(&mut page)?;
        let broken = self.sources.supervisor.crash_counts().into_iter().map(|(room, times)| ([("room", room)], times));
        page.counters("rooms_broken", "Panics of background tasks, by task", broken)?;
        match self.store_size {
            Some(store_size) => store(&store_size, &mut page),
            None => Ok(()),
        }
    }
}

impl Scrape {
    fn driver(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let flow = &self.sources.driver;
        let monitors = flow.monitors().map(|(status, count)| ([("status", status.name())], signed(count)));
        page.gauges("monitors", "Monitors by status", monitors)?;
        page.counter("readings_stored", "Finished rounds stored", &flow.readings)?;
        page.counter("events_stored", "Events stored", &flow.events)?;
        page.counter("heartbeats", "Heartbeat pings accepted", &flow.pings)?;
        page.gauge("driver_backlog", "Inputs waiting for the driver", signed(flow.backlog.load(Relaxed)))?;
        let pending_commit = signed(flow.pending.load(Relaxed));
        page.gauge("driver_harvest", "Readings, events and pings waiting for the next commit", pending_commit)?;
        let (buckets, sum) = flow.commits.snapshot();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let mut encoder = page.0.encode_descriptor(
            "commit_duration",
            "Time until the driver's commits were durable",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn operator_alerts(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let problems = self.sources.driver.mesh_problems();
        let is_present = |problem| i64::from(problems.contains(&problem));
        let mesh_wide = [
            ([("notice", "nobody_connected")], is_present(MeshProblem::NoneConnected)),
            ([("notice", "nothing_confirmed")], is_present(MeshProblem::NoConfirmation)),
            ([("notice", "repeated_only")], is_present(MeshProblem::RepeatOnly)),
            ([("notice", "all_quarantined")], is_present(MeshProblem::AllQuarantined)),
            ([("notice", "names_fail")], is_present(MeshProblem::DnsFailing)),
            ([("notice", "contradicted")], is_present(MeshProblem::Contradicted)),
        ];
        page.gauges("mesh_notice", "1 while a mesh-wide problem exists", mesh_wide)?;
        let regional = Region::ALL.into_iter().flat_map(|region| {
            let row = |name, problem| ([("notice", name), ("region", region.name())], is_present(problem));
            [
                row("one_network", MeshProblem::OneNetwork(region)),
                row("nobody", MeshProblem::RegionDisconnected(region)),
                row("quarantined", MeshProblem::RegionQuarantined(region)),
            ]
        });
        page.gauges("region_notice", "1 while a problem exists in the region", regional)
    }

    fn agents(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let mut by_region: BTreeMap<Region, [i64; 2]> = BTreeMap::new();
        for view in &self.agents {
            let [enrolled, connected] = by_region.entry(view.agent.region).or_default();
            *enrolled += 1;
            *connected += i64::from(view.connected_since.is_some());
        }
        let rows = |at: usize| {
            by_region
                .iter()
                .map(move |(region, counts)| ([("region", region.name())], counts.get(at).copied().unwrap_or_default()))
        };
        page.gauges("agents_enrolled", "Enrolled agents", rows(0))?;
        page.gauges("agents_connected", "Connected agents", rows(1))?;
        let count = |is: fn(&AgentView) -> bool| signed(self.agents.iter().filter(|view| is(view)).count() as u64);
        let quarantined = count(|view| view.is_quarantined);
        page.gauge("agents_quarantined", "Agents in quarantine, whose rounds do not count", quarantined)?;
        let disputed = signed(self.sources.driver.quarantined.load(Relaxed));
        page.gauge("agents_disputed", "Agents in quarantine because other networks disputed them", disputed)?;
        let clock = count(|view| view.is_clock_off);
        page.gauge("agents_clock_off", "Agents whose clock is off by more than two seconds", clock)?;
        let shared = count(|view| view.is_shared);
        page.gauge("agents_shared", "Agents whose identity two hosts are using", shared)
    }

    fn mesh(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let mesh = &self.sources.mesh;
        for (name, help, value) in [
            ("mesh_connections", "Connections whose handshake was completed", &mesh.connections),
            ("mesh_handshakes_failed", "Connections that failed during the handshake", &mesh.handshakes_failed),
            ("mesh_without_identity", "Connections without a certificate", &mesh.without_identity),
            ("mesh_not_enrolled", "Connections of revoked or unknown agents", &mesh.not_enrolled),
            ("mesh_replaced", "Connections replaced by another with the same identity", &mesh.replaced),
            ("mesh_shared", "Identities found in use by two hosts", &mesh.shared_identities),
            ("mesh_frames_refused", "Connections closed for breaking the protocol", &mesh.frames_refused),
            ("mesh_joined", "Agents that joined", &mesh.joined),
            ("mesh_joins_refused", "Attempts to join that were refused", &mesh.joins_refused),
            ("mesh_renewed", "Certificates renewed", &mesh.renewed),
            ("mesh_results", "Results received, including duplicates", &mesh.results),
            ("mesh_duplicates", "Results received a second time", &mesh.duplicates),
            (
                "mesh_rounds_refused",
                "Results of rounds that belong to other agents or are not due yet",
                &mesh.rounds_refused,
            ),
            ("mesh_gaps", "Results that agents dropped because their spool was full", &mesh.results_lost),
            ("mesh_batches_failed", "Batches that could not be made durable", &mesh.batches_failed),
            ("mesh_questions", "Probe requests sent to agents", &mesh.probes_sent),
            ("mesh_answers_lost", "Probe responses dropped: driver queue full", &mesh.responses_lost),
        ] {
            page.counter(name, help, value)?;
        }
        Ok(())
    }

    fn http(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let requests = self.sources.http.responses_by_class().map(|(class, count)| ([("class", class)], count));
        page.counters("http_requests", "HTTP responses, by status class", requests)?;
        let refusals = self.sources.http.service().pings.refusals();
        let refusals = refusals.map(|(reason, count)| ([("reason", reason)], count));
        page.counters("heartbeats_refused", "Heartbeat pings refused, by reason", refusals)
    }

    fn deliveries(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let deliveries = &self.sources.deliveries;
        let attempts = deliveries
            .attempts()
            .map(|(channel, verdict, count)| ([("channel", channel.name()), ("outcome", verdict.label())], count));
        page.counters("deliveries", "Delivery attempts, by channel and outcome", attempts)?;
        page.counter("deliveries_dropped", "Deliveries dropped without being sent", &deliveries.dropped)?;
        page.gauge("deliveries_waiting", "Deliveries waiting to be sent", signed(deliveries.waiting_count()))?;
        page.gauge(
            "deliveries_oldest_seconds",
            "Waiting time of the oldest delivery, in seconds",
            deliveries.oldest_waiting_ms() / 1000,
        )
    }

    fn consumers(&self, page: &mut MetricsEncoder<'_>) -> fmt::Result {
        let alerts = self.sources.alerts.counts().map(|(kind, count)| ([("event", kind.name())], count));
        page.counters("alerts", "Monitor alerts, by event", alerts)?;
        let lag = self.consumer_lag.iter().flatten();
        let lag = lag.map(|(reader, events)| ([("reader", *reader)], signed(*events)));
        page.gauges("journal_behind", "Events that a journal consumer has not processed yet", lag)
    }
}

fn store(store_size: &StoreSize, page: &mut MetricsEncoder<'_>) -> fmt::Result {
    page.gauge("store_size_bytes", "Size of the store on disk", signed(store_size.bytes))?;
    page.gauge("store_free_bytes", "Free disk space for the store", signed(store_size.free))?;
    page.gauge(
        "store_blobs",
        "Store pages in separate files, which are not durable; must be 0",
        signed(store_size.oversized_pages),
    )
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

/// Encoder of the metrics page.
struct MetricsEncoder<'a>(DescriptorEncoder<'a>);

impl MetricsEncoder<'_> {
    fn counter(&mut self, name: &str, help: &str, value: &AtomicU64) -> fmt::Result {
        let counter = ConstCounter::new(value.load(Relaxed));
        counter.encode(self.0.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: i64) -> fmt::Result {
        ConstGauge::new(value).encode(self.0.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([(&'static str, &'static str); N], u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        rows.into_iter().try_for_each(|(labels, value)| ConstCounter::new(value).encode(family.encode_family(&labels)?))
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([(&'static str, &'static str); N], i64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        rows.into_iter().try_for_each(|(labels, value)| ConstGauge::new(value).encode(family.encode_family(&labels)?))
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use parallax_runtime::clock::Clock;
    use parallax_service::{ServiceParts, ServiceSettings, Services};

    use super::*;

    #[tokio::test]
    async fn a_scrape_shows_the_state_of_every_task() {
        let store = Store::in_memory().unwrap();
        let settings = ServiceSettings {
            base_url: "http://127.0.0.1".to_owned(),
            root_domain: None,
            limits: Default::default(),
            allow_private: false,
            sends_mail: true,
            access_token_key: parallax_service::page_access::AccessTokenKey::new(&[7; 32]),
        };
        let service = Services::new(ServiceParts::disconnected(store.clone(), Clock::system(), settings));
        assert!(service.pings.admit("nobody's").is_err());
        let flow = Arc::<EngineCounters>::default();
        flow.readings.fetch_add(7, Relaxed);
        flow.commits.record(std::time::Duration::from_millis(3));
        flow.commits.record(std::time::Duration::from_secs(9));
        let sources = MetricSources {
            driver: flow,
            http: Arc::new(http::HttpContext::new(service, 120)),
            mesh: Arc::default(),
            agents: Box::new(Vec::new),
            deliveries: Arc::new(Deliveries::new(Clock::system())),
            alerts: Arc::new(AlertConsumer::new(String::new(), None, Default::default())),
            store,
            supervisor: Supervisor::default(),
        };
        let mut group = sources.supervisor.task_group();
        group.spawn_restarting("calendar", std::future::pending::<()>);
        let page = sources.writer()().await;
        for line in [
            "parallax_readings_stored_total 7",
            "parallax_monitors{status=\"down\"} 0",
            "parallax_mesh_notice{notice=\"nothing_confirmed\"} 0",
            "parallax_region_notice{notice=\"one_network\",region=\"asia\"} 0",
            "parallax_agents_quarantined 0",
            "parallax_mesh_results_total 0",
            "parallax_http_requests_total{class=\"5xx\"} 0",
            "parallax_heartbeats_refused_total{reason=\"unknown_token\"} 1",
            "parallax_commit_duration_seconds_bucket{le=\"0.005\"} 1",
            "parallax_commit_duration_seconds_bucket{le=\"+Inf\"} 2",
            "parallax_commit_duration_seconds_count 2",
            "parallax_deliveries_total{channel=\"webhook\",outcome=\"retried\"} 0",
            "parallax_deliveries_waiting 0",
            "parallax_store_blobs 0",
            "parallax_alerts_total{event=\"went-down\"} 0",
            "parallax_journal_behind{reader=\"alerts\"} 0",
            "parallax_rooms_broken_total{room=\"calendar\"} 0",
            "# EOF",
        ] {
            assert!(page.lines().any(|text_line| text_line == line), "{line} is not in\n{page}");
        }
    }
}
