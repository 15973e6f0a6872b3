//! The key that asks.

use std::sync::Arc;

use ::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::wrapped;
use crate::http::Context;
use crate::http::openapi::words;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;

/// A key as the API shows it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Key")]
pub(in crate::http) struct KeyDocument {
    /// Key id.
    id: String,
    /// Name given at creation.
    name: String,
    #[schemars(with = "words::Access")]
    access: &'static str,
    /// The one page that the key reaches; null means every page.
    page_id: Option<String>,
    /// When it was made.
    #[schemars(with = "words::Moment")]
    created_at: String,
}

/// `GET /api/v1/me`
pub(in crate::http) async fn show(_context: Arc<Context>, call: Call<Caller>) -> Answer {
    let key = &call.caller.key;
    let document = KeyDocument {
        id: key.id.to_string(),
        name: key.name.clone(),
        access: key.access.name(),
        page_id: key.page.map(|page| page.to_string()),
        created_at: key.created_at.to_string(),
    };
    Ok(Reply::written(StatusCode::OK, wrapped("key", &document)))
}
