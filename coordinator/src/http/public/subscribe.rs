//! The forms by which visitors subscribe, confirm, choose and leave, without a script. Looking at one changes nothing.

mod forms;

use std::sync::Arc;

use ::http::header::RETRY_AFTER;
use ::http::{HeaderValue, StatusCode};
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::Contact;
use parallax_core::subscriber::ask::Ask;

use self::forms::{Choice, Form};
use super::enter_or_ask;
use super::form::{Fields, in_query, shown};
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::http::{Context, auth};
use crate::service::Error;
use crate::service::subscribers::Subscribed;

/// `GET /p/{slug}/subscribe`
pub(in crate::http) async fn ask(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = entered(&context, &call)?;
    let choice = Choice::of(&context.service.choices(&page).await?, None);
    Ok(shown(forms::subscribe(&page, &Form::default(), &choice, feeds(&context, &page).as_deref())))
}

/// `POST /p/{slug}/subscribe`
pub(in crate::http) async fn take(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let page = entered(&context, &call)?;
    let fields = Fields::read(&mut call).await?;
    if let Some(refused) = refused(&context, &call, &page) {
        return Ok(refused);
    }
    let (email, url) = (fields.one("email"), fields.one("url"));
    let ask = Ask { email: email.clone(), url: url.clone(), monitors: fields.monitors() };
    match context.service.subscribe(&page, &ask).await {
        Ok(Subscribed::Mailed) => Ok(shown(forms::mailed(&page))),
        Ok(Subscribed::Challenged { secret, link }) => Ok(shown(forms::challenged(&page, &secret, &link))),
        Err(Error::Invalid(faults)) => {
            let choices = context.service.choices(&page).await?;
            let choice = Choice::of(&choices, ask.monitors.as_deref());
            let form = Form { email, url, faults };
            Ok(shown(forms::subscribe(&page, &form, &choice, feeds(&context, &page).as_deref()))
                .of(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/confirm?t=`
pub(in crate::http) async fn choose(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = entered(&context, &call)?;
    let link = in_query(&call.query);
    chosen(&context, &page, &link, &Refusals::none()).await
}

/// `POST /p/{slug}/confirm`
pub(in crate::http) async fn confirm(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let page = entered(&context, &call)?;
    let fields = Fields::read(&mut call).await?;
    let link = fields.one("t").unwrap_or_else(|| in_query(&call.query));
    match context.service.confirm(&page, &link, fields.monitors().as_deref()).await {
        Ok(_) => Ok(shown(forms::confirmed(&page, &link))),
        Err(Error::NotFound) => Ok(void(&page)),
        Err(Error::Invalid(faults)) => {
            let again = chosen(&context, &page, &link, &faults).await?;
            Ok(again.of(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/unsubscribe?t=`
pub(in crate::http) async fn leave(context: Arc<Context>, call: Call<()>) -> Answer {
    let link = in_query(&call.query);
    let page = enter_to_leave(&context, &call, &link)?;
    Ok(shown(forms::leave(&page, &link)))
}

/// `POST /p/{slug}/unsubscribe?t=`: by the form, or by a mail program with one click (RFC 8058).
pub(in crate::http) async fn unsubscribe(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let mut link = in_query(&call.query);
    if link.is_empty() {
        // A mail program's body may have any form; what it says is in the address.
        entered(&context, &call)?;
        link = Fields::read(&mut call).await?.one("t").unwrap_or_default();
    }
    let page = enter_to_leave(&context, &call, &link)?;
    match context.service.unsubscribe(&link).await {
        Ok(()) => Ok(shown(forms::left(&page))),
        Err(Error::NotFound) => Ok(void(&page)),
        Err(error) => Err(error.into()),
    }
}

/// Where programs that keep no cookies read a guarded page.
fn feeds(context: &Context, page: &Page) -> Option<String> {
    context.service.feed_address(page)
}

fn entered(context: &Context, call: &Call<()>) -> Result<Page, Refused> {
    enter_or_ask(context, call).map(|admitted| admitted.page().clone())
}

/// The page of those who leave: where it hides from visitors by now, whoever has a good link is still let go.
fn enter_to_leave(context: &Context, call: &Call<()>, link: &str) -> Result<Page, Refused> {
    match context.service.page_of_link(link)? {
        Some(page) => Ok(page),
        None => entered(context, call),
    }
}

/// The form by which one who was asked confirms, or changes what he hears of.
async fn chosen(context: &Context, page: &Page, link: &str, faults: &Refusals) -> Answer {
    let subscriber = match context.service.subscription(page, link) {
        Ok(subscriber) => subscriber,
        Err(Error::NotFound) => return Ok(void(page)),
        Err(error) => return Err(error.into()),
    };
    let ids: Option<Vec<String>> =
        subscriber.monitors.map(|ids| ids.iter().map(ToString::to_string).collect());
    let choice = Choice::of(&context.service.choices(page).await?, ids.as_deref());
    let address = match &subscriber.contact {
        Contact::Email(address) => address,
        Contact::Webhook { url, .. } => url,
    };
    let is_new = subscriber.confirmed_at.is_none();
    Ok(shown(forms::choose(page, address, is_new, link, &choice, faults)))
}

/// Counts a wish of this address and of this page; a page that says to come later where it is one too many. A proxy on
/// this host brings everybody's, so loopback is not counted.
fn refused(context: &Context, call: &Call<()>, page: &Page) -> Option<Reply> {
    let now = context.service.now();
    let peer = call.peer.map(|peer| peer.0.to_canonical()).filter(|peer| !peer.is_loopback());
    let by_peer =
        peer.map_or(Ok(()), |peer| context.wishes.admit_all(auth::place_of(peer), 1, now).map(drop));
    let admitted = by_peer.and_then(|()| context.page_wishes.admit_all(page.id, 1, now).map(drop));
    admitted.err().map(|allowance| {
        shown(forms::too_many(page))
            .of(StatusCode::TOO_MANY_REQUESTS)
            .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
    })
}

fn void(page: &Page) -> Reply {
    shown(forms::void(page)).of(StatusCode::NOT_FOUND)
}
