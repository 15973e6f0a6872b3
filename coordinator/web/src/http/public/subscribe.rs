//! Forms for visitors to subscribe, confirm, choose and unsubscribe, without scripts. A GET changes nothing.

pub(super) mod alert_mailbox;

use std::sync::Arc;

use ::http::header::{HOST, REFERRER_POLICY, RETRY_AFTER};
use ::http::{HeaderValue, StatusCode};
use parallax_core::page::Page;
use parallax_core::subscriber::Contact;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::subscribers::SubscribeResponse;

use super::authorize_or_login;
use super::form::{FormFields, token_in_query, uncached_page};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::subscription_forms::{MonitorChoice, SubscriptionInput, SubscriptionPage, SubscriptionStep};

/// `GET /p/{slug}/subscribe`
pub(in crate::http) async fn show_form(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let at = authorized_page(&context, &call)?;
    let choice = MonitorChoice::of(&context.service.subscribers.monitor_choices(&at.page).await?, None);
    at.respond(
        &context,
        SubscriptionStep::Subscribe { form: SubscriptionInput::default(), choice, programs: at.feed_url(&context) },
    )
}

/// `POST /p/{slug}/subscribe`
pub(in crate::http) async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let at = authorized_page(&context, &call)?;
    let fields = FormFields::read(&mut call).await?;
    let too_many = |seconds: u32| {
        let reply = at.respond(&context, SubscriptionStep::TooManyRequests)?;
        Ok(reply.with_status(StatusCode::TOO_MANY_REQUESTS).with(RETRY_AFTER, HeaderValue::from(seconds)))
    };
    if let Some(reset) = check_rate_limit(&context, &call) {
        return too_many(reset);
    }
    let (email, url) = (fields.one("email"), fields.one("url"));
    let ask = SubscriptionRequest { email: email.clone(), url: url.clone(), monitors: fields.monitors() };
    let subscribed = match visitor_key(&call) {
        Some(network) => context.service.subscribers.subscribe_from_ip(network, &at.page, &ask).await,
        None => context.service.subscribers.subscribe(&at.page, &ask).await,
    };
    match subscribed {
        Ok(SubscribeResponse::MailSent) => at.respond(&context, SubscriptionStep::MailSent),
        Ok(SubscribeResponse::ChallengeSent { secret, link }) => {
            at.respond(&context, SubscriptionStep::ChallengeSent { secret, link })
        }
        Err(
            ServiceError::PageConfirmationLimit { seconds } | ServiceError::AccountConfirmationLimit { seconds, .. },
        ) => too_many(seconds),
        Err(ServiceError::Invalid(faults)) => {
            let choices = context.service.subscribers.monitor_choices(&at.page).await?;
            let choice = MonitorChoice::of(&choices, ask.monitors.as_deref());
            let form = SubscriptionInput { email, url, errors: faults };
            let step = SubscriptionStep::Subscribe { form, choice, programs: at.feed_url(&context) };
            Ok(at.respond(&context, step)?.with_status(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/confirm?t=`
pub(in crate::http) async fn show_confirmation(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let at = authorized_page(&context, &call)?;
    let link = token_in_query(&call.query);
    confirmation_form(&context, &at, link, ValidationErrors::new()).await
}

/// `POST /p/{slug}/confirm`
pub(in crate::http) async fn confirm(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let at = authorized_page(&context, &call)?;
    let fields = FormFields::read(&mut call).await?;
    let link = fields.one("t").unwrap_or_else(|| token_in_query(&call.query));
    match context.service.subscribers.confirm(&at.page, &link, fields.monitors().as_deref()).await {
        Ok(_) => at.respond(&context, SubscriptionStep::Confirmed { link }),
        Err(ServiceError::NotFound) => at.invalid_link(&context),
        Err(ServiceError::Invalid(faults)) => {
            Ok(confirmation_form(&context, &at, link, faults).await?.with_status(StatusCode::BAD_REQUEST))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/unsubscribe?t=`
pub(in crate::http) async fn show_unsubscribe(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let link = token_in_query(&call.query);
    page_of_link(&context, &call, &link)?.respond(&context, SubscriptionStep::Unsubscribe { link })
}

/// `POST /p/{slug}/unsubscribe?t=`: from the form, or by one click in a mail program (RFC 8058).
pub(in crate::http) async fn unsubscribe(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let mut link = token_in_query(&call.query);
    if link.is_empty() {
        // A mail program's body may have any format; the token is in the address.
        authorized_page(&context, &call)?;
        link = FormFields::read(&mut call).await?.one("t").unwrap_or_default();
    }
    let at = page_of_link(&context, &call, &link)?;
    match context.service.subscribers.unsubscribe(&link).await {
        Ok(()) => at.respond(&context, SubscriptionStep::Unsubscribed),
        Err(ServiceError::NotFound) => at.invalid_link(&context),
        Err(error) => Err(error.into()),
    }
}

/// The page of a form, and the prefix of its paths.
struct FormContext {
    page: Page,
    root: String,
}

impl FormContext {
    /// Replies with a page that is never cached or indexed and sends no referrer.
    fn respond(&self, context: &HttpContext, step: SubscriptionStep) -> HandlerResult {
        let view = SubscriptionPage::new(&self.page, &self.root, step, context.service.now());
        Ok(uncached_page(view.html()).with(REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
    }

    /// Returns the feed address of a protected page, for programs that keep no cookies.
    fn feed_url(&self, context: &HttpContext) -> Option<String> {
        context.service.page_access.feed_base_url(&self.page)
    }

    fn invalid_link(&self, context: &HttpContext) -> HandlerResult {
        Ok(self.respond(context, SubscriptionStep::InvalidLink)?.with_status(StatusCode::NOT_FOUND))
    }
}

fn authorized_page(context: &HttpContext, call: &RoutedRequest<()>) -> Result<FormContext, ApiError> {
    authorize_or_login(context, call)
        .map(|admitted| FormContext { page: admitted.page().clone(), root: admitted.path_prefix().to_owned() })
}

/// Returns the page for an unsubscribe link. A valid link works even if the page is hidden by now.
fn page_of_link(context: &HttpContext, call: &RoutedRequest<()>, link: &str) -> Result<FormContext, ApiError> {
    let Some(page) = context.service.subscribers.page_of_link(link)? else { return authorized_page(context, call) };
    let root = path_prefix(context, call, &page)?;
    Ok(FormContext { page, root })
}

/// Returns the prefix of the page's paths at the requested host, for visitors with a valid link.
fn path_prefix(context: &HttpContext, call: &RoutedRequest<()>, page: &Page) -> Result<String, ServiceError> {
    let host = call.headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = host.map(|host| context.service.hosts.slug_of_host(host)).transpose()?.flatten().is_some();
    Ok(if is_own { String::new() } else { format!("{}/p/{}", context.service.hosts.base_path(), page.slug) })
}

/// Serves the form to confirm a subscription or change its monitors.
async fn confirmation_form(
    context: &HttpContext,
    at: &FormContext,
    link: String,
    faults: ValidationErrors,
) -> HandlerResult {
    let subscriber = match context.service.subscribers.subscription(&at.page, &link) {
        Ok(subscriber) => subscriber,
        Err(ServiceError::NotFound) => return at.invalid_link(context),
        Err(error) => return Err(error.into()),
    };
    let ids: Option<Vec<String>> = subscriber.monitors.map(|ids| ids.iter().map(ToString::to_string).collect());
    let choice = MonitorChoice::of(&context.service.subscribers.monitor_choices(&at.page).await?, ids.as_deref());
    let address = match subscriber.contact {
        Contact::Email(address) => address,
        Contact::Webhook { url, .. } => url,
    };
    let is_new = subscriber.confirmed_at.is_none();
    at.respond(context, SubscriptionStep::EditSubscription { address, is_new, link, choice, faults })
}

/// Counts a subscription request of this visitor, if their address is known; returns the seconds to wait if it is
/// one too many.
fn check_rate_limit(context: &HttpContext, call: &RoutedRequest<()>) -> Option<u32> {
    let now = context.service.now();
    context.subscribe_limit.admit_many(visitor_key(call)?, 1, now).err().map(|allowance| allowance.reset_seconds)
}

/// Returns the visitor's address or network, if it is known.
fn visitor_key(call: &RoutedRequest<()>) -> Option<u128> {
    client_ip::client_ip(call.peer, &call.headers).map(|visitor| address_key(visitor.address))
}
