//! Updates about incidents and maintenance windows: one bulletin for all subscribers of the page, as of the
//! event, and reminders to its owner.
//!
//! No bulletin is created if the page no longer exists, is being deleted or is private: someone who subscribed
//! while it was public need not have access now.

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::event::EventKind;
use parallax_core::id::BulletinId;
use parallax_core::incident::{IncidentChange, IncidentEvent};
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::subscriber::Bulletin;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, JournalEvent, Result, StoreRead};
use sha2::{Digest, Sha256};

use super::{JournalConsumer, event_delivery_id};
use crate::render::incident_update::render_update;
use crate::render::{self, IncidentNotification, RenderedUpdate};

/// Event name of an owner's reminder.
const OWNER_REMINDER: &str = "incident.reminder";

/// Journal consumer that creates bulletins and owner's reminders.
#[derive(Debug)]
pub struct BulletinConsumer {
    base_url: String,
    root_domain: Option<String>,
}

impl BulletinConsumer {
    /// Creates the consumer. Pages are served below `base_url` (without a trailing slash) or under
    /// `root_domain`.
    pub const fn new(base_url: String, root_domain: Option<String>) -> Self {
        Self { base_url, root_domain }
    }

    fn page_url(&self, page: &Page) -> String {
        page.address(&self.base_url, self.root_domain.as_deref())
    }

    fn write_bulletin(
        &self,
        read: &dyn StoreRead,
        journal_event: &JournalEvent,
        event: &IncidentEvent,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Result<()> {
        let Some(incident) = read.incident(event.incident)?.map(|incident| incident.value) else {
            return Ok(());
        };
        let Some(page) = read.page(incident.page)?.map(|page| page.value) else { return Ok(()) };
        if page.account == NO_ACCOUNT {
            return Ok(());
        }
        let for_owner = matches!(event.change, IncidentChange::OwnerReminder(_));
        if for_owner && !incident.is_open() || !for_owner && (page.private || read.subscribers_count(page.id)? == 0) {
            return Ok(());
        }
        let incident_at_event = incident.as_of_event(event, journal_event.event.at);
        let names = read.monitors_of(page.id)?;
        let affected = incident_at_event.affected.iter().filter_map(|it| {
            let monitor = names.iter().find(|monitor| monitor.value.id == it.monitor)?;
            Some((it.monitor, monitor.value.name.clone(), it.impact))
        });
        let series = incident_at_event.series.map(|series| read.series(series)).transpose()?.flatten();
        let notification = IncidentNotification {
            event,
            page: &page.name,
            page_url: &self.page_url(&page),
            incident: &incident_at_event,
            series: series.as_ref().map(|series| &series.value),
            monitors: &affected.collect::<Vec<_>>(),
            at: journal_event.event.at,
            zone: page.timezone,
            language: page.language,
        };
        if let IncidentChange::OwnerReminder(silent_ms) = event.change {
            batch.write(owner_reminder(journal_event, &page, &notification, silent_ms, now));
            return Ok(());
        }
        let Some(RenderedUpdate { event: event_name, json, mail }) = render_update(&notification) else {
            return Ok(());
        };
        batch.write(Bulletin {
            id: BulletinId::new(journal_event.event.at, id_bytes(&Sha256::digest(journal_event.seq.to_be_bytes()))),
            page: page.id,
            incident: incident_at_event.id,
            event: event_name.to_owned(),
            seq: journal_event.seq,
            affected: incident_at_event.affected.iter().map(|it| it.monitor).collect(),
            json,
            mail,
            // Subscribers who confirm after this time don't receive it, however late the event is read.
            created_at: journal_event.event.at,
            last_reached: None,
            is_complete: false,
        });
        Ok(())
    }
}

impl JournalConsumer for BulletinConsumer {
    const NAME: &'static str = "subscribers";

    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        for journal_event in events {
            if let EventKind::Incident(event) = &journal_event.event.kind
                && event.notify
            {
                self.write_bulletin(read, journal_event, event, &mut batch, now)?;
            }
        }
        Ok(batch)
    }
}

/// First bytes of a hash, used as the random part of an id.
pub(super) fn id_bytes(digest: &[u8]) -> [u8; 10] {
    digest.first_chunk().copied().unwrap_or_default()
}

fn owner_reminder(
    journal_event: &JournalEvent,
    page: &Page,
    notification: &IncidentNotification<'_>,
    silent_ms: i64,
    now: Timestamp,
) -> Delivery {
    let to = Recipient::Owner(page.account);
    let mail = DeliveryMessage::Mail(render::owner_reminder(notification, silent_ms));
    Delivery {
        page: Some(page.id),
        incident: Some(notification.incident.id),
        seq: journal_event.seq,
        ..Delivery::waiting(event_delivery_id(journal_event, to), to, OWNER_REMINDER, mail, now)
    }
}
