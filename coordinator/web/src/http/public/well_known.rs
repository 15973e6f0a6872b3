//! Paths requested at every host without a link: crawler rules (RFC 9309), the sitemap, the icon, and the API
//! catalogue (RFC 9727).

use std::sync::Arc;

use ::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, LINK};
use ::http::{HeaderValue, Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::page_view::TimeRange;
use parallax_service::page_access::authorize::{AuthorizedPage, PageAddress};
use serde_json::{Value, json};

use super::authorize;
use crate::http::HttpContext;
use crate::http::document_response::{allow_cross_origin, document, with_cache_lifetime};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::route::{HttpRoute, public_route};
use crate::http::routed_request::RoutedRequest;
use crate::page_cache::{DocumentKind, run_blocking};
use crate::views::assets;
use crate::views::feeds::{FeedSite, sitemap};

/// Cache lifetime.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=3600, stale-while-revalidate=86400");
/// Media type of an API catalogue (RFC 9727, 7.2), a set of links (RFC 9264).
const LINKSET: &str = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";
/// Path of the API catalogue.
const CATALOG: &str = "/.well-known/api-catalog";

/// Returns the routes of the base host and of each page.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            ($path, vec![(Method::GET, public_route(|context, call| $handler(context, call).boxed()))])
        };
    }
    vec![
        row!("/robots.txt", robots),
        row!("/favicon.ico", icon),
        row!("/.well-known/api-catalog", catalog),
        row!("/p/{slug}/robots.txt", page_robots),
        row!("/p/{slug}/sitemap.xml", page_sitemap),
        row!("/p/{slug}/favicon.ico", page_icon),
        row!("/p/{slug}/.well-known/api-catalog", page_catalog),
    ]
}

/// `GET /robots.txt`: a crawler's ping would hide a lost job, and an event stream never ends.
async fn robots(context: Arc<HttpContext>, _call: RoutedRequest<()>) -> HandlerResult {
    let base = context.service.hosts.base_path();
    let closed = ["/api/", "/ping/", "/p/*/events"].map(|path| format!("Disallow: {base}{path}\n"));
    Ok(text(format!("User-agent: *\n{}", closed.concat())).with(CACHE_CONTROL, FRESH))
}

/// `GET /p/{slug}/robots.txt`: a `noindex` page stays open to crawlers, since they have to read it to see that.
async fn page_robots(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let mut rules = format!("User-agent: *\nDisallow: {}/events\n", page.path_prefix());
    if is_indexable(&page) {
        rules += &format!("\nSitemap: {}/sitemap.xml\n", context.service.pages.url(page.page()));
    }
    Ok(with_cache_lifetime(&page, text(rules), FRESH))
}

/// `GET /p/{slug}/sitemap.xml`
async fn page_sitemap(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    if !is_indexable(&page) {
        return Err(ApiError::PageNotFound);
    }
    let (service, authorized) = (context.service.clone(), page.clone());
    let render_sitemap = move || async move {
        let page_view = service.public_pages.view(&authorized, Some(TimeRange::Quarter)).await?;
        let notices = service.public_pages.recent_incidents(&authorized).await?;
        let address = service.pages.url(authorized.page());
        run_blocking(move || sitemap::write(FeedSite { page: &page_view.page, url: &address }, &page_view, &notices))
            .await
    };
    let rendered = context
        .page_cache
        .get_or_render(&page, DocumentKind::Other("sitemap.xml"), sitemap::MEDIA, render_sitemap)
        .await?;
    // It lists the page's content, so it is cached no longer than the page.
    Ok(document(&page, &rendered, &call.headers))
}

/// Returns true if search engines may index the page.
fn is_indexable(page: &AuthorizedPage) -> bool {
    !page.page().noindex && !page.is_protected()
}

/// `GET /favicon.ico`
async fn icon(context: Arc<HttpContext>, _call: RoutedRequest<()>) -> HandlerResult {
    Ok(redirect_to(&default_icon(&context, PageAddress::BasePath)).with(CACHE_CONTROL, FRESH))
}

/// `GET /p/{slug}/favicon.ico`
async fn page_icon(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let icon = page.page().branding.favicon.map(|it| format!("{}/favicon/{}", page.path_prefix(), it.hex()));
    let path = icon.unwrap_or_else(|| default_icon(&context, page.address()));
    Ok(with_cache_lifetime(&page, redirect_to(&path), FRESH))
}

fn default_icon(context: &HttpContext, address: PageAddress) -> String {
    format!("{}/assets/{}", context.service.hosts.shared_prefix(address), assets::icon())
}

fn redirect_to(path: &str) -> HttpResponse {
    HttpResponse::empty(StatusCode::FOUND).with_location(path)
}

/// `GET /.well-known/api-catalog`
async fn catalog(context: Arc<HttpContext>, _call: RoutedRequest<()>) -> HandlerResult {
    let base = context.service.base_url();
    let described = json!([description(&context)]);
    let explained = json!([{ "href": format!("{base}/"), "type": "text/html" }]);
    let links = json!([
        { "anchor": format!("{base}/api/v1"), "service-desc": described, "service-doc": explained },
        { "anchor": format!("{base}/api/v1/mcp"), "service-desc": described, "service-doc": explained },
    ]);
    let reply = linkset(base, &links).with(CACHE_CONTROL, FRESH);
    Ok(reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")))
}

/// `GET /p/{slug}/.well-known/api-catalog`
async fn page_catalog(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let address = context.service.pages.url(page.page());
    let at = |path: &str, media: &str| json!([{ "href": format!("{address}{path}"), "type": media }]);
    let links = json!([{
        "anchor": address,
        "status": at("/status.json", "application/json"),
        "service-doc": at("/llms.txt", "text/markdown"),
        "service-desc": [description(&context)],
    }]);
    Ok(with_cache_lifetime(&page, allow_cross_origin(&page, linkset(&address, &links)), FRESH))
}

/// Returns the link to the API description.
fn description(context: &HttpContext) -> Value {
    let href = format!("{}/api/v1/openapi.json", context.service.base_url());
    json!({ "href": href, "type": "application/json" })
}

/// Replies with the API catalogue of that address, which links to itself as such.
fn linkset(address: &str, links: &Value) -> HttpResponse {
    let reply = HttpResponse::bytes(LINKSET, json!({ "linkset": links }).to_string());
    match HeaderValue::try_from(format!("<{address}{CATALOG}>; rel=\"api-catalog\"")) {
        Ok(service_document) => reply.with(LINK, service_document),
        Err(_) => reply,
    }
}

fn text(text: String) -> HttpResponse {
    HttpResponse::bytes("text/plain; charset=utf-8", text)
}
