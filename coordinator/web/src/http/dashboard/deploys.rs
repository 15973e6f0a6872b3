//! Deploys of a page: list, add, delete.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::deploy::Deploy;
use parallax_core::id::DeployId;
use parallax_core::recurrence::local_to_timestamp;
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::{Caller, ServiceError};

use super::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, result_path, saved};
use super::page_screen::{PageScreen, reply, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::api::deploys as api;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
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
            vec![
                (GET, signed_in_route(|context, call| ask_delete(context, call).boxed())),
                (POST, signed_in_route(|context, call| delete(context, call).boxed())),
            ],
        ),
    ]
}

/// `GET /app/pages/{page}/deploys`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::Deploys).await?;
    draw(&context, &call.caller.caller, scene, &Form::default(), None).await
}

/// `POST /app/pages/{page}/deploys`
async fn add(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::Deploys).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    match save(&context, caller, &scene, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => draw(&context, caller, scene, &submitted.form, Some(refusal)).await,
    }
}

async fn save(context: &HttpContext, caller: &Caller, scene: &PageScreen, submitted: &SubmittedForm) -> Saved {
    let mut form = submitted.form.clone();
    // A form's time is local, in the page's zone; the API's has an offset.
    let local = Timestamp::parse_local(form.text("at"));
    if let Some(at) = local.and_then(|local| local_to_timestamp(scene.page.timezone, local)) {
        form.set("at", at.to_string());
    }
    let edit = api::read(FormBody::new(&form));
    let path = Toast::address(&format!("{}/deploys", scene.base), "created", 1);
    let answer = |_: &Deploy| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.deploys.create(caller, scene.page.id, &edit, &once).await, |_| path.clone())
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let deploys = context.service.deploys.list(caller, scene.page.id).await?;
    let monitors = context.service.monitors.list(caller, scene.page.id).await?;
    let monitors: Vec<(String, String)> =
        monitors.into_iter().map(|it| (it.monitor.id.to_string(), it.monitor.name)).collect();
    let (view, status) = form.drawn(scene.form_token(), refusal);
    let screen = DeploysScreen {
        href: format!("{}/deploys", scene.base),
        rows: deploys.iter().map(|deploy| row(deploy, &monitors, &scene)).collect(),
        form: view,
        monitors,
        zone_hint: format!("In {}. Empty: now.", scene.page.timezone.name()),
        curl: curl(context.service.base_url(), &scene),
        is_public: scene.page.show_deploys,
        frame: scene.frame,
    };
    reply_with(&screen, status)
}

fn row(deploy: &Deploy, monitors: &[(String, String)], scene: &PageScreen) -> DeployRow {
    let name = |id: String| monitors.iter().find(|(known, _)| *known == id).map(|(_, name)| name.as_str());
    let names = deploy.monitors.as_ref().map(|ids| {
        let names: Vec<&str> = ids.iter().filter_map(|id| name(id.to_string())).collect();
        names.join(", ")
    });
    DeployRow {
        delete: format!("{}/deploys/{}/delete", scene.base, deploy.id),
        version: deploy.version.clone(),
        url: deploy.url.clone(),
        note: deploy.note.clone().unwrap_or_default(),
        at: time(deploy.at, scene.now),
        monitors: names.unwrap_or_else(|| "all monitors".to_owned()),
    }
}

/// Command that adds a deploy from a pipeline.
fn curl(base_url: &str, scene: &PageScreen) -> String {
    format!(
        "curl -X POST {base_url}/api/v1/pages/{}/deploys \\\n  -H \"authorization: Bearer $PARALLAX_KEY\" \\\n  \
         -H 'content-type: application/json' \\\n  -d '{{\"version\": \"'\"$VERSION\"'\"}}'",
        scene.page.id
    )
}

/// `GET /app/pages/{page}/deploys/{deploy}/delete`
async fn ask_delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let id = call.id::<DeployId>("deploy")?;
    let caller = call.caller.caller.clone();
    caller.require(Permission::Edit)?;
    let scene = PageScreen::read(&context, &mut call, Section::Deploys).await?;
    let deploys = context.service.deploys.list(&caller, scene.page.id).await?;
    let deploy = deploys.into_iter().find(|deploy| deploy.id == id).ok_or(ServiceError::NotFound)?;
    let screen = QuestionScreen {
        href: format!("{}/deploys/{id}/delete", scene.base),
        back: format!("{}/deploys", scene.base),
        title: format!("Delete {}?", deploy.version),
        text: "Its mark disappears from the charts.".to_owned(),
        act: "Delete deploy",
        keep: "Keep it",
        form: Form::default().view(scene.form_token()),
        frame: scene.frame,
    };
    reply(&screen)
}

/// `POST /app/pages/{page}/deploys/{deploy}/delete`
async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DeployId>("deploy")?);
    let submitted = SubmittedForm::read(&mut call).await?;
    let path = Toast::address(&format!("/app/pages/{page}/deploys"), "deleted", 1);
    let answer = |(): &()| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let deleted = context.service.deploys.delete(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(deleted, |()| path.clone())))
}
