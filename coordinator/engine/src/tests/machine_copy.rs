//! Copies of machines for inspection: the driver returns machine, mesh and schedule, and `None` for unknown monitors.

use super::*;
use crate::MachineCopyQuery;

#[tokio::test]
async fn a_copy_has_the_machine_with_the_mesh_and_its_schedule() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut driver = TestDriver::start(&store, &clock).await;
    bring_up(&mut driver).await;
    let copy = async |monitor: MonitorId| {
        let (reply, copied) = oneshot::channel();
        driver.queries.send(DriverQuery::Copy(MachineCopyQuery { monitor, reply })).await.unwrap();
        copied.await.unwrap()
    };
    let copied = copy(MONITOR).await.expect("the driver knows it");
    assert_eq!((copied.machine.status(), copied.at), (MonitorStatus::Up, clock.now()));
    assert_eq!(copied.mesh.vantages().len(), mesh().vantages().len());
    assert_eq!(copied.scheduled.map(|scheduled| scheduled.monitor), Some(MONITOR));
    let inspection = copied.machine.inspect(&copied.mesh, copied.at);
    assert!(inspection.reasons[0].starts_with("It is up: "), "{:?}", inspection.reasons);
    assert!(copy(MonitorId::from_u128(1)).await.is_none());
    driver.stop().await;
}
