//! The demo's receivers: a webhook destination and a webhook subscriber, both at the demo's own endpoint, and a
//! visitor with an unconfirmed mailbox.

use parallax_core::destination::edit::DestinationEdit;
use parallax_core::destination::{Channel, Destination};
use parallax_core::patch::PatchField;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, MAX_SUBSCRIBERS};
use parallax_service::ServiceError;
use parallax_service::idempotency::IdempotentRequest;
use tokio::net::TcpListener;
use url::Url;

use super::{DemoOwner, UpError, targets};

/// Name of the destination, by which a later start finds it.
const NAME: &str = "Demo receiver";
/// The visitor's mailbox, which does not exist.
const VISITOR: &str = "visitor@example.com";

impl DemoOwner<'_> {
    /// Binds the endpoint on the port of an earlier start's destination, or on a free port.
    pub(super) async fn bind_receiver(&self) -> Result<(TcpListener, u16), UpError> {
        let known_port = self.destination().await?.and_then(|destination| port(&destination));
        targets::bind(known_port).await.map_err(UpError::Target)
    }

    /// Creates the destination if it is missing, or updates its port.
    pub(super) async fn create_destination(&self, port: u16) -> Result<(), ServiceError> {
        let page = self.first.page.id;
        let once = IdempotentRequest::new(None, &|_| Vec::new());
        let edit = DestinationEdit { url: PatchField::Value(url(port, "alerts")), ..DestinationEdit::default() };
        match self.destination().await? {
            Some(existing) if self::port(&existing) == Some(port) => {}
            Some(existing) => {
                self.service.destinations.edit(&self.caller, page, existing.id, &edit, &once).await?;
            }
            None => {
                let edit = DestinationEdit {
                    name: PatchField::Value(NAME.to_owned()),
                    kind: PatchField::Value("webhook".to_owned()),
                    ..edit
                };
                self.service.destinations.create(&self.caller, page, &edit, &once).await?;
            }
        }
        Ok(())
    }

    /// Subscribes the receiver and the visitor unless the receiver is a subscriber. It must be served, since it is sent a
    /// challenge.
    pub(super) async fn subscribe_visitors(&self, port: u16) -> Result<(), ServiceError> {
        let own = url(port, "news");
        let page = self.first.page.id;
        let all = self.service.subscribers.list(&self.caller, page, None, MAX_SUBSCRIBERS).await?.subscribers;
        if all.iter().any(|it| matches!(&it.contact, Contact::Webhook { url, .. } if *url == own)) {
            return Ok(());
        }
        for ask in [
            SubscriptionRequest { url: Some(own), ..SubscriptionRequest::default() },
            SubscriptionRequest { email: Some(VISITOR.to_owned()), ..SubscriptionRequest::default() },
        ] {
            self.service.subscribers.subscribe(&self.first.page, &ask).await?;
        }
        Ok(())
    }

    async fn destination(&self) -> Result<Option<Destination>, ServiceError> {
        let all = self.service.destinations.list(&self.caller, self.first.page.id).await?;
        Ok(all.into_iter().find(|destination| destination.name == NAME))
    }
}

fn url(port: u16, path: &str) -> String {
    format!("http://127.0.0.1:{port}/{path}")
}

fn port(destination: &Destination) -> Option<u16> {
    let Channel::Webhook { url, .. } = &destination.channel else { return None };
    Url::parse(url).ok()?.port()
}
