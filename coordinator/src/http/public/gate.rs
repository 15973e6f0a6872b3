//! Where each route of a page begins: which page is meant, by host or by path, and whether its visitor may see it.

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

/// What the paths of hosts that belong to no page begin with, where a page's own host has them too.
const SHARED: &str = "/assets/";
/// What the paths of pings begin with: a job may know us by any name, and a lost ping would be taken for a lost job.
const ANYWHERE: &str = "/ping/";
/// The part of a path by which a feed token is kept.
const TOKEN: &str = "feed token";

/// The page of a request to one of [`rows`](super::rows), for a visitor who may see it. What a program reads is answered
/// for everybody else as though there were no page.
///
/// # Errors
/// [`Refused::Page`] where there is none, or none that this visitor may see: alike.
pub(in crate::http) fn enter(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    // A token opens what says that it does, and nothing else.
    if token_of(call).is_some() {
        call.seal.set();
        return Err(Refused::Page);
    }
    quietly(entry(context, call, None)?)
}

/// The same for what people look at: who may not see the page is asked for what lets him in, and led back.
///
/// # Errors
/// [`Refused::Page`] where there is none, [`Refused::Locked`] where this visitor may not see it.
pub(in crate::http) fn enter_or_ask(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    if token_of(call).is_some() {
        return enter(context, call);
    }
    match entry(context, call, None)? {
        Entry::In(page) => Ok(*page),
        locked => Err(Refused::Locked(door::form(context, call, &locked)?)),
    }
}

/// The same for what feed readers, calendars and badges fetch: a token in the path opens it too, as
/// `/p/{slug}/t/{token}/...`.
///
/// # Errors
/// As [`enter`].
pub(in crate::http) fn enter_feed(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    quietly(entry(context, call, token_of(call).map(str::to_owned))?)
}

/// What the gate says to this visitor. What he is answered is kept by nobody where the page is not everybody's.
///
/// # Errors
/// [`Refused::Page`] where there is no such page.
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

/// The label that was asked for, and by which address.
///
/// # Errors
/// A fault of the store.
pub(super) fn asked_for<'a>(context: &Context, call: &'a Call<()>) -> Result<(&'a str, Door), Refused> {
    let slug = call.param("slug")?;
    let own = host(&call.headers).map(|host| context.service.page_at(host)).transpose()?.flatten();
    Ok((slug, if own.as_deref() == Some(slug) { Door::Own } else { Door::Shared }))
}

/// The path under which the table has what a page's own host was asked for; none for every other host.
///
/// # Errors
/// [`Refused::Elsewhere`] for a host that is nobody's here, and a fault of the store.
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

/// The path under which the table has what was asked for with a feed token, and what the call notes of it.
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

/// The feed token that a request's path has.
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
