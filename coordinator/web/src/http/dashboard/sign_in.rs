//! The form to sign in, by password or mailed link; and sign-out: plain forms that reveal nothing about who has an account.

use std::sync::Arc;

use ::http::header::{HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE};
use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::time::{MINUTE, SECOND};
use parallax_service::ServiceError;
use parallax_service::page_access::sign_in::{BrowserId, LINK_LIFE, LinkValidity};
use parallax_service::people::{DashboardLinkRequest, PasswordSignIn};

use super::frame::query_param;
use super::session_cookie::{browser_info, session_token, without_session};
use super::sign_in_code::reply_to_step;
use super::signed_in::{check_origin, safe_next};
use super::{ROOT, SignedIn, as_page, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::{FormFields, browser_cookie, browser_of, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::dashboard::{LinkButton, MessagePage, SignInForm};

// The pages say how long a link works.
const _: () = assert!(LINK_LIFE == 15 * MINUTE);

/// Routes of sign-in and sign-out.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/sign-in",
            vec![
                (GET, public_route(|context, call| as_page(show(context, call)).boxed())),
                (POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
            ],
        ),
        ("/sign-in/link", vec![(POST, public_route(|context, call| as_page(send_link(context, call)).boxed()))]),
        (
            "/sign-in/link/{token}",
            vec![
                (GET, public_route(|context, call| as_page(show_link(context, call)).boxed())),
                (POST, public_route(|context, call| as_page(follow_link(context, call)).boxed())),
            ],
        ),
        ("/sign-out", vec![(POST, signed_in_route(|context, call| sign_out(context, call).boxed()))]),
    ]
}

/// `GET /sign-in?next=`: the form, or a redirect for a browser that is signed in.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let next = next_in_query(&call.query);
    let token = session_token(&context, &call.headers);
    let session = token.map(|token| context.service.people.authenticate(&token)).transpose()?.flatten();
    if session.is_some() {
        return Ok(see_other(&next));
    }
    Ok(screen(sign_in_form(&context, &next, "", None).html()))
}

/// `POST /sign-in`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let next = safe_next(fields.raw("next"));
    let ask = PasswordSignIn {
        email: fields.raw("email").to_owned(),
        password: fields.raw("password").to_owned(),
        is_kept: fields.one("keep").is_some(),
    };
    match context.service.people.sign_in(&ask, &browser_info(&context, &call)).await {
        Ok(step) => Ok(reply_to_step(&context, &step, next)),
        Err(error) => {
            let (status, text, wait) = match error {
                ServiceError::WrongCredentials => {
                    (StatusCode::FORBIDDEN, "Email or password is wrong.".to_owned(), None)
                }
                ServiceError::TooManyTries { seconds } | ServiceError::Busy { seconds } => {
                    let text = format!("Too many tries. Wait {seconds} seconds.");
                    (StatusCode::TOO_MANY_REQUESTS, text, Some(seconds))
                }
                other => return Err(other.into()),
            };
            let page = screen(sign_in_form(&context, next, &ask.email, Some(text)).html()).with_status(status);
            Ok(match wait {
                Some(seconds) => page.with(RETRY_AFTER, HeaderValue::from(seconds)),
                None => page,
            })
        }
    }
}

/// `POST /sign-in/link`: mails a link, and says the same whether anyone has the address or not.
async fn send_link(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let (next, email) = (safe_next(fields.raw("next")).to_owned(), fields.raw("email").trim().to_owned());
    if !context.service.people.sends_mail() {
        let text = "This installation sends no mail. Sign in with your password.".to_owned();
        return Ok(
            screen(sign_in_form(&context, &next, &email, Some(text)).html()).with_status(StatusCode::BAD_REQUEST)
        );
    }
    if let Err(rule) = parallax_core::text::parse_email(&email) {
        let text = format!("The email address {rule}.");
        return Ok(
            screen(sign_in_form(&context, &next, &email, Some(text)).html()).with_status(StatusCode::BAD_REQUEST)
        );
    }
    let network = client_ip::client_ip(call.peer, &call.headers).map(|client| address_key(client.address));
    if let Some(network) = network {
        let admitted = context.sign_in_link_limit.admit_many(network, 1, context.service.now());
        admitted.map_err(ApiError::RateLimited)?;
    }
    let browser = browser_of(&call.headers, is_https(&context)).unwrap_or_else(rand::random::<BrowserId>);
    let is_kept = fields.one("keep").is_some();
    let request = DashboardLinkRequest { email: email.clone(), browser, network, next, is_kept };
    context.service.people.request_link(&request).await?;
    let text = format!(
        "If {email} has an account, a sign-in link is on its way. It works once, for 15 minutes, in this browser."
    );
    let page = screen(MessagePage::new("Check your inbox", text).with_link("/sign-in", "Back to sign-in").html());
    Ok(match browser_cookie(browser, LINK_LIFE / SECOND, is_https(&context)) {
        Some(cookie) => page.with(SET_COOKIE, cookie),
        None => page,
    })
}

/// `GET /sign-in/link/{token}`: a button. Mail scanners and previews follow links, so a GET changes nothing.
async fn show_link(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let token = call.path_param("token")?;
    let browser = browser_of(&call.headers, is_https(&context));
    Ok(match context.service.people.link_validity(token, browser.as_ref())? {
        LinkValidity::Valid => screen(LinkButton { token: token.to_owned() }.html()),
        invalid => refused_link(invalid),
    })
}

/// `POST /sign-in/link/{token}`
async fn follow_link(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let browser = browser_of(&call.headers, is_https(&context));
    let info = browser_info(&context, &call);
    match context.service.people.sign_in_by_link(call.path_param("token")?, browser.as_ref(), &info).await? {
        Ok((step, next)) => Ok(reply_to_step(&context, &step, safe_next(&next))),
        Err(validity) => Ok(refused_link(validity)),
    }
}

/// `POST /sign-out`
async fn sign_out(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    if let Some(token) = session_token(&context, &call.headers) {
        context.service.people.sign_out(&token).await?;
    }
    // Not "cookies": that would sign visitors out of status pages on subdomains.
    let clear = (HeaderName::from_static("clear-site-data"), HeaderValue::from_static("\"cache\", \"storage\""));
    Ok(without_session(&context, see_other("/sign-in")).with(clear.0, clear.1))
}

/// The form, with what was entered and the reason why it was refused.
pub(super) fn sign_in_form(context: &HttpContext, next: &str, email: &str, fault: Option<String>) -> SignInForm {
    SignInForm {
        next: next.to_owned(),
        email: email.to_owned(),
        fault,
        sends_mail: context.service.people.sends_mail(),
        has_company: context.service.people.offers_company_sign_in(),
        offers_passkeys: context.service.people.offers_passkeys(),
        passkey_fault: String::new(),
        is_plain_http: !is_https(context),
    }
}

fn refused_link(validity: LinkValidity) -> HttpResponse {
    let (title, text) = match validity {
        LinkValidity::OtherBrowser => (
            "Open the link in the other browser",
            "A sign-in link works only in the browser that asked for it. Ask for one in this browser.",
        ),
        LinkValidity::Valid | LinkValidity::Invalid => {
            ("This link does not work", "It was used, or is older than 15 minutes. Ask for a new one.")
        }
    };
    let page = MessagePage::new(title, text.to_owned()).with_link("/sign-in", "Sign in");
    screen(page.html()).with_status(StatusCode::FORBIDDEN)
}

/// Returns the path to go to after sign-in, from the query.
fn next_in_query(query: &str) -> String {
    query_param(query, "next").map_or_else(|| ROOT.to_owned(), |next| safe_next(&next).to_owned())
}
