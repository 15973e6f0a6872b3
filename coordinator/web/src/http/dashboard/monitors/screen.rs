//! Things that the screens of monitors share: frame, heading, query parameters.

pub(super) use super::super::frame::query_param as param;
pub(super) use super::super::page_screen::{reply, reply_with};
pub(super) use crate::views::dashboard::clock;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;

use super::super::SignedIn;
use super::super::forms::new_key;
use super::super::frame::FramePerson;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::monitor::heading::{MonitorHeading, MonitorTab};
use crate::views::dashboard::monitor::settings_words::CheckPlan;
use crate::views::dashboard::{Frame, Section};

/// A request for a screen of monitors, without its body: what is shared between tasks.
pub(super) struct MonitorCall {
    /// The person.
    pub(super) caller: SignedIn,
    /// The page named in the path.
    pub(super) page: PageId,
    /// The monitor named in the path, if one is.
    pub(super) monitor: Option<MonitorId>,
    /// The query.
    pub(super) query: String,
}

impl MonitorCall {
    /// Takes a request whose body has been read, or has none.
    ///
    /// # Errors
    /// Not found, for an invalid id.
    pub(super) fn new(call: RoutedRequest<SignedIn>) -> Result<Self, ApiError> {
        let page = call.page_id()?;
        let monitor = if call.path_param("monitor").is_ok() { Some(call.monitor_id()?) } else { None };
        Ok(Self { page, monitor, query: call.query, caller: call.caller })
    }

    /// The monitor named in the path.
    ///
    /// # Errors
    /// Not found, if the path names none.
    pub(super) fn monitor_id(&self) -> Result<MonitorId, ApiError> {
        self.monitor.ok_or(ApiError::Service(parallax_service::ServiceError::NotFound))
    }
}

/// Builds the frame of a screen about a page that the person was found to reach.
pub(super) async fn frame(
    context: &HttpContext,
    signed_in: &SignedIn,
    page: PageId,
    query: &str,
) -> Result<Frame, ApiError> {
    FramePerson::of(signed_in, query).frame(context, &signed_in.caller, (Some(page), Section::Monitors)).await
}

/// Heading of a monitor's screen, with fresh idempotency keys for its buttons.
pub(super) fn heading(monitor: &Monitor, plan: CheckPlan, tab: MonitorTab, signed_in: &SignedIn) -> MonitorHeading {
    let token = &signed_in.form_token;
    MonitorHeading::new(monitor, plan, tab, (token, [new_key(), new_key()]))
}
