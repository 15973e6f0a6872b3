//! Company sign-in: the email address that finds the provider, the way there, and the way back.
//!
//! A sign-in begins by a form of the dashboard alone: a link from elsewhere must not sign a browser in as somebody whom
//! the link's author chose. The answer to the form is a page that goes on to the provider by itself, since the content
//! security policy lets no form leave the dashboard.

use std::sync::Arc;

use ::http::header::SET_COOKIE;
use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::AccountId;
use parallax_core::time::SECOND;
use parallax_service::page_access::sign_in::{BrowserId, LINK_LIFE};
use parallax_service::people::{CompanyAnswer, CompanyProvider, CompanyRefusal, CompanySignInStart};

use super::frame::query_param;
use super::session_cookie::browser_info;
use super::sign_in_code::{address, company_address, reply_to_step};
use super::signed_in::{check_origin, safe_next};
use super::{ROOT, as_page, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::{FormFields, browser_cookie, browser_of, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::dashboard::{CompanyButton, CompanyContinue, CompanyEmailForm, MessagePage};

/// Address of the form for the email address.
const COMPANY: &str = "/sign-in/company";

/// Routes of company sign-in.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            COMPANY,
            vec![
                (GET, public_route(|context, call| as_page(show_form(context, call)).boxed())),
                (POST, public_route(|context, call| as_page(find(context, call)).boxed())),
            ],
        ),
        (
            "/sign-in/oidc/{account}",
            vec![
                (GET, public_route(|context, call| as_page(show_button(context, call)).boxed())),
                (POST, public_route(|context, call| as_page(begin(context, call)).boxed())),
            ],
        ),
        (
            "/sign-in/oidc/{account}/callback",
            vec![(GET, public_route(|context, call| as_page(finish(context, call)).boxed()))],
        ),
    ]
}

/// `GET /sign-in/company?next=`
async fn show_form(_: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let next = query_param(&call.query, "next").unwrap_or_default();
    Ok(email_form(safe_next(&next), "", true, ""))
}

/// `POST /sign-in/company`: finds the provider by the email address. It says the same for everyone of a domain.
async fn find(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let (next, email) = (safe_next(fields.raw("next")), fields.raw("email").trim());
    let is_kept = fields.one("keep").is_some();
    if email.is_empty() {
        return Ok(email_form(next, "", is_kept, ""));
    }
    let Some(provider) = context.service.people.company_of_email(email)? else {
        let domain = email.rsplit_once('@').map_or(email, |(_, domain)| domain);
        let fault = format!("No account has company sign-in for {domain}. Sign in another way, or ask its owner.");
        return Ok(email_form(next, email, is_kept, &fault).with_status(StatusCode::NOT_FOUND));
    };
    let visitor = admit(&context, &call)?;
    start(&context, visitor, &provider, (email, next), (is_kept, false)).await
}

/// `GET /sign-in/oidc/{account}?next=`: a button, since opening an address signs nobody in.
async fn show_button(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let next = query_param(&call.query, "next").unwrap_or_default();
    let Some(provider) = provider(&context, &call)? else { return Ok(not_set_up()) };
    let action = format!("/sign-in/oidc/{}", provider.account);
    Ok(screen(CompanyButton { action, host: provider.host, next: safe_next(&next).to_owned() }.html()))
}

/// `POST /sign-in/oidc/{account}`
async fn begin(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let Some(provider) = provider(&context, &call)? else { return Ok(not_set_up()) };
    let ways = (fields.one("keep").is_some(), fields.one("confirm").is_some());
    let visitor = admit(&context, &call)?;
    start(&context, visitor, &provider, ("", safe_next(fields.raw("next"))), ways).await
}

