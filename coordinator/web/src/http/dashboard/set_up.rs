//! Set-up of an account by the one-time link that the program prints: its bearer chooses a password and is its owner.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_service::ServiceError;
use parallax_service::people::{SetUpAccount, SetUpDetails};

use super::forms::FormRefusal;
use super::session_cookie::{browser_info, with_session};
use super::signed_in::check_origin;
use super::{ROOT, as_page, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::public::{FormFields, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{MessagePage, SetUpForm};

/// Routes of the set-up.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![(
        "/setup/{token}",
        vec![
            (Method::GET, public_route(|context, call| as_page(show(context, call)).boxed())),
            (Method::POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
        ],
    )]
}

/// `GET /setup/{token}`: the form. It uses nothing up.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let token = call.path_param("token")?;
    Ok(match context.service.people.set_up_account(token)? {
        Some(account) => screen(form(&context, token, account).html()),
        None => invalid_link(),
    })
}

/// `POST /setup/{token}`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let token = call.path_param("token")?;
    let Some(account) = context.service.people.set_up_account(token)? else { return Ok(invalid_link()) };
    let field = |name: &str| fields.raw(name).to_owned();
    let details = SetUpDetails { email: field("email"), password: field("password"), name: field("name") };
    match context.service.people.set_up(token, &details, &browser_info(&context, &call)).await {
        Ok(new) => Ok(with_session(&context, see_other(ROOT), &new)),
        Err(error @ ServiceError::Invalid(_)) => {
            let refusal = FormRefusal::of(error)?;
            let again = SetUpForm {
                email: account.email.clone().unwrap_or(details.email),
                email_fault: refusal.fault("email"),
                name: details.name,
                name_fault: refusal.fault("name"),
                password_fault: refusal.fault("password"),
                ..form(&context, token, account)
            };
            Ok(refusal.status.apply(screen(again.html())))
        }
        // Used by someone else in the meantime.
        Err(ServiceError::NotFound) => Ok(invalid_link()),
        Err(error) => Err(error.into()),
    }
}

fn form(context: &HttpContext, token: &str, account: SetUpAccount) -> SetUpForm {
    SetUpForm {
        token: token.to_owned(),
        has_email: account.email.is_some(),
        email: account.email.unwrap_or_default(),
        email_fault: String::new(),
        name: String::new(),
        name_fault: String::new(),
        password_fault: String::new(),
        is_plain_http: !is_https(context),
    }
}

fn invalid_link() -> HttpResponse {
    let text = "It was used, or is older than a day. On the host, `parallax account link` prints another.".to_owned();
    let page = MessagePage::new("This link does not work", text).with_link("/sign-in", "Sign in");
    screen(page.html()).with_status(StatusCode::NOT_FOUND)
}
