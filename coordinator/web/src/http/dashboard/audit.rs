//! Audit log of the account, for owners: list with filters, and export.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::Method;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::audit::{AuditAction, AuditEntry, AuditItem, AuditSubject};
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::audit::AuditFilter;

use super::SignedIn;
use super::forms::Form;
use super::frame::frame;
use super::page_screen::{address_with, reply};
use crate::http::HttpContext;
use crate::http::csv;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::BodyStream;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::audit::{AuditChoice, AuditScreen, actor_words, field_words};

/// Address of the log.
const AUDIT: &str = "/app/account/audit";
/// Longest search, in characters.
const MAX_SEARCH: usize = 80;
/// First line of an export.
const HEADER: &str = "time,actor,kind,network,action,object,name,id,page,changes\r\n";
/// Parts of an export that are read before the reply begins: a shorter one is whole.
const PARTS_AT_ONCE: usize = 10;
/// Last line of an export that could not be read to its end.
const BROKEN: &str = "\"The export ended early. Try again.\",,,,,,,,,\r\n";

/// Routes of the audit log.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    vec![
        (AUDIT, vec![(GET, signed_in_route(|context, call| list(context, call).boxed()))]),
        ("/app/account/audit.csv", vec![(GET, signed_in_route(|context, call| export(context, call).boxed()))]),
    ]
}

/// `GET /app/account/audit`
async fn list(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    call.caller.caller.require(Permission::ManageAccount)?;
    let query = Form::parse(call.query.as_bytes())?;
    let subject = AuditSubject::ALL.into_iter().find(|it| it.name() == query.text("subject"));
    let action = AuditAction::ALL.into_iter().find(|it| it.name() == query.text("action"));
    let text: String = query.text("q").trim().chars().take(MAX_SEARCH).collect();
    let before = query.text("before").parse().ok();
    let chosen = AuditChoice {
        subject: subject.map_or("", AuditSubject::name).to_owned(),
        action: action.map_or("", AuditAction::name).to_owned(),
        text: text.clone(),
    };
    let filter = AuditFilter { subject, action, text };
    let part = context.service.audit.list(&call.caller.caller, &filter, before).await?;
    let next = part.next.map(|next| {
        let before = next.to_string();
        address_with(
            AUDIT,
            [("subject", &*chosen.subject), ("action", &*chosen.action), ("q", &*chosen.text), ("before", &*before)],
        )
    });
    let frame = frame(&context, &mut call, None, Section::Account).await?;
    let entries = part.entries.into_iter().map(|it| it.entry);
    reply(&AuditScreen::new(frame, chosen, entries, next, context.service.now()))
}

/// `GET /app/account/audit.csv`: the whole log, one line an object.
async fn export(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let caller = call.caller.caller;
    context.service.audit.log_export(&caller).await?;
    let mut export = AuditExport { context, caller, before: None, is_done: false };
    let mut text = HEADER.to_owned();
    for _ in 0..PARTS_AT_ONCE {
        if !export.is_done {
            text.push_str(&export.next_part().await?);
        }
    }
    let reply = csv::file_reply("audit-log", text);
    Ok(if export.is_done { reply } else { reply.with_stream(export.rest()) })
}

/// An export that is read part by part.
struct AuditExport {
    context: Arc<HttpContext>,
    caller: Caller,
    before: Option<u64>,
    is_done: bool,
}

impl AuditExport {
    async fn next_part(&mut self) -> Result<String, ApiError> {
        let part = self.context.service.audit.list(&self.caller, &AuditFilter::default(), self.before).await?;
        self.before = part.next;
        self.is_done = part.next.is_none();
        Ok(part.entries.iter().map(|it| lines(&it.entry)).collect())
    }

    fn rest(self) -> BodyStream {
        let parts = stream::unfold(self, |mut export| async move {
            if export.is_done {
                return None;
            }
            let part = match export.next_part().await {
                Ok(part) => part,
                Err(_) => {
                    export.is_done = true;
                    BROKEN.to_owned()
                }
            };
            Some((Ok::<_, Infallible>(Bytes::from(part)), export))
        });
        parts.boxed()
    }
}

fn lines(entry: &AuditEntry) -> String {
    let (_, actor, kind) = actor_words(&entry.actor);
    let network = entry.network.clone().unwrap_or_default();
    let of_item = |item: &AuditItem| {
        let changes: Vec<String> = item.fields.iter().map(field_words).collect();
        csv::line([
            entry.at.to_string(),
            actor.clone(),
            kind.to_owned(),
            network.clone(),
            item.action.name().to_owned(),
            item.subject.name().to_owned(),
            item.name.clone(),
            item.id.clone(),
            item.page.map(|page| page.to_string()).unwrap_or_default(),
            changes.join("; "),
        ])
    };
    entry.items.iter().map(of_item).collect()
}
