//! The mail to a page's owner that no check of a monitor can be judged, for a reason on the other side.

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::{Unjudged, What};
use parallax_core::time::Timestamp;

use crate::letters;
use crate::react::delivery_id;
use crate::storage::{Read, Recorded, Result};

/// The name of the event in the list of deliveries.
const EVENT: &str = "monitor.unjudged";

/// The delivery that such an event leads to; none of any other event, nor where monitor or page are gone.
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
