//! The HTTP interface: API, public pages and MCP.
//!
//! `server/` accepts connections, `dispatch.rs` finds the handler of a request in the table of `routes.rs`, and `api/`,
//! `public/`, `dashboard/`, `mcp/`, `docs/` and `openapi/` hold the handlers. A handler gets the shared [`HttpContext`] and a
//! `RoutedRequest`, and returns an `HttpResponse` or an `ApiError`.

mod api;
mod auth;
mod body_fields;
mod content_negotiation;
mod context;
mod csv;
mod dashboard;
mod dispatch;
mod docs;
mod document_response;
mod error;
mod error_hints;
mod heartbeat_ping;
mod json_body;
mod legacy;
mod mcp;
mod openapi;
mod public;
mod response;
mod route;
mod routed_request;
mod routes;
pub mod server;

pub use context::HttpContext;
pub use error::report_omitted_lines;

/// Path prefix of the API.
const API_PREFIX: &str = "/api/v1";

#[cfg(test)]
pub(crate) mod tests;
