//! The key that asks.

use std::sync::Arc;

use ::http::StatusCode;
use serde_json::json;

use super::wrapped;
use crate::http::Context;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;

/// `GET /api/v1/me`
pub(in crate::http) async fn show(_context: Arc<Context>, call: Call<Caller>) -> Answer {
    let key = &call.caller.key;
    let document = json!({
        "id": key.id.to_string(),
        "name": key.name,
        "access": key.access.name(),
        "pageId": key.page.map(|page| page.to_string()),
        "createdAt": key.created_at.to_string(),
    });
    Ok(Reply::written(StatusCode::OK, wrapped("key", &document)))
}
