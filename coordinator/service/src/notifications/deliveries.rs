//! A page's deliveries and their outcomes, redelivery, and test alerts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use parallax_core::delivery::{Delivery, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::destination::Destination;
use parallax_core::event::{AlertKind, MonitorStatus, StatusChange};
use parallax_core::id::{AccountId, DeliveryId, DestinationId, IncidentId, MonitorId, PageId};
use parallax_core::observation::Failure;
use parallax_core::page::Page;
use parallax_core::plan::PlanLimitError;
use parallax_core::rate_limit::{FixedWindowLimit, RateExceeded};
use parallax_core::role::Permission;
use parallax_core::time::{HOUR, MINUTE};
use parallax_core::validation::{Rule, ValidationErrors};
use parallax_notify::render::alert_payload::AlertSubject;
use parallax_notify::render::{self, Alert};
use parallax_store::{Batch, Expect, Presence, StoreError, StoreRead, VersionedValue};
use tokio::time::{Instant, sleep};

use crate::context::ServiceContext;
use crate::idempotency::{IdempotentRequest, RequestOutcome, Rereadable};
use crate::{Caller, ServiceError, ServiceResult};

/// Maximum tests of a page's destinations in a minute.
pub(crate) const TESTS: u32 = 5;
/// Maximum tests of an account's destinations in an hour, over all its pages.
pub(crate) const ACCOUNT_TESTS: u32 = 120;
/// Event name of test deliveries.
pub const TEST_EVENT: &str = "test";
/// Rule for a mailbox that has not confirmed yet.
const UNCONFIRMED: &str = "can't be sent: its mailbox has not been confirmed yet";
/// Time to wait for the outcome of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval at which the outcome is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Deliveries read per query.
const SLICE: usize = 256;
/// Maximum deliveries scanned for one part of a list.
const MAX_SCANNED: usize = 2048;

/// Filter and paging of a list of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    /// Only those to this destination.
    pub destination: Option<DestinationId>,
    /// Only those with this status, by name.
    pub status: Option<&'static str>,
    /// Only those about this monitor.
    pub monitor: Option<MonitorId>,
    /// Only those about this incident or window.
    pub incident: Option<IncidentId>,
    /// Only tests, or everything but tests.
    pub test: Option<bool>,
    /// True for alerts, tests and confirmations only: what goes to destinations.
    pub to_destinations: bool,
    /// Cursor: only deliveries before this one.
    pub before: Option<DeliveryId>,
    /// Maximum number.
    pub limit: usize,
}

/// Part of a list of deliveries, with a cursor.
#[derive(Debug, Clone)]
pub struct DeliverySlice {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<DeliveryId>,
}

/// A delivery with its content.
#[derive(Debug, Clone)]
pub struct DeliveryContent {
    /// The delivery.
    pub delivery: Delivery,
    /// A mail's subject.
    pub subject: Option<String>,
    /// The JSON that was posted, or a mail's text; `None` if it holds something that only its receiver may know, or if
    /// the caller sees no bodies.
    pub body: Option<String>,
}

impl Rereadable for DeliveryContent {}

/// Reads deliveries, and queues them again or as tests. What only its receiver may know is never shown.
#[derive(Debug)]
pub struct DeliveryService {
    context: Arc<ServiceContext>,
    /// Tests, by page.
    page_test_limit: Mutex<FixedWindowLimit<PageId>>,
    /// Tests, by account.
    account_test_limit: Mutex<FixedWindowLimit<AccountId>>,
}

