//! Schema of region names in the bodies of webhooks.

use std::borrow::Cow;

use parallax_core::vantage::Region;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Schema of region names: the same component as elsewhere in the OpenAPI document.
pub(super) struct RegionNameSchema;

impl JsonSchema for RegionNameSchema {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Region")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "enum": Region::ALL.map(Region::name),
            "description": "A region that checks run from. More may be added.",
        })
    }
}