/// `GET /sign-in/oidc/{account}/callback`: the browser comes back with the provider's answer, which works once, in the
/// browser that the sign-in began in.
async fn finish(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let Ok(account) = call.path_param("account")?.parse::<AccountId>() else { return Ok(not_set_up()) };
    let param = |name| query_param(&call.query, name).unwrap_or_default();
    let answer =
        CompanyAnswer { state: param("state"), code: param("code"), error: param("error"), issuer: param("iss") };
    let browser = browser_of(&call.headers, is_https(&context));
    let by = (browser.as_ref(), &browser_info(&context, &call));
    match context.service.people.finish_company_sign_in(account, &answer, by).await? {
        Ok((step, next)) => Ok(reply_to_step(&context, &step, safe_next(&next))),
        Err(refusal) => Ok(refused(account, &refusal)),
    }
}

/// Counts a sign-in that begins. Returns the identifier of the browser, which is new if it has none, and its network.
fn admit(context: &HttpContext, call: &RoutedRequest<()>) -> Result<(BrowserId, Option<u128>), ApiError> {
    let network = client_ip::client_ip(call.peer, &call.headers).map(|client| address_key(client.address));
    if let Some(network) = network {
        let admitted = context.company_sign_in_limit.admit_many(network, 1, context.service.now());
        admitted.map_err(ApiError::RateLimited)?;
    }
    let browser = browser_of(&call.headers, is_https(context)).unwrap_or_else(rand::random::<BrowserId>);
    Ok((browser, network))
}

/// Begins a sign-in, and sends the browser to the provider.
async fn start(
    context: &HttpContext,
    (browser, network): (BrowserId, Option<u128>),
    provider: &CompanyProvider,
    (email, next): (&str, &str),
    (is_kept, is_confirmation): (bool, bool),
) -> HandlerResult {
    let start = CompanySignInStart {
        browser,
        network,
        email: email.to_owned(),
        next: next.to_owned(),
        is_kept,
        is_confirmation,
    };
    match context.service.people.begin_company_sign_in(provider.account, &start).await? {
        Ok(url) => {
            let page = screen(CompanyContinue { url, host: provider.host.clone() }.html());
            // As long as for a mailed link, which has the same cookie.
            Ok(match browser_cookie(browser, LINK_LIFE / SECOND, is_https(context)) {
                Some(cookie) => page.with(SET_COOKIE, cookie),
                None => page,
            })
        }
        Err(refusal) => Ok(refused(provider.account, &refusal)),
    }
}

fn provider(context: &HttpContext, call: &RoutedRequest<()>) -> Result<Option<CompanyProvider>, ApiError> {
    let Ok(account) = call.path_param("account")?.parse::<AccountId>() else { return Ok(None) };
    Ok(context.service.people.company_provider(account)?)
}

fn email_form(next: &str, email: &str, is_kept: bool, fault: &str) -> HttpResponse {
    let back = address("/sign-in", next);
    let (next, email, fault) = (next.to_owned(), email.to_owned(), fault.to_owned());
    screen(CompanyEmailForm { next, email, is_kept, fault, back }.html())
}

fn not_set_up() -> HttpResponse {
    let refusal = CompanyRefusal::NotSetUp;
    let page = MessagePage::new(refusal.title(), refusal.text()).with_link("/sign-in", "Sign in");
    screen(page.html()).with_status(StatusCode::NOT_FOUND)
}

fn refused(account: AccountId, refusal: &CompanyRefusal) -> HttpResponse {
    let page = MessagePage::new(refusal.title(), refusal.text());
    let (page, status) = match refusal {
        CompanyRefusal::NotAskedAgain => (page.with_link(ROOT, "Overview"), StatusCode::FORBIDDEN),
        CompanyRefusal::Unknown | CompanyRefusal::Cancelled => {
            (page.with_link(&company_address(account, ""), "Begin again"), StatusCode::FORBIDDEN)
        }
        CompanyRefusal::NotSetUp => return not_set_up(),
        CompanyRefusal::Unreachable(_) => (page.with_link("/sign-in", "Sign in another way"), StatusCode::BAD_GATEWAY),
        _ => (page.with_link("/sign-in", "Sign in another way"), StatusCode::FORBIDDEN),
    };
    screen(page.html()).with_status(status)
}