impl DeliveryService {
    pub(crate) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            page_test_limit: Mutex::new(FixedWindowLimit::new(MINUTE)),
            account_test_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
        }
    }

    /// Lists the page's deliveries, newest first. A result may be short, or empty, although more follow. A person who
    /// may not edit sees no answers of receivers.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn list(&self, caller: &Caller, page: PageId, filter: DeliveryFilter) -> ServiceResult<DeliverySlice> {
        let page = self.context.page(caller, page)?.id;
        let mut slice = self.context.store().read(move |store| read_page(store, page, filter)).await?;
        if hides_bodies(caller) {
            slice.deliveries.iter_mut().for_each(clear_answers);
        }
        Ok(slice)
    }

    /// Returns a delivery of the page with its content. A person who may not edit sees no bodies: neither the one sent,
    /// nor the answers.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`].
    pub fn get(&self, caller: &Caller, page: PageId, id: DeliveryId) -> ServiceResult<DeliveryContent> {
        let page = self.context.page(caller, page)?;
        let mut content = self.delivery_content(self.delivery_on(&page, id)?.value)?;
        if hides_bodies(caller) {
            clear_answers(&mut content.delivery);
            content.body = None;
        }
        Ok(content)
    }

    /// Redelivers under the same id.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::PlanLimit`] for a channel that the plan
    /// does not include, and [`ServiceError::Invalid`] if its receiver accepts nothing any more.
    pub async fn redeliver(
        &self,
        caller: &Caller,
        page: PageId,
        id: DeliveryId,
        once: &IdempotentRequest<'_, DeliveryContent>,
    ) -> ServiceResult<RequestOutcome<DeliveryContent>> {
        self.context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let VersionedValue { revision, mut value } = self.delivery_on(&page, id)?;
                self.check_channel(&page, value.to)?;
                self.check_receiver(value.to)?.map_err(ValidationErrors::whole_request)?;
                value.resend(self.context.now());
                let mut batch = Batch::new();
                batch.expect(Expect::Delivery(id, Presence::At(revision))).write(value.clone());
                Ok((self.delivery_content(value)?, batch))
            })
            .await
            .inspect(|_| self.context.deliveries_due.notify_one())
    }

    /// Sends a destination a sample alert marked as a test, and waits up to 12 seconds for the outcome; after that
    /// the delivery is returned in its current state. It is attempted once.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], [`ServiceError::Invalid`] for an unconfirmed mailbox,
    /// [`ServiceError::PlanLimit`] for a channel that the plan does not include, [`ServiceError::PageTestLimit`], and
    /// [`ServiceError::AccountTestLimit`].
    pub async fn send_test(&self, caller: &Caller, page: PageId, id: DestinationId) -> ServiceResult<DeliveryContent> {
        caller.require(Permission::Edit)?;
        let page = self.context.page(caller, page)?;
        let destination = self.context.destination_on(&page, id)?.value;
        if destination.confirmation_sent_at().is_some() {
            return Err(ValidationErrors::whole_request(UNCONFIRMED).into());
        }
        self.check_channel(&page, Recipient::Destination(id))?;
        self.admit_test(&page)?;
        let delivery = self.test_delivery(&page, &destination).await?;
        let delivery_id = delivery.id;
        let mut batch = Batch::new();
        batch
            .expect(Expect::Destination(id, Presence::Present))
            .expect(Expect::Delivery(delivery_id, Presence::Absent));
        batch.write(delivery);
        self.context.store().commit(batch).await.map_err(|error| match error {
            // It was deleted in the meantime.
            StoreError::Conflict(_) => ServiceError::NotFound,
            error => error.into(),
        })?;
        self.context.deliveries_due.notify_one();
        let end = Instant::now() + TEST_TIMEOUT;
        loop {
            let delivery = self.context.store().reader().delivery(delivery_id)?.ok_or(ServiceError::NotFound)?.value;
            if !matches!(delivery.state, DeliveryState::Waiting(_)) || Instant::now() >= end {
                return self.delivery_content(delivery);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn test_delivery(&self, page: &Page, destination: &Destination) -> ServiceResult<Delivery> {
        let now = self.context.now();
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        let alerted_monitor = monitors
            .into_iter()
            .map(|monitor| monitor.value)
            .find(|monitor| destination.monitors.as_ref().is_none_or(|filter| filter.contains(&monitor.id)));
        let subject = match &alerted_monitor {
            Some(monitor) => AlertSubject::for_monitor(page, self.context.page_url(page), monitor),
            // A page may have no monitors yet.
            None => AlertSubject {
                page_id: id,
                page: page.name.clone(),
                page_url: self.context.page_url(page),
                monitor_id: MonitorId::new(now, rand::random()),
                monitor: "Example".to_owned(),
                url: None,
            },
        };
        let change = StatusChange {
            from: MonitorStatus::Up,
            to: MonitorStatus::Down,
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
        let alert = Alert {
            kind: AlertKind::WentDown,
            subject: &subject,
            change: &change,
            at: now,
            zone: page.timezone,
            agents: &BTreeMap::new(),
            evidence_url: None,
            is_test: true,
        };
        let message = render::render_alert(destination.channel.kind(), &alert);
        let (delivery_id, to) = (DeliveryId::new(now, rand::random()), Recipient::Destination(destination.id));
        // Without a monitor, so that it does not queue behind that monitor's deliveries.
        Ok(Delivery {
            page: Some(id),
            is_single_attempt: true,
            ..Delivery::waiting(delivery_id, to, TEST_EVENT, message, now)
        })
    }

    /// Refuses a destination whose channel the account's plan does not include.
    fn check_channel(&self, page: &Page, to: Recipient) -> ServiceResult<()> {
        let Recipient::Destination(id) = to else { return Ok(()) };
        let Some(destination) = self.context.store().reader().destination(id)? else { return Ok(()) };
        let (plan, kind) = (self.context.account_of(page)?.plan, destination.value.channel.kind());
        if plan.has_channel(kind) { Ok(()) } else { Err(PlanLimitError::ChannelNeedsHobby { plan, kind }.into()) }
    }

    pub(crate) fn admit_test(&self, page: &Page) -> ServiceResult<()> {
        let admitted = self.context.check_rate(&self.page_test_limit, TESTS, &page.id);
        admitted.map_err(|RateExceeded { seconds }| ServiceError::PageTestLimit { seconds })?;
        let admitted = self.context.check_rate(&self.account_test_limit, ACCOUNT_TESTS, &page.account);
        admitted.map_err(|RateExceeded { seconds }| ServiceError::AccountTestLimit { seconds })
    }

    /// Returns the reason why the receiver accepts nothing, if there is one.
    fn check_receiver(&self, to: Recipient) -> ServiceResult<std::result::Result<(), Rule>> {
        let reader = self.context.store().reader();
        let no = |rule: &str| Ok(Err(rule.to_owned()));
        match to {
            Recipient::Destination(id) => match reader.destination(id)? {
                None => no("can't be sent: its destination was deleted"),
                Some(it) if it.value.confirmation_sent_at().is_some() => no(UNCONFIRMED),
                Some(it) if !it.value.enabled || it.value.health.disabled.is_some() => {
                    no("can't be sent: its destination is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::Subscriber(id) => match reader.subscriber(id)? {
                None => no("can't be sent: its subscriber was deleted"),
                // Nobody is written to again before they have confirmed.
                Some(it) if it.value.confirmed_at.is_none() || it.value.health.disabled.is_some() => {
                    no("can't be sent: its subscriber has not confirmed, or is switched off")
                }
                Some(_) => Ok(Ok(())),
            },
            Recipient::UnconfirmedDestination(_) => {
                no("can't be sent again: to send another confirmation mail, save the destination; at most once a day")
            }
            // A visitor who still wants a link requests another.
            Recipient::Visitor(_) => no("can't be sent again: a sign-in link is for one visitor and one use"),
            Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorWebhook => Ok(Ok(())),
        }
    }

    fn delivery_on(&self, page: &Page, id: DeliveryId) -> ServiceResult<VersionedValue<Delivery>> {
        let delivery = self.context.store().reader().delivery(id)?;
        delivery.filter(|delivery| delivery.value.page == Some(page.id)).ok_or(ServiceError::NotFound)
    }

    fn delivery_content(&self, delivery: Delivery) -> ServiceResult<DeliveryContent> {
        let reader = self.context.store().reader();
        let text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
        let (subject, body) = match (&delivery.message, delivery.to) {
            (DeliveryMessage::Bulletin(id), to) => match reader.bulletin(*id)?.map(|bulletin| bulletin.value) {
                None => (None, None),
                Some(bulletin) if gets_json(reader.as_ref(), to)? => (None, Some(text(&bulletin.json))),
                Some(bulletin) => (Some(bulletin.mail.subject), Some(bulletin.mail.text)),
            },
            // It contains a token that only the receiver may know.
            (_, Recipient::Subscriber(_) | Recipient::UnconfirmedDestination(_) | Recipient::Visitor(_)) => {
                (None, None)
            }
            (DeliveryMessage::Json(json), _) => (None, Some(text(json))),
            (DeliveryMessage::Mail(mail), _) => (Some(mail.subject.clone()), Some(mail.text.clone())),
        };
        Ok(DeliveryContent { delivery, subject, body })
    }
}

/// Returns true for a person whose role does not show bodies. API keys of both kinds read them.
fn hides_bodies(caller: &Caller) -> bool {
    caller.key().is_none() && !caller.allows(Permission::Edit)
}

/// Removes what the receiver answered from a delivery.
fn clear_answers(delivery: &mut Delivery) {
    delivery.attempt_log.iter_mut().for_each(|attempt| attempt.response.clear());
}

/// Returns true if a receiver of bulletins gets them as JSON.
fn gets_json(store: &dyn StoreRead, to: Recipient) -> ServiceResult<bool> {
    let Recipient::Subscriber(id) = to else { return Ok(false) };
    Ok(store.subscriber(id)?.is_some_and(|it| it.value.contact.kind() == "webhook"))
}

/// Returns true for alerts: deliveries about a monitor's state to a destination.
pub(crate) fn is_alert(delivery: &Delivery) -> bool {
    let is_about_state = AlertKind::ALL.iter().any(|kind| kind.name() == delivery.event);
    is_about_state && matches!(delivery.to, Recipient::Destination(_))
}

const fn is_to_destination(to: Recipient) -> bool {
    matches!(to, Recipient::Destination(_) | Recipient::UnconfirmedDestination(_))
}

fn read_page(store: &dyn StoreRead, page: PageId, filter: DeliveryFilter) -> parallax_store::Result<DeliverySlice> {
    let is_wanted = |delivery: &Delivery| {
        filter
            .destination
            .is_none_or(|id| [Recipient::Destination(id), Recipient::UnconfirmedDestination(id)].contains(&delivery.to))
            && filter.status.is_none_or(|status| delivery.state.name() == status)
            && filter.monitor.is_none_or(|monitor| delivery.monitor == Some(monitor))
            && filter.incident.is_none_or(|incident| delivery.incident == Some(incident))
            && filter.test.is_none_or(|test| (delivery.event == TEST_EVENT) == test)
            && (!filter.to_destinations || is_to_destination(delivery.to))
    };
    let mut deliveries = Vec::new();
    let mut next = filter.before;
    for _ in 0..MAX_SCANNED / SLICE {
        let slice = store.deliveries_of(Some(page), next, SLICE)?;
        let is_last = slice.len() < SLICE;
        for delivery in slice {
            if deliveries.len() == filter.limit {
                return Ok(DeliverySlice { deliveries, next });
            }
            next = Some(delivery.value.id);
            if is_wanted(&delivery.value) {
                deliveries.push(delivery.value);
            }
        }
        if is_last {
            return Ok(DeliverySlice { deliveries, next: None });
        }
    }
    Ok(DeliverySlice { deliveries, next })
}
