//! Events of monitors, newest first: a merge of their indexes.

use std::collections::BinaryHeap;

use parallax_core::event::Event;
use parallax_core::id::MonitorId;
use sled::IVec;

use super::record_read::{read_record, seq_of};
use super::sealed_tree::SealedTree;
use super::{engine_error, layout};
use crate::{JournalEvent, Result};

/// Returns the newest events of any of these monitors. Each index is read only as far as its events are among them.
pub(super) fn newest(
    tree: &SealedTree,
    monitors: &[MonitorId],
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<JournalEvent>> {
    let (mut indexes, mut heads) = (Vec::new(), BinaryHeap::new());
    for monitor in monitors {
        let range = layout::event_of(*monitor, 0)..layout::event_of(*monitor, before.unwrap_or(u64::MAX));
        // A deleted monitor's index is cleaned up later.
        if range.start >= range.end || !tree.contains_key(layout::monitor(*monitor)).map_err(engine_error)? {
            continue;
        }
        let mut index = tree.range(range).keys().rev();
        heads.extend(next_seq(&mut index)?.map(|seq| (seq, indexes.len())));
        indexes.push(index);
    }
    let mut events = Vec::new();
    for _ in 0..limit {
        let Some((seq, at)) = heads.pop() else { break };
        events.extend(read_record::<Event>(tree, &layout::event(seq))?.map(|event| JournalEvent { seq, event }));
        if let Some(index) = indexes.get_mut(at) {
            heads.extend(next_seq(index)?.map(|seq| (seq, at)));
        }
    }
    Ok(events)
}

fn next_seq(index: &mut impl Iterator<Item = sled::Result<IVec>>) -> Result<Option<u64>> {
    Ok(index.next().transpose().map_err(engine_error)?.map(|key| seq_of(&key)))
}
