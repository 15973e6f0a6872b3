//! What every screen of a page begins with: the page, the frame around the screen, and the reply.

use ::http::StatusCode;
use askama::Template;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_service::ServiceError;

use super::forms::Form;
use super::{SignedIn, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{self, Frame, PageEntry, Section, SignedInPerson, Toast};

/// Maximum number that a toast counts.
const MAX_COUNT: usize = 1_000_000;

/// A page that a signed-in person reaches, with what its screens share.
#[derive(Debug)]
pub(super) struct PageScreen {
    /// The page.
    pub(super) page: Page,
    /// Frame of the screen.
    pub(super) frame: Frame,
    /// Query of the request, read like a form.
    pub(super) query: Form,
    /// Current time.
    pub(super) now: Timestamp,
    /// Address of the page's screens.
    pub(super) base: String,
}

impl PageScreen {
    /// Reads the page in the path of a request.
    ///
    /// # Errors
    /// "Not found" for a page that the person can't access.
    pub(super) async fn read(
        context: &HttpContext,
        call: &mut RoutedRequest<SignedIn>,
        section: Section,
    ) -> Result<Self, ApiError> {
        let id = call.page_id()?;
        let page = context.service.pages.get(&call.caller.caller, id)?;
        let query = Form::parse(call.query.as_bytes())?;
        let now = context.service.now();
        let count = query.text("count").parse().ok().filter(|count| *count <= MAX_COUNT).unwrap_or(0);
        let frame =
            Frame { toast: Toast::of(query.text("done"), count), ..frame(context, &call.caller, id, section).await? };
        Ok(Self { base: format!("/app/pages/{id}"), page, frame, query, now })
    }

    /// Token that every form of the screen carries.
    pub(super) fn form_token(&self) -> &str {
        &self.frame.person.form_token
    }
}

async fn frame(context: &HttpContext, signed_in: &SignedIn, page: PageId, section: Section) -> Result<Frame, ApiError> {
    let pages = context.service.pages.list(&signed_in.caller).await?;
    let entry = |page: &Page| PageEntry {
        id: page.id,
        name: page.name.clone(),
        address: bare_address(&context.service.pages.url(page)),
        class: "none",
        down: 0,
        open_incidents: 0,
        failing_destinations: 0,
    };
    let person = SignedInPerson {
        name: signed_in.name.clone().unwrap_or_else(|| signed_in.email.clone()),
        email: signed_in.email.clone(),
        role: signed_in.role,
        is_operator: signed_in.is_operator,
        form_token: signed_in.form_token.clone(),
    };
    Ok(Frame {
        person,
        pages: pages.iter().map(entry).collect(),
        page: Some(page),
        section,
        toast: None,
        loaded_at: dashboard::clock(context.service.now()),
    })
}

/// Returns an address without its scheme, as people read it.
pub(super) fn bare_address(url: &str) -> String {
    url.split_once("://").map_or(url, |(_, rest)| rest).to_owned()
}

/// Replies with a screen.
pub(super) fn reply(view: &impl Template) -> HandlerResult {
    let html = dashboard::render(view).map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(screen(html))
}

/// Replies with a form that was refused.
pub(super) fn reply_with(view: &impl Template, status: StatusCode) -> HandlerResult {
    Ok(reply(view)?.with_status(status))
}
