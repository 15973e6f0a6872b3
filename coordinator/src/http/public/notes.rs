//! Pages as Markdown, by the path's extension or by content negotiation.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{ACCEPT, VARY};
use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::board::Range;
use parallax_core::text::accept::media_ranges;

use super::enter;
use super::page::year_and_month;
use super::served::document;
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::values;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Paper, close, off_the_runtime};
use crate::service::gate::Admitted;
use crate::service::{Error, Result, Service};
use crate::views::feeds::Site;
use crate::views::notes;

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            ($path, vec![(Method::GET, open(|context, call| $handler(context, call).boxed()))])
        };
    }
    vec![
        row!("/p/{slug}.md", page),
        row!("/p/{slug}/index.md", page),
        row!("/p/{slug}/history.md", history),
        row!("/p/{slug}/history/{month}.md", month),
        row!("/p/{slug}/incidents/{incident}.md", incident),
        row!("/p/{slug}/monitors/{monitor}.md", monitor),
        row!("/p/{slug}/llms.txt", guide),
    ]
}

/// `GET /p/{slug}.md`, `GET /p/{slug}/index.md`
async fn page(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    note(&context, &call.headers, &page, Paper::Page(None)).await
}

/// `GET /p/{slug}/history.md`
async fn history(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let (year, month) = context.service.this_month(&page);
    note(&context, &call.headers, &page, Paper::Month(year, month)).await
}

/// `GET /p/{slug}/history/{month}.md`
async fn month(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let (first, last) = context.service.months(&page).await?;
    let asked = year_and_month(call.param("month")?).filter(|month| (first..=last).contains(month));
    let (year, month) = asked.ok_or(Refused::Page)?;
    note(&context, &call.headers, &page, Paper::Month(year, month)).await
}

/// `GET /p/{slug}/incidents/{incident}.md`
async fn incident(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let id = call.id("incident").map_err(|_| Refused::Page)?;
    note(&context, &call.headers, &page, Paper::Incident(id)).await
}

/// `GET /p/{slug}/monitors/{monitor}.md`
async fn monitor(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let id = call.id("monitor").map_err(|_| Refused::Page)?;
    note(&context, &call.headers, &page, Paper::Monitor(id, None)).await
}

/// `GET /p/{slug}/llms.txt`
async fn guide(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    note(&context, &call.headers, &page, Paper::Other("llms.txt")).await
}

/// Serves a document of the page as Markdown.
pub(super) async fn note(context: &Context, headers: &HeaderMap, page: &Admitted, paper: Paper) -> Answer {
    let (service, admitted, which) = (context.service.clone(), page.clone(), paper.clone());
    let draw = move || async move { written(&service, &admitted, which).await.map(String::into_bytes) };
    let kept = context.boards.kept(page, Paper::Note(Box::new(paper)), notes::MEDIA, draw).await;
    let kept = kept.map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })?;
    Ok(varying(page, document(page, &kept, headers)))
}

/// Marks a response as depending on the `Accept` header.
pub(super) fn varying(page: &Admitted, reply: crate::http::reply::Reply) -> crate::http::reply::Reply {
    let vary = if page.is_guarded() { "accept, accept-encoding, cookie" } else { "accept, accept-encoding" };
    reply.with(VARY, HeaderValue::from_static(vary))
}

async fn written(service: &Service, page: &Admitted, paper: Paper) -> Result<String> {
    let address = service.page_url(page.page());
    let (own, now) = (page.page().clone(), service.now());
    match paper {
        Paper::Month(year, month) => {
            let notices = service.notices_in(page, year, month).await?;
            Ok(notes::month(Site { page: &own, address: &address }, (year, month), &notices, now))
        }
        Paper::Incident(id) => {
            let notice = service.notice(page, id).await?;
            Ok(notes::incident(Site { page: &own, address: &address }, &notice, now))
        }
        Paper::Monitor(id, range) => {
            let closer = service.closer(page, id, range).await?;
            let close = close(&closer, page.root());
            Ok(notes::monitor(Site { page: &own, address: &address }, &close))
        }
        Paper::Badges | Paper::Other(_) => Ok(notes::guide(Site { page: &own, address: &address })),
        Paper::Page(_) | Paper::Status | Paper::Sheet(_) | Paper::Embed(_) | Paper::Note(_) => {
            let board = service.board(page, Some(Range::Quarter)).await?;
            let draw =
                move || Ok::<_, Infallible>(notes::page(Site { page: &own, address: &address }, &board));
            off_the_runtime(draw).await
        }
    }
}

/// Returns true if the client lists Markdown and prefers it at least as much as HTML (RFC 9110, 12.5.1). Browsers
/// don't list it.
pub(super) fn likes_markdown(headers: &HeaderMap) -> bool {
    is_markdown_liked(values(headers, &ACCEPT))
}

/// Like [`likes_markdown`], for values of `accept`.
pub(super) fn is_markdown_liked<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut markdown, mut html) = (0.0, 0.0);
    for range in media_ranges(accepted) {
        if range.is("text/markdown") {
            markdown = range.weight;
        } else if range.is("text/html") {
            html = range.weight;
        }
    }
    markdown > 0.0 && markdown >= html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_for_those_who_name_it_and_like_html_no_better() {
        for (accepted, expected) in [
            ("text/markdown", true),
            ("text/markdown, text/html, */*", true),
            ("text/html;q=0.9, Text/Markdown;q=0.9", true),
            ("text/html, text/markdown;q=0.8", false),
            ("text/markdown;q=0", false),
            ("text/markdown;q=x", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = [(ACCEPT, accepted.parse().unwrap())].into_iter().collect();
            assert_eq!(likes_markdown(&headers), expected, "{accepted}");
        }
    }
}
