//! Audit log of the account, for owners: list with filters, and export.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::audit::{AuditAction, AuditEntry, AuditItem, AuditSubject};
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::audit::AuditFilter;

use super::SignedIn;
use super::forms::Form;
use super::frame::frame;
use super::page_screen::{address_with, reply};
use crate::http::HttpContext;
use crate::http::csv::{self, CsvParts};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Section;
use crate::views::dashboard::audit::{AuditChoice, AuditScreen, AuthorWords, field_words};

/// Address of the log.
const AUDIT: &str = "/app/account/audit";
/// Longest search, in characters.
const MAX_SEARCH: usize = 80;
/// Columns of an export.
const COLUMNS: [&str; 11] =
    ["time", "actor", "actorId", "kind", "network", "action", "object", "name", "id", "page", "changes"];

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
    csv::reply("audit-log", COLUMNS, AuditParts { context, caller, before: None, is_done: false }).await
}

/// Lines of an export.
struct AuditParts {
    context: Arc<HttpContext>,
    caller: Caller,
    before: Option<u64>,
    is_done: bool,
}

impl CsvParts for AuditParts {
    async fn next_part(&mut self) -> Result<Option<String>, ApiError> {
        if self.is_done {
            return Ok(None);
        }
        let part = self.context.service.audit.list(&self.caller, &AuditFilter::default(), self.before).await?;
        self.before = part.next;
        self.is_done = part.next.is_none();
        Ok(Some(part.entries.iter().map(|it| lines(&it.entry)).collect()))
    }
}

fn lines(entry: &AuditEntry) -> String {
    let AuthorWords { name: actor, kind, id: actor_id, .. } = AuthorWords::of(&entry.actor);
    let network = entry.network.clone().unwrap_or_default();
    let of_item = |item: &AuditItem| {
        csv::line([
            entry.at.to_string(),
            actor.clone(),
            actor_id.clone(),
            kind.to_owned(),
            network.clone(),
            item.action.name().to_owned(),
            item.subject.name().to_owned(),
            item.name.clone(),
            item.id.clone(),
            item.page.map(|page| page.to_string()).unwrap_or_default(),
            field_words(item).join("; "),
        ])
    };
    let mut text: String = entry.items.iter().map(of_item).collect();
    if let Some(last) = entry.items.last().filter(|_| entry.omitted > 0) {
        let (id, name) = (String::new(), format!("and {} more", entry.omitted));
        text.push_str(&of_item(&AuditItem { id, name, fields: Vec::new(), ..last.clone() }));
    }
    text
}

#[cfg(test)]
mod tests {
    use parallax_core::audit::{AuditActor, MAX_ITEMS};
    use parallax_core::id::AccountId;
    use parallax_core::time::Timestamp;

    use super::*;

    #[test]
    fn the_last_line_of_an_entry_counts_the_objects_that_are_not_logged() {
        let item = AuditItem {
            action: AuditAction::Changed,
            subject: AuditSubject::Monitor,
            id: "mon_1".to_owned(),
            name: "Website".to_owned(),
            page: None,
            fields: Vec::new(),
        };
        let entry = |count: usize| {
            let (account, now) = (AccountId::from_u128(1), Timestamp::from_millis(0));
            AuditEntry::new(account, now, (AuditActor::Operator, None), vec![item.clone(); count])
        };
        let text = lines(&entry(MAX_ITEMS + 7));
        assert_eq!(text.lines().count(), MAX_ITEMS + 1);
        let last = text.lines().last().unwrap();
        assert!(last.ends_with(",changed,monitor,and 7 more,,,"), "{last}");
        assert!(!lines(&entry(MAX_ITEMS)).contains("more"));
    }
}
