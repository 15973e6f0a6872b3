//! Limits of a page: the last object that fits, the first that does not, and a free slot after one is closed.

use parallax_core::deploy::{DeployEdit, MAX_DEPLOYS};
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::series::MAX_ACTIVE_SERIES;
use parallax_core::incident::{MAX_OPEN_INCIDENTS, UpdatePost};
use parallax_core::patch::PatchField;
use parallax_core::plan::PlanLimitError;
use parallax_store::samples;

use super::*;
use crate::incidents::IncidentDetail as ShownIncident;

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

async fn open(world: &World, caller: &Caller, edit: &IncidentEdit) -> ServiceResult<ShownIncident> {
    match world.service.incidents.open(caller, world.shop.id, edit, &each_time()).await? {
        RequestOutcome::Fresh(view) => Ok(view),
        RequestOutcome::Replayed(_) | RequestOutcome::Reread(_) => panic!("nothing was sent twice"),
    }
}

#[tokio::test]
async fn a_page_has_a_limit_of_open_incidents() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let titled = IncidentEdit { title: value("Broken"), ..IncidentEdit::default() };
    let mut last = None;
    for _ in 0..MAX_OPEN_INCIDENTS {
        last = Some(open(&world, &caller, &titled).await.unwrap().incident.id);
    }
    let full = ServiceError::PlanLimit(PlanLimitError::OpenIncidentsFull);
    assert_eq!(open(&world, &caller, &titled).await.unwrap_err(), full);
    assert!(full.to_string().contains("200 open incidents"), "{full}");
    // A closed incident needs no slot.
    let over = IncidentEdit { resolved_at: value(&world.service.now().to_string()), ..titled.clone() };
    open(&world, &caller, &over).await.unwrap();
    let resolved = UpdatePost { status: value("resolved"), message: value("Mended"), notify: PatchField::Absent };
    world.service.incidents.post_update(&caller, world.shop.id, last.unwrap(), &resolved, &each_time()).await.unwrap();
    open(&world, &caller, &titled).await.unwrap();
    assert_eq!(open(&world, &caller, &titled).await.unwrap_err(), full);
}

#[tokio::test]
async fn a_page_has_a_limit_of_series() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let (starts, ends) = (world.service.now() + DAY, world.service.now() + DAY + MINUTE);
    let weekly = IncidentEdit {
        kind: value("maintenance"),
        title: value("Patches"),
        starts_at: value(&starts.to_string()),
        ends_at: value(&ends.to_string()),
        repeat: value("weekly"),
        ..IncidentEdit::default()
    };
    let mut last = None;
    for _ in 0..MAX_ACTIVE_SERIES {
        last = Some(open(&world, &caller, &weekly).await.unwrap().incident.id);
    }
    let full = ServiceError::PlanLimit(PlanLimitError::SeriesFull);
    assert_eq!(open(&world, &caller, &weekly).await.unwrap_err(), full);
    let once = IncidentEdit { repeat: PatchField::Absent, ..weekly.clone() };
    open(&world, &caller, &once).await.unwrap();
    let stop = IncidentEdit { repeat: PatchField::Null, ..IncidentEdit::default() };
    world.service.incidents.edit(&caller, world.shop.id, last.unwrap(), &stop, &each_time()).await.unwrap();
    open(&world, &caller, &weekly).await.unwrap();
}

#[tokio::test]
async fn the_oldest_deploy_is_dropped_and_an_older_one_is_refused() {
    let world = world().await;
    let caller = world.caller(KeyAccess::Write).await;
    let mut batch = Batch::new();
    for n in 0..MAX_DEPLOYS as u128 - 1 {
        let when = START.as_millis() - 1_000_000 + i64::try_from(n).unwrap();
        let deploy = samples::deploy(n, 0, when);
        batch.write(parallax_core::deploy::Deploy { page: world.shop.id, ..deploy });
    }
    world.service.context.store().commit(batch).await.unwrap();
    let create = async |ago: i64| {
        let at = value(&(START - 1_000_000 + ago).to_string());
        let edit = DeployEdit { version: value("v2"), at, ..DeployEdit::default() };
        world.service.deploys.create(&caller, world.shop.id, &edit, &each_time()).await
    };
    let deploys = || world.service.context.store().reader().deploys_of(world.shop.id, usize::MAX).unwrap();
    assert!(create(-5000).await.is_ok(), "the last that fits");
    assert_eq!((deploys().len(), deploys().last().unwrap().value.at), (MAX_DEPLOYS, START - 1_005_000));
    let refusal = create(-6000).await.unwrap_err();
    assert_eq!(refusal, ServiceError::PlanLimit(PlanLimitError::DeployTooOld));
    assert!(create(-4000).await.is_ok());
    assert_eq!((deploys().len(), deploys().last().unwrap().value.at), (MAX_DEPLOYS, START - 1_004_000));
    assert!(create(900_000).await.is_ok());
    assert_eq!((deploys().len(), deploys().last().unwrap().value.at), (MAX_DEPLOYS, START - 1_000_000));
}
