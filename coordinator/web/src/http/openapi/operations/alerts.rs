//! Operations of alert destinations, deliveries, alert settings and subscribers.

use ::http::Method;
use parallax_core::delivery::DeliveryState;
use serde_json::json;

use crate::http::api::alerts::{self, AlertsDocument};
use crate::http::api::deliveries::view::{DeliveryDetailDocument, DeliveryList};
use crate::http::api::destinations::{body, view::DestinationDocument};
use crate::http::api::subscriber_transfer::{self, ImportDocument};
use crate::http::api::subscribers::{self, SubscriberDocument, SubscriberList};
use crate::http::csv;
use crate::http::openapi::examples;
use crate::http::openapi::operation::{ApiOperation, LIMIT_ABOUT, limit};

const TAG: &str = "Alerts";
const SUBSCRIBERS: &str = "Subscribers";
const ALL: &str = "/pages/{pageId}/destinations";
const ONE: &str = "/pages/{pageId}/destinations/{destinationId}";

const DESTINATION_ABOUT: &str = "Mail on every plan; webhooks and chats on Hobby and Pro. Private and loopback addresses are \
refused, and so are a chat service's addresses under another type. A page may have 20 destinations; the next returns \
422. A mailbox other than the account's own is `pending` until its owner follows a confirmation link, which is \
mailed at most once a day across all pages; a second request within the day returns 400. Until then nothing else is \
sent to it. Saving a pending destination again after a day sends a new link.";

const IMPORT_ABOUT: &str = "Each new address gets one mail with a confirmation link; nothing else is sent until it is \
followed. The mails are spread, so that the limits of single invitations hold: an import may take days, and an address \
that could not be asked within 60 days is dropped. Addresses that are on the page stay as they are, and readers who \
unsubscribed are not asked. Spellings of one mailbox (`name+tag@`) are one address. A repeated import adds nothing. 5,000 \
addresses of a page may wait, and an account may import 10,000 new ones an hour; more return 400.";

pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::new("listDestinations", Method::GET, ALL)
            .with_summary(TAG, "List a page's alert destinations")
            .about("Oldest first. Addresses and tokens are masked.")
            .responds::<Vec<DestinationDocument>>(200, "DestinationListResponse", "destinations", "The destinations."),
        ApiOperation::new("createDestination", Method::POST, ALL)
            .with_summary(TAG, "Create an alert destination")
            .about(DESTINATION_ABOUT)
            .tool_description("A mailbox other than the account's own is pending until its owner follows a link.")
            .reaches_out()
            .accepts("DestinationCreate", |description| body::read_new(description))
            .responds::<DestinationDocument>(201, "DestinationResponse", "destination", "The new destination."),
        ApiOperation::new("getDestination", Method::GET, ONE)
            .with_summary(TAG, "Show a destination")
            .about("A write key sees its address, tokens and secret; a read key sees them masked.")
            .responds::<DestinationDocument>(200, "DestinationResponse", "destination", "The destination."),
        ApiOperation::new("updateDestination", Method::PATCH, ONE)
            .with_summary(TAG, "Change a destination")
            .tool_description("Any change switches a destination on again that the service turned off.")
            .reaches_out()
            .about(
                "Any change switches a destination on again that the service turned off. Masked values are refused. A \
                 new mailbox has to be confirmed first; a pending one is sent a new link after a day.",
            )
            .accepts("DestinationUpdate", |description| body::read(description))
            .responds::<DestinationDocument>(
                200,
                "DestinationResponse",
                "destination",
                "The destination after the change.",
            ),
        ApiOperation::new("deleteDestination", Method::DELETE, ONE)
            .with_summary(TAG, "Delete a destination")
            .about("Its waiting deliveries are not sent. This can't be undone.")
            .responds_empty("Deleted."),
        ApiOperation::new("testDestination", Method::POST, "/pages/{pageId}/destinations/{destinationId}/test")
            .with_summary(TAG, "Send a test alert")
            .tool_description("Sends it once and returns the result. Five a minute per page.")
            .runs_every_time()
            .reaches_out()
            .about(
                "Sends a signed alert marked as a test, once, and returns the result within 15 seconds; `status` is \
                 waiting if there is none by then. Five a minute per page; 400 while the destination is pending.",
            )
            .responds::<DeliveryDetailDocument>(200, "DeliveryResponse", "delivery", "The delivery."),
        ApiOperation::new("rotateSecret", Method::POST, "/pages/{pageId}/destinations/{destinationId}/rotate-secret")
            .with_summary(TAG, "Rotate a webhook's secret")
            .tool_description("The new secret signs next to the active one until it is activated, or for 24 hours.")
            .overwrites()
            .about(
                "Returns the new secret, which signs next to the old one in `webhook-signature`. \
                 `X-Service-Signature` keeps using the old one until the new one is activated, or for 24 hours. A \
                 secret that is already pending is replaced.",
            )
            .responds::<DestinationDocument>(200, "DestinationResponse", "destination", "The destination."),
        ApiOperation::new(
            "activateSecret",
            Method::POST,
            "/pages/{pageId}/destinations/{destinationId}/activate-secret",
        )
        .with_summary(TAG, "Activate a webhook's new secret")
        .overwrites()
        .about(
            "Call this once the receiver knows the new secret: both signatures use only the new one, and the old \
                 one stops. Without a pending secret nothing changes.",
        )
        .responds::<DestinationDocument>(
            200,
            "DestinationResponse",
            "destination",
            "The destination with its only \
                secret.",
        ),
        ApiOperation::new("listDeliveries", Method::GET, "/pages/{pageId}/deliveries")
            .with_summary(TAG, "List a page's deliveries")
            .about("Newest first. Deliveries are kept for 30 days.")
            .query(
                "destinationId",
                "Only deliveries to this destination.",
                json!({ "type": "string" }),
                examples::id("destinationId"),
            )
            .query("status", "Only this status.", json!({ "type": "string", "enum": DeliveryState::NAMES }), "failed")
            .query(
                "before",
                "Cursor: `nextBefore` of the previous page.",
                json!({ "type": "string" }),
                examples::id("deliveryId"),
            )
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds_bare::<DeliveryList>("DeliveryListResponse", "The deliveries."),
        ApiOperation::new("getDelivery", Method::GET, "/pages/{pageId}/deliveries/{deliveryId}")
            .with_summary(TAG, "Show a delivery")
            .about("Includes its content, and the status, duration and response of each attempt.")
            .responds::<DeliveryDetailDocument>(200, "DeliveryResponse", "delivery", "The delivery."),
        ApiOperation::new("redeliver", Method::POST, "/pages/{pageId}/deliveries/{deliveryId}/redeliver")
            .with_summary(TAG, "Redeliver")
            .reaches_out()
            .about("Sends it again now, with the same id and body.")
            .responds::<DeliveryDetailDocument>(
                200,
                "DeliveryResponse",
                "delivery",
                "The delivery, waiting to be sent.",
            ),
        ApiOperation::new("listSubscribers", Method::GET, "/pages/{pageId}/subscribers")
            .with_summary(SUBSCRIBERS, "List a page's subscribers")
            .about("Oldest first, confirmed or not.")
            .query(
                "cursor",
                "Cursor: `nextCursor` of the previous page.",
                json!({ "type": "string" }),
                examples::id("subscriberId"),
            )
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds_bare::<SubscriberList>("SubscriberListResponse", "The subscribers."),
        ApiOperation::new("createSubscriber", Method::POST, "/pages/{pageId}/subscribers")
            .with_summary(SUBSCRIBERS, "Invite a mailbox to subscribe")
            .about(
                "Sends one mail with a confirmation link; nothing else is sent until it is followed. A mailbox is \
                 invited at most once a day across all pages. A page may invite 30 addresses a minute, and an \
                 account 20 an hour plus one for each subscriber confirmed for at least a day, up to 1,000; the next \
                 returns 429. An account may have 200 unconfirmed subscribers; the next returns 422. Addresses of \
                 new or changed destinations count too. A reader who unsubscribed is not asked: 400.",
            )
            .tool_description(
                "Sends one mail with a confirmation link; nothing else is sent until it is followed. A mailbox is \
                 invited at most once a day across all pages.",
            )
            .notifies()
            .accepts("SubscriberCreate", |description| subscribers::read(description))
            .responds::<SubscriberDocument>(
                201,
                "SubscriberResponse",
                "subscriber",
                "The new subscriber, unconfirmed.",
            ),
        ApiOperation::new("importSubscribers", Method::POST, "/pages/{pageId}/subscribers/import")
            .with_summary(SUBSCRIBERS, "Import mailboxes to invite")
            .about(IMPORT_ABOUT)
            .tool_description(
                "Each new address gets one mail with a confirmation link, and nothing else until it is followed. The \
                 mails are spread over hours or days. Use dryRun first.",
            )
            .notifies()
            .accepts("SubscriberImport", |description| subscriber_transfer::read(description))
            .responds::<ImportDocument>(200, "SubscriberImportResponse", "import", "Counts, and the refused lines."),
        ApiOperation::new("exportSubscribers", Method::GET, "/pages/{pageId}/subscribers.csv")
            .with_summary(SUBSCRIBERS, "Export a page's subscribers as CSV")
            .about(
                "Oldest first: address, type, state, since and monitors. Of a webhook only the host is shown; a read \
                 key gets masked addresses. Cells that a spreadsheet would run as a formula begin with an apostrophe.",
            )
            .responds_text(csv::CSV, "SubscriberExport", "The subscribers."),
        ApiOperation::new("deleteSubscriber", Method::DELETE, "/pages/{pageId}/subscribers/{subscriberId}")
            .with_summary(SUBSCRIBERS, "Delete a subscriber")
            .about("Its waiting deliveries are not sent. This can't be undone.")
            .responds_empty("Deleted."),
        ApiOperation::new("getAlerts", Method::GET, "/pages/{pageId}/alerts")
            .with_summary(TAG, "Show a page's alert settings")
            .about("The repeat interval of alerts, and whether incidents open automatically.")
            .responds::<AlertsDocument>(200, "AlertsResponse", "alerts", "The settings."),
        ApiOperation::new("updateAlerts", Method::PATCH, "/pages/{pageId}/alerts")
            .with_summary(TAG, "Change a page's alert settings")
            .about("Null resets a field to its default: one alert, and incidents open automatically.")
            .accepts("AlertsUpdate", |description| alerts::read(description))
            .responds::<AlertsDocument>(200, "AlertsResponse", "alerts", "The settings after the change."),
    ]
}
