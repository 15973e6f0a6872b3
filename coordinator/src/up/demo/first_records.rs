//! First records of the demo, written before its coordinator starts for the first time: page, receivers, monitors, and
//! their simulated history.

use std::collections::BTreeMap;

use parallax_core::id::MonitorId;
use parallax_service::ServiceError;

use super::demo_state::DemoState;
use super::history::{self, HistorySubject};
use super::monitors::SPECS;
use super::{DemoOwner, UpError, targets};
use crate::app::{self, OfflineApp};
use crate::config::CoordinatorConfig;
use crate::up::UpMode;
use crate::up::first_start::FirstStart;

/// Writes the records that are missing. A folder in which a coordinator ran before is left as it is.
pub(in crate::up) async fn write_first_records(config: &CoordinatorConfig) -> Result<(), UpError> {
    if DemoState::exists(&config.data) {
        return Ok(());
    }
    let opened = app::open(config).await?;
    let outcome = write(config, &opened).await;
    opened.close().await;
    outcome
}

async fn write(config: &CoordinatorConfig, opened: &OfflineApp) -> Result<(), UpError> {
    let (service, store) = (&opened.service, opened.store());
    if store.read(history::has_run).await.map_err(ServiceError::from)? {
        return Ok(());
    }
    let (account, page) = FirstStart::find_or_create_page(service, &UpMode::Demo).await?;
    let first = FirstStart { account, page, key: None, set_up_url: None, viewer: None };
    let owner = DemoOwner { service, caller: first.caller(service), first: &first };
    owner.describe_page().await?;
    // The ports stay bound until all are known, so that no two targets get the same one.
    let (_receiver, port) = owner.bind_receiver().await?;
    owner.create_destination(port).await?;
    let (mut state, mut monitors, mut bound) = (DemoState::default(), BTreeMap::new(), Vec::new());
    for spec in SPECS {
        let port = if spec.kind.is_served() {
            let (listener, port) = targets::bind(None).await.map_err(UpError::Target)?;
            bound.push(listener);
            Some(port)
        } else {
            None
        };
        // An interrupted start may have created it.
        let monitor = owner.find_or_create_monitor(spec, port).await?;
        monitors.insert(spec.key, monitor);
        state.insert(spec.key, port, monitor);
    }
    write_history(config, opened, &first, monitors).await?;
    state.write(&config.data)
}

async fn write_history(
    config: &CoordinatorConfig,
    opened: &OfflineApp,
    first: &FirstStart,
    monitors: BTreeMap<&'static str, MonitorId>,
) -> Result<(), ServiceError> {
    let (service, store) = (&opened.service, opened.store());
    let pages = service.pages.list_of_account(first.account.id).await?;
    let page = pages.into_iter().find(|page| page.id == first.page.id).ok_or(ServiceError::NotFound)?;
    if history::is_written(&page, service.now()) {
        return Ok(());
    }
    let subject = HistorySubject {
        plan: first.account.plan,
        page_url: service.pages.url(&page),
        page,
        monitors,
        limits: config.plans,
        now: service.now(),
    };
    let reader = store.reader().clone();
    let building = tokio::task::spawn_blocking(move || history::build(reader.as_ref(), &subject));
    let batch = building.await.map_err(|error| ServiceError::Internal(error.to_string()))??;
    store.commit(batch).await?;
    Ok(())
}
