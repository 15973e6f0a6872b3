//! What is looked for at every host without a link to it: what crawlers may read (RFC 9309) and what there is to read, an
//! icon, and where the descriptions for programs are (RFC 9727).

use std::sync::Arc;

use ::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, LINK};
use ::http::{HeaderValue, Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::board::Range;
use serde_json::{Value, json};

use super::enter;
use super::served::{document, for_long, shared};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Paper, off_the_runtime};
use crate::service::gate::{Admitted, Door};
use crate::views::assets;
use crate::views::feeds::{Site, sitemap};

/// For how long one may be kept.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=3600, stale-while-revalidate=86400");
/// The media type of a set of links (RFC 9264), of the kind that a catalogue is (RFC 9727, 7.2).
const LINKSET: &str = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";
/// Where a catalogue is.
const CATALOG: &str = "/.well-known/api-catalog";

/// The routes: those of the base host, and those of each page.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            ($path, vec![(Method::GET, open(|context, call| $handler(context, call).boxed()))])
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

/// `GET /robots.txt`: a ping that no job sent would hide that the job is lost, and a stream of events has no end.
async fn robots(context: Arc<Context>, _call: Call<()>) -> Answer {
    let base = context.service.base_path();
    let closed = ["/api/", "/ping/", "/p/*/events"].map(|path| format!("Disallow: {base}{path}\n"));
    Ok(text(format!("User-agent: *\n{}", closed.concat())).with(CACHE_CONTROL, FRESH))
}

/// `GET /p/{slug}/robots.txt`: who is to see that a page wants to be in no search must be let read it.
async fn page_robots(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let mut rules = format!("User-agent: *\nDisallow: {}/events\n", page.root());
    if is_found(&page) {
        rules += &format!("\nSitemap: {}/sitemap.xml\n", context.service.page_url(page.page()));
    }
    Ok(for_long(&page, text(rules), FRESH))
}

/// `GET /p/{slug}/sitemap.xml`
async fn page_sitemap(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    if !is_found(&page) {
        return Err(Refused::Page);
    }
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let board = service.board(&admitted, Some(Range::Quarter)).await?;
        let notices = service.recent(&admitted).await?;
        let address = service.page_url(admitted.page());
        off_the_runtime(move || {
            sitemap::write(Site { page: &board.page, address: &address }, &board, &notices)
        })
        .await
    };
    let drawn = context.boards.kept(&page, Paper::Other("sitemap.xml"), sitemap::MEDIA, draw).await?;
    // It names what is on the page, so it is kept no longer than the page.
    Ok(document(&page, &drawn, &call.headers))
}

/// Whether the page may be found by searches.
fn is_found(page: &Admitted) -> bool {
    !page.page().noindex && !page.is_guarded()
}

/// `GET /favicon.ico`
async fn icon(context: Arc<Context>, _call: Call<()>) -> Answer {
    Ok(led_to(&our_icon(&context, Door::Shared)).with(CACHE_CONTROL, FRESH))
}

/// `GET /p/{slug}/favicon.ico`
async fn page_icon(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let own = page.page().look.favicon.map(|it| format!("{}/favicon/{}", page.root(), it.hex()));
    let path = own.unwrap_or_else(|| our_icon(&context, page.door()));
    Ok(for_long(&page, led_to(&path), FRESH))
}

fn our_icon(context: &Context, door: Door) -> String {
    format!("{}/assets/{}", context.service.base_of(door), assets::icon())
}

fn led_to(path: &str) -> Reply {
    Reply::empty(StatusCode::FOUND).at(path)
}

/// `GET /.well-known/api-catalog`
async fn catalog(context: Arc<Context>, _call: Call<()>) -> Answer {
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
async fn page_catalog(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let address = context.service.page_url(page.page());
    let at = |path: &str, media: &str| json!([{ "href": format!("{address}{path}"), "type": media }]);
    let links = json!([{
        "anchor": address,
        "status": at("/status.json", "application/json"),
        "service-doc": at("/llms.txt", "text/markdown"),
        "service-desc": [description(&context)],
    }]);
    Ok(for_long(&page, shared(&page, linkset(&address, &links)), FRESH))
}

/// Where the API is described.
fn description(context: &Context) -> Value {
    let href = format!("{}/api/v1/openapi.json", context.service.base_url());
    json!({ "href": href, "type": "application/json" })
}

/// The catalogue of what is at that address, which says that it is one.
fn linkset(address: &str, links: &Value) -> Reply {
    let reply = Reply::bytes(LINKSET, json!({ "linkset": links }).to_string());
    match HeaderValue::try_from(format!("<{address}{CATALOG}>; rel=\"api-catalog\"")) {
        Ok(own) => reply.with(LINK, own),
        Err(_) => reply,
    }
}

fn text(text: String) -> Reply {
    Reply::bytes("text/plain; charset=utf-8", text)
}
