//! What was sent of a page and what came of it; sending it once more; and test alerts.

use std::collections::BTreeMap;
use std::time::Duration;

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::Destination;
use parallax_core::event::{AlertKind, Change, Status};
use parallax_core::id::{DeliveryId, DestinationId, MonitorId, PageId};
use parallax_core::observation::Failure;
use parallax_core::page::Page;
use parallax_core::plan::PlanRefusal;
use parallax_core::refusal::{Refusals, Rule};
use parallax_core::time::MINUTE;
use tokio::time::{Instant, sleep};

use super::once::{Done, Once};
use super::pace::TooOften;
use super::{Caller, Error, Result, Service};
use crate::letters::payload::Subject;
use crate::letters::{self, News};
use crate::storage::{Batch, Expect, Is, Read, StoreError, Versioned};

/// Tests that a page's destinations get in a minute.
pub const TESTS: u32 = 5;
/// Tests of an account's destinations in an hour, over all its pages.
pub const ACCOUNT_TESTS: u32 = 120;
/// What a test is called among deliveries.
pub const TEST: &str = "test";
/// Why nothing is sent to a mailbox that was asked.
const UNCONFIRMED: &str = "can't be sent: the reader of its mailbox has not confirmed yet";
/// How long the outcome of a test is waited for.
const PATIENCE: Duration = Duration::from_secs(12);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Deliveries that are read at once.
const SLICE: usize = 256;
/// Deliveries that are looked through for one part of a list.
const LOOKED_THROUGH: usize = 2048;

/// Which deliveries are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Only those to this destination.
    pub destination: Option<DestinationId>,
    /// Only those that stand so, by name.
    pub status: Option<&'static str>,
    /// Only those before this one.
    pub before: Option<DeliveryId>,
    /// How many at most.
    pub limit: usize,
}

/// Part of a page's deliveries.
#[derive(Debug, Clone)]
pub struct Part {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Where the next part begins; none where there is none.
    pub next: Option<DeliveryId>,
}

/// A delivery with what was sent.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The delivery.
    pub delivery: Delivery,
    /// A mail's subject.
    pub subject: Option<String>,
    /// The JSON that was posted, or a mail's text; none where it holds what only its receiver may know.
    pub body: Option<String>,
}

impl Service {
    /// A part of the page's deliveries, newest first. A part may be short, or empty, though more follow.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key does not reach.
    pub async fn deliveries(&self, caller: &Caller, page: PageId, wanted: Wanted) -> Result<Part> {
        let page = self.page(caller, page)?.id;
        Ok(self.store().read(move |store| part(store, page, wanted)).await?)
    }

