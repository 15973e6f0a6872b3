//! The frame of a screen: the caller's pages with their counts, and what the last form did.

use parallax_core::id::PageId;
use parallax_core::time::Timestamp;
use parallax_service::Caller;
use parallax_service::dashboard::PageSummary;
use url::form_urlencoded;

use super::SignedIn;
use super::forms::new_key;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{
    Frame, PageEntry, Section, SignedInPerson, TOAST_COUNT_PARAM, TOAST_PARAM, Toast, UNDO_PARAM, UndoButton, clock,
    duration, time,
};
use crate::views::headline::indicator_class;

/// Builds the frame of a screen of that section, about one page or all of them.
///
/// # Errors
/// [`ServiceError::NotFound`](parallax_service::ServiceError::NotFound) for a page that the caller can't access.
pub(super) async fn frame(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    page: Option<PageId>,
    section: Section,
) -> Result<Frame, ApiError> {
    if let Some(page) = page {
        context.service.pages.get(&call.caller.caller, page)?;
    }
    let person = FramePerson::of(&call.caller, &call.query);
    person.frame(context, &call.caller.caller, (page, section)).await
}

/// The part of a frame that the request alone decides.
#[derive(Debug)]
pub(super) struct FramePerson {
    /// The person who is signed in.
    pub(super) person: SignedInPerson,
    toast: Option<Toast>,
    accounts: usize,
    factor_due: Option<Timestamp>,
    undo: Option<UndoLink>,
}

/// A token by which the last form may be undone, as the query has it.
#[derive(Debug)]
struct UndoLink {
    token: String,
    caller: Caller,
    /// Address of the screen without its toast.
    next: String,
}

impl FramePerson {
    /// Takes it from the caller and the query of a request.
    pub(super) fn of(caller: &SignedIn, query: &str) -> Self {
        let person = SignedInPerson {
            name: caller.name.clone().unwrap_or_else(|| caller.email.clone()),
            email: caller.email.clone(),
            role: caller.role,
            is_operator: caller.is_operator,
            form_token: caller.form_token.clone(),
        };
        let toast = query_param(query, TOAST_PARAM).and_then(|name| {
            let count = query_param(query, TOAST_COUNT_PARAM).and_then(|count| count.parse().ok());
            Toast::of(&name, count.unwrap_or(1))
        });
        let undo = query_param(query, UNDO_PARAM).filter(|_| toast.is_some()).map(|token| UndoLink {
            token,
            caller: caller.caller.clone(),
            next: without_toast(&caller.path, query),
        });
        Self { person, toast, accounts: caller.accounts, factor_due: caller.session.factor_due, undo }
    }

    /// Builds the frame of a screen about a page that the caller was found to reach, or about all of them.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(super) async fn frame(
        &self,
        context: &HttpContext,
        caller: &Caller,
        (page, section): (Option<PageId>, Section),
    ) -> Result<Frame, ApiError> {
        let pages = context.service.dashboard.summaries(caller).await?;
        Ok(self.frame_with(context, &pages, (page, section)))
    }

    /// Builds the frame from summaries of pages that were read already.
    pub(super) fn frame_with(
        &self,
        context: &HttpContext,
        pages: &[PageSummary],
        (page, section): (Option<PageId>, Section),
    ) -> Frame {
        Frame {
            person: self.person.clone(),
            pages: pages.iter().map(page_entry).collect(),
            page,
            section,
            accounts: self.accounts,
            toast: self.toast.clone().map(|toast| match &self.undo {
                Some(UndoLink { token, caller, next }) => {
                    with_undo_of(context, (caller, &self.person.form_token), toast, (token, next))
                }
                None => toast,
            }),
            factor_due: self.factor_due.map(|due| time(due, context.service.now())),
            loaded_at: clock(context.service.now()),
        }
    }
}

/// Adds the button that undoes a change and leads back to a screen to a toast, while the change can be undone. Of a
/// revoked key the toast says when it was last used, and of a change that was undone that it was.
pub(super) fn with_undo(context: &HttpContext, caller: &SignedIn, toast: Toast, (token, next): (&str, &str)) -> Toast {
    with_undo_of(context, (&caller.caller, &caller.form_token), toast, (token, next))
}

fn with_undo_of(
    context: &HttpContext,
    (caller, form_token): (&Caller, &str),
    toast: Toast,
    (token, next): (&str, &str),
) -> Toast {
    // A toast without its button is better than no screen.
    let Ok(Some(change)) = context.service.undo.pending(caller, token) else {
        // The answer of a form that was sent again after its undo: nothing was done again.
        let is_undone = context.service.undo.is_undone(caller, token).unwrap_or_default();
        return if is_undone { Toast { text: format!("{}, and undone since", toast.text), ..toast } } else { toast };
    };
    let text = change.revoked_key.map(|(name, last_used)| match last_used {
        Some(at) => format!("{name} revoked. It was used {} ago.", duration(context.service.now().since(at))),
        None => format!("{name} revoked. It was never used."),
    });
    let undo = UndoButton {
        action: format!("/app/undo/{token}"),
        next: next.to_owned(),
        form_token: form_token.to_owned(),
        once: new_key(),
    };
    Toast { text: text.unwrap_or(toast.text), undo: Some(undo) }
}

/// Returns the address of a screen without the parameters of a toast.
fn without_toast(path: &str, query: &str) -> String {
    let is_kept = |name: &str| ![UNDO_PARAM, TOAST_PARAM, TOAST_COUNT_PARAM].contains(&name);
    let pairs = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| is_kept(name));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Returns the first value of a query parameter; `None` if it is absent or empty.
pub(super) fn query_param(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.into_owned())
}

fn page_entry(summary: &PageSummary) -> PageEntry {
    PageEntry {
        id: summary.page.id,
        name: summary.page.name.clone(),
        address: without_scheme(&summary.url).to_owned(),
        class: indicator_class(summary.indicator),
        down: summary.down,
        open_incidents: summary.open_incidents,
        failing_destinations: summary.failing_destinations,
    }
}

/// Returns an address as people write it.
pub(super) fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}
