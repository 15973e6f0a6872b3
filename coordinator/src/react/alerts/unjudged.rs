//! Mail to a page's owner that no check of a monitor can be judged, for a reason on the target's side.

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::{Unjudged, What};
use parallax_core::time::Timestamp;

use crate::letters;
use crate::react::delivery_id;
use crate::storage::{Read, Recorded, Result};

/// Event name of the delivery.
const EVENT: &str = "monitor.unjudged";

/// Creates the delivery for an `Unjudged` event; `None` for any other event, or if the monitor or page is
/// gone.
pub(super) fn delivery(recorded: &Recorded, read: &dyn Read, now: Timestamp) -> Result<Option<Delivery>> {
    let What::Unjudged(unjudged) = &recorded.event.what else { return Ok(None) };
    let (Some(page), Some(monitor)) = (recorded.event.page, recorded.event.monitor) else { return Ok(None) };
    let (Some(page), Some(monitor)) = (read.page(page)?, read.monitor(monitor)?) else { return Ok(None) };
    let (page, monitor) = (page.value, monitor.value);
    let Unjudged { since, reason } = unjudged;
    let to = Recipient::Owner(page.account);
    Ok(Some(Delivery {
        id: delivery_id(recorded, to),
        page: Some(page.id),
        to,
        event: EVENT.to_owned(),
        monitor: Some(monitor.id),
        incident: None,
        seq: recorded.seq,
        letter: Letter::Mail(letters::unjudged(&page, &monitor, *since, reason)),
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: None,
    }))
}