    /// A delivery of the page, with what was sent.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn delivery(&self, caller: &Caller, page: PageId, id: DeliveryId) -> Result<Opened> {
        let page = self.page(caller, page)?;
        self.opened(self.delivery_on(&page, id)?.value)
    }

    /// Sends a delivery once more, under its old id.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::PlanLimit`] for a channel that the plan does not have, and
    /// [`Error::Invalid`] where its receiver takes nothing any more.
    pub async fn redeliver(
        &self,
        caller: &Caller,
        page: PageId,
        id: DeliveryId,
        once: &Once<'_, Opened>,
    ) -> Result<Done<Opened>> {
        self.change_on(caller, page, id.to_u128(), once, |page| async move {
            let Versioned { revision, mut value } = self.delivery_on(&page, id)?;
            self.has_channel(&page, value.to)?;
            self.receives(value.to)?.map_err(Refusals::whole)?;
            value.again(self.now());
            let mut batch = Batch::new();
            batch.expect(Expect::Delivery(id, Is::At(revision))).write(value.clone());
            Ok((self.opened(value)?, batch))
        })
        .await
        .inspect(|_| self.0.outgoing.notify_one())
    }

    /// Sends a destination what an alert looks like, marked as a test, and waits for what comes of it: up to 12 seconds,
    /// after which the delivery is given as it stands. It is tried once.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] for a mailbox that is not confirmed,
    /// [`Error::PlanLimit`] for a channel that the plan does not have, [`Error::TestedTooOften`], and
    /// [`Error::AccountTestedTooOften`].
    pub async fn test_destination(&self, caller: &Caller, page: PageId, id: DestinationId) -> Result<Opened> {
        caller.writes()?;
        let page = self.page(caller, page)?;
        let destination = self.destination_on(&page, id)?.value;
        if destination.asked_at().is_some() {
            return Err(Refusals::whole(UNCONFIRMED).into());
        }
        self.has_channel(&page, Recipient::Destination(id))?;
        self.admit_test(&page)?;
        let delivery = self.test_of(&page, &destination).await?;
        let sent = delivery.id;
        let mut batch = Batch::new();
        batch.expect(Expect::Destination(id, Is::Present)).expect(Expect::Delivery(sent, Is::Absent));
        batch.write(delivery);
        self.store().commit(batch).await.map_err(|error| match error {
            // It was deleted meanwhile.
            StoreError::Conflict(_) => Error::NotFound,
            error => error.into(),
        })?;
        self.0.outgoing.notify_one();
        let end = Instant::now() + PATIENCE;
        loop {
            let delivery = self.store().reader().delivery(sent)?.ok_or(Error::NotFound)?.value;
            if !matches!(delivery.stage, Stage::Waiting(_)) || Instant::now() >= end {
                return self.opened(delivery);
            }
            sleep(LOOK).await;
        }
    }

    async fn test_of(&self, page: &Page, destination: &Destination) -> Result<Delivery> {
        let now = self.now();
        let id = page.id;
        let monitors = self.store().read(move |store| store.monitors_of(id)).await?;
        let heard = monitors
            .into_iter()
            .map(|monitor| monitor.value)
            .find(|monitor| destination.monitors.as_ref().is_none_or(|own| own.contains(&monitor.id)));
        let subject = match &heard {
            Some(monitor) => Subject::of(page, self.page_url(page), monitor),
            // A page may have none yet.
            None => Subject {
                page_id: id,
                page: page.name.clone(),
                page_url: self.page_url(page),
                monitor_id: MonitorId::new(now, rand::random()),
                monitor: "Example".to_owned(),
                url: None,
            },
        };
        let change = Change {
            from: Status::Up,
            to: Status::Down,
            alert: Some(AlertKind::WentDown),
            since: now - MINUTE,
            down_since: Some(now - MINUTE),
            reason: Some(Failure::UnexpectedStatus(503)),
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        };
        let news = News {
            kind: AlertKind::WentDown,
            subject: &subject,
            change: &change,
            at: now,
            zone: page.timezone,
            places: &BTreeMap::new(),
            is_test: true,
        };
        Ok(Delivery {
            id: DeliveryId::new(now, rand::random()),
            page: Some(id),
            to: Recipient::Destination(destination.id),
            event: TEST.to_owned(),
            // About no monitor, so that it waits for nothing that is.
            monitor: None,
            incident: None,
            seq: 0,
            letter: letters::alert(destination.channel.kind(), &news),
            once: true,
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        })
    }

    /// Refuses a destination whose channel the plan of the page's account does not have.
    fn has_channel(&self, page: &Page, to: Recipient) -> Result<()> {
        let Recipient::Destination(id) = to else { return Ok(()) };
        let Some(destination) = self.store().reader().destination(id)? else { return Ok(()) };
        let (plan, kind) = (self.account_of(page)?.plan, destination.value.channel.kind());
        if plan.has_channel(kind) {
            Ok(())
        } else {
            Err(PlanRefusal::ChannelNeedsHobby { plan, kind }.into())
        }
    }

    pub(super) fn admit_test(&self, page: &Page) -> Result<()> {
        let paced = self.paced(&self.0.tested, TESTS, &page.id);
        paced.map_err(|TooOften { seconds }| Error::TestedTooOften { seconds })?;
        let paced = self.paced(&self.0.tested_by, ACCOUNT_TESTS, &page.account);
        paced.map_err(|TooOften { seconds }| Error::AccountTestedTooOften { seconds })
    }

    /// Whether whoever it is for takes anything, or why not.
    fn receives(&self, to: Recipient) -> Result<std::result::Result<(), Rule>> {
        let reader = self.store().reader();
        let no = |rule: &str| Ok(Err(rule.to_owned()));
        match to {
            Recipient::Destination(id) => match reader.destination(id)? {
                None => no("can't be sent: its destination is gone"),
                Some(it) if it.value.asked_at().is_some() => no(UNCONFIRMED),
                Some(it) if !it.value.enabled || it.value.health.off.is_some() => {
                    no("can't be sent: its destination is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::Subscriber(id) => match reader.subscriber(id)? {
                None => no("can't be sent: its subscriber is gone"),
                // Nobody is written to again before they said that they want it.
                Some(it) if it.value.confirmed_at.is_none() || it.value.health.off.is_some() => {
                    no("can't be sent: its subscriber has not confirmed, or is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::Asked(_) => {
                no("can't be sent: a mailbox is asked once a day, by saving its destination")
            }
            // Whoever still wants a link asks for another.
            Recipient::Visitor(_) => no("can't be sent: its link was for one visitor, and for once"),
            Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorHook => Ok(Ok(())),
        }
    }

    fn delivery_on(&self, page: &Page, id: DeliveryId) -> Result<Versioned<Delivery>> {
        let delivery = self.store().reader().delivery(id)?;
        delivery.filter(|delivery| delivery.value.page == Some(page.id)).ok_or(Error::NotFound)
    }

    fn opened(&self, delivery: Delivery) -> Result<Opened> {
        let reader = self.store().reader();
        let text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
        let (subject, body) = match (&delivery.letter, delivery.to) {
            (Letter::Bulletin(id), to) => match reader.bulletin(*id)?.map(|bulletin| bulletin.value) {
                None => (None, None),
                Some(bulletin) if is_posted(reader.as_ref(), to)? => (None, Some(text(&bulletin.json))),
                Some(bulletin) => (Some(bulletin.mail.subject), Some(bulletin.mail.text)),
            },
            // To one person alone: a token stands in it that only the receiver may know.
            (_, Recipient::Subscriber(_) | Recipient::Asked(_) | Recipient::Visitor(_)) => (None, None),
            (Letter::Json(json), _) => (None, Some(text(json))),
            (Letter::Mail(mail), _) => (Some(mail.subject.clone()), Some(mail.text.clone())),
        };
        Ok(Opened { delivery, subject, body })
    }
}

/// Whether a receiver of news gets them as JSON.
fn is_posted(store: &dyn Read, to: Recipient) -> Result<bool> {
    let Recipient::Subscriber(id) = to else { return Ok(false) };
    Ok(store.subscriber(id)?.is_some_and(|it| it.value.contact.kind() == "webhook"))
}

fn part(store: &dyn Read, page: PageId, wanted: Wanted) -> crate::storage::Result<Part> {
    let is_wanted = |delivery: &Delivery| {
        wanted
            .destination
            .is_none_or(|id| [Recipient::Destination(id), Recipient::Asked(id)].contains(&delivery.to))
            && wanted.status.is_none_or(|status| delivery.stage.name() == status)
    };
    let mut deliveries = Vec::new();
    let mut next = wanted.before;
    for _ in 0..LOOKED_THROUGH / SLICE {
        let slice = store.deliveries_of(Some(page), next, SLICE)?;
        let is_last = slice.len() < SLICE;
        for delivery in slice {
            if deliveries.len() == wanted.limit {
                return Ok(Part { deliveries, next });
            }
            next = Some(delivery.value.id);
            if is_wanted(&delivery.value) {
                deliveries.push(delivery.value);
            }
        }
        if is_last {
            return Ok(Part { deliveries, next: None });
        }
    }
    Ok(Part { deliveries, next })
}
