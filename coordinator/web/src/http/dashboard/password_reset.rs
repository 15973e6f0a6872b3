//! A new password by a mailed link, for people who forgot theirs. Nothing here says who has an account.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_service::ServiceError;

use super::forms::FormRefusal;
use super::session_cookie::browser_info;
use super::signed_in::check_origin;
use super::{as_page, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::{FormFields, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::client_ip::{self, address_key};
use crate::views::dashboard::{MessagePage, ResetForm, ResetRequestForm};

/// Routes of a new password.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/reset",
            vec![
                (GET, public_route(|context, _| as_page(ask(context)).boxed())),
                (POST, public_route(|context, call| as_page(send_link(context, call)).boxed())),
            ],
        ),
        (
            "/reset/{token}",
            vec![
                (GET, public_route(|context, call| as_page(show(context, call)).boxed())),
                (POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
            ],
        ),
    ]
}

/// `GET /reset`
async fn ask(context: Arc<HttpContext>) -> HandlerResult {
    if !context.service.people.sends_mail() {
        return Ok(no_mail());
    }
    Ok(screen(ResetRequestForm { email: String::new(), fault: String::new() }.html()))
}

/// `POST /reset`: mails a link, and says the same whether anyone has the address or not.
async fn send_link(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let email = fields.raw("email").trim().to_owned();
    if !context.service.people.sends_mail() {
        return Ok(no_mail());
    }
    if let Err(rule) = parallax_core::text::parse_email(&email) {
        let form = ResetRequestForm { fault: format!("The email address {rule}."), email };
        return Ok(screen(form.html()).with_status(StatusCode::BAD_REQUEST));
    }
    let network = client_ip::client_ip(call.peer, &call.headers).map(|client| address_key(client.address));
    if let Some(network) = network {
        let admitted = context.sign_in_link_limit.admit_many(network, 1, context.service.now());
        admitted.map_err(ApiError::RateLimited)?;
    }
    context.service.people.request_password_reset(&email, network).await?;
    let text = format!("If {email} has an account, a link is on its way. It works once, for an hour.");
    Ok(screen(MessagePage::new("Check your inbox", text).with_link("/sign-in", "Back to sign-in").html()))
}

/// `GET /reset/{token}`: the form. It uses nothing up.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let token = call.path_param("token")?;
    Ok(match context.service.people.password_reset_email(token)? {
        Some(email) => screen(form(&context, token, email, String::new()).html()),
        None => invalid_link(),
    })
}

/// `POST /reset/{token}`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let token = call.path_param("token")?;
    let Some(email) = context.service.people.password_reset_email(token)? else { return Ok(invalid_link()) };
    match context.service.people.reset_password(token, fields.raw("password"), &browser_info(&context, &call)).await {
        Ok(()) => {
            let text = "You are signed out everywhere. Sign in with the new password.".to_owned();
            Ok(screen(MessagePage::new("Password changed", text).with_link("/sign-in", "Sign in").html()))
        }
        Err(error @ (ServiceError::Invalid(_) | ServiceError::Busy { .. })) => {
            let refusal = FormRefusal::of(error)?;
            let again = form(&context, token, email, refusal.fault_or_problem("password"));
            Ok(refusal.status.apply(screen(again.html())))
        }
        // Used in the meantime.
        Err(ServiceError::NotFound) => Ok(invalid_link()),
        Err(error) => Err(error.into()),
    }
}

fn form(context: &HttpContext, token: &str, email: String, fault: String) -> ResetForm {
    ResetForm { token: token.to_owned(), email, fault, is_plain_http: !is_https(context) }
}

fn no_mail() -> HttpResponse {
    let text = "This installation sends no mail. Its operator makes a link for you with `parallax account link`.";
    let page = MessagePage::new("Forgot your password?", text.to_owned()).with_link("/sign-in", "Back to sign-in");
    screen(page.html())
}

fn invalid_link() -> HttpResponse {
    let text = "It was used, or is older than an hour. Ask for a new one.".to_owned();
    let page = MessagePage::new("This link does not work", text).with_link("/reset", "Forgot your password?");
    screen(page.html()).with_status(StatusCode::NOT_FOUND)
}
