//! Limits of an account: incidents, component monitors, stopped entries and keys.

use parallax_core::check::CheckKind;
use parallax_core::check::edit::CheckEdit;
use parallax_core::incident::Incident;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::series::{MAX_STOPPED, Series};
use parallax_core::key::{ApiKey, MAX_KEYS};
use parallax_core::monitor::Monitor;
use parallax_core::patch::PatchField;
use parallax_core::plan::PlanLimitError;
use parallax_store::Op;
use parallax_store::samples;

use super::*;
use crate::accounts::keys::NewKey;

/// Incidents and windows of an account on the Free plan.
const FREE: u128 = 1_000;

impl World {
    /// Puts closed incidents with those numbers on both pages: the lower the number, the older.
    async fn add_closed_incidents(&self, numbers: std::ops::Range<u128>) {
        let now = self.service.now();
        let mut batch = Batch::new();
        for n in numbers {
            let at = now + i64::try_from(n).unwrap() - 10_000;
            batch.write(Incident {
                page: if n % 2 == 0 { self.shop.id } else { self.blog.id },
                started_at: at,
                resolved_at: Some(at),
                created_at: at,
                ..samples::incident(n, 1, 0, false)
            });
        }
        self.service.context.store().commit(batch).await.unwrap();
    }

    fn closed_incidents(&self) -> usize {
        let reader = self.service.context.store().reader();
        let count = |page: &Page| reader.page_counts(page.id).unwrap().incidents;
        count(&self.shop) + count(&self.blog)
    }

    async fn open_incident(&self, caller: &Caller) -> ServiceResult<()> {
        let edit = IncidentEdit { title: PatchField::Value("Broken".to_owned()), ..IncidentEdit::default() };
        self.service.incidents.open(caller, self.shop.id, &edit, &each_time()).await.map(drop)
    }

    fn has_incident(&self, n: u128) -> bool {
        let id = samples::incident(n, 1, 0, false).id;
        self.service.context.store().reader().incident(id).unwrap().is_some()
    }
}

#[tokio::test]
async fn incidents_over_the_limit_replace_only_those_closed_for_thirty_days() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.service.accounts.set_plan(world.owner.id, Plan::Free).await.unwrap();
    world.add_closed_incidents(0..FREE - 1).await;
    world.open_incident(&caller).await.unwrap();
    let refusal = world.open_incident(&caller).await.unwrap_err();
    assert_eq!(refusal, ServiceError::PlanLimit(PlanLimitError::IncidentsFull { plan: Plan::Free, limit: 1_000 }));
    assert!(refusal.to_string().contains("delete some"), "{refusal}");
    world.clock.set(world.service.now() + 30 * DAY);
    world.open_incident(&caller).await.unwrap();
    assert_eq!(
        (world.closed_incidents(), world.has_incident(0), world.has_incident(1)),
        (1_000, false, true),
        "the oldest was replaced"
    );
}

#[tokio::test]
async fn a_smaller_plan_deletes_no_incident_and_each_new_one_replaces_one() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    world.add_closed_incidents(0..FREE + 300).await;
    world.service.accounts.set_plan(world.owner.id, Plan::Free).await.unwrap();
    world.clock.set(world.service.now() + 30 * DAY);
    for _ in 0..3 {
        world.service.incidents.sweep_incidents().await.unwrap();
    }
    assert_eq!(world.closed_incidents(), 1_300, "a plan change deletes nothing");
    world.open_incident(&caller).await.unwrap();
    assert_eq!(
        (world.closed_incidents(), world.has_incident(0), world.has_incident(1)),
        (1_300, false, true),
        "one for one"
    );
}

#[tokio::test]
async fn automatic_incidents_over_the_limit_replace_as_many_closed_ones() {
    let world = world().await;
    world.add_closed_incidents(0..60).await;
    let sweep = async || world.service.incidents.sweep_incidents_to(50).await.unwrap();
    sweep().await;
    sweep().await;
    assert_eq!(world.closed_incidents(), 60, "incidents from before the limit existed stay");
    world.add_closed_incidents(60..67).await;
    sweep().await;
    assert_eq!((world.closed_incidents(), world.has_incident(6), world.has_incident(7)), (60, false, true));
}

#[tokio::test]
async fn an_account_has_a_limit_of_component_monitors() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let mut batch = Batch::new();
    for n in 0..200 {
        let page = if n % 2 == 0 { world.shop.id } else { world.blog.id };
        batch.write(Monitor { page, ..samples::component(n, 1) });
    }
    world.service.context.store().commit(batch).await.unwrap();
    let component = MonitorEdit {
        name: PatchField::Value("Vendor".to_owned()),
        kind: PatchField::Value(CheckKind::Component.name().to_owned()),
        check: CheckEdit {
            vendor_url: PatchField::Value("https://status.vendor.example".to_owned()),
            ..CheckEdit::default()
        },
        ..MonitorEdit::default()
    };
    let created = world.service.monitors.create(&caller, world.shop.id, &component, &each_time()).await;
    assert_eq!(created.unwrap_err(), ServiceError::PlanLimit(PlanLimitError::ComponentsFull { limit: 200 }));
    let created = world.service.monitors.create(&caller, world.shop.id, &http("a.example"), &each_time()).await;
    assert!(created.is_ok(), "others are counted separately");
    world
        .service
        .context
        .store()
        .commit(Batch::new().write(Op::DeleteMonitor(samples::monitor_id(3))).clone())
        .await
        .unwrap();
    world.service.monitors.create(&caller, world.shop.id, &component, &each_time()).await.unwrap();
}

#[tokio::test]
async fn a_page_keeps_only_its_newest_stopped_series() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let mut batch = Batch::new();
    for n in 0..MAX_STOPPED as u128 + 50 {
        batch.write(Series { page: world.shop.id, ..samples::series(n, 1, Some(3)) });
    }
    world.service.context.store().commit(batch).await.unwrap();
    let (starts, ends) = (world.service.now() + DAY, world.service.now() + DAY + MINUTE);
    let weekly = IncidentEdit {
        kind: PatchField::Value("maintenance".to_owned()),
        title: PatchField::Value("Patches".to_owned()),
        starts_at: PatchField::Value(starts.to_string()),
        ends_at: PatchField::Value(ends.to_string()),
        repeat: PatchField::Value("weekly".to_owned()),
        ..IncidentEdit::default()
    };
    world.service.incidents.open(&caller, world.shop.id, &weekly, &each_time()).await.unwrap();
    let reader = world.service.context.store().reader();
    let is_kept = |n| reader.series(samples::series(n, 1, None).id).unwrap().is_some();
    assert_eq!((is_kept(49), is_kept(50), reader.running_series().unwrap().len()), (false, true, 1));
}

#[tokio::test]
async fn an_account_has_a_limit_of_keys() {
    let world = world().await;
    let mut batch = Batch::new();
    for n in 0..MAX_KEYS as u128 {
        batch.write(ApiKey { account: world.owner.id, ..samples::key(n, 1) });
    }
    world.service.context.store().commit(batch).await.unwrap();
    let new = |account| NewKey { account, name: "k".to_owned(), access: KeyAccess::Read, page: None };
    let refusal = world.service.keys.create(new(world.owner.id)).await.unwrap_err();
    assert_eq!(refusal, ServiceError::PlanLimit(PlanLimitError::KeysFull));
    assert!(world.service.keys.create(new(world.foreign.account)).await.is_ok());
}
