//! The HTML pages of a status page: overview, history, incidents and monitors, and its status as JSON.

use std::sync::Arc;

use ::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, LINK};
use ::http::{HeaderMap, HeaderValue};
use parallax_core::board::Range;

use super::form::POLICY as FORM_POLICY;
use super::notes::{likes_markdown, note, varying};
use super::served::{document, shared};
use super::{enter_feed, enter_or_ask};
use crate::http::Context;
use crate::http::api::pages::status;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::publish::{Document, Paper};
use crate::service::Error;
use crate::service::gate::Admitted;
use crate::views::forms::{FormPage, Step};
use crate::views::root::RootPage;

/// `GET /`
pub(super) async fn root(context: Arc<Context>, _call: Call<()>) -> Answer {
    let reply = Reply::html(RootPage::new(context.service.base_url()).html());
    Ok(reply.with(CONTENT_SECURITY_POLICY, FORM_POLICY))
}

/// `GET /p/{slug}`
pub(super) async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let range = range(&call.query);
    paper(&context, call, &page, Paper::Page(range)).await
}

/// `GET /p/{slug}/status.json`
pub(super) async fn status(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let overview = service.public_overview(&admitted).await?;
        Ok(status::written(&service, &overview).to_string().into_bytes())
    };
    let written = context.boards.kept(&page, Paper::Status, "application/json", draw).await?;
    Ok(shared(&page, document(&page, &written, &call.headers)))
}

/// `GET /p/{slug}/history`
pub(super) async fn history(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let (year, month) = context.service.this_month(&page);
    // Not indexed, since the current month depends on the date.
    drawn(&context, &call.headers, &page, &Paper::Month(year, month)).await
}

/// `GET /p/{slug}/history/{month}`
pub(super) async fn month(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let (first, last) = context.service.months(&page).await?;
    let asked = year_and_month(call.param("month")?).filter(|month| (first..=last).contains(month));
    found(&context, call, &page, asked.map(|(year, month)| Paper::Month(year, month))).await
}

/// `GET /p/{slug}/incidents/{incident}`
pub(super) async fn incident(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let asked = call.id("incident").ok().map(Paper::Incident);
    found(&context, call, &page, asked).await
}

/// `GET /p/{slug}/monitors/{monitor}`
pub(super) async fn monitor(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let range = range(&call.query);
    let asked = call.id("monitor").ok().map(|id| Paper::Monitor(id, range));
    found(&context, call, &page, asked).await
}

/// Reads the range from the query. Unknown values mean none, so that there are few documents: one for each range,
/// and one for the default.
fn range(query: &str) -> Option<Range> {
    let asked = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "range");
    asked.and_then(|(_, name)| Range::named(&name))
}

/// Serves the requested document. People get a not-found page in the page's language.
async fn found(context: &Context, call: Call<()>, page: &Admitted, asked: Option<Paper>) -> Answer {
    let is_for_people = likes_html(&call.headers);
    let answer = match asked {
        Some(asked) => paper(context, call, page, asked).await,
        None => Err(Refused::Page),
    };
    match answer {
        Err(Refused::Page) if is_for_people => {
            let view = FormPage::new(page.page(), page.root(), Step::Nowhere, context.service.now());
            Err(Refused::Nothing(view.html()))
        }
        other => other,
    }
}

/// Returns true for a browser's page load. Programs accept anything and get JSON.
pub(super) fn likes_html(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

async fn paper(context: &Context, call: Call<()>, page: &Admitted, paper: Paper) -> Answer {
    let reply = drawn(context, &call.headers, page, &paper).await?;
    context.front.keep(context, &call, page, &paper);
    Ok(reply)
}

async fn drawn(context: &Context, headers: &HeaderMap, page: &Admitted, paper: &Paper) -> Answer {
    if likes_markdown(headers) {
        return note(context, headers, page, paper.clone()).await;
    }
    let drawn = context.boards.get(page, paper.clone()).await.map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })?;
    Ok(shown(context, page, &drawn, headers))
}

/// Builds the response with a document for people.
pub(super) fn shown(context: &Context, page: &Admitted, drawn: &Document, headers: &HeaderMap) -> Reply {
    linked(context, page, varying(page, document(page, drawn, headers)))
}

/// Adds links to the machine-readable views (RFC 8288; `status` and `service-desc`: RFC 8631; `api-catalog`: RFC
/// 9727).
fn linked(context: &Context, page: &Admitted, reply: Reply) -> Reply {
    // A page's own host serves no API.
    let (root, base) = (page.root(), context.service.base_url());
    let links = format!(
        "<{root}/status.json>; rel=\"status\"; type=\"application/json\", \
         <{root}/feed.atom>; rel=\"alternate\"; type=\"application/atom+xml\", \
         <{base}/api/v1/openapi.json>; rel=\"service-desc\"; type=\"application/json\", \
         <{root}/.well-known/api-catalog>; rel=\"api-catalog\""
    );
    match HeaderValue::try_from(links) {
        Ok(links) => reply.with(LINK, links),
        Err(_) => reply,
    }
}

/// Reads a month from its path: `2026-11`.
pub(super) fn year_and_month(text: &str) -> Option<(i32, u32)> {
    let (year, month) = text.split_once('-')?;
    let is_plain =
        year.len() == 4 && month.len() == 2 && text.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let (year, month) = (year.parse().ok()?, month.parse().ok()?);
    (is_plain && (1..=12).contains(&month)).then_some((year, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_range_is_none() {
        for (query, chosen) in [
            ("range=24h", Range::Day),
            ("a=b&range=7d", Range::Week),
            ("range=30d", Range::Month),
            ("range=90d", Range::Quarter),
        ] {
            assert_eq!(range(query), Some(chosen), "{query}");
        }
        for none in ["", "range=", "range=1y", "range=24H", "Range=24h"] {
            assert_eq!(range(none), None, "{none}");
        }
    }

    #[test]
    fn a_month_has_one_address() {
        assert_eq!(year_and_month("2026-11"), Some((2026, 11)));
        for bad in ["2026-1", "2026-13", "2026-00", "26-11", "+202-11", "2026-11-01", "2026", ""] {
            assert_eq!(year_and_month(bad), None, "{bad}");
        }
    }
}
