//! Choice between the accounts of a person who is a member of several.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::id::AccountId;
use parallax_service::ServiceError;
use parallax_service::people::AccountChoice;

use super::forms::{SubmittedForm, new_key};
use super::frame::{FramePerson, frame};
use super::page_screen::reply;
use super::sign_in_code::reply_to_step;
use super::{ROOT, SignedIn};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::members::{AccountLine, AccountSwitchScreen};

/// Routes of the choice.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![(
        "/app/account/switch",
        vec![
            (Method::GET, signed_in_route(|context, call| show(context, call).boxed())),
            (Method::POST, signed_in_route(|context, call| choose(context, call).boxed())),
        ],
    )]
}

/// `GET /app/account/switch`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let accounts = context.service.people.accounts(&call.caller.session).await?;
    // Before their second factor is set up, a member sees nothing of the account's pages.
    let is_overdue = call.caller.session.is_factor_overdue(context.service.now());
    let line = |it: AccountChoice| {
        let pages = if is_overdue { Vec::new() } else { it.pages };
        AccountLine {
            id: it.id.to_string(),
            email: it.email,
            role: it.role,
            more: it.page_count - pages.len(),
            pages,
            is_current: it.is_current,
        }
    };
    let frame = if is_overdue {
        FramePerson::of(&call.caller, &call.query).frame_with(&context, &[], (None, Section::Account))
    } else {
        frame(&context, &mut call, None, Section::Account).await?
    };
    reply(&AccountSwitchScreen { accounts: accounts.into_iter().map(line).collect(), once: new_key(), frame })
}

/// `POST /app/account/switch`: gives the browser a new session, which shows that account.
async fn choose(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let account: AccountId = form.text("account").parse().map_err(|_| ServiceError::NotFound)?;
    let step = context.service.people.choose_account(&call.caller.session, account).await?;
    Ok(reply_to_step(&context, &step, ROOT))
}
