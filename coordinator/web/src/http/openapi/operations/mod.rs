//! Every operation of the API, resource by resource.

mod alerts;
mod incidents;
mod monitors;
mod pages;

use super::operation::ApiOperation;

/// Every operation.
pub(in crate::http) fn operations() -> Vec<ApiOperation> {
    [pages::operations(), monitors::operations(), incidents::operations(), alerts::operations()]
        .into_iter()
        .flatten()
        .collect()
}
