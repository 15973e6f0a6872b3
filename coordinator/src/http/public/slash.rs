//! Addresses of pages with a slash too many at their end: whoever types one is led to the address without it.

use ::http::header::CACHE_CONTROL;
use ::http::{HeaderValue, Method, StatusCode};

use crate::http::reply::Reply;
use crate::http::route::Table;

/// What the paths of pages begin with in the table.
const PAGES: &str = "/p/";

/// Leads a look at `asked` to the same address without the slash at its end, where the table has a document of pages
/// there; `path` is what it is looked for under. Whether there is such a page is not asked, so nobody learns it.
pub(in crate::http) fn without_slash(
    table: &Table,
    method: &Method,
    (asked, query): (&str, &str),
    path: &str,
) -> Option<Reply> {
    let path = path.strip_suffix('/').filter(|path| path.starts_with(PAGES))?;
    // What begins with two slashes would lead to another host.
    let asked = asked.strip_suffix('/').filter(|asked| !asked.starts_with("//"))?;
    let is_look = matches!(*method, Method::GET | Method::HEAD) && table.find(method, path).is_ok();
    let to = if query.is_empty() { asked.to_owned() } else { format!("{asked}?{query}") };
    is_look.then(|| {
        let led = Reply::empty(StatusCode::PERMANENT_REDIRECT).at(&to);
        // It says nothing of the page, but the address itself may be somebody's secret.
        led.with(CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"))
    })
}
