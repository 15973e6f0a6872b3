//! The form by which a mailbox's reader says that he wants a page's alerts. Looking at it changes nothing.

use std::sync::Arc;

use ::http::StatusCode;

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

fn answer(context: &Context, call: &Call<()>, found: Result<Linked, Error>, link: &str) -> Answer {
    match found {
        Ok(Linked { page, mailbox, is_confirmed }) => {
            let root = root_of(context, call, &page)?;
            let link = link.to_owned();
            let step = if is_confirmed {
                Step::AlertsWanted { mailbox }
            } else {
                Step::WantAlerts { mailbox, link }
            };
            At { page, root }.shows(context, step)
        }
        // A good link leads to it though the page hides; another shows no more of the page than there is to see.
        Err(Error::NotFound) => {
            let at = entered(context, call)?;
            Ok(at.shows(context, Step::AlertsTooLate)?.of(StatusCode::NOT_FOUND))
        }
        Err(error) => Err(error.into()),
    }
}
