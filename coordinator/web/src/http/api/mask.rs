//! Names of the masks in documents.

use parallax_core::destination::MASK;
pub(in crate::http) use parallax_core::destination::{masked_email as email, masked_url as url};

/// Mask of a whole secret.
pub(super) const FULL_MASK: &str = MASK;
