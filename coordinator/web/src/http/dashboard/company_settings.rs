//! Settings of company sign-in, for owners: the provider, its test, email domains, and what the provider is trusted for.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_service::ServiceError;
use parallax_service::people::{CompanyOptions, ProviderEdit};

use super::confirm::ask_to_confirm;
use super::forms::{Form, FormRefusal, SubmittedForm};
use super::frame::frame;
use super::page_screen::{reply, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
use crate::views::dashboard::company::{CompanyDomainRow, CompanyFaults, CompanyScreen};
use crate::views::dashboard::{Section, Toast, time};

/// Address of the screen.
const COMPANY: &str = "/app/account/company";
/// Address of the question before it is removed.
const REMOVE: &str = "/app/account/company/remove";

/// Routes of the settings.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            COMPANY,
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| save_provider(context, call).boxed())),
            ],
        ),
        (
            "/app/account/company/options",
            vec![(POST, signed_in_route(|context, call| save_options(context, call).boxed()))],
        ),
        ("/app/account/company/test", vec![(POST, signed_in_route(|context, call| test(context, call).boxed()))]),
        (
            "/app/account/company/domains",
            vec![(POST, signed_in_route(|context, call| add_domain(context, call).boxed()))],
        ),
        (
            "/app/account/company/domains/check",
            vec![(POST, signed_in_route(|context, call| check_domain(context, call).boxed()))],
        ),
        (
            "/app/account/company/domains/remove",
            vec![(POST, signed_in_route(|context, call| remove_domain(context, call).boxed()))],
        ),
        (
            REMOVE,
            vec![
                (GET, signed_in_route(|context, call| ask_to_remove(context, call).boxed())),
                (POST, signed_in_route(|context, call| remove(context, call).boxed())),
            ],
        ),
    ]
}

/// `GET /app/account/company`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    context.service.people.company_settings(&call.caller.session)?;
    // Before they type.
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(COMPANY));
    }
    reply(&company_screen(&context, &mut call).await?)
}

/// `POST /app/account/company`: sets the provider.
async fn save_provider(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    let edit = ProviderEdit {
        issuer: form.text("issuer").trim().to_owned(),
        client_id: form.text("clientId").trim().to_owned(),
        client_secret: form.text("clientSecret").to_owned(),
    };
    match context.service.people.set_company_provider(&call.caller.session, &edit).await {
        Ok(()) => Ok(see_other(&Toast::address(COMPANY, "saved", 1))),
        Err(error) => refused(&context, &mut call, error, &form).await,
    }
}

/// `POST /app/account/company/options`
async fn save_options(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { mut form, .. } = SubmittedForm::read(&mut call).await?;
    let options = CompanyOptions { is_required: form.is_on("required"), covers_second_factor: form.is_on("covers") };
    // Ticks that are off are not sent.
    for name in ["required", "covers"] {
        let is_on = form.is_on(name);
        form.set(name, is_on.to_string());
    }
    match context.service.people.set_company_options(&call.caller.session, options).await {
        Ok(()) => Ok(see_other(&Toast::address(COMPANY, "saved", 1))),
        Err(error) => refused(&context, &mut call, error, &form).await,
    }
}

/// `POST /app/account/company/test`: reads the provider's configuration, and says what is wrong with it.
async fn test(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.test_company_provider(&call.caller.session).await {
        Ok(None) => Ok(see_other(&Toast::address(COMPANY, "company-works", 1))),
        Ok(Some(problem)) => {
            let faults = CompanyFaults { test: problem, ..CompanyFaults::default() };
            reply(&company_screen(&context, &mut call).await?.with_faults(faults))
        }
        Err(error) => refused(&context, &mut call, error, &Form::default()).await,
    }
}

/// `POST /app/account/company/domains`: adds an email domain, whose record is looked up on request.
async fn add_domain(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    match context.service.people.add_company_domain(&call.caller.session, form.text("domain")).await {
        Ok(()) => Ok(see_other(&Toast::address(COMPANY, "saved", 1))),
        Err(error) => refused(&context, &mut call, error, &form).await,
    }
}

/// `POST /app/account/company/domains/check`
async fn check_domain(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    match context.service.people.check_company_domain(&call.caller.session, form.text("host")).await {
        Ok(()) => Ok(see_other(COMPANY)),
        Err(error) => refused(&context, &mut call, error, &Form::default()).await,
    }
}

