//! Undo of the last form's change, by the button of its toast.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::undo::UndoObstacle;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::undo::UndoOutcome;

use super::forms::{FormRefusal, FormStatus, SubmittedForm, result_path};
use super::frame::frame;
use super::page_screen::reply_with;
use super::signed_in::safe_next;
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::{Section, Toast, UndoRefusedScreen};

/// Reasons that are listed, at most.
const MAX_LISTED: usize = 20;

/// Route of the button.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![("/app/undo/{token}", vec![(Method::POST, signed_in_route(|context, call| undo(context, call).boxed()))])]
}

/// `POST /app/undo/{token}`
async fn undo(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let token = call.path_param("token")?.to_owned();
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let next = safe_next(form.text("next")).to_owned();
    let path = Toast::address(&next, "undone", 1);
    let answer = |(): &()| path.clone().into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let caller = call.caller.caller.clone();
    let (text, items, status): (String, Vec<String>, FormStatus) =
        match context.service.undo.undo(&caller, &token, &once).await {
            Ok(UndoOutcome::Undone(outcome)) => return Ok(see_other(&result_path(outcome, |()| path.clone()))),
            Ok(UndoOutcome::Refused(obstacles)) => {
                let text = "An undo changes everything back or nothing.".to_owned();
                (text, sentences(&obstacles), StatusCode::CONFLICT.into())
            }
            Ok(UndoOutcome::UndoneBefore) => {
                ("This change was undone already.".to_owned(), Vec::new(), StatusCode::CONFLICT.into())
            }
            // The same for a change of somebody else, which does not exist for this person.
            Ok(UndoOutcome::Expired) => {
                let text = "A change can be undone for 10 minutes, by the person who made it.".to_owned();
                (text, Vec::new(), StatusCode::NOT_FOUND.into())
            }
            Err(error) => {
                // With the name of what has no place for it.
                let text = FieldFault::sentence(&error.to_string());
                let FormRefusal { status, problem, .. } = FormRefusal::of(error)?;
                (problem.unwrap_or(text), Vec::new(), status)
            }
        };
    let frame = frame(&context, &mut call, None, Section::Overview).await?;
    reply_with(&UndoRefusedScreen { frame, next, text, items }, status)
}

fn sentences(obstacles: &[UndoObstacle]) -> Vec<String> {
    let mut sentences: Vec<String> = obstacles.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    if let Some(others) = obstacles.len().checked_sub(MAX_LISTED).filter(|others| *others > 0) {
        sentences.push(format!("The same holds for {others} more."));
    }
    sentences
}
