//! Pages: list, create, show, edit, delete.

pub(in crate::http) mod body;
pub(in crate::http) mod status;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::page::Page;
use parallax_core::page::edit::PageEdit;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;

use super::body_check::{self, ChangeBody};
use super::{created_reply, enveloped, enveloped_with_warnings, idempotency_key, write_reply};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let pages = service.pages.list(&call.caller).await?;
    let pages: Vec<_> = pages.iter().map(|page| view::document(service, page)).collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("pages", &pages)))
}

/// `POST /api/v1/pages`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    service.pages.require_admin(&call.caller)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (new, warnings) = body_check::read_new(&object, &body::RULES, |body| body::read_new(body));
    let answer = |page: &Page| enveloped_with_warnings("page", &view::document(service, page), &warnings);
    let new = service.pages.create(&call.caller, &new, &IdempotentRequest::new(idempotency_key, &answer)).await?;
    Ok(created_reply("/api/v1/pages", "page", new, answer))
}

/// `GET /api/v1/pages/{page}`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = context.service.pages.get(&call.caller, call.page_id()?)?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("page", &view::document(&context.service, &page))))
}

/// `PATCH /api/v1/pages/{page}`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    let before = body_check::to_value(&view::document(service, &service.pages.get(&call.caller, page)?));
    let (mut object, idempotency_key) = call.json_object().await?;
    let ChangeBody { edit, errors: field_errors, warnings } =
        body_check::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read(body));
    let edit = PageEdit { read_only_errors: field_errors, ..edit };
    let answer = |page: &Page| enveloped_with_warnings("page", &view::document(service, page), &warnings);
    let changed =
        service.pages.edit(&call.caller, page, &edit, &IdempotentRequest::new(idempotency_key, &answer)).await?;
    Ok(write_reply(StatusCode::OK, changed, answer))
}

/// `PATCH /api/v1/pages/{page}/address`
pub(in crate::http) async fn address(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    let before = body_check::to_value(&view::document(service, &service.pages.get(&call.caller, page)?));
    let (mut object, idempotency_key) = call.json_object().await?;
    let read =
        body_check::read_change(&mut object, before.as_ref(), &body::ADDRESS_RULES, |body| body::read_address(body));
    let ChangeBody { edit, errors: field_errors, warnings } = read;
    let edit = PageEdit { read_only_errors: field_errors, ..edit };
    let answer = |page: &Page| enveloped_with_warnings("page", &view::document(service, page), &warnings);
    let changed =
        service.pages.edit(&call.caller, page, &edit, &IdempotentRequest::new(idempotency_key, &answer)).await?;
    Ok(write_reply(StatusCode::OK, changed, answer))
}

/// `DELETE /api/v1/pages/{page}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = call.page_id()?;
    let answer = |(): &()| Vec::new();
    let idempotency_key = idempotency_key(&call, || {
        context.service.pages.require_admin(&call.caller)?;
        context.service.pages.get(&call.caller, page).map(drop)
    })?;
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let deleted = context.service.pages.delete(&call.caller, page, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, answer))
}

/// `POST /api/v1/pages/{page}/domain/check`
pub(in crate::http) async fn check_domain(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let page = context.service.domains.check(&call.caller, call.page_id()?).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("page", &view::document(&context.service, &page))))
}
