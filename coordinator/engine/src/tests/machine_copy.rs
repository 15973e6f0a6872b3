//! Copies of machines for inspection: the driver answers with machine, mesh and schedule, and with nothing for others.

use super::*;
use crate::MachineCopyQuery;

#[tokio::test]
async fn a_copy_has_the_machine_with_the_mesh_and_its_schedule() {
    let (store, clock) = (store_with_a_monitor().await, Clock::manual(START));
    let mut stream = TestDriver::start(&store, &clock).await;
    come_up(&mut stream).await;
    let copy = async |monitor: MonitorId| {
        let (reply, copied) = oneshot::channel();
        stream.queries.send(DriverQuery::Copy(MachineCopyQuery { monitor, reply })).await.unwrap();
        copied.await.unwrap()
    };
    let copied = copy(MONITOR).await.expect("the driver knows it");
    assert_eq!((copied.machine.status(), copied.at), (MonitorStatus::Up, clock.now()));
    assert_eq!(copied.mesh.vantages().len(), mesh().vantages().len());
    assert_eq!(copied.scheduled.map(|scheduled| scheduled.monitor), Some(MONITOR));
    let inspection = copied.machine.inspect(&copied.mesh, copied.at);
    assert!(inspection.reasons[0].starts_with("It is up: "), "{:?}", inspection.reasons);
    assert!(copy(MonitorId::from_u128(1)).await.is_none());
    stream.stop().await;
}
