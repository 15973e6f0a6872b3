//! Invitations: opening the mailed link shows a form, and its button makes the person a member of the account.
//!
//! The forms have no token of a session: the link's own token, which other sites don't know, and the origin protect
//! them.

use std::sync::Arc;

use ::http::header::{HeaderValue, RETRY_AFTER};
use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_service::ServiceError;
use parallax_service::people::{CurrentSession, InvitedPerson, JoinDetails, JoinInvitation};

use super::forms::FormRefusal;
use super::session_cookie::{browser_info, session_token};
use super::sign_in_code::reply_to_step;
use super::signed_in::check_origin;
use super::{ROOT, as_page, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::{FormFields, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{JoinForm, JoinProof, MessagePage};

/// Routes of invitations.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![(
        "/invite/{token}",
        vec![
            (Method::GET, public_route(|context, call| as_page(show(context, call)).boxed())),
            (Method::POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
        ],
    )]
}

/// `GET /invite/{token}`: the form. It uses nothing up.
async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let (token, current) = (call.path_param("token")?, current_session(&context, &call)?);
    Ok(match context.service.people.invitation(token, current.as_ref())? {
        Some(invitation) => screen(form(&context, token, invitation, current.as_ref()).html()),
        None => invalid_link(),
    })
}

/// `POST /invite/{token}`
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let (token, current) = (call.path_param("token")?, current_session(&context, &call)?);
    let people = &context.service.people;
    let Some(invitation) = people.invitation(token, current.as_ref())? else { return Ok(invalid_link()) };
    let details = JoinDetails { name: fields.raw("name").to_owned(), password: fields.raw("password").to_owned() };
    let error = match people.join(token, &details, current.as_ref(), &browser_info(&context, &call)).await {
        Ok(step) => return Ok(reply_to_step(&context, &step, ROOT)),
        // Used by someone else in the meantime.
        Err(ServiceError::NotFound) => return Ok(invalid_link()),
        Err(error) => error,
    };
    let again = JoinForm { name: details.name, ..form(&context, token, invitation, current.as_ref()) };
    match error {
        ServiceError::WrongCredentials => {
            let again = JoinForm { fault: "The password is wrong.".to_owned(), ..again };
            Ok(screen(again.html()).with_status(StatusCode::FORBIDDEN))
        }
        ServiceError::TooManyTries { seconds } | ServiceError::Busy { seconds } => {
            let again = JoinForm { fault: format!("Too many tries. Wait {seconds} seconds."), ..again };
            let page = screen(again.html()).with_status(StatusCode::TOO_MANY_REQUESTS);
            Ok(page.with(RETRY_AFTER, HeaderValue::from(seconds)))
        }
        error @ (ServiceError::Invalid(_) | ServiceError::PlanLimit(_)) => {
            let refusal = FormRefusal::of(error)?;
            let (name_fault, password_fault) = (refusal.fault("name"), refusal.fault("password"));
            let fault = refusal.problem.clone().unwrap_or_default();
            Ok(refusal.status.apply(screen(JoinForm { fault, name_fault, password_fault, ..again }.html())))
        }
        other => Err(other.into()),
    }
}

fn current_session(context: &HttpContext, call: &RoutedRequest<()>) -> Result<Option<CurrentSession>, ApiError> {
    let token = session_token(context, &call.headers);
    Ok(token.map(|token| context.service.people.authenticate(&token)).transpose()?.flatten())
}

fn form(context: &HttpContext, token: &str, invitation: JoinInvitation, current: Option<&CurrentSession>) -> JoinForm {
    JoinForm {
        token: token.to_owned(),
        email: invitation.email,
        account: invitation.account,
        role: invitation.role,
        proof: match invitation.person {
            InvitedPerson::New => JoinProof::NewPassword,
            InvitedPerson::WithPassword => JoinProof::Password,
            InvitedPerson::WithoutPassword => JoinProof::MailedLink,
            InvitedPerson::SignedIn => JoinProof::Session,
        },
        signed_in_as: current.map(|session| session.person.email.clone()).unwrap_or_default(),
        fault: String::new(),
        name: String::new(),
        name_fault: String::new(),
        password_fault: String::new(),
        is_plain_http: !is_https(context),
    }
}

fn invalid_link() -> HttpResponse {
    let text = "It was used or revoked, or is older than 7 days. Ask an owner of the account for a new one.".to_owned();
    let page = MessagePage::new("This invitation does not work", text).with_link("/sign-in", "Sign in");
    screen(page.html()).with_status(StatusCode::NOT_FOUND)
}
