//! Beginning of every screen of a page: the page, the frame around the screen, and the reply.

use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_service::{Caller, ServiceError};
use url::form_urlencoded;

use super::forms::{Form, FormStatus};
use super::frame::FramePerson;
use super::{SignedIn, screen};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::QuestionScreen;
use crate::views::dashboard::{self, Frame, Screen, Section};

/// A page that a signed-in person reaches, with what its screens share.
#[derive(Debug)]
pub(super) struct PageScreen {
    /// The page.
    pub(super) page: Page,
    /// Query of the request, read like a form.
    pub(super) query: Form,
    /// Current time.
    pub(super) now: Timestamp,
    /// Address of the page's screens.
    pub(super) base: String,
    person: FramePerson,
}

/// A question with one button, on a screen of its own.
#[derive(Debug)]
pub(super) struct ScreenQuestion {
    /// Address that the button posts to.
    pub(super) href: String,
    /// Address of the screen before it.
    pub(super) back: String,
    /// The question.
    pub(super) title: String,
    /// Consequences of the button.
    pub(super) text: String,
    /// Text of the button.
    pub(super) act: &'static str,
    /// Text of the link back.
    pub(super) keep: &'static str,
}

impl PageScreen {
    /// Reads the page in the path of a request.
    ///
    /// # Errors
    /// "Not found" for a page that the person can't access.
    pub(super) fn read(context: &HttpContext, call: &RoutedRequest<SignedIn>) -> Result<Self, ApiError> {
        let id = call.page_id()?;
        let page = context.service.pages.get(&call.caller.caller, id)?;
        let query = Form::parse(call.query.as_bytes())?;
        let person = FramePerson::of(&call.caller, &call.query);
        Ok(Self { base: format!("/app/pages/{id}"), page, query, now: context.service.now(), person })
    }

    /// Token that every form of the screen carries.
    pub(super) fn form_token(&self) -> &str {
        &self.person.person.form_token
    }

    /// Builds the frame of the screen. It reads the state of every page, so a form that only redirects needs none.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(super) async fn frame(
        &self,
        context: &HttpContext,
        caller: &Caller,
        section: Section,
    ) -> Result<Frame, ApiError> {
        self.person.frame(context, caller, (Some(self.page.id), section)).await
    }

    /// Replies with a question.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    pub(super) async fn question(
        &self,
        context: &HttpContext,
        caller: &Caller,
        section: Section,
        question: ScreenQuestion,
    ) -> HandlerResult {
        let ScreenQuestion { href, back, title, text, act, keep } = question;
        let form = Form::default().view(self.form_token());
        let frame = self.frame(context, caller, section).await?;
        reply(&QuestionScreen { href, back, title, text, act, keep, form, frame })
    }

    /// Reads the page's monitors, to choose from: id and name, in the order of the page.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(super) async fn monitor_choices(
        &self,
        context: &HttpContext,
        caller: &Caller,
    ) -> Result<Vec<(String, String)>, ApiError> {
        let monitors = context.service.monitors.list(caller, self.page.id).await?;
        Ok(monitors.into_iter().map(|it| (it.monitor.id.to_string(), it.monitor.name)).collect())
    }
}

/// Returns the names of monitors among the page's, in the order of their ids; deleted ones have none.
pub(super) fn names_of(ids: impl IntoIterator<Item = impl ToString>, choices: &[(String, String)]) -> Vec<&str> {
    let name = move |id: String| choices.iter().find(|(known, _)| *known == id).map(|(_, name)| name.as_str());
    ids.into_iter().filter_map(|id| name(id.to_string())).collect()
}

/// Returns an address with the parameters that aren't empty, such as the filters of a list.
pub(super) fn address_with<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_filters_that_are_set() {
        assert_eq!(address_with("/app", [("q", ""), ("after", "")]), "/app");
        assert_eq!(address_with("/app", [("q", "a&b"), ("state", ""), ("after", "1")]), "/app?q=a%26b&after=1");
    }

    #[test]
    fn deleted_monitors_have_no_name() {
        let choices = [("1".to_owned(), "Shop".to_owned()), ("2".to_owned(), "API".to_owned())];
        assert_eq!(names_of([2, 3, 1], &choices), ["API", "Shop"]);
    }
}
