//! Updates about incidents and maintenance windows: one bulletin for all subscribers of the page, as of the
//! event, and reminders to its owner.
//!
//! No bulletin is created if the page is gone, being deleted or private: someone who subscribed while it was
//! public need not have access now.

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::What;
use parallax_core::id::BulletinId;
use parallax_core::incident::{News, Told};
use parallax_core::page::{NOBODY, Page};
use parallax_core::subscriber::Bulletin;
use parallax_core::time::Timestamp;
use sha2::{Digest, Sha256};

use super::{Reaction, delivery_id};
use crate::letters::{self, IncidentNews, Written};
use crate::storage::{Batch, Read, Recorded, Result};

/// Event name of an owner's reminder.
const OWNER_REMINDER: &str = "incident.reminder";

/// Journal consumer that creates bulletins and owner's reminders.
#[derive(Debug)]
pub struct Subscribers {
    base_url: String,
    root_domain: Option<String>,
}

impl Subscribers {
    /// Creates the consumer. Pages are served below `base_url` (without a trailing slash) or under
    /// `root_domain`.
    pub const fn new(base_url: String, root_domain: Option<String>) -> Self {
        Self { base_url, root_domain }
    }

    fn address(&self, page: &Page) -> String {
        page.address(&self.base_url, self.root_domain.as_deref())
    }

    fn tell(
        &self,
        read: &dyn Read,
        recorded: &Recorded,
        told: &Told,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Result<()> {
        let Some(incident) = read.incident(told.incident)?.map(|incident| incident.value) else {
            return Ok(());
        };
        let Some(page) = read.page(incident.page)?.map(|page| page.value) else { return Ok(()) };
        if page.account == NOBODY {
            return Ok(());
        }
        let for_owner = matches!(told.news, News::OwnerReminder(_));
        if for_owner && !incident.is_open()
            || !for_owner && (page.private || read.subscribers_count(page.id)? == 0)
        {
            return Ok(());
        }
        let then = incident.as_told(told, recorded.event.at);
        let names = read.monitors_of(page.id)?;
        let affected = then.affected.iter().filter_map(|it| {
            let monitor = names.iter().find(|monitor| monitor.value.id == it.monitor)?;
            Some((it.monitor, monitor.value.name.clone(), it.impact))
        });
        let series = then.series.map(|series| read.series(series)).transpose()?.flatten();
        let news = IncidentNews {
            told,
            page: &page.name,
            page_url: &self.address(&page),
            incident: &then,
            series: series.as_ref().map(|series| &series.value),
            monitors: &affected.collect::<Vec<_>>(),
            at: recorded.event.at,
            zone: page.timezone,
            language: page.language,
        };
        if let News::OwnerReminder(length) = told.news {
            batch.write(reminder(recorded, &page, &news, length, now));
            return Ok(());
        }
        let Some(Written { event, json, mail }) = letters::update(&news) else { return Ok(()) };
        batch.write(Bulletin {
            id: BulletinId::new(recorded.event.at, start_of(&Sha256::digest(recorded.seq.to_be_bytes()))),
            page: page.id,
            incident: then.id,
            event: event.to_owned(),
            seq: recorded.seq,
            affected: then.affected.iter().map(|it| it.monitor).collect(),
            json,
            mail,
            // Subscribers who confirm after this time don't receive it, however late the event is read.
            created_at: recorded.event.at,
            reached: None,
            done: false,
        });
        Ok(())
    }
}

impl Reaction for Subscribers {
    const NAME: &'static str = "subscribers";

    fn react(&self, read: &dyn Read, events: &[Recorded], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        for recorded in events {
            if let What::Incident(told) = &recorded.event.what
                && told.notify
            {
                self.tell(read, recorded, told, &mut batch, now)?;
            }
        }
        Ok(batch)
    }
}

/// First bytes of a hash, used as the random part of an id.
pub(super) fn start_of(digest: &[u8]) -> [u8; 10] {
    let mut start = [0; 10];
    start.iter_mut().zip(digest).for_each(|(byte, hashed)| *byte = *hashed);
    start
}

fn reminder(
    recorded: &Recorded,
    page: &Page,
    news: &IncidentNews<'_>,
    length: i64,
    now: Timestamp,
) -> Delivery {
    let to = Recipient::Owner(page.account);
    Delivery {
        id: delivery_id(recorded, to),
        page: Some(page.id),
        to,
        event: OWNER_REMINDER.to_owned(),
        monitor: None,
        incident: Some(news.incident.id),
        seq: recorded.seq,
        letter: Letter::Mail(letters::quiet(news, length)),
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: None,
    }
}
