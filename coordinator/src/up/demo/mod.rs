//! A small simulated world: targets on loopback whose state depends on where a check comes from, and their
//! monitors.

mod certificate;
mod inbox;
mod listeners;
mod memory;
mod monitors;
mod outside;
mod places;
mod targets;

use std::path::Path;
use std::time::Instant;

use parallax_core::given::Given;
use parallax_core::id::MonitorId;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::page::edit::PageEdit;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(super) use self::certificate::Certificate;
use self::inbox::Inbox;
use self::memory::Memory;
use self::monitors::{SPECS, Spec, Watched};
pub(super) use self::outside::Registry;
pub(super) use self::places::PLACES;
use super::UpError;
use super::first::First;
use crate::service::once::{Done, Once};
use crate::service::{Caller, Error, Service};

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
        service: &Service,
        first: &First,
        certificate: &Certificate,
        registry: Registry,
    ) -> Result<Self, UpError> {
        let mut memory = Memory::read(data)?;
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let begun = Instant::now();
        tasks.spawn(registry.serve(service.now(), stopping.clone()));
        let owner = Owner { service, caller: first.caller(service), first };
        owner.describe_page().await?;
        let (receiver, inbox) = owner.receiver().await?;
        tasks.spawn(Inbox::default().serve(receiver, stopping.clone()));
        owner.make_listeners(inbox).await?;
        for spec in SPECS {
            let known = memory.of(spec.key);
            let port = match spec.watched {
                Watched::Site(_) | Watched::Port | Watched::Certificate | Watched::Vendor => {
                    let (listener, port) =
                        targets::bind(known.and_then(|known| known.port)).await.map_err(UpError::Target)?;
                    let stopping = stopping.clone();
                    match spec.watched {
                        Watched::Site(behaviour) => {
                            tasks.spawn(targets::serve_site(listener, spec.name, behaviour, begun, stopping))
                        }
                        Watched::Certificate => {
                            tasks.spawn(targets::serve_tls(listener, certificate.acceptor.clone(), stopping))
                        }
                        Watched::Vendor => tasks.spawn(outside::serve_vendor(listener, stopping)),
                        Watched::Port | Watched::Name | Watched::Host | Watched::Domain | Watched::Pings => {
                            tasks.spawn(targets::serve_port(listener, stopping))
                        }
                    };
                    Some(port)
                }
                Watched::Name | Watched::Host | Watched::Domain | Watched::Pings => None,
            };
            let monitor = match known {
                Some(known) if known.port == port => continue,
                Some(known) => owner.move_monitor(known.monitor, spec, port).await?,
                None => owner.monitor(spec, port).await?,
            };
            memory.note(spec.key, port, monitor);
            memory.write(data)?;
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
struct Owner<'a> {
    service: &'a Service,
    caller: Caller,
    first: &'a First,
}

impl Owner<'_> {
    async fn describe_page(&self) -> Result<(), Error> {
        if self.first.page.description.is_some() {
            return Ok(());
        }
        let edit = PageEdit {
            description: Given::Value("A small simulated world of healthy and failing sites.".to_owned()),
            show_locations: Given::Value(true),
            ..PageEdit::default()
        };
        let once = Once::new(None, &|_| Vec::new());
        self.service.edit_page(&self.caller, self.first.page.id, &edit, &once).await?;
        Ok(())
    }

    /// Creates a monitor, or finds the one that an interrupted start created.
    async fn monitor(&self, spec: &Spec, port: Option<u16>) -> Result<MonitorId, Error> {
        let page = self.first.page.id;
        let shown = self.service.monitors(&self.caller, page).await?;
        if let Some(made) = shown.iter().find(|shown| shown.monitor.name == spec.name) {
            return self.move_monitor(made.monitor.id, spec, port).await;
        }
        let once = Once::new(None, &|_| Vec::new());
        match self.service.create_monitor(&self.caller, page, &spec.edit(port), &once).await? {
            Done::Now(shown) => Ok(shown.monitor.id),
            Done::Before(_) | Done::Again(_) => {
                Err(Error::Internal("a request without an idempotency key was replayed".to_owned()))
            }
        }
    }

    /// Updates a monitor to its target's new port; a deleted one stays deleted.
    async fn move_monitor(&self, id: MonitorId, spec: &Spec, port: Option<u16>) -> Result<MonitorId, Error> {
        let edit = MonitorEdit { check: spec.target(port), ..MonitorEdit::default() };
        let once = Once::new(None, &|_| Vec::new());
        match self.service.edit_monitor(&self.caller, self.first.page.id, id, &edit, &once).await {
            Ok(_) | Err(Error::NotFound) => Ok(id),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
