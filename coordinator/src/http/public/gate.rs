//! Where each route of a page begins: which page is meant, by host or by path, and whether its visitor may see it.

use ::http::HeaderMap;
use ::http::header::HOST;

use crate::http::Context;
use crate::http::error::Refused;
use crate::http::route::Call;
use crate::service::Error;
use crate::service::gate::{Admitted, Door};
use crate::service::hosts::Whose;

/// What the paths of hosts that belong to no page begin with, where a page's own host has them too.
const SHARED: &str = "/assets/";
/// What the paths of pings begin with: a job may know us by any name, and a lost ping would be taken for a lost job.
const ANYWHERE: &str = "/ping/";

/// The page of a request to one of [`rows`](super::rows), for a visitor who may see it.
///
/// # Errors
/// [`Refused::Page`] where there is none, or none that this visitor may see: alike.
pub(in crate::http) fn enter(context: &Context, call: &Call<()>) -> Result<Admitted, Refused> {
    let slug = call.param("slug")?;
    let own = host(&call.headers).map(|host| context.service.page_at(host)).transpose()?.flatten();
    let door = if own.as_deref() == Some(slug) { Door::Own } else { Door::Shared };
    context.service.admit(slug, door).map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })
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

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(HOST)?.to_str().ok()
}
