//! Import and export of a page's subscribers: text of one address a line, or CSV.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::patch::PatchField;
use parallax_core::subscriber::import::{IMPORT_FIELD, MAX_IMPORT_BYTES, MAX_NAMED_LINES, MonitorLabels};
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::subscribers::{ImportReport, SubscriberState};
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use super::body_check::{self, BodyRules, SET_BY_SERVICE};
use super::{enveloped_with_warnings, write_reply};
use crate::http::HttpContext;
use crate::http::body_fields::{BodyFields, field};
use crate::http::csv::{self, CsvParts};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// Columns of an export.
const COLUMNS: [&str; 5] = ["address", "type", "state", "since", "monitors"];

/// Validation rules of the body.
const RULES: BodyRules =
    BodyRules { hints: &[], other_routes: &[], default_rule: SET_BY_SERVICE, echoes: &[], volatile: &[] };

/// `POST /api/v1/pages/{page}/subscribers/import`
pub(in crate::http) async fn import(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (fields, warnings) = body_check::read_new(&object, &RULES, |body| read(body));
    let (text, is_dry_run) = validate(&fields)?;
    let answer = |report: &ImportReport| enveloped_with_warnings("import", &document(report, is_dry_run), &warnings);
    if is_dry_run {
        let report = service.subscribers.preview_import(&call.caller, page, &text).await?;
        return Ok(HttpResponse::json_bytes(StatusCode::OK, answer(&report)));
    }
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let imported = service.subscribers.import(&call.caller, page, &text, &once).await?;
    Ok(write_reply(StatusCode::OK, imported, answer))
}

/// `GET /api/v1/pages/{page}/subscribers.csv`
pub(in crate::http) async fn export(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = context.service.pages.get(&call.caller, call.page_id()?)?;
    export_reply(context, call.caller, &page).await
}

/// Fields of an import, as sent.
pub(in crate::http) struct ImportFields {
    csv: PatchField<String>,
    dry_run: PatchField<bool>,
}

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl BodyFields) -> ImportFields {
    ImportFields {
        csv: body.text(
            field(
                IMPORT_FIELD,
                "One email address a line, or CSV with a header: `email`, and optionally `monitors` with ids or names \
                 separated by `;`. At most 5,000 lines and 512 KiB.",
            )
            .required()
            .length(1, MAX_IMPORT_BYTES)
            .example("email,monitors\nreader@example.com,\n"),
        ),
        dry_run: body.boolean(field("dryRun", "Only returns what an import would do.").default(false)),
    }
}

fn validate(fields: &ImportFields) -> Result<(String, bool), ValidationErrors> {
    let mut faults = ValidationErrors::new();
    let text = fields.csv.required(IMPORT_FIELD, None, &mut faults, |text| Ok(text.clone()));
    let is_dry_run = fields.dry_run.required("dryRun", Some(false), &mut faults, |is_dry_run| Ok(*is_dry_run));
    match (text, is_dry_run) {
        (Some(text), Some(is_dry_run)) if faults.is_empty() => Ok((text, is_dry_run)),
        _ => Err(faults),
    }
}

/// Result of an import of subscribers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriberImportResult")]
pub(in crate::http) struct ImportDocument {
    /// True if nothing was stored.
    dry_run: bool,
    /// New addresses. Each is asked by one mail, as soon as the limits allow.
    added: usize,
    /// Addresses whose mailbox is on the page already, in any spelling, confirmed or not. They stay as they are.
    known: usize,
    /// Lines whose mailbox stands on an earlier line.
    repeated: usize,
    /// Addresses whose readers unsubscribed from the page. They are not asked.
    opted_out: usize,
    /// Lines that break a rule.
    refused: usize,
    /// The first 100 of them.
    refused_lines: Vec<RefusedLineDocument>,
}

/// A line of an import that breaks a rule.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RefusedLine")]
pub(in crate::http) struct RefusedLineDocument {
    /// Number of the line, from 1.
    line: usize,
    /// The rule it breaks, in words.
    rule: String,
}

fn document(report: &ImportReport, dry_run: bool) -> ImportDocument {
    let named = report.refused.iter().take(MAX_NAMED_LINES);
    ImportDocument {
        dry_run,
        added: report.added,
        known: report.known,
        repeated: report.repeated,
        opted_out: report.opted_out,
        refused: report.refused.len(),
        refused_lines: named.map(|it| RefusedLineDocument { line: it.line, rule: it.rule.clone() }).collect(),
    }
}

/// Replies with all subscribers of a page as a CSV file.
///
/// # Errors
/// If the caller may not export them.
pub(in crate::http) async fn export_reply(context: Arc<HttpContext>, caller: Caller, page: &Page) -> HandlerResult {
    let monitors = MonitorLabels::of(&context.service.subscribers.monitor_choices(page).await?);
    let parts = SubscriberParts { context, caller, page: page.id, monitors, after: None, is_done: false };
    csv::reply(&format!("subscribers-{}", page.slug), COLUMNS, parts).await
}

/// Lines of an export.
struct SubscriberParts {
    context: Arc<HttpContext>,
    caller: Caller,
    page: PageId,
    /// Names of the page's monitors.
    monitors: MonitorLabels,
    after: Option<SubscriberId>,
    is_done: bool,
}

impl CsvParts for SubscriberParts {
    async fn next_part(&mut self) -> Result<Option<String>, ApiError> {
        if self.is_done {
            return Ok(None);
        }
        let slice = self.context.service.subscribers.export(&self.caller, self.page, self.after).await?;
        self.after = slice.next;
        self.is_done = slice.next.is_none();
        Ok(Some(slice.subscribers.iter().map(|it| line(it, &self.monitors)).collect()))
    }
}

fn line(subscriber: &Subscriber, monitors: &MonitorLabels) -> String {
    let address = match &subscriber.contact {
        Contact::Email(email) => email.clone(),
        Contact::Webhook { url, .. } => host(url),
    };
    let state = SubscriberState::of(subscriber);
    let chosen = subscriber.monitors.as_ref().map(|ids| monitors.cell(ids).unwrap_or_else(|| "(deleted)".to_owned()));
    let cells = [
        address,
        subscriber.contact.kind().to_owned(),
        state.name().to_owned(),
        since(subscriber, state).to_string(),
        chosen.unwrap_or_default(),
    ];
    csv::line(cells)
}

fn since(subscriber: &Subscriber, state: SubscriberState) -> Timestamp {
    let at = match state {
        SubscriberState::Confirmed => subscriber.confirmed_at,
        SubscriberState::Asked => Some(subscriber.confirmation_sent_at),
        SubscriberState::Queued => subscriber.queued_at,
        SubscriberState::Off => subscriber.health.disabled.map(|(at, _)| at),
    };
    at.unwrap_or(subscriber.created_at)
}

/// Host of a webhook: the rest of its address may hold a secret.
fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_webhook_the_host_is_exported() {
        assert_eq!(host("https://hooks.example:8443/secret?x"), "hooks.example");
    }
}
