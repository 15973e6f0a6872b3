//! Forms for a mailbox owner to confirm a page's alerts, and to stop them. A GET changes nothing.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page::Page;

use super::super::form::{Fields, in_query};
use super::{At, entered, root_of};
use crate::http::Context;
use crate::http::route::{Answer, Call};
use crate::service::Error;
use crate::service::destinations::confirm::Linked;
use crate::views::forms::Step;

/// `GET /p/{slug}/confirm-alerts?t=`
pub(in crate::http) async fn look(context: Arc<Context>, call: Call<()>) -> Answer {
    let link = in_query(&call.query);
    answer(&context, &call, context.service.linked_destination(&link), &link)
}

/// `POST /p/{slug}/confirm-alerts`
pub(in crate::http) async fn confirm(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let link = match Fields::read(&mut call).await {
        Ok(fields) => fields.one("t").unwrap_or_else(|| in_query(&call.query)),
        Err(faults) => {
            entered(&context, &call)?;
            return Err(faults.into());
        }
    };
    let confirmed = context.service.confirm_destination(&link).await;
    answer(&context, &call, confirmed, &link)
}

/// `GET /p/{slug}/stop-alerts?t=`
pub(in crate::http) async fn leave(context: Arc<Context>, call: Call<()>) -> Answer {
    let link = in_query(&call.query);
    let found = context.service.stoppable_destination(&link);
    let step = |Linked { page, mailbox, is_confirmed }| {
        let step = if is_confirmed {
            Step::StopAlerts { mailbox, link: link.clone() }
        } else {
            Step::AlertsStopped { mailbox }
        };
        (page, step)
    };
    shown(&context, &call, found.map(step))
}

/// `POST /p/{slug}/stop-alerts?t=`: from the form, or by one click in a mail program (RFC 8058).
pub(in crate::http) async fn stop(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let mut link = in_query(&call.query);
    if link.is_empty() {
        // A mail program's body may have any format; the token is in the address.
        entered(&context, &call)?;
        link = Fields::read(&mut call).await?.one("t").unwrap_or_default();
    }
    let stopped = context.service.stop_alerts(&link).await;
    let step = |Linked { page, mailbox, .. }| (page, Step::AlertsStopped { mailbox });
    shown(&context, &call, stopped.map(step))
}

fn answer(context: &Context, call: &Call<()>, found: Result<Linked, Error>, link: &str) -> Answer {
    let link = link.to_owned();
    let step = |Linked { page, mailbox, is_confirmed }| {
        let step =
            if is_confirmed { Step::AlertsWanted { mailbox } } else { Step::WantAlerts { mailbox, link } };
        (page, step)
    };
    shown(context, call, found.map(step))
}

fn shown(context: &Context, call: &Call<()>, found: Result<(Page, Step), Error>) -> Answer {
    match found {
        Ok((page, step)) => {
            let root = root_of(context, call, &page)?;
            At { page, root }.shows(context, step)
        }
        // A valid link works even if the page is hidden; any other reveals no more of the page than the visitor may
        // see.
        Err(Error::NotFound) => {
            let at = entered(context, call)?;
            Ok(at.shows(context, Step::AlertsTooLate)?.of(StatusCode::NOT_FOUND))
        }
        Err(error) => Err(error.into()),
    }
}
