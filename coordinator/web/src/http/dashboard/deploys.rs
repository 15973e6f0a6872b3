//! Deploys of a page: list, add, delete.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::deploy::Deploy;
use parallax_core::id::DeployId;
use parallax_core::recurrence::local_to_timestamp;
use parallax_core::time::Timestamp;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::undo_offer::UndoOffer;

use super::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, result_path, saved};
use super::page_screen::{PageScreen, names_of, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::api::deploys as api;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::deploys::{DeployRow, DeploysScreen};
use crate::views::dashboard::{Section, Toast, time};

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/{page}/deploys",
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| add(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/deploys/{deploy}/delete",
            vec![(POST, signed_in_route(|context, call| delete(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/pages/{page}/deploys`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    draw(&context, &call.caller.caller, page_screen, &Form::default(), None).await
}

/// `POST /app/pages/{page}/deploys`
async fn add(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    match save(&context, caller, &page_screen, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => draw(&context, caller, page_screen, &submitted.form, Some(refusal)).await,
    }
}

async fn save(context: &HttpContext, caller: &Caller, page_screen: &PageScreen, submitted: &SubmittedForm) -> Saved {
    let mut form = submitted.form.clone();
    // A form's time is local, in the page's zone; the API's has an offset.
    let local = Timestamp::parse_local(form.text("at"));
    if let Some(at) = local.and_then(|local| local_to_timestamp(page_screen.page.timezone, local)) {
        form.set("at", at.to_string());
    }
    let edit = api::read(FormBody::new(&form));
    let path = Toast::address(&format!("{}/deploys", page_screen.base), "created", 1);
    let answer = |_: &Deploy| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.deploys.create(caller, page_screen.page.id, &edit, &once).await, |_| path.clone())
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let deploys = context.service.deploys.list(caller, page_screen.page.id).await?;
    let monitors = page_screen.monitor_choices(context, caller).await?;
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let screen = DeploysScreen {
        href: format!("{}/deploys", page_screen.base),
        rows: deploys.iter().map(|deploy| row(deploy, &monitors, &page_screen)).collect(),
        form: view,
        monitors,
        zone_hint: format!("In {}. Empty: now.", page_screen.page.timezone.name()),
        curl: curl(context.service.base_url(), &page_screen),
        is_public: page_screen.page.show_deploys,
        frame: page_screen.frame(context, caller, Section::Deploys).await?,
    };
    reply_with(&screen, status)
}

fn row(deploy: &Deploy, monitors: &[(String, String)], page_screen: &PageScreen) -> DeployRow {
    let names = deploy.monitors.as_ref().map(|ids| names_of(ids, monitors).join(", "));
    DeployRow {
        delete: format!("{}/deploys/{}/delete", page_screen.base, deploy.id),
        version: deploy.version.clone(),
        url: deploy.url.clone(),
        note: deploy.note.clone().unwrap_or_default(),
        at: time(deploy.at, page_screen.now),
        monitors: names.unwrap_or_else(|| "all monitors".to_owned()),
    }
}

/// Command that adds a deploy from a pipeline.
fn curl(base_url: &str, page_screen: &PageScreen) -> String {
    format!(
        "curl -X POST {base_url}/api/v1/pages/{}/deploys \\\n  -H \"authorization: Bearer $PARALLAX_KEY\" \\\n  \
         -H 'content-type: application/json' \\\n  -d '{{\"version\": \"'\"$VERSION\"'\"}}'",
        page_screen.page.id
    )
}

/// `POST /app/pages/{page}/deploys/{deploy}/delete`
async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DeployId>("deploy")?);
    let submitted = SubmittedForm::read(&mut call).await?;
    let undo = UndoOffer::default();
    let list = format!("/app/pages/{page}/deploys");
    let path = |(): &()| Toast::address_with_undo(&list, "deploy-deleted", 1, undo.token());
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer).undoable(&undo);
    let deleted = context.service.deploys.delete(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(deleted, path)))
}
