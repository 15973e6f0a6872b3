//! Mail to a page's owner that no check of a monitor can be judged, for a reason on the target's side.

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::event::{EventKind, UnjudgedPeriod};
use parallax_core::time::Timestamp;
use parallax_store::{JournalEvent, Result, StoreRead};

use crate::consumers::event_delivery_id;
use crate::render;

/// Event name of the delivery.
const EVENT: &str = "monitor.unjudged";

/// Creates the delivery for an `Unjudged` event; `None` for any other event, or if the monitor or page no
/// longer exists.
pub(super) fn unjudged_delivery(
    journal_event: &JournalEvent,
    read: &dyn StoreRead,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let EventKind::Unjudged(unjudged) = &journal_event.event.kind else { return Ok(None) };
    let (Some(page), Some(monitor)) = (journal_event.event.page, journal_event.event.monitor) else { return Ok(None) };
    let (Some(page), Some(monitor)) = (read.page(page)?, read.monitor(monitor)?) else { return Ok(None) };
    let (page, monitor) = (page.value, monitor.value);
    let UnjudgedPeriod { since, reason } = unjudged;
    let to = Recipient::Owner(page.account);
    let mail = DeliveryMessage::Mail(render::monitor_unjudged(&page, &monitor, *since, reason));
    Ok(Some(Delivery {
        page: Some(page.id),
        monitor: Some(monitor.id),
        seq: journal_event.seq,
        ..Delivery::waiting(event_delivery_id(journal_event, to), to, EVENT, mail, now)
    }))
}
