//! Form of the page's address, and the look-up of an own domain's records on request.

use std::sync::Arc;

use parallax_core::page::Page;
use parallax_core::page::domain::DomainClaim;
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_service::ServiceError;
use parallax_service::hosts::url_hostname;

use super::{around_slug, change, current_values, head, stored_form};
use crate::http::HttpContext;
use crate::http::api::pages::body;
use crate::http::dashboard::forms::{Form, FormRefusal, SubmittedForm};
use crate::http::dashboard::frame::without_scheme;
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::settings::{AddressForm, DomainRecord, DomainStatus, SettingsSection};
use crate::views::dashboard::{Section, Toast, time};

/// Fields of the form.
const FIELDS: [&str; 2] = ["slug", "customDomain"];
/// Words of a record: found, not found, not looked up yet.
const FOUND: (&str, &str) = ("up", "Found");
const MISSING: (&str, &str) = ("slow", "Not found");
const UNKNOWN: (&str, &str) = ("none", "Not checked yet");

/// `GET /app/pages/{page}/settings/address`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let form = stored(&context, &page_screen.page);
    draw(&context, &call.caller, page_screen, &form, (None, None)).await
}

/// `POST /app/pages/{page}/settings/address`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let mut submitted = SubmittedForm::read(&mut call).await?;
    submitted.form.keep(&FIELDS);
    let caller = &call.caller.caller;
    caller.require(Permission::ManagePage)?;
    match change(&context, caller, &page_screen, (&submitted, SettingsSection::Address), |form| {
        body::read_address(form)
    })
    .await?
    {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let current = current_values(&context, &page_screen.page);
            let form = submitted.form.redrawn(&refusal, &current, &stored(&context, &page_screen.page));
            draw(&context, &call.caller, page_screen, &form, (Some(refusal), None)).await
        }
    }
}

/// `POST /app/pages/{page}/settings/address/check`
pub(super) async fn check(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let caller = &call.caller.caller;
    caller.require(Permission::ManagePage)?;
    match context.service.domains.check(caller, page_screen.page.id).await {
        Ok(page) => {
            let toast = if page.domain_claim.is_none() { "domain-found" } else { "domain-missing" };
            Ok(see_other(&Toast::address(&format!("{}/settings/address", page_screen.base), toast, 1)))
        }
        Err(error @ (ServiceError::Invalid(_) | ServiceError::DomainCheckTooSoon { .. })) => {
            let problem = FieldFault::sentence(&error.to_string());
            let form = stored(&context, &page_screen.page);
            draw(&context, &call.caller, page_screen, &form, (Some(FormRefusal::of(error)?), Some(problem))).await
        }
        Err(error) => Err(error.into()),
    }
}

fn stored(context: &HttpContext, page: &Page) -> Form {
    stored_form(&current_values(context, page), &FIELDS)
}

async fn draw(
    context: &HttpContext,
    signed_in: &SignedIn,
    page_screen: PageScreen,
    form: &Form,
    (refusal, problem): (Option<FormRefusal>, Option<String>),
) -> HandlerResult {
    let (mut view, status) = form.drawn(page_screen.form_token(), refusal);
    if problem.is_some() {
        view.problem = None;
        view.faults.clear();
    }
    let screen = AddressForm {
        head: head(context, &signed_in.caller, &page_screen, SettingsSection::Address),
        form: view,
        around: around_slug(context),
        domains: domains(context, &page_screen.page, page_screen.now),
        problem,
        frame: page_screen.frame(context, &signed_in.caller, Section::StatusPage).await?,
    };
    reply_with(&screen, status)
}

/// The page's own domains: the one that is set, and the one that is claimed.
fn domains(context: &HttpContext, page: &Page, now: Timestamp) -> Vec<DomainStatus> {
    let set = page.custom_domain.as_ref().map(|host| set_domain(context, host, page));
    let claimed = page.domain_claim.as_ref().map(|claim| claimed_domain(context, claim, now));
    set.into_iter().chain(claimed).collect()
}

fn set_domain(context: &HttpContext, host: &str, page: &Page) -> DomainStatus {
    let problem = context.service.hosts.certificate_problem(page);
    let (state, found) = match &problem {
        None => (("up", "Working"), FOUND),
        Some(_) => (("slow", "Not working"), MISSING),
    };
    DomainStatus {
        host: host.to_owned(),
        state,
        records: vec![pointer(context, host, found)],
        is_pending: false,
        checked_at: None,
        problem: problem.map(|problem| FieldFault::sentence(&problem)),
    }
}

fn claimed_domain(context: &HttpContext, claim: &DomainClaim, now: Timestamp) -> DomainStatus {
    let found = if claim.checked_at.is_some() { MISSING } else { UNKNOWN };
    let proof = DomainRecord { kind: "TXT", name: claim.record_name(), value: claim.record_value(), found };
    DomainStatus {
        host: claim.host.clone(),
        state: ("slow", "Waiting for DNS"),
        records: vec![proof, pointer(context, &claim.host, UNKNOWN)],
        is_pending: true,
        checked_at: claim.checked_at.map(|at| time(at, now)),
        problem: claim.problem.as_deref().map(FieldFault::sentence),
    }
}

/// The record that leads visitors here: an alias of this host's name, or its address where it has none.
fn pointer(context: &HttpContext, host: &str, found: (&'static str, &'static str)) -> DomainRecord {
    let base = context.service.base_url();
    let (kind, value) = match url_hostname(base) {
        Some(name) => ("CNAME", name),
        None => ("A or AAAA", without_scheme(base).split('/').next().unwrap_or_default().to_owned()),
    };
    DomainRecord { kind, name: host.to_owned(), value, found }
}
