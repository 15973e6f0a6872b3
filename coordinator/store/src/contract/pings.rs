//! Contract for pings: the newest are stored, and they are deleted with their monitor.

use parallax_core::heartbeat::{MAX_STORED_BODY, MAX_STORED_PINGS};

use crate::samples::*;
use crate::{Batch, Op};

pub(super) fn the_newest_pings_of_a_heartbeat_are_kept(store: &mut TestStore) {
    let (id, put) = (monitor_id(1), |number, body: &[u8]| Op::PutPing(monitor_id(1), Box::new(ping(number, body))));
    store.write(put(1, b"before"));
    assert_eq!(store.reader.pings(id), Ok(vec![]), "it belongs to no monitor");
    store.write(monitor(1, 1, 0));
    let long = vec![b'x'; MAX_STORED_BODY];
    for number in 1..=MAX_STORED_PINGS + 3 {
        store.write(put(number, &long));
    }
    let pings = store.reader.pings(id).unwrap();
    let numbers: Vec<u64> = pings.iter().map(|ping| ping.number).collect();
    assert_eq!(numbers, (4..=MAX_STORED_PINGS + 3).rev().collect::<Vec<_>>());
    assert_eq!(pings.first(), Some(&ping(MAX_STORED_PINGS + 3, &long)));
    let mut batch = Batch::new();
    batch.write(Op::DeleteMonitor(id)).write(put(99, b"after"));
    store.commit(&batch).unwrap();
    store.tidy();
    store.write(monitor(1, 1, 0));
    assert_eq!(store.reader.pings(id), Ok(vec![]));
}
