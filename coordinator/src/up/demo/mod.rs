//! A small simulated world: targets on loopback whose state depends on where a check comes from, and their
//! monitors.

mod alert_receivers;
mod certificate;
mod demo_agents;
mod demo_state;
mod external_services;
mod first_records;
mod history;
mod monitors;
mod site_latency;
mod targets;
mod webhook_receiver;

use std::path::Path;
use std::time::Instant;

use parallax_core::id::MonitorId;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::page::edit::PageEdit;
use parallax_core::patch::PatchField;
use parallax_service::idempotency::{IdempotentRequest, RequestOutcome};
use parallax_service::{Caller, ServiceError, Services};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(super) use self::certificate::DemoCertificate;
pub(super) use self::demo_agents::DEMO_AGENTS;
use self::demo_state::DemoState;
pub(super) use self::external_services::DemoRegistry;
pub(super) use self::first_records::write_first_records;
use self::monitors::{MonitorSpec, SPECS, TargetKind};
use self::webhook_receiver::DemoWebhookReceiver;
use super::UpError;
use super::first_start::FirstStart;

/// Description of the page, which names what is simulated.
const DESCRIPTION: &str =
    "A simulated shop with healthy and failing sites. The 90 days before the demo's first start are simulated, too.";

/// The running demo.
#[derive(Debug)]
pub(super) struct Demo {
    /// Port of the page that shows deliveries.
    pub(super) inbox: u16,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Demo {
    /// Serves the targets and creates the missing monitors. A later start in the same folder creates nothing twice:
    /// targets keep their ports, and if one is taken, its monitor is moved to another.
    pub(super) async fn start(
        data: &Path,
        service: &Services,
        first: &FirstStart,
        certificate: &DemoCertificate,
        registry: DemoRegistry,
    ) -> Result<Self, UpError> {
        let mut state = DemoState::read(data)?;
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let started = targets::DemoStart { at: service.now(), instant: Instant::now() };
        tasks.spawn(registry.serve(service.now(), stopping.clone()));
        let owner = DemoOwner { service, caller: first.caller(service), first };
        owner.describe_page().await?;
        let (receiver, inbox) = owner.bind_receiver().await?;
        tasks.spawn(DemoWebhookReceiver::default().serve(receiver, stopping.clone()));
        owner.create_destination(inbox).await?;
        owner.subscribe_visitors(inbox).await?;
        for spec in SPECS {
            let remembered = state.get(spec.key);
            let port = if spec.kind.is_served() {
                let (listener, port) =
                    targets::bind(remembered.and_then(|remembered| remembered.port)).await.map_err(UpError::Target)?;
                let stopping = stopping.clone();
                match spec.kind {
                    TargetKind::Site(behaviour, base_ms) => {
                        let site = targets::Site { name: spec.name, behaviour, base_ms, started };
                        tasks.spawn(targets::serve_site(listener, site, stopping))
                    }
                    TargetKind::Certificate => {
                        tasks.spawn(targets::serve_tls(listener, certificate.acceptor.clone(), stopping))
                    }
                    TargetKind::Vendor => tasks.spawn(external_services::serve_vendor(listener, stopping)),
                    TargetKind::Port | TargetKind::Name | TargetKind::Host | TargetKind::Domain | TargetKind::Pings => {
                        tasks.spawn(targets::serve_port(listener, stopping))
                    }
                };
                Some(port)
            } else {
                None
            };
            let monitor = match remembered {
                Some(remembered) if remembered.port == port => continue,
                Some(remembered) => owner.move_monitor(remembered.monitor, spec, port).await?,
                None => owner.find_or_create_monitor(spec, port).await?,
            };
            state.insert(spec.key, port, monitor);
            state.write(data)?;
        }
        Ok(Self { inbox, tasks, stop })
    }

    /// Stops the targets.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        self.tasks.shutdown().await;
    }
}

/// The demo's customer.
struct DemoOwner<'a> {
    service: &'a Services,
    caller: Caller,
    first: &'a FirstStart,
}

impl DemoOwner<'_> {
    async fn describe_page(&self) -> Result<(), ServiceError> {
        if self.first.page.description.is_some() {
            return Ok(());
        }
        let edit = PageEdit {
            description: PatchField::Value(DESCRIPTION.to_owned()),
            show_locations: PatchField::Value(true),
            show_deploys: PatchField::Value(true),
            ..PageEdit::default()
        };
        let once = IdempotentRequest::new(None, &|_| Vec::new());
        self.service.pages.edit(&self.caller, self.first.page.id, &edit, &once).await?;
        Ok(())
    }

    /// Finds a monitor by its name, or creates it.
    async fn find_or_create_monitor(&self, spec: &MonitorSpec, port: Option<u16>) -> Result<MonitorId, ServiceError> {
        let monitors = self.service.monitors.list(&self.caller, self.first.page.id).await?;
        match monitors.iter().find(|it| it.monitor.name == spec.name) {
            Some(existing) => self.move_monitor(existing.monitor.id, spec, port).await,
            None => self.create_monitor(spec, port).await,
        }
    }

    /// Creates a monitor.
    async fn create_monitor(&self, spec: &MonitorSpec, port: Option<u16>) -> Result<MonitorId, ServiceError> {
        let page = self.first.page.id;
        let once = IdempotentRequest::new(None, &|_| Vec::new());
        match self.service.monitors.create(&self.caller, page, &spec.edit(port), &once).await? {
            RequestOutcome::Fresh(created) => Ok(created.monitor.id),
            RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => {
                Err(ServiceError::Internal("a request without an idempotency key was replayed".to_owned()))
            }
        }
    }

    /// Updates a monitor to its target's new port; a deleted one stays deleted.
    async fn move_monitor(
        &self,
        id: MonitorId,
        spec: &MonitorSpec,
        port: Option<u16>,
    ) -> Result<MonitorId, ServiceError> {
        let edit = MonitorEdit { check: spec.target(port), ..MonitorEdit::default() };
        let once = IdempotentRequest::new(None, &|_| Vec::new());
        match self.service.monitors.edit(&self.caller, self.first.page.id, id, &edit, &once).await {
            Ok(_) | Err(ServiceError::NotFound) => Ok(id),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
