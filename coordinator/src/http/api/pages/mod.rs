//! Pages: list, make, show, edit, delete.

pub(in crate::http) mod body;
pub(in crate::http) mod status;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page::Page;

use super::{done, made, ticket, wrapped};
use crate::http::Context;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;
use crate::service::once::Once;

/// `GET /api/v1/pages`
pub(in crate::http) async fn list(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let service = &context.service;
    let pages = service.pages(&call.caller).await?;
    let pages: Vec<_> = pages.iter().map(|page| view::document(service, page)).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("pages", &pages)))
}

/// `POST /api/v1/pages`
pub(in crate::http) async fn create(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    service.makes_pages(&call.caller)?;
    let (object, ticket) = call.object().await?;
    let answer = |page: &Page| wrapped("page", &view::document(service, page));
    let new = service.add_page(&call.caller, &body::read_new(&object), &Once::new(ticket, &answer)).await?;
    Ok(made("/api/v1/pages", "page", new, answer))
}

/// `GET /api/v1/pages/{page}`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = context.service.page(&call.caller, call.page()?)?;
    Ok(Reply::written(StatusCode::OK, wrapped("page", &view::document(&context.service, &page))))
}

/// `PATCH /api/v1/pages/{page}`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let page = call.page()?;
    service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let edit = body::read(&object);
    let answer = |page: &Page| wrapped("page", &view::document(service, page));
    let changed = service.edit_page(&call.caller, page, &edit, &Once::new(ticket, &answer)).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// `PATCH /api/v1/pages/{page}/address`
pub(in crate::http) async fn address(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let page = call.page()?;
    service.page(&call.caller, page)?;
    let (object, ticket) = call.object().await?;
    let answer = |page: &Page| wrapped("page", &view::document(service, page));
    let edit = body::read_address(&object);
    let changed = service.edit_page(&call.caller, page, &edit, &Once::new(ticket, &answer)).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// `DELETE /api/v1/pages/{page}`
pub(in crate::http) async fn delete(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = call.page()?;
    let answer = |(): &()| Vec::new();
    let ticket = ticket(&call, || {
        context.service.makes_pages(&call.caller)?;
        context.service.page(&call.caller, page).map(drop)
    })?;
    let once = Once::new(ticket, &answer);
    let deleted = context.service.delete_page(&call.caller, page, &once).await?;
    Ok(done(StatusCode::NO_CONTENT, deleted, answer))
}
