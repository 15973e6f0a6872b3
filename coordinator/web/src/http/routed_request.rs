//! A request as its handler gets it: with caller, path parameters and body.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderValue, Method};
use parallax_core::id::{MonitorId, PageId};
use parallax_service::idempotency::IdempotencyKey;
use parallax_service::{Caller, ServiceError};

use super::error::{ApiError, HandlerResult};
use super::json_body::{self, RequestBody};
use super::legacy;
use super::server::client_ip::PeerAddress;

/// A request with a matching route, as passed to its handler.
pub(super) struct RoutedRequest<C> {
    /// The authenticated caller, or `()` on open routes.
    pub(super) caller: C,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) peer: Option<PeerAddress>,
    pub(super) params: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    /// Fields of the form in the body, once the dashboard has checked its token.
    pub(super) form: Option<Vec<(String, String)>>,
    /// Set by the handler if the response must not be cached.
    pub(super) no_store: NoStoreFlag,
}

/// Flag for responses that must not be cached, since not everyone may see the page: set by the access check, applied
/// when the response is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct NoStoreFlag(Arc<AtomicBool>);

impl NoStoreFlag {
    /// Forbids caching of the response.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Adds the no-store headers if the flag is set.
    pub(super) fn apply(&self, answer: HandlerResult) -> HandlerResult {
        if !self.0.load(Ordering::Relaxed) {
            return answer;
        }
        Ok(answer.unwrap_or_else(ApiError::into_response).no_store())
    }
}

impl<C> RoutedRequest<C> {
    /// The same request of another caller.
    pub(super) fn with_caller<D>(self, caller: D) -> RoutedRequest<D> {
        let Self { method, path, query, peer, params, headers, body, form, no_store, .. } = self;
        RoutedRequest { caller, method, path, query, peer, params, headers, body, form, no_store }
    }

    /// Returns the path parameter of that name.
    pub(super) fn path_param(&self, name: &str) -> Result<&str, ApiError> {
        let param = self.params.iter().find(|(candidate, _)| candidate == name);
        param.map(|(_, value)| value.as_str()).ok_or(ApiError::Service(ServiceError::NotFound))
    }

    /// Parses the page id in the path. Invalid ids give "not found".
    pub(super) fn page_id(&self) -> Result<PageId, ApiError> {
        self.id("page")
    }

    /// Parses the monitor id in the path.
    pub(super) fn monitor_id(&self) -> Result<MonitorId, ApiError> {
        self.id("monitor")
    }

    /// Parses an id in the path.
    pub(super) fn id<T: FromStr>(&self, name: &str) -> Result<T, ApiError> {
        self.path_param(name)?.parse().map_err(|_| ApiError::Service(ServiceError::NotFound))
    }
}

impl RoutedRequest<Caller> {
    /// Reads the body; an empty one becomes an empty JSON object, for a route whose body is optional.
    pub(super) async fn fill_empty_body(&mut self) -> Result<(), ApiError> {
        let bytes = json_body::read_bytes(&self.headers, &mut self.body).await?;
        if bytes.is_empty() {
            self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            self.body = json_body::from_bytes(b"{}".to_vec());
        } else {
            self.body = json_body::from_bytes(bytes);
        }
        Ok(())
    }

    /// Reads the body as a JSON object, and the idempotency key if there is one.
    pub(super) async fn json_object(&mut self) -> Result<(json_body::JsonObject, Option<IdempotencyKey>), ApiError> {
        let bytes = json_body::read_bytes_to(&self.path, &self.headers, &mut self.body).await?;
        let object = json_body::parse_object(&self.headers, &bytes)?;
        Ok((object, self.idempotency_key(&bytes)?))
    }

    /// Returns the idempotency key of the request, bound to its method, path and body.
    pub(super) fn idempotency_key(&self, body: &[u8]) -> Result<Option<IdempotencyKey>, ApiError> {
        let Some(value) = json_body::idempotency_key(&self.headers)? else { return Ok(None) };
        let path = legacy::new_path(&self.path);
        let request = [self.method.as_str().as_bytes(), path.as_bytes(), body];
        Ok(Some(IdempotencyKey::new(self.caller.limit_id(), value, &request)))
    }
}
