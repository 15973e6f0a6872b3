//! Machine-readable views of a page: the API of hosted status pages, feeds, and the maintenance calendar.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::page_view::{IncidentView, TimeRange};
use parallax_service::page_access::authorize::AuthorizedPage;

use super::{authorize_feed, feed_token};
use crate::http::HttpContext;
use crate::http::document_response::{allow_cross_origin, document, with_cache_lifetime};
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{DocumentKind, run_blocking};
use crate::views::feeds::statuspage_api::{self, StatuspageDocument};
use crate::views::feeds::{FeedError, FeedSite, atom, calendar, limit_entries, rss};

/// Cache lifetime, and for how long a stale copy may be used while a new one is fetched.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=30, stale-while-revalidate=60");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            (
                concat!("/p/{slug}/", $path),
                vec![(Method::GET, public_route(|context, call| $handler(context, call).boxed()))],
            )
        };
        ($path:literal, $document:expr) => {
            (
                concat!("/p/{slug}/api/v2/", $path),
                vec![(Method::GET, public_route(|context, call| v2_document(context, call, $path, $document).boxed()))],
            )
        };
    }
    vec![
        row!("summary.json", StatuspageDocument::Summary),
        row!("status.json", StatuspageDocument::Status),
        row!("components.json", StatuspageDocument::Components),
        row!("incidents.json", StatuspageDocument::Incidents),
        row!("incidents/unresolved.json", StatuspageDocument::Unresolved),
        row!("scheduled-maintenances.json", StatuspageDocument::Maintenances),
        row!("scheduled-maintenances/upcoming.json", StatuspageDocument::Upcoming),
        row!("scheduled-maintenances/active.json", StatuspageDocument::Active),
        row!("feed.atom", atom),
        row!("history.atom", atom),
        row!("feed/atom", atom),
        row!("feed.rss", rss),
        row!("history.rss", rss),
        row!("feed/rss", rss),
        row!("feed", rss),
        row!("maintenance.ics", calendar),
    ]
}

/// `GET /p/{slug}/api/v2/…`
async fn v2_document(
    context: Arc<HttpContext>,
    call: RoutedRequest<()>,
    name: &'static str,
    kind: StatuspageDocument,
) -> HandlerResult {
    let page = authorize_feed(&context, &call)?;
    let (service, authorized) = (context.service.clone(), page.clone());
    let render_feed = move || async move {
        let (page_view, incidents) = (
            service.public_pages.view(&authorized, Some(TimeRange::Quarter)).await?,
            service.public_pages.recent_incidents(&authorized).await?,
        );
        let address = service.pages.url(authorized.page());
        run_blocking(move || {
            statuspage_api::write(kind, FeedSite { page: &page_view.page, url: &address }, &page_view, &incidents)
        })
        .await
    };
    serve_cached(&context, &call.headers, &page, (DocumentKind::StatusFeed(name), "application/json"), render_feed)
        .await
}

/// `GET /p/{slug}/feed.atom`, and the paths that other status pages use.
async fn atom(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    feed(context, call, ATOM).await
}

/// `GET /p/{slug}/feed.rss`, and the paths that other status pages use.
async fn rss(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    feed(context, call, RSS).await
}

/// `GET /p/{slug}/maintenance.ics`
async fn calendar(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize_feed(&context, &call)?;
    let (service, authorized) = (context.service.clone(), page.clone());
    let render_feed = move || async move {
        let windows = service.public_pages.calendar_windows(&authorized).await?;
        let deleted = service.public_pages.cancelled_windows(&authorized).await?;
        let address = service.pages.url(authorized.page());
        let write = move || {
            Ok::<_, Infallible>(calendar::write(
                FeedSite { page: authorized.page(), url: &address },
                &windows,
                &deleted,
            ))
        };
        run_blocking(write).await
    };
    serve_cached(&context, &call.headers, &page, (DocumentKind::Other("maintenance.ics"), calendar::MEDIA), render_feed)
        .await
}

/// Writes a feed; the second argument is the feed's own address.
type FeedWriter = fn(FeedSite<'_>, &str, &[IncidentView]) -> Result<Vec<u8>, FeedError>;

/// A feed format.
#[derive(Clone, Copy)]
struct FeedFormat {
    /// Path below the page's address.
    path: &'static str,
    /// Cache names: plain and by token, since the feed contains its own address.
    names: [&'static str; 2],
    media: &'static str,
    write: FeedWriter,
}

const ATOM: FeedFormat = FeedFormat {
    path: "/feed.atom",
    names: ["feed.atom", "feed.atom by token"],
    media: atom::MEDIA,
    write: atom::write,
};
const RSS: FeedFormat =
    FeedFormat { path: "/feed.rss", names: ["feed.rss", "feed.rss by token"], media: rss::MEDIA, write: rss::write };

/// Serves the feed of recent incidents and maintenance. A feed read by token names its address with the token, so
/// that readers who follow the link keep access.
async fn feed(context: Arc<HttpContext>, call: RoutedRequest<()>, kind: FeedFormat) -> HandlerResult {
    let page = authorize_feed(&context, &call)?;
    let (service, authorized) = (context.service.clone(), page.clone());
    let by_token = feed_token(&call).and_then(|_| service.page_access.feed_base_url(page.page()));
    let [plain, tokened] = kind.names;
    let name = if by_token.is_some() { tokened } else { plain };
    let render_feed = move || async move {
        let mut incidents = service.public_pages.recent_incidents(&authorized).await?;
        let address = service.pages.url(authorized.page());
        let feed_url = format!("{}{}", by_token.as_ref().unwrap_or(&address), kind.path);
        run_blocking(move || {
            incidents.sort_by_key(|view| (Reverse(view.incident.last_change()), Reverse(view.incident.id)));
            let entries: Vec<IncidentView> = limit_entries(incidents.iter()).cloned().collect();
            (kind.write)(FeedSite { page: authorized.page(), url: &address }, &feed_url, &entries)
        })
        .await
    };
    serve_cached(&context, &call.headers, &page, (DocumentKind::Other(name), kind.media), render_feed).await
}

async fn serve_cached<F, D>(
    context: &HttpContext,
    headers: &HeaderMap,
    page: &AuthorizedPage,
    (document_kind, media): (DocumentKind, &'static str),
    render_feed: D,
) -> HandlerResult
where
    D: FnOnce() -> F + Send + 'static,
    F: Future<Output = parallax_service::ServiceResult<Vec<u8>>> + Send + 'static,
{
    let cached = context.page_cache.get_or_render(page, document_kind, media, render_feed).await?;
    Ok(with_cache_lifetime(page, allow_cross_origin(page, document(page, &cached, headers)), FRESH))
}
