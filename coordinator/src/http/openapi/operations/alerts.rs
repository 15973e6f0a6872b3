//! Destinations of alerts, what was sent, a page's alert settings and its subscribers, as the description tells of them.

use ::http::Method;
use parallax_core::delivery::Stage;
use serde_json::json;

use crate::http::api::alerts::{self, AlertsDocument};
use crate::http::api::deliveries::view::{DeliveryList, DetailDocument};
use crate::http::api::destinations::{body, view::DestinationDocument};
use crate::http::api::subscribers::{self, SubscriberDocument, SubscriberList};
use crate::http::openapi::examples;
use crate::http::openapi::operation::{LIMIT, Operation, limit};

const TAG: &str = "Alerts";
const SUBSCRIBERS: &str = "Subscribers";
const ALL: &str = "/pages/{pageId}/destinations";
const ONE: &str = "/pages/{pageId}/destinations/{destinationId}";

const KINDS: &str = "Mail on every plan; webhooks and chats on Hobby and Pro. An address in a private or loopback network is \
refused, and so is one of a chat service under another type. A page may have 20 destinations: 422 for the next. \
A mailbox other than the account's own is `pending` until its reader has confirmed by a link that is \
mailed to it, once a day at most for whatever page; 400 where it was asked within the day. Until then nothing else is sent to \
it. Saving a pending one again after a day asks anew.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("listDestinations", Method::GET, ALL)
            .does(TAG, "List a page's destinations of alerts")
            .about("Oldest first. Addresses and tokens are masked.")
            .gives::<Vec<DestinationDocument>>(200, "DestinationListResponse", "destinations", "The destinations."),
        Operation::new("createDestination", Method::POST, ALL)
            .does(TAG, "Make a destination of alerts")
            .about(KINDS)
            .note("A mailbox other than the account's own is pending until its reader has confirmed by a link.")
            .reaches_out()
            .takes("DestinationCreate", |description| body::read_new(description))
            .gives::<DestinationDocument>(201, "DestinationResponse", "destination", "The destination that was made."),
        Operation::new("getDestination", Method::GET, ONE)
            .does(TAG, "Show a destination")
            .about("A key that may write sees its address, tokens and secret; another sees them masked.")
            .gives::<DestinationDocument>(200, "DestinationResponse", "destination", "The destination."),
        Operation::new("updateDestination", Method::PATCH, ONE)
            .does(TAG, "Change a destination")
            .note("One that the service switched off is on again by it.")
            .reaches_out()
            .about(
                "One that the service switched off is on again by it. A masked value is refused. Another mailbox is asked \
                 first, as a new one is; so is a pending one that was asked over a day ago.",
            )
            .takes("DestinationUpdate", |description| body::read(description))
            .gives::<DestinationDocument>(
                200, "DestinationResponse", "destination", "The destination after the change.",
            ),
        Operation::new("deleteDestination", Method::DELETE, ONE)
            .does(TAG, "Delete a destination")
            .about("What waits to be sent to it is not sent. It can't be undone.")
            .gives_nothing("It is gone."),
        Operation::new("testDestination", Method::POST, "/pages/{pageId}/destinations/{destinationId}/test")
            .does(TAG, "Send a test alert")
            .note("Sends it once and answers with the result. Five a minute for a page.")
            .each_time()
            .reaches_out()
            .about(
                "Sends a signed alert that is marked as a test, once, and answers with what came of it, within 15 \
                 seconds; `status` is waiting where nothing has come of it by then. Five a minute for a page; 400 while it is pending.",
            )
            .gives::<DetailDocument>(200, "DeliveryResponse", "delivery", "The delivery."),
        Operation::new(
            "rotateSecret", Method::POST, "/pages/{pageId}/destinations/{destinationId}/rotate-secret",
        )
            .does(TAG, "Give a webhook a new secret")
            .note("It signs beside the active one until it is activated, or 24 hours are over.")
            .replaces()
            .about(
                "The new secret is shown and signs beside the old one in `webhook-signature`. `X-Service-Signature` stays \
                 the old one's until the new one is activated, or 24 hours are over. A secret that waits already is replaced.",
            )
            .gives::<DestinationDocument>(200, "DestinationResponse", "destination", "With the new secret."),
        Operation::new(
            "activateSecret", Method::POST, "/pages/{pageId}/destinations/{destinationId}/activate-secret",
        )
            .does(TAG, "Activate a webhook's new secret")
            .replaces()
            .about(
                "Call it once the receiver knows the new secret: both signatures are made with it alone, and the old one \
                 ends. Without one that waits nothing changes.",
            )
            .gives::<DestinationDocument>(200, "DestinationResponse", "destination", "With its one secret."),
        Operation::new("listDeliveries", Method::GET, "/pages/{pageId}/deliveries")
            .does(TAG, "List what was sent of a page")
            .about("Newest first. Each is kept for 30 days.")
            .query(
                "destinationId", "Only those to this destination.", json!({ "type": "string" }),
                examples::id("destinationId"),
            )
            .query("status", "Only those that stand so.", json!({ "type": "string", "enum": Stage::NAMES }), "failed")
            .query(
                "before", "The `nextBefore` of the part before, for older ones.", json!({ "type": "string" }),
                examples::id("deliveryId"),
            )
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<DeliveryList>("DeliveryListResponse", "The deliveries."),
        Operation::new("getDelivery", Method::GET, "/pages/{pageId}/deliveries/{deliveryId}")
            .does(TAG, "Show a delivery")
            .about("With what was sent, and the status, duration and answer of each try.")
            .gives::<DetailDocument>(200, "DeliveryResponse", "delivery", "The delivery."),
        Operation::new("redeliver", Method::POST, "/pages/{pageId}/deliveries/{deliveryId}/redeliver")
            .does(TAG, "Send a delivery once more")
            .reaches_out()
            .about("Now, under the same id and with the same body.")
            .gives::<DetailDocument>(200, "DeliveryResponse", "delivery", "The delivery, which waits to be sent."),
        Operation::new("listSubscribers", Method::GET, "/pages/{pageId}/subscribers")
            .does(SUBSCRIBERS, "List a page's subscribers")
            .about("Confirmed or not, oldest first.")
            .query(
                "cursor", "The `nextCursor` of the part before, for later ones.", json!({ "type": "string" }),
                examples::id("subscriberId"),
            )
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<SubscriberList>("SubscriberListResponse", "The subscribers."),
        Operation::new("createSubscriber", Method::POST, "/pages/{pageId}/subscribers")
            .does(SUBSCRIBERS, "Ask a mailbox to subscribe")
            .about(
                "Its reader gets one mail with a link, and gets nothing else before it was followed. A mailbox is asked \
                 once a day at most, for whatever page. A page may have 30 addresses asked a minute, and an account 20 an \
                 hour and one more for each confirmed for a day, up to 1,000: 429 for the next. An account may have 200 \
                 that have not confirmed: 422. Addresses of new or changed destinations count too.",
            )
            .note(
                "Its reader gets one mail with a link, and is told of nothing before it was followed. A mailbox is asked \
                 once a day at most, for whatever page.",
            )
            .tells()
            .takes("SubscriberCreate", |description| subscribers::read(description))
            .gives::<SubscriberDocument>(201, "SubscriberResponse", "subscriber", "The subscriber that was asked."),
        Operation::new("deleteSubscriber", Method::DELETE, "/pages/{pageId}/subscribers/{subscriberId}")
            .does(SUBSCRIBERS, "Delete a subscriber")
            .about("What waits to be sent to it is not sent. It can't be undone.")
            .gives_nothing("It is gone."),
        Operation::new("getAlerts", Method::GET, "/pages/{pageId}/alerts")
            .does(TAG, "Show a page's alert settings")
            .about("How often an outage that lasts is told again, and whether incidents open by themselves.")
            .gives::<AlertsDocument>(200, "AlertsResponse", "alerts", "The settings."),
        Operation::new("updateAlerts", Method::PATCH, "/pages/{pageId}/alerts")
            .does(TAG, "Change a page's alert settings")
            .about("A field that is left out stays; null sets its default: told once, and incidents open by themselves.")
            .takes("AlertsUpdate", |description| alerts::read(description))
            .gives::<AlertsDocument>(200, "AlertsResponse", "alerts", "The settings after the change."),
    ]
}
