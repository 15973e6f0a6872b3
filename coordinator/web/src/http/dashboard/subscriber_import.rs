//! Import of subscribers with a preview before it, and their export as CSV.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use parallax_core::role::Permission;
use parallax_core::subscriber::import::{IMPORT_FIELD, MAX_NAMED_LINES, RefusedLine};
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::subscribers::ImportReport;

use super::confirm::ask_to_confirm;
use super::forms::{Form, FormRefusal, ONCE, SubmittedForm, result_path};
use super::page_screen::{PageScreen, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::api::subscriber_transfer::export_reply;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::subscriber_import::{ImportPreview, ImportScreen};
use crate::views::dashboard::{Section, Toast};

/// Field with a file, which counts before the pasted text.
const FILE: &str = "file";
/// Value of the button that imports.
const IMPORT: &str = "import";
/// Fault of a form with neither a file nor a text.
const NOTHING_TO_IMPORT: &str = "Choose a file, or enter at least one address.";

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![
        (
            "/app/pages/{page}/subscribers/import",
            vec![
                (Method::GET, signed_in_route(|context, call| show(context, call).boxed())),
                (Method::POST, signed_in_route(|context, call| submit(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/subscribers.csv",
            vec![(Method::GET, signed_in_route(|context, call| export(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/pages/{page}/subscribers/import`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    call.caller.caller.require(Permission::Edit)?;
    draw(&context, &call.caller.caller, page_screen, &Form::default(), Outcome::Form(None)).await
}

/// State of the screen: the form, with the reasons if it was refused, or the preview.
enum Outcome {
    Form(Option<FormRefusal>),
    Preview(ImportReport),
}

/// `POST /app/pages/{page}/subscribers/import`: shows a preview; imports from there.
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let SubmittedForm { mut form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let (caller, page) = (&call.caller.caller, page_screen.page.id);
    caller.require(Permission::Edit)?;
    let subscribers = &context.service.subscribers;
    if form.text("do") == IMPORT {
        let list = format!("{}/subscribers", page_screen.base);
        let path = |report: &ImportReport| Toast::address(&list, "subscribers-imported", report.added);
        let answer = |report: &ImportReport| path(report).into_bytes();
        let once = IdempotentRequest::new(idempotency_key, &answer);
        let refusal = match subscribers.import(caller, page, form.text(IMPORT_FIELD), &once).await {
            Ok(outcome) => return Ok(see_other(&result_path(outcome, path))),
            Err(error) => FormRefusal::of(error)?,
        };
        return draw(&context, &call.caller.caller, page_screen, &form, Outcome::Form(Some(refusal))).await;
    }
    let outcome = match file_text(form.text(FILE)) {
        Ok(None) if form.text(IMPORT_FIELD).trim().is_empty() => refused(IMPORT_FIELD, NOTHING_TO_IMPORT),
        Ok(text) => {
            if let Some(text) = text {
                form.set(IMPORT_FIELD, text);
            }
            match subscribers.preview_import(caller, page, form.text(IMPORT_FIELD)).await {
                Ok(report) => Outcome::Preview(report),
                Err(error) => Outcome::Form(Some(FormRefusal::of(error)?)),
            }
        }
        Err(text) => refused(FILE, text),
    };
    form.remove(FILE);
    // The preview's own button is another request.
    form.remove(ONCE);
    draw(&context, &call.caller.caller, page_screen, &form, outcome).await
}

fn refused(field: &str, text: &str) -> Outcome {
    let fault = FieldFault { field: field.to_owned(), text: text.to_owned() };
    Outcome::Form(Some(FormRefusal { status: StatusCode::BAD_REQUEST.into(), faults: vec![fault], problem: None }))
}

/// Decodes the `data:` URL of a file; `None` if none was chosen.
fn file_text(url: &str) -> Result<Option<String>, &'static str> {
    const WRONG: &str = "Must be a text file in UTF-8.";
    if url.is_empty() {
        return Ok(None);
    }
    // A form that is not sent as multipart has the name of the file alone.
    let (_, data) = url.split_once(";base64,").ok_or("Has no content: choose the file again.")?;
    if data.is_empty() {
        return Err("Is empty: choose another file.");
    }
    let bytes = STANDARD.decode(data).map_err(|_| WRONG)?;
    String::from_utf8(bytes).map(|text| Some(text.replace("\r\n", "\n"))).map_err(|_| WRONG)
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    outcome: Outcome,
) -> HandlerResult {
    let (refusal, preview) = match outcome {
        Outcome::Form(refusal) => (refusal, None),
        Outcome::Preview(report) => (None, Some(preview(&report))),
    };
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let screen = ImportScreen {
        href: format!("{}/subscribers/import", page_screen.base),
        back: format!("{}/subscribers", page_screen.base),
        form: view,
        preview,
        frame: page_screen.frame(context, caller, Section::Subscribers).await?,
    };
    reply_with(&screen, status)
}

fn preview(report: &ImportReport) -> ImportPreview {
    let lines = report.refused.len() + report.added + report.known + report.opted_out + report.repeated;
    ImportPreview {
        lines,
        added: report.added,
        known: report.known,
        repeated: report.repeated,
        opted_out: report.opted_out,
        refused: report.refused.len(),
        reasons: reasons(&report.refused),
    }
}

/// Groups refused lines by their reason: the reason as a sentence, and the numbers of the lines.
fn reasons(refused: &[RefusedLine]) -> Vec<(String, String)> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for it in refused.iter().take(MAX_NAMED_LINES) {
        match groups.iter_mut().find(|(rule, _)| *rule == it.rule) {
            Some((_, lines)) => lines.push(it.line.to_string()),
            None => groups.push((&it.rule, vec![it.line.to_string()])),
        }
    }
    let text = |(rule, lines): (&str, Vec<String>)| {
        let noun = if lines.len() == 1 { "line" } else { "lines" };
        (FieldFault::sentence(rule), format!("{noun} {}", lines.join(", ")))
    };
    groups.into_iter().map(text).collect()
}

/// `GET /app/pages/{page}/subscribers.csv`: for owners who confirmed lately that it's them.
async fn export(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = context.service.pages.get(&call.caller.caller, call.page_id()?)?;
    call.caller.caller.require(Permission::ExportSubscribers)?;
    if context.service.people.require_confirmed(&call.caller.session).is_err() {
        return Ok(ask_to_confirm(&format!("/app/pages/{}/subscribers.csv", page.id)));
    }
    export_reply(Arc::clone(&context), call.caller.caller, &page).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_lines_are_grouped_by_their_reason() {
        let line = |line: usize, rule: &str| RefusedLine { line, rule: rule.to_owned(), address: None };
        let refused = [line(7, "must be an email address"), line(9, "is odd"), line(44, "must be an email address")];
        let text = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(reasons(&refused), [text("Must be an email address.", "lines 7, 44"), text("Is odd.", "line 9")]);
    }

    #[test]
    fn a_file_is_text() {
        assert_eq!(file_text(""), Ok(None));
        assert_eq!(file_text("data:text/csv;base64,YQ0KYg=="), Ok(Some("a\nb".to_owned())));
        assert!(file_text("data:image/png;base64,iVBORw==").is_err());
        assert_eq!(file_text("list.csv"), Err("Has no content: choose the file again."));
        assert_eq!(file_text("data:text/csv;base64,"), Err("Is empty: choose another file."));
    }
}
