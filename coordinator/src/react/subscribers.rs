//! News of incidents and windows: one bulletin for all subscribers of the page, as of its moment; reminders to its owner.
//!
//! A page that is gone, that nobody has, or that only some may see tells its subscribers nothing: who asked when
//! everybody could see it need not be among those who may.

use parallax_core::delivery::{Delivery, Letter, Mail, Recipient, Stage};
use parallax_core::event::What;
use parallax_core::id::{BulletinId, MonitorId};
use parallax_core::incident::{Impact, Incident, Kind, News, Told, Update};
use parallax_core::page::{NOBODY, Page};
use parallax_core::subscriber::Bulletin;
use parallax_core::time::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Reaction, delivery_id};
use crate::storage::{Batch, Read, Recorded, Result};

/// What an owner's reminder is called.
const OWNER_REMINDER: &str = "incident.reminder";

/// Writes what subscribers and owners are told of incidents and windows.
#[derive(Debug)]
pub struct Subscribers {
    base_url: String,
    root_domain: Option<String>,
}

impl Subscribers {
    /// News of pages that are served below that URL (without a slash at its end), or under that domain.
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
        if let News::OwnerReminder(length) = told.news {
            if incident.is_open() {
                batch.write(reminder(recorded, &page, &self.address(&page), &incident, length, now));
            }
            return Ok(());
        }
        let Some(event) = event_name(told.news, incident.kind) else { return Ok(()) };
        if page.private || read.subscribers_count(page.id)? == 0 {
            return Ok(());
        }
        let then = incident.as_told(told, recorded.event.at);
        let names = read.monitors_of(page.id)?;
        let affected = then.affected.iter().filter_map(|it| {
            let monitor = names.iter().find(|monitor| monitor.value.id == it.monitor)?;
            Some((it.monitor, monitor.value.name.clone(), it.impact))
        });
        let story = Story {
            event,
            page: &page,
            url: self.address(&page),
            incident: &then,
            affected: affected.collect(),
            update: told.update.and_then(|id| then.updates.iter().find(|update| update.id == id)),
            at: recorded.event.at,
        };
        batch.write(Bulletin {
            id: BulletinId::new(now, start_of(&Sha256::digest(recorded.seq.to_be_bytes()))),
            page: page.id,
            incident: then.id,
            event: event.to_owned(),
            seq: recorded.seq,
            affected: then.affected.iter().map(|it| it.monitor).collect(),
            json: story.json().to_string().into_bytes(),
            mail: story.mail(),
            created_at: now,
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

/// The name of what subscribers are told; none where they are told nothing.
const fn event_name(news: News, kind: Kind) -> Option<&'static str> {
    Some(match (news, kind) {
        (News::Opened, _) => "incident.created",
        (News::Updated, Kind::Incident) => "incident.updated",
        (News::Updated, Kind::Maintenance) => "maintenance.updated",
        (News::Resolved, _) => "incident.resolved",
        (News::Scheduled, _) => "maintenance.scheduled",
        (News::Reminder(_), _) => "maintenance.reminder",
        (News::Started, _) => "maintenance.started",
        (News::Completed, _) => "maintenance.completed",
        (News::OwnerReminder(_) | News::Changed | News::Deleted, _) => return None,
    })
}

/// The first bytes of a hash, in place of an id's random ones.
pub(super) fn start_of(digest: &[u8]) -> [u8; 10] {
    let mut start = [0; 10];
    start.iter_mut().zip(digest).for_each(|(byte, hashed)| *byte = *hashed);
    start
}

fn reminder(
    recorded: &Recorded,
    page: &Page,
    url: &str,
    incident: &Incident,
    length: i64,
    now: Timestamp,
) -> Delivery {
    let minutes = length / parallax_core::time::MINUTE;
    let text =
        format!("{} on {} has had no update for {minutes} minutes.\n\n{url}\n", incident.title, page.name);
    let html = format!("<pre>{}</pre>", escaped(&text));
    let mail = Mail { subject: format!("No update for a while: {}", incident.title), text, html };
    let to = Recipient::Owner(page.account);
    Delivery {
        id: delivery_id(recorded, to),
        page: Some(page.id),
        to,
        event: OWNER_REMINDER.to_owned(),
        monitor: None,
        incident: Some(incident.id),
        seq: recorded.seq,
        letter: Letter::Mail(mail),
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: 0,
        log: Vec::new(),
    }
}

/// What is told, with all that it is told by.
struct Story<'a> {
    event: &'static str,
    page: &'a Page,
    url: String,
    incident: &'a Incident,
    affected: Vec<(MonitorId, String, Option<Impact>)>,
    update: Option<&'a Update>,
    at: Timestamp,
}

impl Story<'_> {
    /// As webhooks get it: times in milliseconds since the epoch.
    fn json(&self) -> Value {
        let incident = self.incident;
        let update = |it: &Update| json!({ "id": it.id.to_string(), "status": it.status, "body": it.body, "createdAt": it.created_at.as_millis() });
        let affected = self.affected.iter().map(|(id, name, impact)| {
            json!({ "id": id.to_string(), "name": name, "impact": impact.map(Impact::name) })
        });
        json!({
            "event": self.event,
            "page": self.page.name,
            "pageId": self.page.id.to_string(),
            "pageUrl": self.url,
            "incident": {
                "id": incident.id.to_string(),
                "kind": incident.kind.name(),
                "title": incident.title,
                "status": incident.status.name(),
                "impact": incident.impact.name(),
                "startedAt": incident.started_at.as_millis(),
                "endsAt": incident.ends_at.map(Timestamp::as_millis),
                "resolvedAt": incident.resolved_at.map(Timestamp::as_millis),
                "postmortem": incident.postmortem,
                "monitors": affected.collect::<Vec<_>>(),
                "updates": incident.updates.iter().rev().map(update).collect::<Vec<_>>(),
            },
            "update": self.update.map(update),
            "at": self.at.as_millis(),
        })
    }

    /// As mailboxes get it.
    fn mail(&self) -> Mail {
        let words = self.update.map_or(self.incident.title.as_str(), |update| update.body.as_str());
        let text =
            format!("{}\n{}\n\n{words}\n\n{}\n", self.incident.title, self.incident.status.name(), self.url);
        let html = format!("<pre>{}</pre>", escaped(&text));
        Mail { subject: format!("{}: {}", self.page.name, self.incident.title), text, html }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
