//! Lines of destinations and deliveries, made of what the services return.

use std::collections::BTreeMap;

use parallax_core::delivery::{Delivery, DeliveryAttempt, Recipient};
use parallax_core::destination::{Channel, Destination};
use parallax_core::id::{DestinationId, MonitorId};
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::deliveries::DeliveryFilter;

use crate::http::HttpContext;
use crate::http::api::mask;
use crate::http::dashboard::page_screen::PageScreen;
use crate::http::error::ApiError;
use crate::views::dashboard::alerts::{ChannelCard, DestinationHealth, DestinationRow, gets};
use crate::views::dashboard::deliveries::{DeliveryRow, delivery_state};
use crate::views::dashboard::delivery_text::{attempt_answer, delivery_event_text, recipient_text};
use crate::views::dashboard::time;

/// Deliveries among which the last answers of destinations are looked for.
const SEARCHED: usize = 200;

/// Names of a page's monitors and destinations, for the lines of the log.
#[derive(Debug, Default)]
pub(super) struct Names {
    monitors: Vec<(MonitorId, String)>,
    destinations: BTreeMap<DestinationId, String>,
}

impl Names {
    /// Reads the names of a page.
    pub(super) async fn read(
        context: &HttpContext,
        caller: &Caller,
        page_screen: &PageScreen,
    ) -> Result<(Self, Vec<Destination>), ApiError> {
        let page = page_screen.page.id;
        let destinations = context.service.destinations.list(caller, page).await?;
        let monitors = context.service.monitors.list(caller, page).await?;
        let names = Self {
            monitors: monitors.into_iter().map(|it| (it.monitor.id, it.monitor.name)).collect(),
            destinations: destinations.iter().map(|it| (it.id, it.name.clone())).collect(),
        };
        Ok((names, destinations))
    }

    /// Monitors in the order of the page: id and name.
    pub(super) fn monitors(&self) -> Vec<(String, String)> {
        self.monitors.iter().map(|(id, name)| (id.to_string(), name.clone())).collect()
    }

    /// Makes the line of a delivery.
    pub(super) fn row(&self, delivery: &Delivery, page_screen: &PageScreen) -> DeliveryRow {
        let monitor = delivery.monitor.and_then(|id| self.monitors.iter().find(|(known, _)| *known == id));
        let destination = match delivery.to {
            Recipient::Destination(id) | Recipient::UnconfirmedDestination(id) => self.destinations.get(&id),
            _ => None,
        };
        DeliveryRow {
            href: format!("{}/deliveries/{}", page_screen.base, delivery.id),
            at: time(delivery.created_at, page_screen.now),
            event: delivery_event_text(&delivery.event),
            about: monitor.map(|(_, name)| name.clone()).unwrap_or_default(),
            to: recipient_text(delivery.to, destination.map(String::as_str)),
            state: delivery_state(delivery),
            answer: delivery.attempt_log.last().map(attempt_answer).unwrap_or_default(),
        }
    }
}

/// Returns the newest attempt for each destination, among the page's newest deliveries.
pub(super) async fn last_attempts(
    context: &HttpContext,
    caller: &Caller,
    page_screen: &PageScreen,
) -> Result<BTreeMap<DestinationId, DeliveryAttempt>, ApiError> {
    let filter = DeliveryFilter { to_destinations: true, limit: SEARCHED, ..DeliveryFilter::default() };
    let newest = context.service.deliveries.list(caller, page_screen.page.id, filter).await?.deliveries;
    let mut last = BTreeMap::new();
    for delivery in newest {
        if let (Recipient::Destination(id), Some(attempt)) = (delivery.to, delivery.attempt_log.last()) {
            last.entry(id).or_insert_with(|| attempt.clone());
        }
    }
    Ok(last)
}

/// Makes the line of a destination.
pub(super) fn destination_row(
    destination: &Destination,
    last: Option<&DeliveryAttempt>,
    caller: &Caller,
    page_screen: &PageScreen,
) -> DestinationRow {
    let card = ChannelCard::of(destination.channel.kind());
    let address = address(&destination.channel, caller);
    let how = if address.is_empty() { card.text.to_owned() } else { format!("{} · {address}", card.text) };
    DestinationRow {
        href: format!("{}/destinations/{}", page_screen.base, destination.id),
        name: destination.name.clone(),
        icon: card.icon,
        how,
        gets: gets(destination),
        health: DestinationHealth::of(destination, last, page_screen.now),
    }
}

/// Address of a channel as lists show it: mailboxes in full to those who may edit, of URLs the host.
fn address(channel: &Channel, caller: &Caller) -> String {
    match channel {
        Channel::Email { to } if caller.allows(Permission::Edit) => to.clone(),
        Channel::Email { to } => mask::email(to),
        Channel::Webhook { url, .. }
        | Channel::Slack { url }
        | Channel::Discord { url }
        | Channel::Teams { url }
        | Channel::Ntfy { url, .. } => mask::url(url),
        Channel::Telegram { chat, .. } => chat.clone(),
        Channel::PagerDuty { .. } => String::new(),
    }
}
