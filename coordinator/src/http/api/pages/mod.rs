//! Pages: list, create, show, edit, delete.

pub(in crate::http) mod body;
pub(in crate::http) mod status;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page::Page;
use parallax_core::page::edit::PageEdit;

use super::sent::{self, Sent};
use super::{done, made, ticket, warned, wrapped};
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
    let (new, warnings) = sent::read_new(&object, &body::RULES, |body| body::read_new(body));
    let answer = |page: &Page| warned("page", &view::document(service, page), &warnings);
    let new = service.add_page(&call.caller, &new, &Once::new(ticket, &answer)).await?;
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
    let before = sent::shown(&view::document(service, &service.page(&call.caller, page)?));
    let (mut object, ticket) = call.object().await?;
    let Sent { edit, refused, warnings } =
        sent::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read(body));
    let edit = PageEdit { refused, ..edit };
    let answer = |page: &Page| warned("page", &view::document(service, page), &warnings);
    let changed = service.edit_page(&call.caller, page, &edit, &Once::new(ticket, &answer)).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// `PATCH /api/v1/pages/{page}/address`
pub(in crate::http) async fn address(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let service = &context.service;
    let page = call.page()?;
    let before = sent::shown(&view::document(service, &service.page(&call.caller, page)?));
    let (mut object, ticket) = call.object().await?;
    let read = sent::read_change(&mut object, before.as_ref(), &body::ADDRESS_RULES, |body| {
        body::read_address(body)
    });
    let Sent { edit, refused, warnings } = read;
    let edit = PageEdit { refused, ..edit };
    let answer = |page: &Page| warned("page", &view::document(service, page), &warnings);
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

/// `POST /api/v1/pages/{page}/domain/check`
pub(in crate::http) async fn check_domain(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let page = context.service.check_domain(&call.caller, call.page()?).await?;
    Ok(Reply::written(StatusCode::OK, wrapped("page", &view::document(&context.service, &page))))
}
