//! Incidents that last longer than a page's list reaches back.

use parallax_core::id::IncidentId;
use parallax_core::incident::Incident;
use parallax_store::samples;

use super::*;
use crate::page_access::authorize::PageAddress;

#[tokio::test]
async fn a_long_incident_is_listed_with_the_newest_two_hundred() {
    let world = world().await;
    let now = START + 100 * DAY;
    world.clock.set(now);
    let incident = |number: u128, from: Timestamp, to: Timestamp| Incident {
        id: IncidentId::from_u128(number),
        page: world.shop.id,
        started_at: from,
        resolved_at: Some(to),
        ..samples::incident(number, 1, 0, false)
    };
    let mut batch = Batch::new();
    // One lasted until yesterday, one ended before the oldest that is listed; between them are more than a list
    // holds.
    batch.write(incident(1, now - 80 * DAY, now - DAY));
    batch.write(incident(2, now - 79 * DAY, now - 30 * DAY));
    for number in 0..450 {
        let from = now - 20 * DAY + MINUTE * i64::try_from(number).unwrap();
        batch.write(incident(10 + number, from, from + MINUTE));
    }
    world.service.context.store().commit(batch).await.unwrap();
    let shop = world.service.page_access.authorize_anonymous("shop", PageAddress::BasePath).unwrap();
    let page_view =
        world.service.public_pages.view(&shop, Some(parallax_core::page_view::TimeRange::Quarter)).await.unwrap();
    let ids: Vec<IncidentId> = page_view.past_incidents.iter().map(|notice| notice.incident.id).collect();
    assert_eq!((ids.len(), ids.last()), (201, Some(&IncidentId::from_u128(1))));
    let today = chrono::DateTime::from_timestamp_millis(now.as_millis()).unwrap();
    let (year, month) = (chrono::Datelike::year(&today), chrono::Datelike::month(&today));
    let of_month = world.service.public_pages.incidents_in_month(&shop, year, month).await.unwrap();
    assert!(of_month.iter().any(|notice| notice.incident.id == IncidentId::from_u128(1)));
}
