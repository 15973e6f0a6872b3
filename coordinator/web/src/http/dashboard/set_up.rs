//! Set-up of an account by the one-time link that the program prints: its bearer chooses a password and is its owner.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::time::{DAY, Timestamp};
use parallax_service::ServiceError;
use parallax_service::monitors::FirstSiteReport;
use parallax_service::people::{FirstSite, SetUpAccount, SetUpDetails};
use parallax_service::public_pages::explanation::labels;

use super::check_progress::region_results;
use super::forms::{FormRefusal, FormStatus};
use super::frame::without_scheme;
use super::session_cookie::browser_info;
use super::sign_in_code::reply_to_step;
use super::signed_in::check_origin;
use super::{ROOT, as_page, screen};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::public::{FormFields, is_https};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{FirstSiteFields, FirstSiteTest, MessagePage, SetUpForm, Toast};

/// Routes of the set-up.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![
        (
            "/setup/{token}",
            vec![
                (Method::GET, public_route(|context, call| as_page(show(context, call)).boxed())),
                (Method::POST, public_route(|context, call| as_page(submit(context, call)).boxed())),
            ],
        ),
        (
            "/setup/{token}/test",
            vec![(Method::POST, public_route(|context, call| as_page(test(context, call)).boxed()))],
        ),
    ]
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
    let details = details(&fields);
    match context.service.people.set_up(token, &details, &browser_info(&context, &call)).await {
        Ok(step) if account.asks_for_site => Ok(reply_to_step(&context, &step, &Toast::address(ROOT, "set-up", 1))),
        Ok(step) => Ok(reply_to_step(&context, &step, ROOT)),
        // Used by someone else in the meantime.
        Err(ServiceError::NotFound) => Ok(invalid_link()),
        Err(error) => {
            let refusal = FormRefusal::of(error)?;
            Ok(refusal
                .status
                .clone()
                .apply(screen(drawn_again(&context, token, account, details, Some(&refusal)).html())))
        }
    }
}

/// `POST /setup/{token}/test`: the form with the result of a test of the site's address. It uses nothing up.
async fn test(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    check_origin(&call.headers, context.service.base_url())?;
    let fields = FormFields::read(&mut call).await?;
    let token = call.path_param("token")?;
    let service = &context.service;
    let Some(account) = service.people.set_up_account(token)? else { return Ok(invalid_link()) };
    let details = details(&fields);
    let (status, refusal, result) = match service.monitors.test_first_site(&account, &details.site).await {
        Ok(report) => (FormStatus::OK, None, Some(test_view(&report, service.now()))),
        Err(error) => {
            let refusal = FormRefusal::of(error)?;
            let result = refusal.problem.as_ref().map(|problem| FirstSiteTest::refused(problem, ""));
            (refusal.status.clone(), Some(refusal), result)
        }
    };
    let form = drawn_again(&context, token, account, details, refusal.as_ref());
    let site = form.site.map(|site| FirstSiteFields { test: result, ..site });
    Ok(status.apply(screen(SetUpForm { site, ..form }.html())))
}

/// Builds the result of a test. The bearer of the link is nobody yet, so agents have numbers for names.
fn test_view(report: &FirstSiteReport, now: Timestamp) -> FirstSiteTest {
    let results = region_results(&report.site.outcomes, false, |_| None);
    let days = report.certificate_ends_at.map(|end| end.since(now).div_euclid(DAY));
    FirstSiteTest::new(&results, &labels(&report.site.agents, false), days)
}

fn details(fields: &FormFields) -> SetUpDetails {
    let field = |name: &str| fields.raw(name).to_owned();
    let site = FirstSite { url: field("url"), page_name: field("pageName"), slug: field("slug") };
    SetUpDetails { email: field("email"), password: field("password"), name: field("name"), site }
}

/// The form with what was typed and the reasons; a password is typed again.
fn drawn_again(
    context: &HttpContext,
    token: &str,
    account: SetUpAccount,
    details: SetUpDetails,
    refusal: Option<&FormRefusal>,
) -> SetUpForm {
    let fault = |field: &str| refusal.map(|it| it.fault(field)).unwrap_or_default();
    let form = form(context, token, account.clone());
    let SetUpDetails { email, name, site, .. } = details;
    SetUpForm {
        email: account.email.unwrap_or(email),
        email_fault: fault("email"),
        name,
        name_fault: fault("name"),
        password_fault: fault("password"),
        site: form.site.map(|it| FirstSiteFields {
            url: site.url,
            url_fault: fault("url"),
            page_name: site.page_name,
            page_name_fault: fault("pageName"),
            slug: site.slug,
            slug_fault: fault("slug"),
            ..it
        }),
        problem: refusal.and_then(|it| it.problem.clone()).unwrap_or_default(),
        ..form
    }
}

fn form(context: &HttpContext, token: &str, account: SetUpAccount) -> SetUpForm {
    let page_base = || format!("{}/p/", without_scheme(context.service.base_url()));
    SetUpForm {
        token: token.to_owned(),
        has_email: account.email.is_some(),
        email: account.email.unwrap_or_default(),
        email_fault: String::new(),
        name: String::new(),
        name_fault: String::new(),
        password_fault: String::new(),
        site: account.asks_for_site.then(|| FirstSiteFields { page_base: page_base(), ..FirstSiteFields::default() }),
        problem: String::new(),
        is_plain_http: !is_https(context),
    }
}

fn invalid_link() -> HttpResponse {
    let text = "It was used, or is older than a day. On the host, `parallax account link` prints another.".to_owned();
    let page = MessagePage::new("This link does not work", text).with_link("/sign-in", "Sign in");
    screen(page.html()).with_status(StatusCode::NOT_FOUND)
}
