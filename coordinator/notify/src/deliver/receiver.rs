//! Receivers as the store has them at the time of an attempt: reachable or not, and a visitor's mailbox.

use parallax_core::delivery::{Recipient, visitor_mailbox_key};
use parallax_core::destination::Destination;
use parallax_core::id::DeliveryId;
use parallax_core::page::NO_ACCOUNT;
use parallax_core::plan::Plan;
use parallax_store::{Result, StoreRead};

use super::DeliveryContext;

/// Returns true if the receiver exists, is enabled, and uses a channel that its account's plan includes. A
/// page that is being deleted has no reachable receivers.
pub(super) fn is_reachable(context: &DeliveryContext, read: &dyn StoreRead, to: Recipient) -> Result<bool> {
    let page_exists =
        |page| -> Result<bool> { Ok(read.page(page)?.is_some_and(|page| page.value.account != NO_ACCOUNT)) };
    Ok(match to {
        Recipient::Destination(id) => match read.destination(id)? {
            Some(it) if it.value.enabled && it.value.health.disabled.is_none() => {
                page_exists(it.value.page)? && plan_has_channel(read, &it.value)?
            }
            Some(_) | None => false,
        },
        Recipient::Subscriber(id) => match read.subscriber(id)? {
            Some(it) if it.value.health.disabled.is_none() => page_exists(it.value.page)?,
            Some(_) | None => false,
        },
        Recipient::Owner(id) => read.account(id)?.is_some(),
        Recipient::OperatorMail => context.settings.operator_mail.is_some(),
        Recipient::OperatorWebhook => context.settings.operator_hook.is_some(),
        Recipient::UnconfirmedDestination(id) => match read.destination(id)? {
            Some(it) if it.value.confirmation_sent_at().is_some() => page_exists(it.value.page)?,
            Some(_) | None => false,
        },
        Recipient::Visitor(id) => visitor_mailbox(context, read, id)?.is_some(),
    })
}

/// Returns true if the plan of the page's account includes the destination's channel.
fn plan_has_channel(read: &dyn StoreRead, destination: &Destination) -> Result<bool> {
    let Some(page) = read.page(destination.page)? else { return Ok(false) };
    let plan = read.account(page.value.account)?.map_or(Plan::Free, |account| account.value.plan);
    Ok(plan.has_channel(destination.channel.kind()))
}

/// Returns the mailbox of a visitor until the stored address expires.
pub(super) fn visitor_mailbox(
    context: &DeliveryContext,
    read: &dyn StoreRead,
    id: DeliveryId,
) -> Result<Option<String>> {
    let stored = read.stored_response(&visitor_mailbox_key(id))?.map(|stored| stored.value);
    let stored = stored.filter(|stored| stored.expires_at > context.clock.now());
    Ok(stored.and_then(|stored| String::from_utf8(stored.response).ok()))
}
