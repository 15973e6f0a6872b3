//! Access check at the start of every page route: finds the page by host or path, and checks the visitor's access.

use ::http::HeaderMap;
use ::http::header::HOST;

use super::door;
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::route::Call;
use crate::service::Error;
use crate::service::doors::Shown;
use crate::service::gate::{Admitted, Door, Entry};
use crate::service::hosts::Whose;

/// Path prefix that a page's own host shares with the base host.
const SHARED: &str = "/assets/";
/// Path prefix of pings, which are accepted under any host name: a lost ping would look like a lost job.
const ANYWHERE: &str = "/ping/";
/// Name under which the feed token of a path is stored.
const TOKEN: &str = "feed token";

/// Returns the page of a request to one of [`rows`](super::rows), for a visitor with access. Programs without
/// access get the same response as for a missing page.
///
/// # Errors
/// [`Refused::Page`] both for a missing page and for one the visitor may not see.
pub(in crate::http) fn enter(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    // A token gives access to feed routes only.
    if token_of(call).is_some() {
        call.seal.set();
        return Err(Refused::Page);
    }
    quietly(entry(context, call, None)?)
}

/// Like [`enter`], for pages that people view: a visitor without access gets the login form and is redirected back
/// afterwards.
///
/// # Errors
/// [`Refused::Page`] if there is no page, [`Refused::Locked`] if this visitor may not see it.
pub(in crate::http) fn enter_or_ask(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    if token_of(call).is_some() {
        return enter(context, call);
    }
    match entry(context, call, None)? {
        Entry::In(page) => Ok(*page),
        locked => Err(Refused::Locked(door::form(context, call, &locked)?)),
    }
}

/// Like [`enter`], for what feed readers, calendars and badges fetch: a token in the path also gives access, as
/// `/p/{slug}/t/{token}/...`.
///
/// # Errors
/// As [`enter`].
pub(in crate::http) fn enter_feed(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    quietly(entry(context, call, token_of(call).map(str::to_owned))?)
}

/// Checks the visitor's access. Responses about protected pages are marked as uncacheable.
///
/// # Errors
/// [`Refused::Page`] if there is no such page.
pub(super) fn entry(context: &Context, call: &Call<()>, token: Option<String>) -> Result<Entry, Refused> {
    let (slug, door) = asked_for(context, call)?;
    let shown = Shown { passes: door::passes(&call.headers, door::is_https(context)), token };
    let entry = context.service.admit_showing(slug, door, &shown);
    if !matches!(&entry, Ok(Entry::In(page)) if !page.is_guarded()) {
        call.seal.set();
    }
    entry.map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })
}

/// Returns the requested slug, and whether the address is the page's own host.
///
/// # Errors
/// A storage error.
pub(super) fn asked_for<'a>(context: &Context, call: &'a Call<()>) -> Result<(&'a str, Door), Refused> {
    let slug = call.param("slug")?;
    let own = host(&call.headers).map(|host| context.service.page_at(host)).transpose()?.flatten();
    Ok((slug, if own.as_deref() == Some(slug) { Door::Own } else { Door::Shared }))
}

/// Returns the internal path of a request to a page's own host; none for other hosts.
///
/// # Errors
/// [`Refused::Elsewhere`] for an unknown host, or a storage error.
pub(in crate::http) fn inner_path(
    context: &Context,
    headers: &HeaderMap,
    path: &str,
) -> Result<Option<String>, Refused> {
    let Some(host) = host(headers) else { return Ok(None) };
    match context.service.whose(host)? {
        Whose::Nobody if !path.starts_with(ANYWHERE) => Err(Refused::Elsewhere),
        Whose::Nobody | Whose::Base => Ok(None),
        Whose::Page(_) if path.starts_with(SHARED) => Ok(None),
        Whose::Page(slug) => Ok(Some(format!("/p/{slug}{}", if path == "/" { "" } else { path }))),
    }
}

/// Returns the internal path of a request with a feed token, and the token as a call parameter.
pub(in crate::http) fn without_token(path: &str) -> Option<(String, (String, String))> {
    let (slug, rest) = path.strip_prefix("/p/")?.split_once("/t/")?;
    let (token, rest) = rest.split_once('/')?;
    let is_whole = !slug.contains('/') && !token.is_empty() && !rest.is_empty();
    is_whole.then(|| (format!("/p/{slug}/{rest}"), (TOKEN.to_owned(), token.to_owned())))
}

fn quietly(entry: Entry) -> Result<Admitted, Refused> {
    match entry {
        Entry::In(page) => Ok(*page),
        Entry::Password | Entry::SignIn => Err(Refused::Page),
    }
}

/// Returns the feed token in a request's path.
pub(super) fn token_of(call: &Call<()>) -> Option<&str> {
    call.param(TOKEN).ok()
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_a_path() {
        let found =
            without_token("/p/shop/t/tok/api/v2/summary.json").map(|(path, (_, token))| (path, token));
        assert_eq!(found, Some(("/p/shop/api/v2/summary.json".to_owned(), "tok".to_owned())));
        for path in
            ["/p/shop/t/tok", "/p/shop/t/tok/", "/p/shop/t//x", "/p/shop/x/t/tok/y", "/x/t/tok/y", "/p/shop"]
        {
            assert_eq!(without_token(path).map(|(path, _)| path), None, "{path}");
        }
    }
}
