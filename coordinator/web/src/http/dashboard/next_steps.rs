//! List of what is next after the set-up, on the overview of an owner, until it is done or dismissed.

use std::sync::Arc;

use parallax_service::dashboard::SetUpStep;

use super::{ROOT, SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{Frame, NextStepRow, Toast};

/// Describes the steps.
pub(super) fn rows(steps: Option<Vec<(SetUpStep, bool)>>, frame: &Frame) -> Vec<NextStepRow> {
    let row = |(step, is_done): (SetUpStep, bool)| {
        let (href, title, sentence) = match step {
            SetUpStep::Monitor => {
                (frame.path("monitors/new"), "Add a monitor", "Paste an address: a website, or a host and its port.")
            }
            SetUpStep::SecondNetwork => (
                "/app/mesh/agents/new".to_owned(),
                "Add a second agent on another network",
                "Until then no second network can confirm an outage.",
            ),
            SetUpStep::TestAlert => {
                (frame.path("alerts"), "Send a test alert", "Email is on. Slack, webhooks and six more take a minute.")
            }
            SetUpStep::SecondMember => (
                "/app/account/members".to_owned(),
                "Invite your team",
                "A second person can post updates when you are away.",
            ),
            SetUpStep::Domain => (
                frame.path("settings/address"),
                "Set your own domain",
                "Visitors then find the page under an address of yours.",
            ),
        };
        NextStepRow { is_done, href, title, sentence }
    };
    steps.unwrap_or_default().into_iter().map(row).collect()
}

/// `POST /app/next-steps/dismiss`
pub(super) async fn dismiss(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    context.service.dashboard.dismiss_next_steps(&call.caller.caller).await?;
    Ok(see_other(&Toast::address(ROOT, "steps-dismissed", 1)))
}
