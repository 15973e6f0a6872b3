//! Redirects from addresses of pages with a trailing slash to those without.

use ::http::header::CACHE_CONTROL;
use ::http::{HeaderValue, Method, StatusCode};

use crate::http::response::HttpResponse;
use crate::http::route::RouteTable;

/// Path prefix of pages in the route table.
const PAGES: &str = "/p/";

/// Redirects `requested` to the same address without its trailing slash if the route table has a page document at
/// `path`. It does not check that the page exists, so the redirect reveals nothing.
pub(in crate::http) fn redirect_trailing_slash(
    table: &RouteTable,
    method: &Method,
    (requested, query): (&str, &str),
    path: &str,
) -> Option<HttpResponse> {
    let path = path.strip_suffix('/').filter(|path| path.starts_with(PAGES))?;
    // A path starting with two slashes would redirect to another host.
    let requested = requested.strip_suffix('/').filter(|requested| !requested.starts_with("//"))?;
    let is_look = matches!(*method, Method::GET | Method::HEAD) && table.find(method, path).is_ok();
    let to = if query.is_empty() { requested.to_owned() } else { format!("{requested}?{query}") };
    is_look.then(|| {
        let reply = HttpResponse::empty(StatusCode::PERMANENT_REDIRECT).with_location(&to);
        // It reveals nothing about the page, but the address itself may be secret.
        reply.with(CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"))
    })
}
