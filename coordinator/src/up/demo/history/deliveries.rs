//! Deliveries of the simulated past's alerts, rendered and recorded like real ones. None is ever sent.

use parallax_core::delivery::{AttemptOutcome, Delivery, DeliveryAttempt, Recipient};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::event::{AlertKind, Event, EventKind, StatusChange};
use parallax_core::id::DeliveryId;
use parallax_core::page::Page;
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::VantageNo;
use parallax_notify::render::alert_payload::AlertSubject;
use parallax_notify::render::{AgentLabel, AgentLabels, Alert, render_alert};

use super::super::demo_agents::{DEMO_AGENTS, DemoAgent};
use super::readings::SimulatedMonitor;
use super::seeded;

/// Milliseconds from an event to its first attempt, and the longest one.
const FIRST_ATTEMPT: i64 = 300;
const MAX_DURATION_MS: u64 = 700;
/// One webhook in this many is unavailable at the first attempt.
const RETRY_EVERY: u64 = 5;
/// Pause before the second attempt in milliseconds, as by the first of the retry delays.
const RETRY_AFTER: i64 = 5 * SECOND;

/// Writes the alerts of the page.
pub(super) struct AlertWriter<'a> {
    pub(super) page: &'a Page,
    pub(super) page_url: &'a str,
    pub(super) monitors: &'a [SimulatedMonitor],
    pub(super) destinations: &'a [Destination],
}

impl AlertWriter<'_> {
    /// Returns the deliveries of events, which are numbered from `first_seq` on.
    pub(super) fn deliveries(&self, events: &[Event], first_seq: u64) -> Vec<Delivery> {
        let agents = self.agents();
        let mut deliveries = Vec::new();
        for (seq, event) in (first_seq..).zip(events) {
            let EventKind::StatusChanged(change) = &event.kind else { continue };
            let monitor = self.monitors.iter().find(|monitor| Some(monitor.record.id) == event.monitor);
            let (Some(kind), Some(monitor)) = (change.alert, monitor) else { continue };
            let subject = AlertSubject::for_monitor(self.page, self.page_url.to_owned(), &monitor.record);
            let alert = Alert {
                kind,
                subject: &subject,
                change,
                at: event.at,
                zone: self.page.timezone,
                agents: &agents,
                is_test: false,
                evidence_url: None,
            };
            let receivers = self.destinations.iter().filter(|it| it.receives(kind, monitor.record.id));
            deliveries.extend(receivers.map(|destination| delivery(destination, &alert, seq)));
        }
        deliveries
    }

    /// Names of the demo's agents, which the operator's account sees.
    fn agents(&self) -> AgentLabels {
        let first = self.monitors.first().map_or(0, |monitor| monitor.first_agent.0);
        let label = |agent: &DemoAgent| AgentLabel { name: agent.name.to_owned(), network: agent.network.to_owned() };
        (first..).map(VantageNo).zip(DEMO_AGENTS.iter().map(label)).collect()
    }
}

fn delivery(destination: &Destination, alert: &Alert<'_>, seq: u64) -> Delivery {
    let channel = destination.channel.kind();
    let random = seeded(&destination.name, seq);
    let id = DeliveryId::new(alert.at, random);
    let to = Recipient::Destination(destination.id);
    let waiting = Delivery::waiting(id, to, alert.kind.name(), render_alert(channel, alert), alert.at);
    let mut delivery = Delivery {
        page: Some(alert.subject.page_id),
        monitor: Some(alert.subject.monitor_id),
        seq,
        outage_start: started_at(alert.kind, alert.change),
        ..waiting
    };
    let noise = u64::from_be_bytes(random.first_chunk().copied().unwrap_or_default());
    let mut at = alert.at + FIRST_ATTEMPT;
    if channel == ChannelKind::Webhook && noise.is_multiple_of(RETRY_EVERY) {
        let attempt = attempt(at, noise, 503, "the receiver is restarting\n");
        let failed = DeliveryAttempt { error: Some("status 503".to_owned()), ..attempt };
        delivery.record_attempt(failed, AttemptOutcome::Deferred(None), at, 0.0);
        at = at + RETRY_AFTER;
    }
    let accepted = match channel {
        ChannelKind::Email => attempt(at, noise, 250, "queued"),
        _ => attempt(at, noise, 200, "accepted\n"),
    };
    delivery.record_attempt(accepted, AttemptOutcome::Accepted, at + SECOND, 0.0);
    delivery
}

fn attempt(at: Timestamp, noise: u64, status: u16, response: &str) -> DeliveryAttempt {
    let duration_ms = u32::try_from(40 + noise % MAX_DURATION_MS).unwrap_or(0);
    DeliveryAttempt { at, duration_ms, status: Some(status), error: None, response: response.to_owned() }
}

/// Start of the outage or slow period that an alert is about.
fn started_at(kind: AlertKind, change: &StatusChange) -> Option<Timestamp> {
    if kind == AlertKind::BackToNormal {
        let duration = change.duration_ms.and_then(|millis| i64::try_from(millis).ok())?;
        return Some(change.since - duration);
    }
    Some(change.down_since.unwrap_or(change.since))
}
