//! Incidents and maintenance windows of a page: the list, one of them with its next update, and the forms around it.

mod actions;
mod changes;
mod data;
mod details;
mod editor;
mod list;
mod new_incident;
mod window;
mod window_form;

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::id::IncidentId;
use parallax_core::incident::IncidentKind;
use parallax_core::page_view::IncidentView;
use parallax_service::Caller;
use parallax_service::incidents::IncidentDetail;

pub(super) use self::data::zones;
use self::editor::UpdateEditor;
use super::SignedIn;
use super::page_screen::PageScreen;
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{Frame, Section};

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/{page}/incidents",
            vec![(GET, signed_in_route(|context, call| list::show(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/incidents/new",
            vec![
                (GET, signed_in_route(|context, call| new(context, call).boxed())),
                (POST, signed_in_route(|context, call| create(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/incidents/start",
            vec![(POST, signed_in_route(|context, call| actions::start(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/incidents/{incident}",
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| editor::post(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/edit",
            vec![
                (GET, signed_in_route(|context, call| details::show(context, call).boxed())),
                (POST, signed_in_route(|context, call| details::save(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/postmortem",
            vec![
                (GET, signed_in_route(|context, call| details::show_postmortem(context, call).boxed())),
                (POST, signed_in_route(|context, call| details::save_postmortem(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/delete",
            vec![
                (GET, signed_in_route(|context, call| actions::ask_delete(context, call).boxed())),
                (POST, signed_in_route(|context, call| actions::delete(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/end",
            vec![(POST, signed_in_route(|context, call| actions::end(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/extend",
            vec![(POST, signed_in_route(|context, call| actions::extend(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/incidents/{incident}/stop",
            vec![(POST, signed_in_route(|context, call| actions::stop(context, call).boxed()))],
        ),
    ]
}

/// An incident or window, with what its screens share.
#[derive(Debug)]
struct IncidentContext {
    page_screen: PageScreen,
    detail: IncidentDetail,
    /// Address of its screen.
    href: String,
}

impl IncidentContext {
    /// Reads the incident in the path of a request.
    async fn read(context: &HttpContext, call: &mut RoutedRequest<SignedIn>) -> Result<Self, ApiError> {
        let page = call.page_id()?;
        let detail = context.service.incidents.get(&call.caller.caller, page, incident_id(call)?).await?;
        let page_screen = PageScreen::read(context, call)?;
        let href = format!("{}/incidents/{}", page_screen.base, detail.incident.id);
        Ok(Self { page_screen, detail, href })
    }

    /// Builds the frame of a screen about the incident.
    async fn frame(&self, context: &HttpContext, caller: &Caller) -> Result<Frame, ApiError> {
        self.page_screen.frame(context, caller, section_of(self.detail.incident.kind)).await
    }

    fn view(&self) -> IncidentView {
        self.detail.clone().into()
    }

    /// Address of the incident on the public page.
    fn public_url(&self, context: &HttpContext) -> String {
        format!("{}/incidents/{}", context.service.pages.url(&self.page_screen.page), self.detail.incident.id)
    }
}

fn incident_id(call: &RoutedRequest<SignedIn>) -> Result<IncidentId, ApiError> {
    call.id("incident")
}

const fn section_of(kind: IncidentKind) -> Section {
    match kind {
        IncidentKind::Incident => Section::Incidents,
        IncidentKind::Maintenance => Section::Maintenance,
    }
}

/// `GET /app/pages/{page}/incidents/{incident}`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    match incident.detail.incident.kind {
        IncidentKind::Incident => {
            let editor = UpdateEditor::blank(&incident);
            editor.reply(&context, &call.caller.caller, incident).await
        }
        IncidentKind::Maintenance => window::reply(&context, &call.caller.caller, incident, window::blank_form()).await,
    }
}

/// `GET /app/pages/{page}/incidents/new`
async fn new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    if data::is_maintenance(&call.query) {
        window_form::show_new(context, call).await
    } else {
        new_incident::show(context, call).await
    }
}

/// `POST /app/pages/{page}/incidents/new`
async fn create(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    if data::is_maintenance(&call.query) {
        window_form::create(context, call).await
    } else {
        new_incident::create(context, call).await
    }
}
