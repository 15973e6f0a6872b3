//! Data of the dashboard: recent changes, counted alerts, the palette, explanations and acknowledgements.

use parallax_core::acknowledgement::{Acknowledgement, AcknowledgementRequest};
use parallax_core::alert_settings::{AnnouncedOutage, AnnouncedOutages};
use parallax_core::condition::Condition;
use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::event::{AlertKind, Event, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::explanation::StepLink;
use parallax_core::id::{DeliveryId, DestinationId, IncidentId, SubscriberId};
use parallax_core::incident::MonitorImpact;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::monitor::Monitor;
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::time::{HOUR, SECOND};
use parallax_core::vantage::{Region, VantageNo};
use parallax_store::Op;

use super::*;

fn change(from: MonitorStatus, to: MonitorStatus, alert: Option<AlertKind>, since: Timestamp) -> StatusChange {
    let down_since = (to == MonitorStatus::Down).then_some(since);
    StatusChange {
        from,
        to,
        alert,
        since,
        down_since,
        reason: Some(Failure::Refused),
        down_from: None,
        latency_ms: None,
        threshold_ms: None,
        duration_ms: None,
        evidence: Vec::new(),
        flapping: None,
    }
}

fn failed_round(started: Timestamp) -> RoundReport {
    RoundReport {
        region: Region::Asia,
        reason: ProbeReason::Scheduled,
        round: None,
        started,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(1),
        first_outcome: ProbeOutcome::Failed(Measurements::default(), Failure::Refused),
        second: None,
        third: None,
    }
}

/// A shop with a monitor that is down.
struct Outage {
    world: World,
    caller: Caller,
    monitor: MonitorId,
}

impl Outage {
    async fn new() -> Self {
        let world = world().await;
        let caller = world.caller(KeyAccess::Write).await;
        let monitor = world.make(&caller, "Cart").await.unwrap().monitor.id;
        let outage = Self { world, caller, monitor };
        outage.set_view(MonitorStatus::Down, Some(START));
        outage
    }

    fn set_view(&self, status: MonitorStatus, outage_since: Option<Timestamp>) {
        let view = MachineView { status, since: Some(START), outage_since, ..MachineView::default() };
        self.world.views.lock().unwrap().insert(self.monitor, view);
    }

    /// Appends events of the monitor to the journal; returns the sequence number of the newest.
    async fn journal(&self, events: impl IntoIterator<Item = (Timestamp, EventKind)>) -> u64 {
        let mut batch = Batch::new();
        for (at, kind) in events {
            batch.event(Event { at, page: Some(self.world.shop.id), monitor: Some(self.monitor), kind });
        }
        self.world.service.context.store().commit(batch).await.unwrap();
        self.world.service.context.store().reader().last_event().unwrap()
    }

    /// Stores a delivery of the page that is created at that time.
    async fn deliver(&self, to: Recipient, event: &str, at: Timestamp, seq: u64, count: usize) {
        let mut batch = Batch::new();
        for _ in 0..count {
            let (id, message) = (DeliveryId::new(at, rand::random()), DeliveryMessage::Json(b"{}".to_vec()));
            let (page, monitor) = (Some(self.world.shop.id), Some(self.monitor));
            batch.write(Delivery { page, monitor, seq, ..Delivery::waiting(id, to, event, message, at) });
        }
        self.world.service.context.store().commit(batch).await.unwrap();
    }

    async fn recent_changes(&self) -> Vec<(MonitorStatus, MonitorStatus)> {
        let dashboard = &self.world.service.dashboard;
        let state = dashboard.page_state(&self.caller, &self.world.service.public_pages, (self.world.shop.id, 1)).await;
        let changes = dashboard.recent_changes(&[state.unwrap()]).await.unwrap();
        let transition = |kind| match kind {
            EventKind::StatusChanged(change) => Some((change.from, change.to)),
            _ => None,
        };
        changes.into_iter().filter_map(|change| transition(change.event.kind)).collect()
    }

    async fn explanation(&self) -> parallax_core::explanation::Explanation {
        let (pages, page) = (&self.world.service.public_pages, self.world.shop.id);
        let detail = pages.managed_monitor_detail(&self.caller, page, self.monitor, None).await.unwrap();
        pages.explain(&detail, true).await.unwrap().explanation
    }
}

#[tokio::test]
async fn a_running_outage_stays_in_the_recent_changes_once() {
    use MonitorStatus::{Down, Up};
    for rounds in [20, 2_000, 5_000] {
        let outage = Outage::new().await;
        let began = EventKind::StatusChanged(change(Up, Down, Some(AlertKind::WentDown), START));
        outage.journal([(START, began)]).await;
        let round = |n: i64| (START + n * SECOND, EventKind::Round(failed_round(START + n * SECOND)));
        outage.journal((1..=rounds).map(round)).await;
        let repeat = || EventKind::StatusChanged(change(Down, Down, Some(AlertKind::StillDown), START));
        outage.journal((1..4).map(|n| (START + n * HOUR, repeat()))).await;
        assert_eq!(outage.recent_changes().await, [(Up, Down)], "{rounds}");
    }
}

#[tokio::test]
async fn only_alerts_to_destinations_are_counted() {
    let outage = Outage::new().await;
    let destination = Recipient::Destination(DestinationId::from_u128(1));
    let subscriber = Recipient::Subscriber(SubscriberId::from_u128(1));
    outage.deliver(destination, "went-down", START, 1, 2).await;
    outage.deliver(destination, "test", START, 1, 1).await;
    outage.deliver(subscriber, "incident.updated", START + SECOND, 2, 1_100).await;
    outage.deliver(destination, "went-down", START - DAY, 0, 1).await;
    let (service, page) = (&outage.world.service, outage.world.shop.id);
    let state = service.dashboard.page_state(&outage.caller, &service.public_pages, (page, 1)).await.unwrap();
    assert_eq!((state.deliveries.delivered, state.deliveries.undelivered), (0, 2));
}

#[tokio::test]
async fn an_explanation_has_the_change_that_began_the_outage_with_its_alerts_and_incident() {
    use MonitorStatus::{Down, Unknown, Up};
    let outage = Outage::new().await;
    let mut began = change(Up, Down, Some(AlertKind::WentDown), START);
    began.evidence = vec![failed_round(START)];
    let seq = outage.journal([(START + SECOND, EventKind::StatusChanged(began))]).await;
    let resumed = change(Unknown, Down, None, START);
    outage.journal([(START + HOUR, EventKind::StatusChanged(resumed))]).await;
    let owner = outage.world.service.destinations.list(&outage.caller, outage.world.shop.id).await.unwrap()[0].id;
    outage.deliver(Recipient::Destination(owner), "went-down", START + 2 * SECOND, seq, 1).await;
    let subscriber = Recipient::Subscriber(SubscriberId::from_u128(1));
    outage.deliver(subscriber, "incident.created", START + MINUTE, seq + 1, 2_000).await;
    // A person has written in the incident: it is no longer automatic.
    let title = PatchField::Value("Cart is down".to_owned());
    let edit = IncidentEdit { title, ..IncidentEdit::default() };
    let opened = outage.world.service.incidents.open(&outage.caller, outage.world.shop.id, &edit, &each_time()).await;
    let RequestOutcome::Fresh(opened) = opened.unwrap() else { panic!() };
    let announce = async |incident: Option<IncidentId>| {
        let announced = AnnouncedOutage { since: START, reason: None, down_from: None, incident };
        let down = BTreeMap::from([(outage.monitor, announced)]);
        let outages = AnnouncedOutages { down, ..AnnouncedOutages::default() };
        let mut batch = Batch::new();
        batch.write(Op::PutAnnouncedOutages(outage.world.shop.id, Box::new(outages)));
        outage.world.service.context.store().commit(batch).await.unwrap();
    };
    let incident = opened.incident.id;
    let affected = MonitorImpact { monitor: outage.monitor, impact: None };
    outage.world.change_incident(incident, |it| it.affected = vec![affected]).await;
    announce(Some(incident)).await;
    let explanation = outage.explanation().await;
    let links: Vec<StepLink> = explanation.steps.iter().filter_map(|step| step.link).collect();
    assert!(links.contains(&StepLink::Alerts), "{:?}", explanation.steps);
    assert!(links.contains(&StepLink::Incident(incident)), "{:?}", explanation.steps);
    let rounds = explanation.steps.iter().filter(|step| step.title.starts_with("First failure")).count();
    assert_eq!(rounds, 1, "{:?}", explanation.steps);
    announce(None).await;
    let links: Vec<StepLink> = outage.explanation().await.steps.iter().filter_map(|step| step.link).collect();
    assert_eq!(links, [StepLink::Alerts]);
}

#[tokio::test]
async fn the_palette_shows_the_states_of_the_overview() {
    let outage = Outage::new().await;
    let (service, page) = (&outage.world.service, outage.world.shop.id);
    for name in ["Basket of a cart", "Mail"] {
        outage.world.make(&outage.caller, name).await.unwrap();
    }
    outage.set_view(MonitorStatus::Up, None);
    outage.world.mesh.set_in_service(&[]);
    let found = service.dashboard.search(&outage.caller, "CART", 9).await.unwrap();
    let names: Vec<&str> = found.matches.iter().map(|it| it.monitor.name.as_str()).collect();
    assert_eq!(names, ["Cart", "Basket of a cart"], "the best match first");
    let state = service.dashboard.page_state(&outage.caller, &service.public_pages, (page, 1)).await.unwrap();
    assert_eq!((found.matches[0].condition, state.conditions[0]), (Condition::Outdated, Condition::Outdated));
    let summaries = service.dashboard.summaries(&outage.caller).await.unwrap();
    let facts = |pages: &[crate::dashboard::PageSummary]| {
        pages.iter().map(|it| (it.page.id, it.indicator, it.down)).collect::<Vec<_>>()
    };
    assert_eq!(facts(&found.pages), facts(&summaries));
    let shop = summaries.iter().find(|it| it.page.id == page).unwrap();
    assert_eq!(shop.indicator, state.overview.indicator);
    outage.world.mesh.set_in_service(&[Region::Asia]);
    let found = service.dashboard.search(&outage.caller, "cart", 1).await.unwrap();
    assert_eq!((found.matches.len(), found.matches[0].condition), (1, Condition::Up));
}

#[tokio::test]
async fn an_outage_is_acknowledged_and_withdrawn_while_it_runs() {
    let outage = Outage::new().await;
    let (service, page, id) = (&outage.world.service, outage.world.shop.id, outage.monitor);
    let stored = || service.context.store().reader().monitor(id).unwrap().unwrap().value;
    let withdraw = async || {
        service.monitors.withdraw_acknowledgement(&outage.caller, page, id, &each_time()).await.unwrap();
        stored().acknowledgement.is_none()
    };
    let request = AcknowledgementRequest::default();
    service.monitors.acknowledge(&outage.caller, page, id, &request, &each_time()).await.unwrap();
    assert_eq!(stored().acknowledgement.unwrap().outage, START);
    outage.set_view(MonitorStatus::Down, Some(START + HOUR));
    assert!(!withdraw().await, "that outage is over");
    outage.set_view(MonitorStatus::Down, Some(START));
    assert!(withdraw().await);
    outage.set_view(MonitorStatus::Up, None);
    let refused = service.monitors.acknowledge(&outage.caller, page, id, &request, &each_time()).await;
    assert!(matches!(refused, Err(ServiceError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn an_acknowledgement_needs_the_answer_of_the_driver() {
    let outage = Outage::new().await;
    let (page, id) = (outage.world.shop.id, outage.monitor);
    let store = outage.world.service.context.store().clone();
    let by = outage.caller.actor_name();
    let acknowledgement = Some(Box::new(Acknowledgement { outage: START, by, at: START, note: None }));
    let monitor = store.reader().monitor(id).unwrap().unwrap().value;
    let mut batch = Batch::new();
    batch.write(Monitor { acknowledgement, ..monitor });
    store.commit(batch).await.unwrap();
    let settings = ServiceSettings {
        base_url: "https://status.example".to_owned(),
        root_domain: Some("pages.example".to_owned()),
        limits: PlanLimits::default(),
        allow_private: false,
        sends_mail: true,
        access_token_key: page_access::AccessTokenKey::new(&[7; 32]),
    };
    let service = Services::new(ServiceParts::disconnected(store, outage.world.clock.clone(), settings));
    let request = AcknowledgementRequest::default();
    let refused = service.monitors.acknowledge(&outage.caller, page, id, &request, &each_time()).await;
    assert!(matches!(refused, Err(ServiceError::Busy { .. })), "{refused:?}");
    let refused = service.monitors.withdraw_acknowledgement(&outage.caller, page, id, &each_time()).await;
    assert!(matches!(refused, Err(ServiceError::Busy { .. })), "{refused:?}");
}
