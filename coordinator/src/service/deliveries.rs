//! A page's deliveries and their outcomes, redelivery, and test alerts.

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

/// Maximum tests of a page's destinations in a minute.
pub const TESTS: u32 = 5;
/// Maximum tests of an account's destinations in an hour, over all its pages.
pub const ACCOUNT_TESTS: u32 = 120;
/// Event name of test deliveries.
pub const TEST: &str = "test";
/// Rule for a mailbox that has not confirmed yet.
const UNCONFIRMED: &str = "can't be sent: its mailbox has not been confirmed yet";
/// Time to wait for the outcome of a test.
const PATIENCE: Duration = Duration::from_secs(12);
/// Interval at which the outcome is polled.
const LOOK: Duration = Duration::from_millis(100);
/// Deliveries read per query.
const SLICE: usize = 256;
/// Maximum deliveries scanned for one part of a list.
const LOOKED_THROUGH: usize = 2048;

/// Filter and paging of a list of deliveries.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Only those to this destination.
    pub destination: Option<DestinationId>,
    /// Only those with this status, by name.
    pub status: Option<&'static str>,
    /// Cursor: only deliveries before this one.
    pub before: Option<DeliveryId>,
    /// Maximum number.
    pub limit: usize,
}

/// Part of a list of deliveries, with a cursor.
#[derive(Debug, Clone)]
pub struct Part {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<DeliveryId>,
}

/// A delivery with its content.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The delivery.
    pub delivery: Delivery,
    /// A mail's subject.
    pub subject: Option<String>,
    /// The JSON that was posted, or a mail's text; `None` if it holds something that only its receiver may know.
    pub body: Option<String>,
}

impl Service {
    /// Lists the page's deliveries, newest first. A result may be short, or empty, although more follow.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn deliveries(&self, caller: &Caller, page: PageId, wanted: Wanted) -> Result<Part> {
        let page = self.page(caller, page)?.id;
        Ok(self.store().read(move |store| part(store, page, wanted)).await?)
    }

    /// Returns a delivery of the page with its content.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn delivery(&self, caller: &Caller, page: PageId, id: DeliveryId) -> Result<Opened> {
        let page = self.page(caller, page)?;
        self.opened(self.delivery_on(&page, id)?.value)
    }

    /// Redelivers under the same id.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::PlanLimit`] for a channel that the plan does not include,
    /// and [`Error::Invalid`] if its receiver accepts nothing any more.
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

    /// Sends a destination a sample alert marked as a test, and waits up to 12 seconds for the outcome; after that
    /// the delivery is returned in its current state. It is attempted once.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotFound`], [`Error::Invalid`] for an unconfirmed mailbox, [`Error::PlanLimit`]
    /// for a channel that the plan does not include, [`Error::TestedTooOften`], and [`Error::AccountTestedTooOften`].
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
            // It was deleted in the meantime.
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
            // A page may have no monitors yet.
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
            // Without a monitor, so that it does not queue behind that monitor's deliveries.
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

    /// Refuses a destination whose channel the account's plan does not include.
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

    /// Returns the reason why the receiver accepts nothing, if there is one.
    fn receives(&self, to: Recipient) -> Result<std::result::Result<(), Rule>> {
        let reader = self.store().reader();
        let no = |rule: &str| Ok(Err(rule.to_owned()));
        match to {
            Recipient::Destination(id) => match reader.destination(id)? {
                None => no("can't be sent: its destination was deleted"),
                Some(it) if it.value.asked_at().is_some() => no(UNCONFIRMED),
                Some(it) if !it.value.enabled || it.value.health.off.is_some() => {
                    no("can't be sent: its destination is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::Subscriber(id) => match reader.subscriber(id)? {
                None => no("can't be sent: its subscriber was deleted"),
                // Nobody is written to again before they have confirmed.
                Some(it) if it.value.confirmed_at.is_none() || it.value.health.off.is_some() => {
                    no("can't be sent: its subscriber has not confirmed, or is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::Asked(_) => no(
                "can't be sent again: to send another confirmation mail, save the destination; at most once a day",
            ),
            // A visitor who still wants a link requests another.
            Recipient::Visitor(_) => no("can't be sent again: a sign-in link is for one visitor and one use"),
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
            // It contains a token that only the receiver may know.
            (_, Recipient::Subscriber(_) | Recipient::Asked(_) | Recipient::Visitor(_)) => (None, None),
            (Letter::Json(json), _) => (None, Some(text(json))),
            (Letter::Mail(mail), _) => (Some(mail.subject.clone()), Some(mail.text.clone())),
        };
        Ok(Opened { delivery, subject, body })
    }
}

/// Returns true if a receiver of bulletins gets them as JSON.
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
