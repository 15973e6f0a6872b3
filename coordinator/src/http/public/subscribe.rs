//! Forms for visitors to subscribe, confirm, choose and unsubscribe, without scripts. A GET changes nothing.

pub(super) mod mailbox;

use std::sync::Arc;

use ::http::header::{HOST, REFERRER_POLICY, RETRY_AFTER};
use ::http::{HeaderValue, StatusCode};
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::Contact;
use parallax_core::subscriber::ask::Ask;

use super::enter_or_ask;
use super::form::{Fields, in_query, shown};
use crate::http::error::Refused;
use crate::http::route::{Answer, Call};
use crate::http::{Context, auth, visitor};
use crate::service::Error;
use crate::service::subscribers::Subscribed;
use crate::views::forms::{Choice, Form, FormPage, Step};

/// `GET /p/{slug}/subscribe`
pub(in crate::http) async fn ask(context: Arc<Context>, call: Call<()>) -> Answer {
    let at = entered(&context, &call)?;
    let choice = Choice::of(&context.service.choices(&at.page).await?, None);
    at.shows(&context, Step::Ask { form: Form::default(), choice, programs: at.programs(&context) })
}

/// `POST /p/{slug}/subscribe`
pub(in crate::http) async fn take(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let at = entered(&context, &call)?;
    let fields = Fields::read(&mut call).await?;
    let too_many = |seconds: u32| {
        let told = at.shows(&context, Step::TooMany)?;
        Ok(told.of(StatusCode::TOO_MANY_REQUESTS).with(RETRY_AFTER, HeaderValue::from(seconds)))
    };
    if let Some(reset) = refused(&context, &call) {
        return too_many(reset);
    }
    let (email, url) = (fields.one("email"), fields.one("url"));
    let ask = Ask { email: email.clone(), url: url.clone(), monitors: fields.monitors() };
    let subscribed = match place(&call) {
        Some(place) => context.service.subscribe_from(place, &at.page, &ask).await,
        None => context.service.subscribe(&at.page, &ask).await,
    };
    match subscribed {
        Ok(Subscribed::Mailed) => at.shows(&context, Step::Mailed),
        Ok(Subscribed::Challenged { secret, link }) => at.shows(&context, Step::Challenged { secret, link }),
        Err(Error::PageAsks { seconds } | Error::AccountAsks { seconds, .. }) => too_many(seconds),
        Err(Error::Invalid(faults)) => {
            let choices = context.service.choices(&at.page).await?;
            let choice = Choice::of(&choices, ask.monitors.as_deref());
            let form = Form { email, url, faults };
            let step = Step::Ask { form, choice, programs: at.programs(&context) };
            Ok(at.shows(&context, step)?.of(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/confirm?t=`
pub(in crate::http) async fn choose(context: Arc<Context>, call: Call<()>) -> Answer {
    let at = entered(&context, &call)?;
    let link = in_query(&call.query);
    chosen(&context, &at, link, Refusals::none()).await
}

/// `POST /p/{slug}/confirm`
pub(in crate::http) async fn confirm(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let at = entered(&context, &call)?;
    let fields = Fields::read(&mut call).await?;
    let link = fields.one("t").unwrap_or_else(|| in_query(&call.query));
    match context.service.confirm(&at.page, &link, fields.monitors().as_deref()).await {
        Ok(_) => at.shows(&context, Step::Confirmed { link }),
        Err(Error::NotFound) => at.void(&context),
        Err(Error::Invalid(faults)) => {
            Ok(chosen(&context, &at, link, faults).await?.of(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/unsubscribe?t=`
pub(in crate::http) async fn leave(context: Arc<Context>, call: Call<()>) -> Answer {
    let link = in_query(&call.query);
    enter_to_leave(&context, &call, &link)?.shows(&context, Step::Leave { link })
}

/// `POST /p/{slug}/unsubscribe?t=`: from the form, or by one click in a mail program (RFC 8058).
pub(in crate::http) async fn unsubscribe(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let mut link = in_query(&call.query);
    if link.is_empty() {
        // A mail program's body may have any format; the token is in the address.
        entered(&context, &call)?;
        link = Fields::read(&mut call).await?.one("t").unwrap_or_default();
    }
    let at = enter_to_leave(&context, &call, &link)?;
    match context.service.unsubscribe(&link).await {
        Ok(()) => at.shows(&context, Step::Left),
        Err(Error::NotFound) => at.void(&context),
        Err(error) => Err(error.into()),
    }
}

/// The page of a form, and the prefix of its paths.
struct At {
    page: Page,
    root: String,
}

impl At {
    /// Replies with a page that is never cached or indexed and sends no referrer.
    fn shows(&self, context: &Context, step: Step) -> Answer {
        let view = FormPage::new(&self.page, &self.root, step, context.service.now());
        Ok(shown(view.html()).with(REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
    }

    /// Returns the feed address of a protected page, for programs that keep no cookies.
    fn programs(&self, context: &Context) -> Option<String> {
        context.service.feed_address(&self.page)
    }

    fn void(&self, context: &Context) -> Answer {
        Ok(self.shows(context, Step::Void)?.of(StatusCode::NOT_FOUND))
    }
}

fn entered(context: &Context, call: &Call<()>) -> Result<At, Refused> {
    enter_or_ask(context, call)
        .map(|admitted| At { page: admitted.page().clone(), root: admitted.root().to_owned() })
}

/// Returns the page for an unsubscribe link. A valid link works even if the page is hidden by now.
fn enter_to_leave(context: &Context, call: &Call<()>, link: &str) -> Result<At, Refused> {
    let Some(page) = context.service.page_of_link(link)? else { return entered(context, call) };
    let root = root_of(context, call, &page)?;
    Ok(At { page, root })
}

/// Returns the prefix of the page's paths at the requested host, for visitors with a valid link.
fn root_of(context: &Context, call: &Call<()>, page: &Page) -> Result<String, Error> {
    let host = call.headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = host.map(|host| context.service.page_at(host)).transpose()?.flatten().is_some();
    Ok(if is_own { String::new() } else { format!("{}/p/{}", context.service.base_path(), page.slug) })
}

/// Serves the form to confirm a subscription or change its monitors.
async fn chosen(context: &Context, at: &At, link: String, faults: Refusals) -> Answer {
    let subscriber = match context.service.subscription(&at.page, &link) {
        Ok(subscriber) => subscriber,
        Err(Error::NotFound) => return at.void(context),
        Err(error) => return Err(error.into()),
    };
    let ids: Option<Vec<String>> =
        subscriber.monitors.map(|ids| ids.iter().map(ToString::to_string).collect());
    let choice = Choice::of(&context.service.choices(&at.page).await?, ids.as_deref());
    let address = match subscriber.contact {
        Contact::Email(address) => address,
        Contact::Webhook { url, .. } => url,
    };
    let is_new = subscriber.confirmed_at.is_none();
    at.shows(context, Step::Choose { address, is_new, link, choice, faults })
}

/// Counts a subscription request of this visitor, if their address is known; returns the seconds to wait if it is
/// one too many.
fn refused(context: &Context, call: &Call<()>) -> Option<u32> {
    let now = context.service.now();
    context.wishes.admit_all(place(call)?, 1, now).err().map(|allowance| allowance.reset_seconds)
}

/// Returns the visitor's address or network, if it is known.
fn place(call: &Call<()>) -> Option<u128> {
    visitor::of(call.peer, &call.headers).map(|visitor| auth::place_of(visitor.address))
}