/// `POST /app/account/company/domains/remove`
async fn remove_domain(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, .. } = SubmittedForm::read(&mut call).await?;
    match context.service.people.remove_company_domain(&call.caller.session, form.text("host")).await {
        Ok(()) => Ok(see_other(&Toast::address(COMPANY, "saved", 1))),
        Err(error) => refused(&context, &mut call, error, &Form::default()).await,
    }
}

/// `GET /app/account/company/remove`: the question before.
async fn ask_to_remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    context.service.people.company_settings(&call.caller.session)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(REMOVE));
    }
    let text = "Everyone who signed in by it is signed out. Members sign in with their password, a passkey or a mailed link \
                then. Those who had a password or passkey here before they joined by it need an invitation.";
    reply(&QuestionScreen {
        href: REMOVE.to_owned(),
        back: COMPANY.to_owned(),
        title: "Remove company sign-in?".to_owned(),
        text: text.to_owned(),
        act: "Remove",
        keep: "Cancel",
        form: Form::default().view(&call.caller.form_token),
        frame: frame(&context, &mut call, None, Section::Account).await?,
    })
}

/// `POST /app/account/company/remove`
async fn remove(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    match context.service.people.remove_company(&call.caller.session).await {
        Ok(()) => Ok(see_other(&Toast::address(COMPANY, "company-removed", 1))),
        Err(error) => refused(&context, &mut call, error, &Form::default()).await,
    }
}

async fn company_screen(context: &HttpContext, call: &mut RoutedRequest<SignedIn>) -> Result<CompanyScreen, ApiError> {
    let people = &context.service.people;
    let settings = people.company_settings(&call.caller.session)?;
    let now = context.service.now();
    let frame = frame(context, call, None, Section::Account).await?;
    let domains = settings.domains.into_iter().map(|it| CompanyDomainRow {
        record_name: it.claim.record_name(),
        record_value: it.claim.record_value(),
        host: it.claim.host,
        proved: it.proved_at.map(|at| time(at, now)),
        checked: it.claim.checked_at.map(|at| time(at, now)),
        problem: it.claim.problem.unwrap_or_default(),
    });
    Ok(CompanyScreen {
        issuer: settings.issuer.clone(),
        client_id: settings.client_id,
        is_set: !settings.issuer.is_empty(),
        has_secret: settings.has_secret,
        is_required: settings.is_required,
        covers_second_factor: settings.covers_second_factor,
        works: settings.works,
        callback: settings.callback,
        start: settings.start,
        is_offered: people.offers_company_sign_in(),
        domains: domains.collect(),
        typed_domain: String::new(),
        asks_to_confirm: people.require_confirmed(&call.caller.session).is_err(),
        faults: CompanyFaults::default(),
        frame,
    })
}

/// Draws the refused form again with what was typed, but for the secret. Without a recent confirmation it links to it, in
/// another tab.
async fn refused(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    error: ServiceError,
    form: &Form,
) -> HandlerResult {
    let is_unconfirmed = error == ServiceError::ConfirmationRequired;
    if is_unconfirmed && form.is_empty() {
        return Ok(ask_to_confirm(COMPANY));
    }
    let mut refusal = FormRefusal::of(error)?;
    if is_unconfirmed {
        // The notice with the link says it.
        refusal.problem = None;
    }
    let mut again = company_screen(context, call).await?;
    if form.has("issuer") {
        form.text("issuer").clone_into(&mut again.issuer);
        form.text("clientId").clone_into(&mut again.client_id);
    }
    if form.has("required") {
        again.is_required = form.is_on("required");
        again.covers_second_factor = form.is_on("covers");
    }
    form.text("domain").clone_into(&mut again.typed_domain);
    let faults = CompanyFaults {
        issuer: refusal.fault("issuer"),
        client_id: refusal.fault("clientId"),
        client_secret: refusal.fault("clientSecret"),
        domain: refusal.fault("domain"),
        required: refusal.fault("required"),
        covers: refusal.fault("covers"),
        other: refusal.problem.unwrap_or_default(),
        test: String::new(),
    };
    reply_with(&again.with_faults(faults), refusal.status)
}
