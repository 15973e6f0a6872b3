//! Beginning of every screen of a page: the page, the frame around the screen, and the reply.

use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_service::ServiceError;

use super::forms::{Form, FormStatus};
use super::frame::frame;
use super::{SignedIn, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{self, Frame, Screen, Section};

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
        let frame = frame(context, call, Some(id), section).await?;
        Ok(Self { base: format!("/app/pages/{id}"), page, frame, query, now })
    }

    /// Token that every form of the screen carries.
    pub(super) fn form_token(&self) -> &str {
        &self.frame.person.form_token
    }
}

/// Replies with a screen.
pub(super) fn reply(view: &impl Screen) -> HandlerResult {
    let html = dashboard::render(view).map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(screen(html))
}

/// Replies with a form and its status: that of its refusal, with `Retry-After` if a rate limit refused it.
pub(super) fn reply_with(view: &impl Screen, status: impl Into<FormStatus>) -> HandlerResult {
    Ok(status.into().apply(reply(view)?))
}
