//! Accounts of the installation for its operators: plans, usage, and set-up links.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::account::Account;
use parallax_core::check::CheckKind;
use parallax_core::id::AccountId;
use parallax_core::plan::Plan;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::mesh::require_operator;

use super::confirm::ask_to_confirm;
use super::forms::{SubmittedForm, new_key};
use super::frame::frame;
use super::page_screen::reply;
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::installation_accounts::{AccountRow, AccountsScreen};
use crate::views::dashboard::{Section, Toast};

/// Maximum number of accounts on the screen.
const MAX_ACCOUNTS: usize = 200;
/// Path of the screen.
const PATH: &str = "/app/accounts";

/// Routes of this screen.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (PATH, vec![(GET, signed_in_route(|context, call| show(context, call).boxed()))]),
        (
            "/app/accounts/{account}/plan",
            vec![(POST, signed_in_route(|context, call| change_plan(context, call).boxed()))],
        ),
        (
            "/app/accounts/{account}/set-up-link",
            vec![(POST, signed_in_route(|context, call| make_link(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/accounts`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    require_operator(&call.caller.session)?;
    draw(&context, call, None).await
}

/// `POST /app/accounts/{account}/plan`
async fn change_plan(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    require_operator(&call.caller.session)?;
    let id: AccountId = call.id("account")?;
    let form = SubmittedForm::read(&mut call).await?.form;
    let plan =
        Plan::read(form.text("plan")).map_err(|rule| ServiceError::from(ValidationErrors::single("plan", rule)))?;
    context.service.accounts.set_plan(id, plan).await?;
    Ok(see_other(&Toast::address(PATH, "plan-changed", 1)))
}

/// `POST /app/accounts/{account}/set-up-link`: the reply has the link, which is stored nowhere.
async fn make_link(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    require_operator(&call.caller.session)?;
    let id: AccountId = call.id("account")?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(PATH));
    }
    let link = context.service.people.create_set_up_link(id, false).await?;
    draw(&context, call, Some((id, link))).await
}

async fn draw(
    context: &HttpContext,
    mut call: RoutedRequest<SignedIn>,
    link: Option<(AccountId, String)>,
) -> HandlerResult {
    let accounts = context.service.accounts.list().await?;
    let mut rows = Vec::new();
    for account in accounts.iter().take(MAX_ACCOUNTS) {
        rows.push(row(context, account).await?);
    }
    let link = link.and_then(|(id, link)| Some((accounts.iter().find(|it| it.id == id)?.email.clone(), link)));
    let frame = frame(context, &mut call, None, Section::Accounts).await?;
    let more = accounts.len().saturating_sub(MAX_ACCOUNTS);
    reply(&AccountsScreen { frame, accounts: rows, more, link, once: new_key() })
}

async fn row(context: &HttpContext, account: &Account) -> Result<AccountRow, ServiceError> {
    let usage = context.service.accounts.usage_of(account.id).await?;
    let allowed = usage.limits.monitors(usage.plan);
    let interval = usage.limits.interval_ms(usage.plan, CheckKind::Http);
    Ok(AccountRow {
        id: account.id.to_string(),
        link: format!("{PATH}/{}/set-up-link", account.id),
        email: account.email.clone(),
        plan: usage.plan.name(),
        pages: format!("{} of {}", usage.pages, usage.max_pages),
        monitors: format!("{} of {allowed}", usage.monitors),
        is_full: usize::try_from(allowed).is_ok_and(|allowed| usage.monitors >= allowed),
        interval: interval.map(|ms| format!("{} s", ms / 1_000)).unwrap_or_default(),
    })
}
