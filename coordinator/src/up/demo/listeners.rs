//! The demo's receivers: a webhook destination and a webhook subscriber, both at the demo's own endpoint, and a
//! visitor with an unconfirmed mailbox.

use parallax_core::destination::edit::DestinationEdit;
use parallax_core::destination::{Channel, Destination};
use parallax_core::given::Given;
use parallax_core::subscriber::ask::Ask;
use tokio::net::TcpListener;
use url::Url;

use super::{Owner, UpError, targets};
use crate::service::Error;
use crate::service::once::Once;

/// Name of the destination, by which a later start finds it.
const NAME: &str = "Demo receiver";
/// The visitor's mailbox, which does not exist.
const VISITOR: &str = "visitor@example.com";

impl Owner<'_> {
    /// Binds the endpoint on the port of an earlier start's destination, or on a free port.
    pub(super) async fn receiver(&self) -> Result<(TcpListener, u16), UpError> {
        let known = self.destination().await?.and_then(|destination| port(&destination));
        targets::bind(known).await.map_err(UpError::Target)
    }

    /// Creates the destination and the subscribers that are missing, or updates their port.
    pub(super) async fn make_listeners(&self, port: u16) -> Result<(), Error> {
        let page = self.first.page.id;
        let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
        let once = Once::new(None, &|_| Vec::new());
        let edit = DestinationEdit { url: Given::Value(url("alerts")), ..DestinationEdit::default() };
        match self.destination().await? {
            Some(known) if self::port(&known) == Some(port) => return Ok(()),
            Some(known) => {
                self.service.edit_destination(&self.caller, page, known.id, &edit, &once).await?;
            }
            None => {
                let edit = DestinationEdit {
                    name: Given::Value(NAME.to_owned()),
                    kind: Given::Value("webhook".to_owned()),
                    ..edit
                };
                self.service.create_destination(&self.caller, page, &edit, &once).await?;
            }
        }
        for ask in [
            Ask { url: Some(url("news")), ..Ask::default() },
            Ask { email: Some(VISITOR.to_owned()), ..Ask::default() },
        ] {
            self.service.subscribe(&self.first.page, &ask).await?;
        }
        Ok(())
    }

    async fn destination(&self) -> Result<Option<Destination>, Error> {
        let all = self.service.destinations(&self.caller, self.first.page.id).await?;
        Ok(all.into_iter().find(|destination| destination.name == NAME))
    }
}

fn port(destination: &Destination) -> Option<u16> {
    let Channel::Webhook { url, .. } = &destination.channel else { return None };
    Url::parse(url).ok()?.port()
}
