//! Examples of a key and of its account's plan.

use parallax_core::id::KeyId;
use serde_json::{Value, json};

use crate::http::openapi::sample_shop::PAGE;

/// The key.
const KEY: KeyId = KeyId::from_u128(0x019c_a9f0_9e83_4d6a_b51f_7c20_e8a4_3690);

/// Returns the examples of that component.
pub(super) fn examples_of(name: &str) -> Vec<Value> {
    match name {
        "Key" => vec![json!({
            "id": KEY.to_string(), "name": "Deploy script", "access": "write", "pageId": PAGE.to_string(),
            "createdAt": "2026-03-01T08:58:12.000Z",
        })],
        "Plan" => vec![json!({
            "name": "hobby", "monitors": { "used": 12, "limit": 50 }, "pages": { "used": 2, "limit": 25 },
            "requestsPerMinute": 120, "checkIntervalSeconds": 60, "certificateIntervalSeconds": 3600,
            "domainIntervalSeconds": 21_600, "componentIntervalSeconds": null,
            "features": { "email": true, "webhooks": true, "regions": true, "components": false },
        })],
        "Quota" => vec![json!({ "used": 12, "limit": 50 })],
        "PlanFeatures" => {
            vec![json!({ "email": true, "webhooks": true, "regions": true, "components": false })]
        }
        _ => Vec::new(),
    }
}
