//! Simulated history of the demo's page: ninety days of rounds, outages with their events, incidents, alerts and
//! subscribers. It is written before the coordinator starts for the first time, so that no consumer of the journal
//! notifies anyone of it, and never again.
//!
//! One batch holds all of it. An interrupted start leaves either nothing or everything.

mod component;
mod deliveries;
mod events;
mod incidents;
mod readings;
mod script;
mod stories;
mod subscribers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use parallax_core::assign::stable_hash;
use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::id::MonitorId;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::{Plan, PlanLimits};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::VantageNo;
use parallax_engine::history::seal_past;
use parallax_notify::consumers::JournalConsumer;
use parallax_notify::consumers::alerts::AlertConsumer;
use parallax_service::ServiceError;
use parallax_store::{Batch, Op, StoreError, StoreRead};

use self::component::component_past;
use self::deliveries::AlertWriter;
use self::incidents::IncidentWriter;
use self::readings::SimulatedMonitor;
use self::script::Calendar;
use super::monitors::SPECS;

/// The demo's first records, whose past is written.
#[derive(Debug, Clone)]
pub(super) struct HistorySubject {
    /// Plan of the account.
    pub(super) plan: Plan,
    pub(super) page: Page,
    /// Public URL of the page.
    pub(super) page_url: String,
    /// Monitors by the keys of their definitions.
    pub(super) monitors: BTreeMap<&'static str, MonitorId>,
    pub(super) limits: PlanLimits,
    /// End of the past.
    pub(super) now: Timestamp,
}

/// Returns true if a coordinator ran in this store before: its consumers would miss what is written now.
///
/// # Errors
/// If the store can't be read.
pub(super) fn has_run(read: &dyn StoreRead) -> Result<bool, StoreError> {
    Ok(read.cursor(AlertConsumer::NAME)? > 0)
}

/// Returns true if the page has its history.
pub(super) fn is_written(page: &Page, now: Timestamp) -> bool {
    now.since(page.created_at) > DAY
}

/// Builds the batch. Takes a second or two; blocks.
///
/// # Errors
/// If the store can't be read.
pub(super) fn build(read: &dyn StoreRead, subject: &HistorySubject) -> Result<Batch, ServiceError> {
    let calendar = Calendar::new(subject.now);
    let monitors = simulated_monitors(read, subject, calendar)?;
    let mut batch = Batch::new();
    batch.write(Page { created_at: calendar.from(), ..subject.page.clone() });
    for monitor in &monitors {
        // Figures begin with a monitor's creation.
        if !monitor.regions().is_empty() || monitor.component.is_some() {
            batch.write(monitor.record.clone());
        }
        if let Some(past) = &monitor.component {
            batch.write(Op::PutMachine(monitor.record.id, Box::new(past.state.clone())));
        }
    }
    batch.ops.extend(sealed_rounds(read, calendar, &monitors)?);
    add_records(&mut batch, read, subject, calendar, &monitors)?;
    Ok(batch)
}

/// Builds the roll-ups and blocks of all monitors, each in a thread of its own: there are a million rounds.
fn sealed_rounds(
    read: &dyn StoreRead,
    calendar: Calendar,
    monitors: &[SimulatedMonitor],
) -> Result<Vec<Op>, ServiceError> {
    let seal = |monitor: &SimulatedMonitor| {
        let windows = calendar.windows_of(monitor.key);
        seal_past(read, &monitor.record, windows, calendar.fine_from(), monitor.hours(calendar))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = monitors.iter().map(|monitor| scope.spawn(move || seal(monitor))).collect();
        let mut ops = Vec::new();
        for thread in threads {
            let failed = |_| ServiceError::Internal("a thread that simulates a history ended early".to_owned());
            ops.extend(thread.join().map_err(failed)??);
        }
        Ok(ops)
    })
}

/// Adds events, incidents, deploys, deliveries and subscribers.
fn add_records(
    batch: &mut Batch,
    read: &dyn StoreRead,
    subject: &HistorySubject,
    calendar: Calendar,
    monitors: &[SimulatedMonitor],
) -> Result<(), ServiceError> {
    let writer = IncidentWriter { calendar, page: &subject.page, monitors };
    let past = writer.write().map_err(|errors: ValidationErrors| ServiceError::Invalid(errors))?;
    batch.ops.extend(past.incidents.into_iter().map(Op::from));
    batch.ops.extend(writer.deploys().into_iter().map(Op::from));
    batch.events = events::past_events(calendar, monitors, past.events);
    let destinations: Vec<_> =
        read.destinations_of(subject.page.id)?.into_iter().map(|destination| destination.value).collect();
    let alerts =
        AlertWriter { page: &subject.page, page_url: &subject.page_url, monitors, destinations: &destinations };
    let deliveries = alerts.deliveries(&batch.events, read.last_event()? + 1);
    batch.ops.extend(deliveries.into_iter().map(Op::from));
    let chosen: Vec<MonitorId> =
        subscribers::CHOSEN.iter().filter_map(|key| subject.monitors.get(key).copied()).collect();
    let people = subscribers::subscribers(calendar, subject.page.id, &chosen, rand::random);
    batch.ops.extend(people.into_iter().map(Op::from));
    Ok(())
}

/// Reads the demo's monitors, dated back to the start of the history. One that was deleted is left out.
fn simulated_monitors(
    read: &dyn StoreRead,
    subject: &HistorySubject,
    calendar: Calendar,
) -> Result<Vec<SimulatedMonitor>, StoreError> {
    let first_agent = read.next_vantage()?;
    let mut monitors = Vec::new();
    for spec in SPECS {
        let Some(id) = subject.monitors.get(spec.key) else { continue };
        let Some(stored) = read.monitor(*id)? else { continue };
        monitors.push(simulated(spec.key, spec.base_ms(), stored.value, subject, calendar, first_agent));
    }
    Ok(monitors)
}

fn simulated(
    key: &'static str,
    base_ms: Option<u32>,
    monitor: Monitor,
    subject: &HistorySubject,
    calendar: Calendar,
    first_agent: VantageNo,
) -> SimulatedMonitor {
    // Confirmation does not affect the schedule.
    let policy = ConfirmationPolicy::default();
    let settings = EffectiveSettings::new(&monitor, &subject.page, subject.plan, &subject.limits, policy);
    let record = Monitor { created_at: calendar.from(), ..monitor };
    let mut simulated = SimulatedMonitor { key, record, settings, base_ms, first_agent, component: None };
    if simulated.record.check.kind() == CheckKind::Component {
        simulated.component = Some(Box::new(component_past(calendar, &simulated)));
    }
    simulated
}

/// Ten bytes for an id, the same for the same text and number.
fn seeded(text: &str, number: u64) -> [u8; 10] {
    let one = stable_hash(format!("{text}/{number}").as_bytes());
    let other = stable_hash(format!("{number}/{text}").as_bytes());
    let mut bytes = [0; 10];
    bytes.iter_mut().zip(one.to_be_bytes().into_iter().chain(other.to_be_bytes())).for_each(|(to, from)| *to = from);
    bytes
}
